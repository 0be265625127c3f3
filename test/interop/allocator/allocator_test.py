#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Worlds by chance, allocated by Kubernetes' own allocators and by ours:
allocator_test.py BUILD_ROOT SOURCE_ROOT.

Whether there is a solution, its devices, configuration and nodes have to be
those of the newest official allocator. DEVMGR_TEST_SCALE=500 is the long run of
a million worlds, DEVMGR_TEST_SEED another sequence. Where ours differs on
purpose is recognised in known.py; how often each was met is printed, and how
many worlds each rule decides. A world that differs otherwise is made as small
as it can be and printed; kept in test/data/allocator it is replayed for ever.
"""

import collections
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, '..'))
sys.path.insert(0, os.path.join(HERE, '..', '..', 'headers'))

from interop import build_program  # noqa: E402
from known import difference, outcome, share_ids, spellings  # noqa: E402
from shrink import shrink  # noqa: E402
from tap import Tap  # noqa: E402

COUNT = 2000  # worlds, times the scale
BATCH = 500  # worlds at a time
DECIDED = 400  # worlds at least of which it is asked which rules decide them
LONG = 20000  # worlds of which each rule decides some
SHRUNK = 5  # of those that differ


class Program:
  """Answers lines with lines."""

  def __init__(self, *command):
    self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

  def ask(self, world):
    self._process.stdin.write(json.dumps(world) + '\n')
    self._process.stdin.flush()
    return json.loads(self._process.stdout.readline())

  def close(self):
    self._process.stdin.close()
    self._process.wait()
    self._process.stdout.close()


def pairs(go, peer, seed, count):
  """Worlds with the official answers, and our answers."""
  every = max(1, min(count // DECIDED, 10))
  for first in range(0, count, BATCH):
    size = min(BATCH, count - first)
    made = subprocess.run([go, '-seed', str(seed), '-first', str(first), '-count', str(size),
                           '-decide', str(every)], capture_output=True, text=True, check=True)
    ours = subprocess.run([peer], input=made.stdout, capture_output=True, text=True, check=True)
    for world, own in zip(made.stdout.splitlines(), ours.stdout.splitlines(), strict=True):
      yield json.loads(world), json.loads(own)


class Score:
  """What was met, how often."""

  def __init__(self):
    self.worlds = 0
    self.results = collections.Counter()
    self.differences = collections.Counter()
    self.variants = collections.Counter()
    self.decides = collections.Counter()
    self.unknown = []
    self.repeated_shares = []
    self.spelt = []

  def add(self, world, ours):
    official = world['expect']
    self.worlds += 1
    self.results[official['result']] += 1
    self.decides.update(world.get('decides', ()))
    self.variants[f'chosen by the features: {world["default"]}'] += 1
    for name, answer in world.get('variants', {}).items():
      self.variants[f'{name} says {answer["result"]}, the newest {official["result"]}'] += 1
    if len(set(share_ids(ours))) != len(share_ids(ours)):
      self.repeated_shares.append(world['id'])
    name = difference(world, official, ours)
    if name is None:
      self.unknown.append({**world, 'ours': ours['result']})
    elif name:
      self.differences[name] += 1
    elif official['result'] != 'interrupted' and spellings(official) != spellings(ours):
      self.spelt.append(f'{world["id"]}: {spellings(official)} {spellings(ours)}')

  def print(self):
    for title, counter in (('results', self.results), ('allocators', self.variants),
                           ('differences on purpose', self.differences), ('rules that decide', self.decides)):
      print(f'# {title}:')
      for name, count in sorted(counter.items()):
        print(f'#   {count}: {name}')


def explain(world, go, peer):
  """The smallest world that still differs, and both answers."""
  def ask(candidate):
    answered = go.ask(candidate)
    if answered['expect']['result'] == 'panic':
      return None
    ours = peer.ask(answered)
    is_readable = ours['result'] != 'unreadable' or world['ours'] == 'unreadable'
    return answered if is_readable and difference(answered, answered['expect'], ours) is None else None
  smallest = shrink(world, ask)
  ours = peer.ask(smallest)
  return (f'{json.dumps(smallest)}\n  official {outcome(smallest["expect"])} '
          f'{smallest["expect"].get("error", "")}\n  ours {outcome(ours)} {ours.get("error", "")}')


def replay(tap, go, peer, source_root):
  """Worlds that once differed."""
  for path in sorted(glob.glob(source_root + '/test/data/allocator/*.json')):
    with open(path, encoding='utf-8') as file:
      world = go.ask(json.load(file))
    ours = peer.ask(world)
    tap.check(difference(world, world['expect'], ours) is not None,
              'the world of ' + os.path.basename(path),
              f'official {world["expect"]}\nours {ours}')


def compare(tap, go_path, peer_path, source_root):
  go, peer = Program(go_path, '-in'), Program(peer_path)
  replay(tap, go, peer, source_root)
  count = max(1, int(COUNT * float(os.environ.get('DEVMGR_TEST_SCALE', '1'))))
  score = Score()
  for world, ours in pairs(go_path, peer_path, int(os.environ.get('DEVMGR_TEST_SEED', '1')), count):
    score.add(world, ours)
  score.print()
  tap.check(min(score.results[each] for each in ('solved', 'none', 'error')) > count // 20,
            'worlds are solved, are not, and are wrong', score.results)
  rules = subprocess.run([go_path, '-rules'], capture_output=True, text=True, check=True).stdout.splitlines()
  if score.worlds >= LONG:
    idle = [rule for rule in rules if not score.decides[rule]]
    tap.check(not idle, f'each of {len(rules)} rules decides some worlds', idle)
  tap.check(not score.repeated_shares, 'each share has an ID of its own', score.repeated_shares[:10])
  tap.check(not score.spelt, 'amounts are spelt as the official allocator spells them',
            f'{len(score.spelt)} are not:\n' + '\n'.join(score.spelt[:5]))
  shortest = sorted(score.unknown, key=lambda world: len(json.dumps(world)))[:SHRUNK]
  tap.check(not score.unknown, f'{score.worlds} worlds are allocated as by the official allocator',
            f'{len(score.unknown)} are not, as these:\n' +
            '\n'.join(explain(world, go, peer) for world in shortest))
  go.close()
  peer.close()


def main():
  build_root, source_root = (os.path.abspath(path) for path in sys.argv[1:3])
  tap = Tap()
  go, why_not = build_program(HERE, build_root + '/test/interop/bin-allocator', 'allocator')
  if go is None:
    tap.skip('worlds allocated by the official allocator', why_not)
  else:
    compare(tap, go, build_root + '/test/interop/allocator_peer', source_root)
  tap.finish()


if __name__ == '__main__':
  main()
