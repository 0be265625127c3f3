#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of the last `meson test` run of a build folder.

Prints the failed ones with their words and, as the last line, `N passed, N failed` (and
`, N skipped` when some were). A case is a GoogleTest test, a TAP line, or a
whole test of any other kind. `DISABLED_Measure` is none: it prints figures for
people who ask for them. The JUnit file alone is not enough: a program that
crashes or hangs writes no results, and then meson knows one failure only.
So the cases of such a program are taken from its output.

Exit code 1 when a case failed, or when there was none.
"""

import argparse
import collections
import glob
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

PASSED, FAILED, SKIPPED = 'passed', 'failed', 'skipped'

GOOD_RESULTS = {'OK', 'EXPECTEDFAIL'}
SKIP_RESULTS = {'SKIP'}

GTEST_LINE = re.compile(
    r'\[( RUN      |       OK |  FAILED  |  SKIPPED )\] ([\w/]+\.[\w/]+)')


# Of what a failed case printed, so many lines are shown.
WORDS_LINES = 20


class Case(collections.namedtuple('Case', 'test name outcome')):
  """One test case: the meson test it belongs to, its name, how it went."""


def outcome_of(element):
  """The outcome of a JUnit `testcase`."""
  if element.find('failure') is not None or element.find('error') is not None:
    return FAILED
  if element.find('skipped') is not None or element.get('status') == 'notrun':
    return SKIPPED
  return PASSED


def owner_of(suite, names):
  """Which of the meson tests `names` wrote the JUnit suite `suite`.

  meson calls suites `project.test` (TAP) or `project.test.Suite` (GoogleTest),
  where `test` is the name with its suite in front, as in the JSON records;
  plain tests share the suite `project`, which belongs to none of them.
  """
  rest = suite.partition('.')[2]
  owners = [n for n in names if rest == n or rest.startswith(n + '.')]
  return max(owners, key=len, default=None)


def cases_of_junit(root, names):
  """{meson test: [cases]} of tests that reported cases of their own."""
  cases = collections.defaultdict(list)
  for suite in root.iter('testsuite'):
    test = owner_of(suite.get('name', ''), names)
    if test is None:
      continue
    for element in suite.iter('testcase'):
      if element.get('name', '').startswith('DISABLED_Measure'):
        continue
      classname = suite.get('name').split('.')[-1]
      cases[test].append(
          Case(test, f'{classname}.{element.get("name")}', outcome_of(element)))
  return cases


def cases_of_output(test, output):
  """Cases of a GoogleTest program that did not live to write its results."""
  outcomes = {}
  for kind, name in GTEST_LINE.findall(output or ''):
    kind = kind.strip()
    if kind == 'RUN':
      outcomes[name] = FAILED  # Until told otherwise: it ran when all ended.
    elif name in outcomes:  # The summary at the end names cases again.
      outcomes[name] = {'OK': PASSED, 'SKIPPED': SKIPPED}.get(kind, FAILED)
  return [Case(test, name, outcome) for name, outcome in outcomes.items()]


def words_of(case, records):
  """The lines that a failed GoogleTest case printed, the first of them."""
  for record in records:
    if record['name'] != case.test:
      continue
    _, found, rest = (record.get('stdout') or '').partition(
        f'[ RUN      ] {case.name}\n')
    if found:
      lines = rest.partition(f'[  FAILED  ] {case.name}')[0].splitlines()
      return lines[:WORDS_LINES]
  return []


def collect(records, junit_root):
  """All cases of a run, from meson's JSON records and its JUnit file."""
  reported = {}
  if junit_root is not None:
    reported = cases_of_junit(junit_root, {r['name'] for r in records})
  cases = []
  for record in records:
    name, result = record['name'], record['result']
    good = result in GOOD_RESULTS or result in SKIP_RESULTS
    mine = reported.pop(name, [])
    if not mine and not good:
      mine = cases_of_output(name, record.get('stdout'))
    # A GoogleTest program without a single case counts as nothing.
    is_gtest = '[==========]' in (record.get('stdout') or '')
    if not mine and good and not is_gtest:
      mine = [Case(name, name, PASSED if result in GOOD_RESULTS else SKIPPED)]
    if not good and not any(c.outcome == FAILED for c in mine):
      code = record.get('returncode')
      mine = mine + [Case(name, f'{name} ({result}, exit code {code})', FAILED)]
    cases.extend(mine)
  return cases


def summary(cases):
  count = collections.Counter(case.outcome for case in cases)
  line = f'{count[PASSED]} passed, {count[FAILED]} failed'
  if count[SKIPPED]:
    line += f', {count[SKIPPED]} skipped'
  return line


def newest(pattern):
  files = sorted(glob.glob(pattern), key=os.path.getmtime)
  return files[-1] if files else None


def load(build):
  """(records, JUnit root or None) of the last run in the folder `build`."""
  logs = os.path.join(build, 'meson-logs')
  records = []
  log = newest(os.path.join(logs, 'testlog*.json'))
  if log:
    with open(log, encoding='utf-8') as stream:
      records = [json.loads(line) for line in stream if line.strip()]
  junit_root = None
  junit = newest(os.path.join(logs, 'testlog*.junit.xml'))
  if junit:
    try:
      junit_root = ElementTree.parse(junit).getroot()
    except ElementTree.ParseError as error:
      print(f'{junit}: {error}', file=sys.stderr)
  return records, junit_root


def forget(build):
  """Removes the results of earlier runs: a crash must not inherit them."""
  for pattern in ('*.xml', 'meson-logs/testlog*'):
    for file in glob.glob(os.path.join(build, pattern)):
      os.remove(file)


def main(arguments):
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('build', help='build folder')
  parser.add_argument('--forget', action='store_true',
                      help='only remove the results of earlier runs')
  parser.add_argument('--exit-code', type=int, default=0,
                      help='what `meson test` returned')
  options = parser.parse_args(arguments)
  if options.forget:
    forget(options.build)
    return 0

  records, junit_root = load(options.build)
  cases = collect(records, junit_root)
  failed = [case for case in cases if case.outcome == FAILED]
  if options.exit_code != 0 and not failed:
    failed = [Case('meson', f'meson test (exit code {options.exit_code})', FAILED)]
    cases.extend(failed)
  for case in failed:
    print(f'failed: {case.test}: {case.name}')
    for line in words_of(case, records):
      print(f'  {line}')
  if not cases:
    print('no test ran')
  print(summary(cases))
  return 0 if cases and not failed else 1


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
