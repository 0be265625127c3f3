#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hints by chance, merged by the kubelet's own topology manager and by ours:
topology_test.py BUILD_ROOT.

Mask and preference of each merge have to be the same, and for each pod whether
it is admitted, the reason and text if it is not, and the hint of each container.
DEVMGR_TEST_SCALE=50 is the long run of 100,000 pods, DEVMGR_TEST_SEED another
sequence. The first pods that differ are printed.
"""

import collections
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..'))
sys.path.insert(0, os.path.join(HERE, '..', '..', 'headers'))

from interop import build_program  # noqa: E402
from tap import Tap  # noqa: E402

COUNT = 2000  # pods, times the scale
BATCH = 500  # pods at a time
SHOWN = 3  # of those that differ
COMPARED = ('merged', 'admitted', 'reason', 'message', 'affinity')


def answers(peer, cases, *arguments):
  """Ours to lines of cases."""
  done = subprocess.run([peer, *arguments], input=cases, capture_output=True, text=True, check=True)
  return [json.loads(line) for line in done.stdout.splitlines()]


def pairs(go, peer, seed, count):
  """Cases with the official answers, and our answers."""
  for first in range(0, count, BATCH):
    made = subprocess.run([go, '-seed', str(seed), '-first', str(first), '-count', str(min(BATCH, count - first))],
                          capture_output=True, text=True, check=True).stdout
    for line, ours in zip(made.splitlines(), answers(peer, made), strict=True):
      yield json.loads(line), ours


def kind_of(case):
  """Which policy, scope and option it is about, and how it ends."""
  closest = ', closest' if case['closest'] else ''
  verdict = 'admitted' if case['expect']['admitted'] else 'refused'
  return f'{case["policy"]}, {case["scope"]}{closest}: {verdict}'


def compare(tap, go, peer):
  count = max(1, int(COUNT * float(os.environ.get('DEVMGR_TEST_SCALE', '1'))))
  kinds, preferred, different, unproven = collections.Counter(), collections.Counter(), [], 0
  for case, ours in pairs(go, peer, int(os.environ.get('DEVMGR_TEST_SEED', '1')), count):
    official = case['expect']
    kinds[kind_of(case)] += 1
    preferred.update(merged['hint']['preferred'] for merged in official['merged'])
    unproven += not ours['proven']
    if any(official[key] != ours[key] for key in COMPARED):
      different.append(f'{json.dumps(case)}\n  ours {json.dumps(ours)}')
  for kind, times in sorted(kinds.items()):
    print(f'#   {times}: {kind}')
  # Three policies, two scopes, with and without the option; the best effort is refused nothing.
  tap.check(len(kinds) == 20 or count < COUNT, 'each policy, scope and option admits and refuses', kinds)
  tap.check(min(preferred[True], preferred[False]) > count // 10, 'hints are preferred, and are not', preferred)
  tap.check(unproven == 0, 'each merge is proven to be the best', unproven)
  different.sort(key=len)
  tap.check(not different, f"{count} pods are aligned as by the kubelet's topology manager",
            f'{len(different)} are not, as these:\n' + '\n'.join(different[:SHOWN]))


def main():
  build_root = os.path.abspath(sys.argv[1])
  tap = Tap()
  go, why_not = build_program(HERE, build_root + '/test/interop/bin-topology', 'topology')
  if go is None:
    tap.skip("hints merged by the kubelet's topology manager", why_not)
  else:
    compare(tap, go, build_root + '/test/interop/topology_peer')
  tap.finish()


if __name__ == '__main__':
  main()
