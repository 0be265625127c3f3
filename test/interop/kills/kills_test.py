#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""devmgrd is killed again and again while an unmodified driver publishes to it.
Versions only rise, none is given twice, and in the end no slice is lost or
doubled. API-044, API-068. 1,000 kills: DEVMGR_TEST_SCALE=50."""

import json
import os
import random
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

from interop import DRIVER, Program, Reader, main, scaled, wait_for  # noqa: E402

CONFIG = f'''
nodeName: node-1
driverEndpoint:
  drivers: [{DRIVER}]
'''
KILLS = 20
PER_SLICE = 3
HELPER = 300  # Seconds that the helper may let go by after failures.


class Versions:
  """What must hold of all lists of a life, over all restarts."""

  def __init__(self):
    self._last = 0
    self._objects = {}  # by version: the object that has it
    self._versions = {}  # by UID: its last version

  def problem(self, version, items):
    """What is wrong with the next list; '' when nothing is."""
    if version < self._last:
      return f'the list has version {version} after {self._last}'
    self._last = version
    places = []
    for item in items:
      own = int(item['metadata']['resourceVersion'])
      uid, name = item['metadata']['uid'], item['metadata']['name']
      if own > version:
        return f'{name} has version {own}, and the list {version}'
      if own < self._versions.get(uid, 0):
        return f'{name} has version {own} after {self._versions[uid]}'
      if self._objects.setdefault(own, item) != item:
        return f'version {own} is given to two: {self._objects[own]} and {item}'
      self._versions[uid] = own
      places.append((uid, name))
    if len(set(places)) != len(places):
      return f'a slice is there twice: {places}'
    return ''


def settled(items, count, taint):
  """Whether it is what the driver is to publish: each device once."""
  devices = sorted(device['name'] for item in items for device in item['spec']['devices'])
  tainted = [device['name'] for item in items for device in item['spec']['devices']
             if device.get('taints')]
  return (devices == sorted(f'gpu-{i}' for i in range(count)) and
          tainted == [taint] and
          len({item['spec']['pool']['generation'] for item in items}) == 1 and
          all(item['spec']['pool']['resourceSliceCount'] == len(items) for item in items))


def test(setting):
  tap = setting.tap
  seed = int(os.environ.get('DEVMGR_TEST_SEED') or random.SystemRandom().randrange(10**6))
  rng = random.Random(seed)
  kills = scaled(KILLS)
  every = max(5, kills // 40)  # So often it is to get somewhere in between.
  with setting.node(CONFIG) as node:
    orders = node.root + '/orders'
    os.mkdir(orders)

    def order(name, text):
      with open(f'{orders}/{name}.tmp', 'w', encoding='utf-8') as file:
        file.write(text)
      os.rename(f'{orders}/{name}.tmp', f'{orders}/{name}')

    order('taint', 'gpu-0')
    driver = Program(node.root + '/driver.log', setting.go + '/stock', '--name', DRIVER, '--root', node.root,
                     '--kubeconfig', f'{node.root}/kubeconfig/{DRIVER}', '--orders', orders,
                     '--per-slice', str(PER_SLICE), '--qps', '100')
    reader, versions = Reader(node.root), Versions()
    problems = []

    def look():
      time.sleep(0.1)  # The driver is to have most of what it may ask for.
      got = reader.list()
      if got is not None:
        problem = versions.problem(*got)
        if problem:
          problems.append(problem)
      return got

    want = (4, 'gpu-0')

    def publish():
      count = rng.randrange(1, 30)
      taint = f'gpu-{rng.randrange(count)}'
      order('devices', str(count))
      order('taint', taint)
      return count, taint

    def is_settled():
      return settled((look() or (0, []))[1], *want)

    def settles():
      """The helper waits twice as long after each failure, up to minutes, unless
      there is something new to publish."""
      nonlocal want
      for _ in range(HELPER // 10):
        if problems or wait_for(is_settled, 10):
          return not problems
        want = publish()
      return False

    try:
      tap.check(wait_for(is_settled), 'the driver publishes', '\n'.join(driver.lines()[-20:]))
      for kill in range(kills):
        want = publish()
        time.sleep(rng.random() * 0.15)  # Any moment of its writes.
        look()
        node.daemon.stop(signal.SIGKILL)
        node.start()
        if not wait_for(lambda: look() is not None):
          problems.append(f'devmgrd does not answer after kill {kill + 1}: ' +
                          '\n'.join(node.daemon.lines()[-10:]))
        if kill % every == every - 1 and not settles():
          problems.append(f'after {kill + 1} kills the slices are not those of the driver: {look()}' +
                          '\n'.join(driver.lines()[-60:]))
        if problems:
          break
      tap.check(settles(), f'no slice is lost or doubled by {kills} kills', f'seed {seed}: {look()}')
      tap.equal(problems, [], f'versions only rise over {kills} kills (seed {seed})')
      shown = node.ctl('get', 'slices', '-o', 'json')
      items = json.loads(shown.stdout)['items'] if shown.returncode == 0 else []
      tap.equal(sorted(item['metadata']['name'] for item in items),
                sorted(item['metadata']['name'] for item in look()[1]),
                'get slices has the same')
    finally:
      driver.stop()


if __name__ == '__main__':
  main(test)
