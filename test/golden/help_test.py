#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what programs print for --help against test/data/help, so that a change of
a text that operators read shows in the change itself.

A file for each program, with the help of its subcommands one after the other.
With DEVMGR_UPDATE_GOLDEN=1 in the environment the files are written anew.
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'headers'))

from tap import Tap  # noqa: E402

SUBCOMMAND = re.compile(r'^  ([a-z][a-z0-9-]*)(?: |$)')


def help_of(program, subcommands):
  """What `program subcommands... --help` prints, without paths of this build."""
  result = subprocess.run([program, *subcommands, '--help'], capture_output=True, text=True, check=True)
  return result.stdout.replace(f'Usage: {program}', f'Usage: {program.name}')


def subcommands_of(text):
  _, _, section = text.partition('\nSubcommands:\n')
  for line in section.splitlines():
    if not line:
      return
    found = SUBCOMMAND.match(line)
    if found:
      yield found.group(1)


def all_help(program, subcommands=()):
  """The help of a program and of all below it."""
  text = help_of(program, subcommands)
  title = ' '.join([program.name, *subcommands])
  parts = [f'# {title} --help\n\n{text.rstrip()}\n']
  for name in subcommands_of(text):
    parts.append(all_help(program, (*subcommands, name)))
  return '\n\n'.join(parts)


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('folder', type=pathlib.Path, help='of the expected texts')
  parser.add_argument('programs', nargs='+', type=pathlib.Path)
  options = parser.parse_args()
  tap = Tap()
  for program in options.programs:
    expected = options.folder / f'{program.name}.txt'
    got = all_help(program)
    if os.environ.get('DEVMGR_UPDATE_GOLDEN') == '1':
      expected.write_text(got, encoding='utf-8')
    want = expected.read_text(encoding='utf-8') if expected.exists() else ''
    diff = difflib.unified_diff(want.splitlines(), got.splitlines(), str(expected), 'printed', lineterm='')
    tap.check(got == want, f'{program.name} --help', '\n'.join(diff) + '\nDEVMGR_UPDATE_GOLDEN=1 writes it anew')
  tap.finish()


if __name__ == '__main__':
  main()
