#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified drivers and devmgrd without an API server: drivers on the official
helper of several releases, and Kubernetes' own test driver. API-063, 064, 067,
068; AL-078, AL-087."""

import json
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

from interop import (DRIVER, TEST_DRIVER, TEST_DRIVER_PACKAGE, Node, Program, Reader,  # noqa: E402
                     build_program, build_with, main, wait_for)

NODE = 'node-1'
CONFIG = f'''
nodeName: {NODE}
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
'''


def pod(name, count=1):
  return f'''
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: {NODE}
  containers:
  - name: main
    resources: {{limits: {{example.com/gpu: {count}}}}}
'''


class Alone:
  """A node, its driver, and what the test says of them."""

  def __init__(self, tap, node, way, start):
    """`start(log, root, *flags)` starts a driver."""
    self.tap = tap
    self.node = node
    self._way = way
    self._start = start
    self._drivers = 0
    self.orders = node.root + '/orders'
    os.makedirs(self.orders, exist_ok=True)

  def driver(self, *flags):
    self._drivers += 1
    return self._start(f'{self.node.root}/driver-{self._drivers}.log', self.node.root, *flags)

  def place(self, path, text):
    with open(path + '.tmp', 'w', encoding='utf-8') as file:
      file.write(text)
    os.rename(path + '.tmp', path)

  def write(self, name, text):
    self.place(f'{self.node.root}/manifests/{name}.yaml', text)

  def order(self, name, text):
    self.place(f'{self.orders}/{name}', text)

  def remove(self, name):
    os.remove(f'{self.node.root}/manifests/{name}.yaml')

  def check(self, holds, what, details=''):
    self.tap.check(holds, f'{self._way}: {what}', details or self.story())

  def story(self):
    text = '\n'.join(self.node.daemon.lines()[-15:])
    for i in range(self._drivers):
      with open(f'{self.node.root}/driver-{i + 1}.log', encoding='utf-8', errors='replace') as log:
        text += f'\n-- driver {i + 1}\n' + log.read()[-2000:]
    return text

  def wait(self, name, state, what):
    done = self.node.ctl('wait', 'pod', name, f'--for={state}', '--timeout', '60s')
    self.check(done.returncode == 0, what, done.stderr + self.story() if done.returncode else '')

  def items(self, kind):
    done = self.node.ctl('get', kind, '-o', 'json')
    return json.loads(done.stdout)['items'] if done.returncode == 0 else []

  def slices(self):
    """What is published: names, versions and devices, in the order of names."""
    return sorted((s['metadata']['name'], s['status']['state'], len(s['status']['devices']))
                  for s in self.items('slices'))

  def devices(self, name):
    return sorted('-'.join(each.split('-')[-2:]) for each in self.node.devices(name))

  def said_of(self, name):
    """What drivers say of the devices of the pod's claim, as `get claims` has it."""
    for claim in self.items('claims'):
      status = claim.get('object', {}).get('status', {})
      if any(consumer['name'] == name for consumer in status.get('reservedFor', [])):
        return status.get('devices', [])
    return []

  def kill_daemon(self):
    self.node.daemon.stop(signal.SIGKILL)
    self.node.start()


# Seconds. A driver that has found no server a few times looks again after up to a
# minute, and waits half a minute more where slices have just changed.
DRIVER_PATIENCE = 150


def states(alone, state, devices):
  return wait_for(lambda: [s[1:] for s in alone.slices()] == [(state, devices)], DRIVER_PATIENCE)


