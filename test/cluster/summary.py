#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads TAP: one line per case as it comes, and last `N passed, N failed` (and
`, N skipped` when some were). Exit code 1 when a case failed or there was none."""

import collections
import re
import sys

CASE = re.compile(r'(not )?ok \d+ - (.*?)(?: # SKIP (.*))?$')


def main():
  count = collections.Counter()
  has_plan = False
  for line in sys.stdin:
    has_plan |= line.startswith('1..')
    case = CASE.match(line.rstrip('\n'))
    if case is None:
      if line.startswith('#'):
        print('  ' + line[1:].strip(), flush=True)
      continue
    failed, name, why = case.groups()
    word = 'failed' if failed else 'skipped' if why else 'passed'
    count[word] += 1
    print(f'{word}: {name}' + (f': {why}' if why else ''), flush=True)
  if not has_plan:
    count['failed'] += 1
    print('failed: the test came to no end')
  last = f'{count["passed"]} passed, {count["failed"]} failed'
  print(last + (f', {count["skipped"]} skipped' if count['skipped'] else ''))
  return 1 if count['failed'] or not count else 0


if __name__ == '__main__':
  sys.exit(main())
