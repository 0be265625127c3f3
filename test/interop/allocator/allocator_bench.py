#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long allocations take, with Kubernetes' own allocator and with ours:

  allocator_bench.py BUILD_ROOT                          all shapes of worlds, once each
  allocator_bench.py BUILD_ROOT --only PB-1 --rounds 8   some, in turns; the best of all rounds
  allocator_bench.py BUILD_ROOT --rounds 3 --keep        keep the table in docs/performance.md

`search` is what is done for each pod: what the allocator keeps is ready, which is what claims hold there, and the
pools as well here. The aim is a fifth of the official time for each. `all` begins with the objects in memory: pools
are gathered and claims are counted besides. Build ours with optimisation."""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / 'test/interop'))

from interop import build_program  # noqa: E402

MILLISECONDS = 300
GOAL = 5  # Times faster for each search.
DOCUMENT = SOURCE / 'docs/performance.md'
BEGIN, END = '<!-- allocator: written by allocator_bench.py -->', '<!-- end of allocator -->'
HEAD = ['Shape', 'Outcome', 'Steps, official', 'here', 'Search, official', 'here', 'Times', 'All, official', 'here',
        'Times', '']


def one_round(go, peer, only):
  """Per shape, what the official allocator says and what ours does."""
  official = subprocess.run([go, '-bench', '-only', only], capture_output=True, text=True, check=True).stdout
  ours = subprocess.run([peer, str(MILLISECONDS)], input=official, capture_output=True, text=True, check=True).stdout
  return [(json.loads(world), json.loads(own))
          for world, own in zip(official.splitlines(), ours.splitlines(), strict=True)]


def time_of(nanoseconds):
  return f'{nanoseconds / 1e3:,.1f} us' if nanoseconds < 1e6 else f'{nanoseconds / 1e6:,.1f} ms'


def row_of(pairs):
  """Of the rounds of one shape."""
  world, own = pairs[0]
  row = [world['id'], own['result'] if own['result'] == world['expect']['result']
         else f'{own["result"]}; {world["expect"]["result"]} there', str(world['expect']['steps']), str(own['steps'])]
  times = {}
  for part in ('search', 'all'):
    official, here = (min(pair[which][part] for pair in pairs) for which in (0, 1))
    times[part] = official / here
    row += [time_of(official), time_of(here), f'{times[part]:,.1f}']
  return row + ['hit' if times['search'] >= GOAL else 'MISS']


def markdown(rows, rounds):
  where = f'{os.cpu_count()} processors, load before {os.getloadavg()[0]:.1f}'
  yield (f'Measured on {datetime.date.today().isoformat()}, the best of {rounds} rounds in turns ({where}). The goal '
         f'is {GOAL} times for a search.')
  yield ''
  yield '| ' + ' | '.join(HEAD) + '|'
  yield '| --- | --- |' + ' ---: |' * 8 + ' --- |'
  for row in rows:
    yield '| ' + ' | '.join(row) + ' |'


def keep(lines):
  before, _, rest = DOCUMENT.read_text(encoding='utf-8').partition(BEGIN)
  after = rest.partition(END)[2]
  DOCUMENT.write_text('\n'.join([before + BEGIN, *lines, END + after]), encoding='utf-8')


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('build_root', type=pathlib.Path)
  parser.add_argument('--only', default='', help='shapes whose names begin so')
  parser.add_argument('--rounds', type=int, default=1)
  parser.add_argument('--keep', action='store_true', help='keep the table')
  args = parser.parse_args()
  go, why_not = build_program(str(pathlib.Path(__file__).resolve().parent),
                              str(args.build_root.resolve() / 'test/interop/bin-allocator'), 'allocator')
  if go is None:
    print(why_not)
    return
  peer = args.build_root.resolve() / 'test/interop/allocator_peer'
  rounds = [one_round(go, peer, args.only) for _ in range(args.rounds)]
  lines = list(markdown([row_of(pairs) for pairs in zip(*rounds)], args.rounds))
  print('\n'.join(lines))
  if args.keep:
    keep(lines)


if __name__ == '__main__':
  main()
