#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expressions by chance, judged by Kubernetes' own library and by ours:
cel_test.py BUILD_ROOT.

Whether an expression compiles, its value, whether it fails, what it costs and
what it costs at worst have to be equal. DEVMGR_TEST_SCALE=100 is the long run,
DEVMGR_TEST_SEED another sequence. Where we differ on purpose is recognised by
DIFFERENCES; how often each was met is printed.
"""

import collections
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, '..'))
sys.path.insert(0, os.path.join(HERE, '..', '..', 'headers'))

from expressions import Generator  # noqa: E402
from interop import build_program  # noqa: E402
from tap import Tap  # noqa: E402

COUNT = 2000  # expressions, times the scale


def uses_quantity_arithmetic(text):
  return '.add(' in text or '.sub(' in text


# Why an answer may differ: name, and a predicate over the expression, the
# official answer and ours.
DIFFERENCES = (
    ('the official library panics',
     lambda text, go, ours: 'panic' in go),
    ('the official cost tracker fails where an error is sorted',
     lambda text, go, ours: go.get('error', '').startswith('internal error')),
    ('a sum of quantities is compared by amount, by the official library not at all',
     lambda text, go, ours: uses_quantity_arithmetic(text) and ' == ' in text),
    ('a sum of quantities is an integer when its amount is one',
     lambda text, go, ours: uses_quantity_arithmetic(text) and 'nteger()' in text and
     ('cannot convert value to integer' in go.get('error', '') or 'isInteger()' in text)),
    ('a constant format is checked when it is used, by the official library before that',
     lambda text, go, ours: 'error during formatting' in go.get('compile', '')),
    ('entries of a map come in any order there, which of them fails first does, too',
     lambda text, go, ours: '.transformMap(' in text and 'error' in go and 'error' in ours),
    ('nothing is less than NaN; there it is an error to ask',
     lambda text, go, ours: 'NaN values cannot be ordered' in go.get('error', '')),
    ('a suffix without a number is no quantity',
     lambda text, go, ours: 'uantity(' in text and
     ('not a quantity' in ours.get('error', '') or 'isQuantity' in text)),
)


def outcome(answer):
  """What has to be equal."""
  if 'compile' in answer:
    return ('compile',)
  kind = ('error',) if 'error' in answer else ('value', answer.get('value'))
  return (*kind, answer.get('cost'), answer.get('max'))


def ask(program, lines):
  done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
  return [json.loads(line) for line in done.stdout.splitlines()]


def compare(tap, go, ours):
  scale = float(os.environ.get('DEVMGR_TEST_SCALE', '1'))
  generator = Generator(int(os.environ.get('DEVMGR_TEST_SEED', '1')))
  texts = [generator.expression() for _ in range(max(1, int(COUNT * scale)))]
  lines = ''.join(json.dumps(text) + '\n' for text in texts)
  kinds = collections.Counter()
  differences = collections.Counter()
  wrong = []
  for text, official, own in zip(texts, ask(go, lines), ask(ours, lines), strict=True):
    kinds[outcome(official)[0]] += 1
    if outcome(official) == outcome(own):
      continue
    known = [name for name, applies in DIFFERENCES if applies(text, official, own)]
    differences.update(known[:1])
    if not known:
      wrong.append((len(text), f'{text}\n  official {official}\n  ours {own}'))
  for name, count in sorted({**kinds, **differences}.items()):
    print(f'# {count}: {name}')
  tap.check(min(kinds['value'], kinds['error'], kinds['compile']) > 0,
            'expressions have values, fail, and do not compile', kinds)
  shortest = '\n'.join(text for _, text in sorted(wrong)[:10])
  tap.check(not wrong, f'{len(texts)} expressions are judged as the official library judges them',
            f'{len(wrong)} are not; the shortest:\n{shortest}')


def main():
  build_root = os.path.abspath(sys.argv[1])
  tap = Tap()
  go, why_not = build_program(HERE, build_root + '/test/interop/bin-cel', 'cel')
  if go is None:
    tap.skip('expressions judged by the official library', why_not)
  else:
    compare(tap, go, build_root + '/test/interop/cel_peer')
  tap.finish()


if __name__ == '__main__':
  main()
