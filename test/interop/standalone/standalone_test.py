#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node alone: an unmodified driver on the official helper publishes to
devmgrd, and pods get its devices without a claim that anybody has written.
AL-078, AL-087, AL-142, API-067, API-068."""

import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

from interop import (DRIVER, Program, main, wait_for)  # noqa: E402

CONFIG = f'''
nodeName: node-1
driverEndpoint:
  drivers: [{DRIVER}]
'''

CLASS = f'''
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: gpu}}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{{cel: {{expression: 'device.driver == "{DRIVER}"'}}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: one}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu}}}}]}}}}}}
'''


def extended(name, count):
  return f'''
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: node-1
  containers:
  - name: main
    resources: {{limits: {{example.com/gpu: {count}}}}}
'''


def from_template(name):
  return f'''
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: node-1
  resourceClaims: [{{name: own, resourceClaimTemplateName: one}}]
  containers:
  - name: main
    resources: {{claims: [{{name: own}}]}}
'''


class Alone:
  """The node, its driver, and what the test says of them."""

  def __init__(self, setting, node):
    self._go = setting.go
    self._tap = setting.tap
    self._node = node
    self._drivers = 0

  def start_driver(self):
    self._drivers += 1
    return Program(f'{self._node.root}/driver-{self._drivers}.log', self._go + '/driver',
                   '--name', DRIVER, '--root', self._node.root, '--kubeconfig',
                   f'{self._node.root}/kubeconfig/{DRIVER}', '--devices', '4')

  def write(self, name, text):
    path = f'{self._node.root}/manifests/{name}.yaml'
    with open(path + '.tmp', 'w', encoding='utf-8') as file:
      file.write(text)
    os.rename(path + '.tmp', path)

  def remove(self, name):
    os.remove(f'{self._node.root}/manifests/{name}.yaml')

  def wait(self, pod, state, what):
    done = self._node.ctl('wait', 'pod', pod, f'--for={state}', '--timeout', '60s')
    self._tap.check(done.returncode == 0, what,
                    done.stderr + '\n'.join(self._node.daemon.lines()[-20:]))

  def devices(self, pod):
    """`gpu-0`, ...: of the names DRIVER/claim=UID-DEVICE."""
    return sorted('-'.join(name.split('-')[-2:]) for name in self._node.devices(pod))


def test(setting):
  tap = setting.tap
  with setting.node(CONFIG) as node:
    alone = Alone(setting, node)
    alone.write('class', CLASS)
    alone.write('early', extended('early', 2))
    alone.wait('early', 'waiting', 'a pod waits for devices that are not published')
    driver = alone.start_driver()
    try:
      alone.wait('early', 'ready', 'a pod gets devices by its limits alone')
      tap.equal(alone.devices('early'), ['gpu-0', 'gpu-1'], 'the first two')
      alone.write('own', from_template('own'))
      alone.wait('own', 'ready', 'a claim is made from a template')
      tap.equal(alone.devices('own'), ['gpu-2'], 'the next one')
      alone.write('late', extended('late', 2))
      alone.wait('late', 'waiting', 'a pod waits when too few are free')
      why = node.ctl('explain', 'pod', 'late').stdout
      tap.check('default/early' in why and 'default/own' in why,
                'and says which pods hold them', why)

      before = alone.devices('early')
      node.daemon.stop(signal.SIGKILL)
      node.start()
      tap.check(wait_for(node.connected), 'the driver is found again after kill -9')
      tap.equal(alone.devices('early'), before, 'the answer is the same')
      alone.remove('early')
      alone.wait('early', 'released', 'the first pod is released')
      alone.wait('late', 'ready', 'and the one that waited has its turn')
      tap.equal(len(alone.devices('late')), 2, 'with two devices')

      driver.stop()
      driver = alone.start_driver()
      tap.check(wait_for(node.connected), 'the driver starts again')
      for pod in ('own', 'late'):
        alone.remove(pod)
        alone.wait(pod, 'released', f'{pod} is released')
      alone.write('all', extended('all', 4))
      alone.wait('all', 'ready', 'all devices are free again')
      tap.equal(alone.devices('all'), [f'gpu-{i}' for i in range(4)], 'four of them')
    finally:
      driver.stop()


if __name__ == '__main__':
  main(test)