def on_the_helper(tap, node, way, start):
  """A life of a driver on the official helper, which starts first."""
  alone = Alone(tap, node, way, start)
  alone.write('class', CLASS)
  driver = alone.driver('--status', 'update')
  try:
    alone.check(states(alone, 'Complete', 4), 'the driver publishes')
    alone.write('a', pod('a', 2))
    alone.wait('a', 'ready', 'a pod gets devices by its limits alone')
    tap.equal(alone.devices('a'), ['gpu-0', 'gpu-1'], f'{way}: the first two')
    said = alone.said_of('a')
    alone.check([(d['device'], d['conditions'][0]['type'], d['data']) for d in said] ==
                [(d, 'Ready', {'by': 'update'}) for d in ('gpu-0', 'gpu-1')],
                'get claims has what the driver says of them', json.dumps(said))
    alone.order('devices', '6')
    alone.check(states(alone, 'Complete', 6), 'it publishes more')
    alone.order('taint', 'gpu-2')
    reader = Reader(node.root)
    alone.check(wait_for(lambda: 'example.com/broken' in json.dumps(reader.list())),
                'it taints a device')
    alone.write('b', pod('b'))
    alone.wait('b', 'ready', 'a pod gets a device')
    tap.equal(alone.devices('b'), ['gpu-3'], f'{way}: not the one with the taint')

    # Upgraded in place: the newer one is there before the older one ends.
    newer = alone.driver('--status', 'apply', '--instance', 'u-2', '--orders', alone.orders)
    alone.check(wait_for(lambda: sum(p['status']['state'] == 'Connected'
                                     for p in node.plugins()) == 2),
                'a newer instance comes')
    driver.stop()
    driver = newer
    alone.check(states(alone, 'Complete', 6), 'its slices are those of the older one')
    alone.write('c', pod('c'))
    alone.wait('c', 'ready', 'the newer one prepares')
    alone.check([d['networkData']['ips'] for d in alone.said_of('c')] == [['192.0.2.5/24']],
                'and applies what it says', json.dumps(alone.said_of('c')))

    before, said = alone.slices(), [alone.said_of(name) for name in 'abc']
    for _ in range(3):
      alone.kill_daemon()
      alone.check(wait_for(node.connected), 'the driver is found again after kill -9')
      alone.check(wait_for(lambda: alone.slices() == before), 'no slice is lost or doubled')
      tap.equal([alone.said_of(name) for name in 'abc'], said,
                f'{way}: nor what it says of devices')
    alone.order('devices', '5')
    alone.check(states(alone, 'Complete', 5), 'it publishes to the new endpoint')

    # Another boot: all is prepared anew, once the driver is there.
    driver.stop()
    node.daemon.stop()
    node.start('--boot-id', 'another')
    alone.check(states(alone, 'Hidden', 5), 'after a reboot its slices are hidden')
    held = [alone.devices(name) for name in 'abc']
    tap.equal(held, [[], [], []], f'{way}: and no container starts')
    driver = alone.driver('--status', 'apply', '--orders', alone.orders)
    for name in 'abc':
      alone.wait(name, 'ready', f'pod {name} is prepared again')
    tap.equal([alone.devices(name) for name in 'abc'], [['gpu-0', 'gpu-1'], ['gpu-3'], ['gpu-4']],
              f'{way}: with the devices that it had')
    alone.check(states(alone, 'Complete', 5), 'the slices count again')
    for name in 'abc':
      alone.remove(name)
      alone.wait(name, 'released', f'pod {name} is released')
    tap.equal(alone.items('claims'), [], f'{way}: no claim is left')
    tap.equal([f for f in os.listdir(node.root + '/cdi') if f.endswith('.json')], [],
              f'{way}: no CDI spec is left')
  finally:
    driver.stop()


def on_the_helpers(setting):
  for way, modfile in (('0.34', ''), ('0.36', 'v036.mod'), ('newest', 'newest.mod')):
    program, why_not = build_with(setting.source, setting.go, 'stock', modfile)
    if why_not:
      setting.tap.skip(f'{way}: a driver on the helper', why_not)
      continue

    def start(log, root, *flags, program=program):
      return Program(log, program, '--name', DRIVER, '--root', root, '--node', NODE,
                     '--kubeconfig', f'{root}/kubeconfig/{DRIVER}', '--orders', root + '/orders',
                     *flags)

    with setting.node(CONFIG) as node:
      on_the_helper(setting.tap, node, way, start)


