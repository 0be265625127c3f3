#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Wants a pod of devmgrd, shows what its container gets, and wants it no longer.

  client.py SOCKET MANIFEST CONTAINER
Needs python3-grpcio, python3-protobuf, and what protoc makes of the installed files:
  cd /usr/share/devmgr/proto && protoc -I . --python_out=DIR devmgr/*/v1/*.proto
"""
import sys

import grpc
from devmgr.control.v1 import control_pb2 as control
from devmgr.inspection.v1 import inspection_pb2 as inspection


class Controller:
  """The control service, without generated stubs."""

  def __init__(self, socket):
    self._channel = grpc.insecure_channel('unix:' + socket)

  def call(self, method, request, answer):
    return self._channel.unary_unary(
        '/devmgr.control.v1.Controller/' + method,
        request_serializer=type(request).SerializeToString,
        response_deserializer=answer.FromString)(request, timeout=30)

  def watch(self, token=''):
    return self._channel.unary_stream(
        '/devmgr.control.v1.Controller/WatchPods',
        request_serializer=control.WatchPodsRequest.SerializeToString,
        response_deserializer=control.WatchPodsResponse.FromString)(
            control.WatchPodsRequest(resume_token=token), timeout=60)


def wait_until_ready(controller, uid):
  """A client that loses the connection goes on with the token of the last message."""
  for message in controller.watch():
    if message.pod.uid == uid and message.pod.state == inspection.POD_STATE_READY:
      return


def main(socket, manifest, container):
  controller = Controller(socket)
  with open(manifest, encoding='utf-8') as text:
    wanted = controller.call('WantPod', control.WantPodRequest(manifest=text.read()),
                             control.WantPodResponse)
  wait_until_ready(controller, wanted.uid)
  of_container = {'uid': wanted.uid, 'container': container}
  devices = controller.call('ContainerDevices', control.ContainerDevicesRequest(**of_container),
                            inspection.ContainerDevices)
  controller.call('BeforeContainerStart', control.BeforeContainerStartRequest(**of_container),
                  control.BeforeContainerStartResponse)
  print(*(device.name for device in devices.cdi_devices))
  controller.call('UnwantPod', control.UnwantPodRequest(uid=wanted.uid), control.UnwantPodResponse)


if __name__ == '__main__':
  main(*sys.argv[1:])
