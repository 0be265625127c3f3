#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of report.py: the count must be true whatever the programs do."""

import os
import sys
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'headers')]

import report  # noqa: E402
from tap import Tap  # noqa: E402

NONE_RAN = '[==========] 0 tests from 0 test suites ran. (0 ms total)\n'


def record(name, result='OK', stdout='', returncode=0):
  return {'name': name, 'result': result, 'stdout': stdout,
          'returncode': returncode}


def junit(*suites):
  """A JUnit tree of (suite, [(case, child element or None)])."""
  root = ElementTree.Element('testsuites')
  for suite_name, cases in suites:
    suite = ElementTree.SubElement(root, 'testsuite', name=suite_name)
    for case_name, child in cases:
      case = ElementTree.SubElement(suite, 'testcase', name=case_name,
                                    status='run')
      if child == 'notrun':
        case.set('status', 'notrun')
      elif child:
        ElementTree.SubElement(case, child)
  return root


def line(records, root=None):
  return report.summary(report.collect(records, root))


def main():
  tap = Tap()
  tap.equal(
      line([record('core')],
           junit(('devmgr.core.ATest', [('One', None), ('Two', None)]),
                 ('devmgr.core.BTest', [('One', None)]))),
      '3 passed, 0 failed', 'cases of a GoogleTest program are summed')
  tap.equal(
      line([record('core', 'FAIL', returncode=1)],
           junit(('devmgr.core.ATest',
                  [('One', None), ('Two', 'failure'), ('Three', 'skipped'),
                   ('DISABLED_Four', 'notrun'),
                   ('DISABLED_Measure/0', 'notrun')]))),
      '1 passed, 1 failed, 2 skipped',
      'failed, skipped and disabled cases are told apart')
  tap.equal(
      line([record('plain'), record('other', 'SKIP')],
           junit(('devmgr', [('plain', None), ('other', 'skipped')]))),
      '1 passed, 0 failed, 1 skipped', 'a plain test is one case')
  tap.equal(
      line([record('devmgr:headers / includes')],
           junit(('devmgr.devmgr:headers / includes',
                  [('a', None), ('b', 'failure')]))),
      '1 passed, 1 failed', 'TAP lines are cases')

  crashed = ('[ RUN      ] ATest.One\n[       OK ] ATest.One (0 ms)\n'
             '[ RUN      ] ATest/0.Two/1\n[  FAILED  ] ATest/0.Two/1 (1 ms)\n'
             '[ RUN      ] ATest.Three\n[  SKIPPED ] ATest.Three (0 ms)\n'
             '[ RUN      ] ATest.Four\n')
  tap.equal(
      line([record('core', 'FAIL', crashed, -11)],
           junit(('devmgr', [('core', 'failure')]))),
      '1 passed, 2 failed, 1 skipped',
      'a crash counts the case it happened in, and those before it')
  said = ('[ RUN      ] ATest.One\n[       OK ] ATest.One (0 ms)\n'
          '[ RUN      ] ATest.Two\na.cc:7: Failure\nExpected: 1\n'
          '[  FAILED  ] ATest.Two (1 ms)\n')
  failure = report.Case('core', 'ATest.Two', report.FAILED)
  tap.equal(
      report.words_of(failure, [record('other'), record('core', stdout=said)]),
      ['a.cc:7: Failure', 'Expected: 1'], 'a failure is shown with its words')
  tap.equal(
      line([record('core', 'TIMEOUT', '', -15)]),
      '0 passed, 1 failed', 'a program that hangs silently is one failure')
  tap.equal(
      line([record('core', 'FAIL', '', 1)],
           junit(('devmgr.core.ATest', [('One', None)]))),
      '1 passed, 1 failed', 'a crash after the last case is a failure')
  tap.equal(
      line([record('includes', 'ERROR', returncode=2)],
           junit(('devmgr.includes', [('a', None)]))),
      '1 passed, 1 failed', 'a script that dies between its lines is a failure')
  tap.equal(
      line([record('core'), record('core.more')],
           junit(('devmgr.core.ATest', [('One', None)]),
                 ('devmgr.core.more.ATest', [('One', None), ('Two', None)]))),
      '3 passed, 0 failed', 'test names that begin alike are told apart')
  tap.equal(line([record('core', stdout=NONE_RAN)], junit()),
            '0 passed, 0 failed', 'a program without cases counts as nothing')
  tap.finish()


if __name__ == '__main__':
  main()
