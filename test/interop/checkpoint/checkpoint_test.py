#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoint files from the kubelet's own code to a ledger and back to it:
checkpoint_test.py BUILD_ROOT.

The packages devicemanager/checkpoint and dra/state of the kubelet write files by
chance; devmgrctl imports them and exports the ledger again; the same packages
read both. Devices, NUMA nodes and responses of each container have to be the
same, and claims, pods and prepared devices of each driver. DEVMGR_TEST_SCALE
and DEVMGR_TEST_SEED make it more nodes, or others.
"""

import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..'))
sys.path.insert(0, os.path.join(HERE, '..', '..', 'headers'))

from interop import build_program, run  # noqa: E402
from tap import Tap  # noqa: E402

COUNT = 20  # nodes, times the scale


class Failed(Exception):
  """A program failed."""


def must(command):
  done = run(command)
  if done.returncode != 0:
    raise Failed(f'{" ".join(command)}: {done.stderr.strip()}')
  return done.stdout


def migrate(go, ctl, folder, seed):
  """What the kubelet's code reads of its own files, and of ours."""
  kubelet, state, out = (os.path.join(folder, name) for name in ('kubelet', 'state', 'out'))
  must([go, 'write', '-seed', str(seed), kubelet])
  must([ctl, '--state-dir', state, 'import', 'kubelet', kubelet])
  must([ctl, '--state-dir', state, 'export', 'kubelet', out])
  return tuple(json.loads(must([go, 'read', where])) for where in (kubelet, out))


def compare(tap, go, ctl):
  count = max(1, int(COUNT * float(os.environ.get('DEVMGR_TEST_SCALE', '1'))))
  first = int(os.environ.get('DEVMGR_TEST_SEED', '1'))
  containers = claims = 0
  different = []
  for seed in range(first, first + count):
    with tempfile.TemporaryDirectory() as folder:
      try:
        official, ours = migrate(go, ctl, folder, seed)
      except Failed as failed:
        different.append(f'seed {seed}: {failed}')
        continue
    containers += len(official['containers'])
    claims += len(official['claims'])
    for part in ('containers', 'resources', 'claims'):
      if official[part] != ours[part]:
        different.append(f'seed {seed}: {part}\n  kubelet {json.dumps(official[part])}\n'
                         f'  ours    {json.dumps(ours[part])}')
  print(f'#   {count} nodes, {containers} containers with devices, {claims} claims')
  tap.check(containers > count and claims > count, 'there is something to compare', (containers, claims))
  tap.check(not different, "the kubelet reads what it had written, and as much of each container",
            '\n'.join(different[:3]))


def main():
  build_root = os.path.abspath(sys.argv[1])
  tap = Tap()
  go, why_not = build_program(HERE, build_root + '/test/interop/bin-checkpoint', 'checkpoint')
  if go is None:
    tap.skip("checkpoint files of the kubelet's own code", why_not)
  else:
    compare(tap, go, build_root + '/tools/devmgrctl/devmgrctl')
  tap.finish()


if __name__ == '__main__':
  main()
