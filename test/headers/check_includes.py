#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every #include against the table in docs/architecture.md.

  check_includes.py SOURCE_ROOT               reports TAP, one case per room
  check_includes.py --self-test SOURCE_ROOT   tries the rules on made-up trees

A room is a folder with a row in the table. Rooms of the library include each
other as "room/file.h" and the public API as <devmgr/file.h>. What is neither
ours nor the standard library is foreign and needs a word in the last column.
"""

import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tap import Tap  # noqa: E402

TABLE_HEAD = re.compile(r'^\|\s*room\s*\|\s*may include\s*\|', re.IGNORECASE)
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SOURCE_SUFFIXES = ('.h', '.cc', '.inc')

# Folders whose files must belong to a room.
TOPS = ('lib', 'checkpoint', 'tools', 'examples')

# The word of the table for each foreign include, by how its path begins.
FOREIGN = (
    ('CLI/', 'CLI11'),
    ('absl/', 'absl'),
    ('boost/', 'boost'),
    ('curl/', 'curl'),
    ('fmt/', 'fmt'),
    ('gmock/', 'gtest'),
    ('google/protobuf/', 'protobuf'),
    ('grpc/', 'grpc'),
    ('grpcpp/', 'grpc'),
    ('gtest/', 'gtest'),
    ('nghttp2/', 'nghttp2'),
    ('nlohmann/', 'nlohmann_json'),
    ('openssl/', 'openssl'),
    ('prometheus/', 'prometheus'),
    ('re2/', 're2'),
    ('rocksdb/', 'rocksdb'),
    ('spdlog/', 'spdlog'),
    ('yaml-cpp/', 'yaml-cpp'),
)

# Rooms that no other room includes: they are what the public API, a program or the
# build stands on.
ENTRANCES = ('lib/include', 'lib/pch', 'lib/allocator', 'lib/endpoint', 'lib/manager', 'lib/migration', 'lib/server/podresources', 'lib/shim', 'lib/source', 'lib/source/api', 'lib/testing')
# Rooms that are built and tested, and wait for the change that uses them.
WAITING = ('lib/topology',)

# The kernel's and the C library's headers in folders, free for everybody.
SYSTEM = ('arpa/', 'linux/', 'net/', 'netinet/', 'sys/')


class Room:
  """One row of the table."""

  def __init__(self, folder, rooms, foreign):
    self.folder = folder
    self.rooms = rooms      # Folders, and `proto/...` for generated headers.
    self.foreign = foreign  # Words of FOREIGN, or beginnings of such a path.


def cell_items(cell):
  return [item for item in re.split(r'[\s,]+', cell.replace('`', ''))
          if item not in ('', '-', '–', '—')]


def read_table(text):
  """({folder: Room}, [errors]) of the first table with the right head."""
  rooms, errors, in_table = {}, [], False
  for number, line in enumerate(text.splitlines(), 1):
    if not in_table:
      in_table = bool(TABLE_HEAD.match(line))
      continue
    if not line.startswith('|'):
      break
    cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
    if set(cells[0]) <= set('-: '):
      continue
    folder = cells[0].replace('`', '')
    if len(cells) != 3:
      errors.append(f'line {number}: {len(cells)} columns instead of 3')
    elif folder in rooms:
      errors.append(f"line {number}: a second row for '{folder}'")
    else:
      rooms[folder] = Room(folder, cell_items(cells[1]), cell_items(cells[2]))
  if not rooms:
    errors.append('there is no table that begins with | room | may include |')
  return rooms, errors


def check_table(rooms, root):
  """Errors of the table itself: dead names, rooms in a circle."""
  errors = []
  words = {word for _, word in FOREIGN}
  for room in rooms.values():
    if not os.path.isdir(os.path.join(root, room.folder)):
      errors.append(f"'{room.folder}' has a row but is no folder")
    for other in room.rooms:
      if other not in rooms and not (
          other.startswith('proto/') and
          os.path.isdir(os.path.join(root, 'proto', 'devmgr', other[6:]))):
        errors.append(f"'{room.folder}' may include '{other}', which has no row")
    for word in room.foreign:
      if word.partition('/')[0] not in words:
        errors.append(f"'{room.folder}' names '{word}', which nobody knows")

  done, path = set(), []

  def visit(folder):
    if folder in path:
      circle = path[path.index(folder):] + [folder]
      errors.append('the table has a circle: ' + ' -> '.join(circle))
      return
    if folder in done or folder not in rooms:
      return
    path.append(folder)
    for other in rooms[folder].rooms:
      visit(other)
    path.pop()
    done.add(folder)

  for folder in rooms:
    visit(folder)
  return errors


def room_of(path, rooms):
  """The innermost room that the file `path` lies in, or None."""
  folder = os.path.dirname(path)
  while folder:
    if folder in rooms:
      return folder
    folder = os.path.dirname(folder)
  return None


def source_files(root):
  for top in TOPS:
    for folder, folders, files in os.walk(os.path.join(root, top)):
      folders.sort()
      for file in sorted(files):
        if file.endswith(SOURCE_SUFFIXES):
          yield os.path.relpath(os.path.join(folder, file), root)


def resolve(name, file, root):
  """Which of our files `name` means in `file`; None when it is not ours."""
  below = [os.path.join('lib', name), name]
  if not file.startswith(('lib/', 'checkpoint/')):
    # Programs may name their own files as neighbours.
    below = [os.path.join(os.path.dirname(file), name),
             os.path.join('tools', name)] + below
  for candidate in below:
    if os.path.isfile(os.path.join(root, candidate)):
      return os.path.normpath(candidate)
  return None


def judge(quote, name, file, rooms, root):
  """Why this include is wrong, or None."""
  room = rooms[room_of(file, rooms)]
  if name.endswith('.pb.h'):
    parts = [part[6:] for part in room.rooms if part.startswith('proto/')]
    if any(name.startswith(f'devmgr/{part}/') for part in parts):
      return None
    return f"'{room.folder}' may not include '{name}'"

  if name.startswith('devmgr/'):
    if quote == '"':
      return f"write <{name}>: public headers come in angle brackets"
    if not os.path.isfile(os.path.join(root, 'lib', 'include', name)):
      return f"there is no public header '{name}'"
    if room.folder == 'lib/include' or 'lib/include' in room.rooms:
      return None
    return f"'{room.folder}' may not include '{name}'"

  if quote == '"':
    target = resolve(name, file, root)
    if target is None:
      return (f"'{name}' is none of our files (from here: room/file.h); "
              'foreign headers come in angle brackets')
    other = room_of(target, rooms)
    if other is None:
      return f"'{target}' lies in no room"
    if other == room.folder == 'tools' or other == room.folder == 'examples':
      # Programs stand alone, but for what they share.
      mine, its = (os.path.dirname(path) for path in (file, target))
      if its not in (mine, 'tools/shared'):
        return f"'{mine}' may not include '{name}' of another program"
    if other == room.folder or other in room.rooms:
      return None
    return f"'{room.folder}' may not include '{name}' ('{other}')"

  if '/' not in name or name.startswith(SYSTEM):
    if resolve(name, file, root):
      return f'write "{name}": our own headers come in quotes'
    return None
  for beginning, word in FOREIGN:
    if name.startswith(beginning):
      if any(word == allowed or
             (allowed.startswith(word + '/') and
              name.startswith(beginning + allowed[len(word) + 1:]))
             for allowed in room.foreign):
        return None
      return f"'{room.folder}' may not include <{name}> ({word})"
  return f'<{name}> belongs to nothing that docs/dependencies.md lists'


def check_picture(text, rooms):
  """Errors of rooms that the first drawing lacks."""
  drawing = text.partition('```')[2].partition('```')[0]
  words = set(re.findall(r'[a-z][a-z0-9]*(?:/[a-z][a-z0-9]*)*', drawing))
  for folder in rooms:
    if folder == 'lib/pch' or folder.startswith(('tools/', 'examples/')):
      continue  # No code, and single programs.
    if not any(word == folder or word.startswith(folder + '/') for word in words):
      yield f"the picture lacks '{folder}'"


def check_use(rooms, used):
  """Errors of rooms of the library that no other room includes."""
  for folder in rooms:
    if folder.startswith(('lib/', 'checkpoint')) and folder not in used:
      if folder not in ENTRANCES and folder not in WAITING:
        yield f"no other room includes '{folder}'"


def check_tree(root):
  """({room: [errors]}, [errors of the table])."""
  with open(os.path.join(root, 'docs', 'architecture.md'),
            encoding='utf-8') as stream:
    text = stream.read()
  rooms, table_errors = read_table(text)
  table_errors += check_table(rooms, root) + list(check_picture(text, rooms))
  table_errors = [f'docs/architecture.md: {error}' for error in table_errors]
  found = {folder: [] for folder in rooms}
  used = set()
  for file in source_files(root):
    folder = room_of(file, rooms)
    if folder is None:
      table_errors.append(f'{file}: lies in no room of docs/architecture.md')
      continue
    with open(os.path.join(root, file), encoding='utf-8') as stream:
      for number, line in enumerate(stream, 1):
        match = INCLUDE.match(line)
        if not match:
          continue
        error = judge(match[1], match[2], file, rooms, root)
        if error:
          found[folder].append(f'{file}:{number}: {error}')
        target = resolve(match[2], file, root)
        other = room_of(target, rooms) if target else None
        if other != folder:
          used.add(other)
  table_errors += check_use(rooms, used)
  return found, table_errors


SELF_TEST_TABLE = '''
```
tools, checkpoint, lib/include/devmgr, lib/common/, lib/rpc/, lib/manager/
```
| Room | May include | Foreign |
| --- | --- | --- |
| `lib/include` | - | `absl/status` |
| `lib/common` | `lib/include` | `absl`, `fmt` |
| `lib/rpc` | `lib/include`, `lib/common`, `proto/wire` | `grpc`, `absl` |
| `checkpoint` | `lib/common` | `rocksdb` |
| `lib/manager` | `lib/common`, `lib/rpc`, `checkpoint` | - |
| `tools` | `lib/include` | `CLI11` |
'''

# (file, content, the error it must give or None)
SELF_TEST_CASES = (
    ('lib/common/a.cc', '#include "common/status.h"', None),
    ('lib/common/a.cc', '#include <vector>\n#include <sys/stat.h>', None),
    ('lib/rpc/a.cc', '#include "common/status.h"', None),
    ('lib/rpc/a.cc', '#include <grpcpp/server.h>', None),
    ('lib/rpc/a.cc', '#include "devmgr/wire/v1/x.pb.h"', None),
    ('lib/rpc/a.cc', '#include <devmgr/types.h>', None),
    ('lib/include/devmgr/b.h', '#include <absl/status/statusor.h>', None),
    ('tools/one/a.cc', '#include "one.h"\n#include <CLI/CLI.hpp>', None),
    ('tools/one/a.cc', '#include "one/one.h"', None),
    ('tools/one/a.cc', '#include "shared/s.h"', None),
    ('lib/common/a.cc', '\n#include "rpc/connection.h"',
     "lib/common/a.cc:2: 'lib/common' may not include 'rpc/connection.h'"),
    ('lib/common/a.cc', '  #  include <grpcpp/server.h>',
     "lib/common/a.cc:1: 'lib/common' may not include <grpcpp/server.h>"),
    ('lib/rpc/a.cc', '#include <rocksdb/db.h>',
     "lib/rpc/a.cc:1: 'lib/rpc' may not include <rocksdb/db.h>"),
    ('lib/rpc/a.cc', '#include "devmgr/ledger/v1/x.pb.h"',
     "lib/rpc/a.cc:1: 'lib/rpc' may not include 'devmgr/ledger/v1/x.pb.h'"),
    ('lib/include/devmgr/b.h', '#include <absl/strings/str_cat.h>',
     "'lib/include' may not include <absl/strings/str_cat.h>"),
    ('lib/include/devmgr/b.h', '#include "common/status.h"',
     "'lib/include' may not include 'common/status.h'"),
    ('lib/rpc/a.cc', '#include "connection.h"', 'is none of our files'),
    ('lib/rpc/a.cc', '#include "devmgr/types.h"', 'angle brackets'),
    ('lib/rpc/a.cc', '#include <devmgr/none.h>', 'no public header'),
    ('lib/rpc/a.cc', '#include <folly/any.h>', 'belongs to nothing'),
    ('checkpoint/a.cc', '#include <devmgr/types.h>',
     "'checkpoint' may not include 'devmgr/types.h'"),
    ('tools/one/a.cc', '#include "common/status.h"',
     "'tools' may not include 'common/status.h'"),
    ('tools/one/a.cc', '#include "two/two.h"', 'of another program'),
    ('lib/other/a.cc', '#include <vector>', 'lies in no room'),
)


def write(root, file, text):
  path = os.path.join(root, file)
  os.makedirs(os.path.dirname(path), exist_ok=True)
  with open(path, 'w', encoding='utf-8') as stream:
    stream.write(text)


def self_test(tap):
  for file, content, want in SELF_TEST_CASES:
    with tempfile.TemporaryDirectory() as root:
      write(root, 'docs/architecture.md', SELF_TEST_TABLE)
      os.makedirs(os.path.join(root, 'proto', 'devmgr', 'wire'))
      for header in ('lib/include/devmgr/types.h', 'lib/common/status.h',
                     'lib/rpc/connection.h', 'checkpoint/store.h',
                     'tools/one/one.h', 'tools/shared/s.h', 'tools/two/two.h'):
        write(root, header, '#pragma once\n')
      write(root, 'lib/manager/use.cc', '#include "common/status.h"\n'
            '#include "rpc/connection.h"\n#include "checkpoint/store.h"\n')
      write(root, file, content + '\n')
      found, table_errors = check_tree(root)
      errors = table_errors + [e for some in found.values() for e in some]
      summary = ' / '.join(content.split('\n')).strip()
      if want is None:
        tap.equal(errors, [], f'accepts {summary} in {file}')
      else:
        tap.check(len(errors) == 1 and want in errors[0],
                  f'refuses {summary} in {file}', f'{errors} lacks: {want}')

  bad_tables = (
      ('| `lib/a` | `lib/b` | - |\n| `lib/b` | `lib/a` | - |', 'circle'),
      ('| `lib/a` | `lib/c` | - |', 'has no row'),
      ('| `lib/gone` | - | - |', 'is no folder'),
      ('| `lib/a` | - | `folly` |', 'nobody knows'),
      ('| `lib/a` | - |', '2 columns'),
      ('| `lib/a` | - | - |', "the picture lacks 'lib/a'"),
      ('| `lib/a` | - | - |', "no other room includes 'lib/a'"),
  )
  for rows, want in bad_tables:
    with tempfile.TemporaryDirectory() as root:
      os.makedirs(os.path.join(root, 'lib', 'a'))
      os.makedirs(os.path.join(root, 'lib', 'b'))
      write(root, 'docs/architecture.md',
            '| room | may include | foreign |\n|---|---|---|\n' + rows + '\n')
      _, errors = check_tree(root)
      tap.check(any(want in error for error in errors),
                f'refuses a table: {want}', f'{errors} lacks: {want}')


def main(arguments):
  tap = Tap()
  if arguments[0] == '--self-test':
    self_test(tap)
  else:
    found, table_errors = check_tree(arguments[0])
    tap.check(not table_errors, 'the table names each room, and no circle',
              '\n'.join(table_errors))
    for folder, errors in found.items():
      tap.check(not errors, f'{folder} includes only what it may',
                '\n'.join(errors))
  tap.finish()


if __name__ == '__main__':
  main(sys.argv[1:])
