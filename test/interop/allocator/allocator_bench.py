#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long allocations take, with Kubernetes' own allocator and with ours:
allocator_bench.py BUILD_ROOT. One run from objects in memory on, with pools
gathered and claims counted; and one with all that ready which the allocator
keeps: there, what claims hold; here, the pools as well. The aim is a fifth of
the official time. Build ours with optimisation."""

import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'headers'))

from allocator_test import build  # noqa: E402

MILLISECONDS = 300


def main():
  build_root = os.path.abspath(sys.argv[1])
  go, why_not = build(build_root + '/test/interop/bin-allocator')
  if go is None:
    print(why_not)
    return
  official = subprocess.run([go, '-bench'], capture_output=True, text=True, check=True).stdout
  ours = subprocess.run([build_root + '/test/interop/allocator_peer', str(MILLISECONDS)], input=official,
                        capture_output=True, text=True, check=True).stdout
  print(f'{"":58} {"official":>20} {"ours":>20}  times')
  for world, own in zip(official.splitlines(), ours.splitlines(), strict=True):
    world, own = json.loads(world), json.loads(own)
    for part in ('all', 'search'):
      print(f'{world["id"] + ", " + part:58} {world["expect"]["result"]:>11} {world[part] / 1000:7.0f}us'
            f' {own["result"]:>11} {own[part] / 1000:7.0f}us {world[part] / own[part]:8.1f}'
            f'  steps {world["expect"]["steps"]}, {own["steps"]}')


if __name__ == '__main__':
  main()
