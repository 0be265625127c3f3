#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the texts in the sources against test/data/messages, so that a change of a
message that operators read shows in the change itself.

A file for each room, with the string literals of two words and more, in order.
What stands in the help of a program is kept by help_test.py. With
DEVMGR_UPDATE_GOLDEN=1 in the environment the files are written anew.
"""

import argparse
import difflib
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'headers'))

from tap import Tap  # noqa: E402

# A comment, a character, or string literals that follow each other.
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|'
    r"'(?:[^'\\\n]|\\[^\n]{1,3})'|"
    r'R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|'
    r'(?P<strings>"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*)', re.DOTALL)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
TWO_WORDS = re.compile(r'[A-Za-z]{2,}[,;:]? (?:.* )?[A-Za-z]{2,}')


def texts_of(source):
  """The texts of a C++ source, in order."""
  for token in TOKEN.finditer(source):
    if token['strings']:
      text = ''.join(LITERAL.findall(token['strings']))
      if TWO_WORDS.search(text):
        yield text


def rooms_of(root):
  """{name of a room: its sources}, of what ships."""
  rooms = {}
  for top in ('checkpoint', 'lib', 'tools', 'examples'):
    for source in sorted((root / top).rglob('*')):
      if source.suffix in ('.cc', '.h'):
        room = '-'.join(source.relative_to(root).parts[:-1][:2])
        rooms.setdefault(room, []).append(source)
  return rooms


def self_test(tap):
  source = ('int i = 1\'000; f("one " // not "this one"\n  "text"); /* nor "this one" */\n'
            'g(\'"\', "single", R"(raw "text" here)", "say \\"it\\" "\n   "now");\n')
  tap.equal(list(texts_of(source)), ['say \\"it\\" now'], 'texts are those of literals, not of comments')


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('root', type=pathlib.Path, help='of the tree')
  options = parser.parse_args()
  tap = Tap()
  self_test(tap)
  folder = options.root / 'test/data/messages'
  update = os.environ.get('DEVMGR_UPDATE_GOLDEN') == '1'
  help_texts = ''.join(file.read_text(encoding='utf-8') for file in (options.root / 'test/data/help').iterdir())
  expected = {file.stem: file for file in folder.glob('*.txt')}
  for room, sources in rooms_of(options.root).items():
    lines = []
    for source in sources:
      for text in texts_of(source.read_text(encoding='utf-8')):
        if text not in help_texts:
          lines.append(f'{source.name}: {text}')
    file = expected.pop(room, folder / f'{room}.txt')
    got = ''.join(line + '\n' for line in lines)
    if update and got:
      file.write_text(got, encoding='utf-8')
    want = file.read_text(encoding='utf-8') if file.exists() else ''
    diff = difflib.unified_diff(want.splitlines(), lines, str(file), 'in the sources', lineterm='')
    tap.check(got == want, room, '\n'.join(diff) + '\nDEVMGR_UPDATE_GOLDEN=1 writes it anew')
  for room, file in expected.items():
    tap.check(False, room, f'{file} is of no room')
  tap.finish()


if __name__ == '__main__':
  main()
