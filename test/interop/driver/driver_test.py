#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""devmgrd and a driver on the official helper; the official stubs and our fake
driver."""

import os
import shutil
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

from interop import (PATIENCE, DRIVER, Program, main, run, wait_for)  # noqa: E402

CLAIM = '6b2e1d5f-0000-4000-8000-0000000000c1'
DIRECT_CLAIM = '6b2e1d5f-0000-4000-8000-0000000000c2'
DEVICES = [f'{DRIVER}/claim={DIRECT_CLAIM}-port-3', f'{DRIVER}/claim={CLAIM}-gpu-0']


def official_driver(tap, node, go, manifest):
  """devmgrd serves a driver that is built on the official helper."""
  driver = Program(node.root + '/driver.log', go + '/driver', '--name', DRIVER,
                   '--root', node.root, '--manifest', manifest)
  prepared = [f'prepared default/interop-extended-resources-x2m9k {CLAIM}',
              f'prepared default/network {DIRECT_CLAIM}']

  def said(word):
    return sorted(line for line in driver.lines() if line.startswith(word + ' '))

  try:
    tap.check(wait_for(node.connected), 'the official helper registers',
              '\n'.join(driver.lines()))
    shutil.copy(manifest, node.root + '/manifests/objects.yaml')
    ready = node.ctl('wait', 'pod', 'interop', '--for=ready', '--timeout', '60s')
    tap.check(ready.returncode == 0, 'a pod becomes ready', ready.stderr)
    tap.equal(sorted(node.devices()), sorted(DEVICES),
              'the container gets what the driver said')
    tap.equal(said('prepared'), prepared, 'each claim was prepared once')

    node.daemon.stop(signal.SIGKILL)
    node.start()
    tap.check(wait_for(node.connected), 'the driver is found again after kill -9')
    tap.equal(sorted(node.devices()), sorted(DEVICES), 'the answer is the same')
    tap.equal(said('prepared'), prepared, 'nothing was prepared again')

    os.remove(node.root + '/manifests/objects.yaml')
    gone = node.ctl('wait', 'pod', 'interop', '--for=released', '--timeout', '60s')
    tap.check(gone.returncode == 0, 'the pod is released', gone.stderr)
    tap.equal(said('unprepared'), ['un' + line for line in prepared],
              'each claim was unprepared once')
  finally:
    driver.stop()
  tap.check(wait_for(lambda: not node.connected()), 'the driver leaves')


def official_client(tap, node, go, manifest):
  """Our fake driver understands the kubelet's stubs."""
  shutil.copy(manifest, node.root + '/manifests/objects.yaml')
  registration = f'{node.root}/plugins_registry/{DRIVER}-reg.sock'
  node.daemon.stop()  # The client stands in for the kubelet.
  driver = Program(node.root + '/fake.log', node.tool('fake-dra-driver'),
                   '--name', DRIVER, '--root', node.root)
  try:
    tap.check(wait_for(lambda: os.path.exists(registration)),
              'the fake driver offers itself', '\n'.join(driver.lines()))
    done = run([go + '/client', '--socket', registration, '--claim', 'network',
                '--uid', DIRECT_CLAIM], timeout=PATIENCE)
    lines = done.stdout.splitlines()
    device = f'[port] node-1 port-3 [{DRIVER}/claim={DIRECT_CLAIM}-port-3-0]'
    tap.equal(lines, [
        f'info DRAPlugin {DRIVER} v1.DRAPlugin,v1beta1.DRAPlugin',
        f'v1 prepared {device}',
        'v1 error ""',
        f'v1beta1 prepared {device}',
        'v1beta1 unprepared ""',
        'v1 unprepared once more',
    ], 'the official stubs prepare and unprepare in both versions')
    if done.returncode != 0:
      print('# ' + done.stderr)
  finally:
    driver.stop()


def test(setting):
  manifest = setting.source + '/objects.yaml'
  with setting.node() as node:
    official_driver(setting.tap, node, setting.go, manifest)
    official_client(setting.tap, node, setting.go, manifest)


if __name__ == '__main__':
  main(test)
