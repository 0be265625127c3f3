# SPDX-License-Identifier: Apache-2.0
"""Reports the cases of a script in TAP, so that meson counts each of them."""

import sys


class Tap:
  """Prints one line per case; `finish` prints the plan and exits."""

  def __init__(self):
    self._count = 0
    self._failed = 0

  def check(self, good, name, detail=''):
    """One case. `detail` is shown when it is not `good`. Returns `good`."""
    self._count += 1
    name = name.replace('#', '')  # TAP reads a directive after it.
    print(f'{"ok" if good else "not ok"} {self._count} - {name}', flush=True)
    if not good:
      self._failed += 1
      self.note(detail)
    return good

  @staticmethod
  def note(text):
    """Lines for the reader, which are no case."""
    for line in str(text).rstrip().splitlines():
      print(f'# {line}', flush=True)

  def equal(self, got, want, name):
    return self.check(got == want, name, f'got:  {got!r}\nwant: {want!r}')

  def skip(self, name, why):
    self._count += 1
    print(f'ok {self._count} - {name} # SKIP {why}', flush=True)

  def finish(self):
    """Ends the program. Meson takes failures from the lines, so exit code 0."""
    print(f'1..{self._count}', flush=True)
    sys.exit(0)
