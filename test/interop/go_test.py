#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Go tests of a folder: go_test.py BUILD_ROOT SOURCE_ROOT FOLDER.

drivers/ holds more drivers on the official helper against devmgrd; in endpoint/
the official client library talks to the endpoint for drivers, and `newest` is
the same with the newest modules; in podresources/ the official client lists what
pods have; in proxy/ grpc-go is a client of the CRI proxy, and the runtime behind
it.
"""

import os
import re
import sys

sys.dont_write_bytecode = True

from interop import build_newest, main, run  # noqa: E402


def test(setting):
  """Each subtest of the Go tests is a case."""
  tap, go, package = setting.tap, setting.go, sys.argv[3]
  why_not = build_newest(setting.source, go) if package == 'newest' else ''
  if why_not:
    tap.skip('newest: the Go tests', why_not)
    return
  environment = {**os.environ, 'DEVMGR_TOOLS': setting.tools,
                 'DEVMGR_CRI_PEER': setting.build_root + '/test/interop/cri_peer',
                 'DEVMGR_ENDPOINT_PEER': setting.build_root + '/test/interop/endpoint_peer',
                 'DEVMGR_INTEROP_BIN': go}
  done = run([f'{go}/{package}.test', '-test.v', '-test.timeout', '600s'],
             env=environment)
  text = done.stdout + done.stderr
  verdicts = re.findall(r'^ *--- (PASS|FAIL): (\S+)', text, re.MULTILINE)
  failed = [name for verdict, name in verdicts if verdict == 'FAIL']
  for verdict, name in verdicts:
    # What failed outside of its cases is told by its own name.
    inside = any(other.startswith(name + '/') for other in failed)
    if '/' in name or (verdict == 'FAIL' and not inside):
      tap.check(verdict == 'PASS', f'{package}: ' + name.replace('_', ' '), text)
  tap.check(done.returncode == 0 or failed, f'{package}: the Go tests end', text)


if __name__ == '__main__':
  main(test)
