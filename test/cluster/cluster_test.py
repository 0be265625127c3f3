#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""devmgrd below a real control plane: cluster_test.py BUILD_ROOT SOURCE_ROOT

The programs of the control plane are in the folder DEVMGR_CLUSTER_BIN; without
them all of it is skipped. run.sh builds them.
"""

import os
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'interop'))
sys.path.insert(0, os.path.join(HERE, '..', 'headers'))
sys.path.insert(0, HERE)

import claims  # noqa: E402
import device_plugins  # noqa: E402
import disturbances  # noqa: E402
import extended_resources  # noqa: E402
import first_start  # noqa: E402
import node_agent  # noqa: E402
import permissions  # noqa: E402
from cluster import Cluster  # noqa: E402
from control_plane import why_not  # noqa: E402
from interop import build  # noqa: E402
from tap import Tap  # noqa: E402

DEVICES = 8
PARTS = [extended_resources, claims, device_plugins, node_agent, first_start, disturbances,
         permissions]


def main():
  build_root, source_root = (os.path.abspath(path) for path in sys.argv[1:3])
  programs = os.environ.get('DEVMGR_CLUSTER_BIN', '')
  tap = Tap()
  reason = why_not(programs) or build(source_root + '/test/interop',
                                      build_root + '/test/interop/bin')
  if reason:
    tap.skip('a real control plane', reason)
    tap.finish()
  chosen = sys.argv[3:]
  with tempfile.TemporaryDirectory(prefix='devmgr-', dir='/tmp') as folder:
    cluster = Cluster(tap, os.path.abspath(programs), build_root, folder)
    try:
      if cluster.start(DEVICES):
        for part in PARTS:
          if not chosen or part.__name__ in chosen:
            part.all_cases(cluster)
    finally:
      cluster.stop()
  tap.finish()


if __name__ == '__main__':
  main()