def starter_of_test_driver(setting):
  """What starts Kubernetes' own driver of its tests; None where there is none."""
  program, why_not = build_program(setting.source + '/testdriver', setting.go, TEST_DRIVER,
                                   TEST_DRIVER_PACKAGE)
  if why_not:
    setting.tap.skip("Kubernetes' test driver", why_not)
    return None

  def start(log, root):
    for folder in ('plugins_registry', 'plugins/' + DRIVER):
      os.makedirs(f'{root}/{folder}', exist_ok=True)
    return Program(log, program, '--kubeconfig', f'{root}/kubeconfig/{DRIVER}', '--drivername', DRIVER,
                   'kubelet-plugin', '--plugin-registration-path', root + '/plugins_registry',
                   '--datadir', root + '/plugins', '--cdi-dir', root + '/cdi', '--node-name', NODE)

  return start


def test_driver(setting):
  """In either order with devmgrd."""
  start = starter_of_test_driver(setting)
  if start is None:
    return
  for first in ('devmgrd', 'driver'):
    way = f'test driver, {first} first'
    with setting.node(CONFIG) as node:
      alone = Alone(setting.tap, node, way, start)
      alone.write('class', CLASS)
      alone.write('early', pod('early'))
      if first == 'driver':
        # Its kubeconfig is there from the run before.
        node.daemon.stop(signal.SIGKILL)
      driver = alone.driver()
      try:
        if first == 'driver':
          wait_for(lambda driver=driver: len(driver.lines()) > 2)
          node.start()
        alone.wait('early', 'ready', 'the pod that was there first gets its device')
        alone.check(states(alone, 'Complete', 4), 'the slices are there')
        before = alone.slices()
        alone.kill_daemon()
        alone.check(wait_for(node.connected), 'the driver is found again after kill -9')
        setting.tap.equal(alone.slices(), before, f'{way}: the slices are the same')
        alone.write('late', pod('late', 3))
        alone.wait('late', 'ready', 'the next pod gets the others')
        driver.stop()
        driver = alone.driver()
        for name in ('early', 'late'):
          alone.remove(name)
          alone.wait(name, 'released', f'{name} is released by the next driver')
        setting.tap.equal(alone.items('claims'), [], f'{way}: no claim is left')
      finally:
        driver.stop()


class EdgeNode(Node):
  """A root folder with edge-kubelet on it. There is no runtime: pods get their
  devices, and no container; test/e2e has that."""

  def start(self, *flags):
    self.daemon = Program(self.root + '/edge-kubelet.log', self.example('edge-kubelet'),
                          '--root', self.root, '--node-name', NODE, '--driver', DRIVER,
                          '--cdi-spec-dir', self.root + '/cdi',
                          '--runtime-endpoint', self.root + '/no-runtime.sock', *flags)


def beside_edge_kubelet(setting):
  """A pod file, a class, the driver and edge-kubelet are all there is."""
  if not os.path.exists(setting.build_root + '/examples/edge-kubelet/edge-kubelet'):
    setting.tap.skip('edge-kubelet', 'the examples are not built')
    return
  start = starter_of_test_driver(setting)
  if start is None:
    return
  with setting.node(kind=EdgeNode) as node:
    alone = Alone(setting.tap, node, 'edge-kubelet', start)
    alone.write('class', CLASS)
    alone.write('a', pod('a', 2))
    driver = alone.driver()
    try:
      alone.wait('a', 'ready', 'a pod gets devices by its limits alone')
      alone.check(states(alone, 'Complete', 4), 'the slices are there')
      before = alone.slices()
      alone.kill_daemon()
      alone.check(wait_for(node.connected), 'the driver is found again after kill -9')
      setting.tap.equal(alone.slices(), before, 'edge-kubelet: the slices are the same')
      alone.write('b', pod('b', 2))
      alone.wait('b', 'ready', 'the next pod gets the others')
    finally:
      driver.stop()


if __name__ == '__main__':
  main(on_the_helpers, test_driver, beside_edge_kubelet)
