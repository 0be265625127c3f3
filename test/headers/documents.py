#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documents: lines have at most 120 columns, but for tables, code and what
programs write; a link to a file of the tree leads to one; the files that docs/architecture.md
names, and those of its list "Where is ...?", are there."""

import pathlib
import re
import sys

sys.dont_write_bytecode = True

from tap import Tap  # noqa: E402

COLUMNS = 120
LINK = re.compile(r'\]\(([^)#\s]+)(?:#[^)\s]*)?\)')


def prose_of(text):
  """(number, line) of what is neither code nor written by a program."""
  fence = written = False
  for number, line in enumerate(text.splitlines(), 1):
    if line.lstrip().startswith('```'):
      fence = not fence
    elif line.startswith('<!-- '):
      written = not line.startswith('<!-- end ')
    elif not fence and not written:
      yield number, line


def problems_of(file, text):
  for number, line in prose_of(text):
    if len(line) > COLUMNS and not line.startswith('|') and ' ' in line.strip():
      yield f'{file}:{number}: {len(line)} columns'
    for link in LINK.findall(line):
      if '://' not in link and not (file.parent / link).exists():
        yield f'{file}:{number}: {link} is not there'


# `lib/room/file.h`, `docs/x.md`, also a folder.
NAMED = re.compile(r'`((?:lib|checkpoint|tools|test|docs|examples)/[\w./-]+)`')


def lost_files(root, text):
  """Files and folders that the text names and the tree lacks; how many it names."""
  named = set(NAMED.findall(text))
  return sorted(name for name in named if not (root / name).exists()), len(named)


def documents_of(root):
  for pattern in ('*.md', 'docs/*.md', 'checkpoint/*.md', 'lib/**/*.md', 'test/**/*.md', 'examples/**/*.md'):
    yield from sorted(root.glob(pattern))


def main():
  tap = Tap()
  here = pathlib.Path(__file__).parent
  bad = 'x' * 60 + ' ' + 'y' * 60 + '\n[a](none.md) [b](tap.py)\n```\n' + 'z ' * 90 + '\n```\n| ' + 'z ' * 90 + '|\n'
  tap.equal([p.split(': ', 1)[1] for p in problems_of(here / 'bad.md', bad)], ['121 columns', 'none.md is not there'],
            'what is wrong is found')
  root = pathlib.Path(sys.argv[1])
  tap.equal(lost_files(root, '`lib/common/status.h` `lib/none.h`'), (['lib/none.h'], 2),
            'a file that is not there is found')
  text = (root / 'docs' / 'architecture.md').read_text(encoding='utf-8')
  where = text.partition('## Where is ...?')[2].partition('\n## ')[0]
  lost, count = lost_files(root, where)
  tap.check(count >= 25 and not lost, 'docs/architecture.md: Where is ...?', f'{count} files, without {lost}')
  lost, _ = lost_files(root, text)
  tap.check(not lost, 'docs/architecture.md names files that are there', f'without {lost}')
  for file in documents_of(root):
    problems = list(problems_of(file, file.read_text(encoding='utf-8')))
    tap.check(not problems, str(file.relative_to(sys.argv[1])), '\n'.join(problems))
  tap.finish()


if __name__ == '__main__':
  main()
