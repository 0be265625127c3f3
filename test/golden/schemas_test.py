#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the schemas that clients are generated from against test/data/schemas.

  schemas_test.py SOURCE_ROOT PROTOC

Within a version they only grow: no field, enumerator or method goes, gets another
number or another type. With DEVMGR_UPDATE_GOLDEN=1 in the environment what is new
is added to the files; nothing is ever taken out of them.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'headers'))

from tap import Tap  # noqa: E402

SCHEMAS = {
    'control-v1': 'devmgr/control/v1/control.proto',
    'inspection-v1': 'devmgr/inspection/v1/inspection.proto',
}
SET = 'google.protobuf.FileDescriptorSet'
LINE = re.compile(r'\s*(?:(\w+) \{|(\w+): (.*)|(\}))\s*')


def parse(lines):
  """A message in protobuf's text format: {field: [values]}."""
  message = {}
  for line in lines:
    begun, field, value, end = LINE.fullmatch(line).groups()
    if end:
      break
    if begun:
      message.setdefault(begun, []).append(parse(lines))
    else:
      message.setdefault(field, []).append(value.strip('"'))
  return message


def one(message, field, default=''):
  return message.get(field, [default])[0]


def facts_of_message(prefix, message):
  name = f'{prefix}.{one(message, "name")}'
  yield f'message {name}'
  oneofs = [one(oneof, 'name') for oneof in message.get('oneof_decl', [])]
  for field in message.get('field', []):
    kind = one(field, 'type_name').lstrip('.') or one(field, 'type')[len('TYPE_'):].lower()
    label = 'repeated ' if one(field, 'label') == 'LABEL_REPEATED' else ''
    inside = f' in {oneofs[int(one(field, "oneof_index"))]}' if 'oneof_index' in field else ''
    yield f'field {name}.{one(field, "name")} = {one(field, "number")}: {label}{kind}{inside}'
  for inner in message.get('nested_type', []):
    yield from facts_of_message(name, inner)
  for enum in message.get('enum_type', []):
    yield from facts_of_enum(name, enum)


def facts_of_enum(prefix, enum):
  name = f'{prefix}.{one(enum, "name")}'
  for value in enum.get('value', []):
    yield f'enumerator {name}.{one(value, "name")} = {one(value, "number", "0")}'


def facts_of(protoc, folder, schema):
  """What a client relies on, a line each."""
  described = subprocess.run(
      [protoc, '-I', folder, '--descriptor_set_out=/dev/stdout', schema],
      capture_output=True, check=True).stdout
  text = subprocess.run(
      [protoc, f'--decode={SET}', 'google/protobuf/descriptor.proto'], input=described,
      capture_output=True, check=True).stdout.decode()
  facts = set()
  for file in parse(iter(text.splitlines()))['file']:
    package = one(file, 'package')
    for message in file.get('message_type', []):
      facts.update(facts_of_message(package, message))
    for enum in file.get('enum_type', []):
      facts.update(facts_of_enum(package, enum))
    for service in file.get('service', []):
      for method in service.get('method', []):
        streams = ['stream ' if one(method, f'{side}_streaming') == 'true' else ''
                   for side in ('client', 'server')]
        facts.add(f'method {package}.{one(service, "name")}.{one(method, "name")}: '
                  f'{streams[0]}{one(method, "input_type")[1:]} -> '
                  f'{streams[1]}{one(method, "output_type")[1:]}')
  return facts


def self_test(tap, protoc):
  good = ('syntax = "proto3"; package p; service S { rpc M(A) returns (stream A); }\n'
          'message A { string a = 1; repeated int32 b = 2; oneof o { E e = 3; string f = 4; }\n'
          '  enum E { NONE = 0; ONE = 1; } }\n')
  with tempfile.TemporaryDirectory() as folder:
    def facts(text):
      path = pathlib.Path(folder, 's.proto')
      path.write_text(text, encoding='utf-8')
      return facts_of(protoc, folder, 's.proto')

    known = facts(good)
    tap.equal(known, {
        'message p.A', 'field p.A.a = 1: string', 'field p.A.b = 2: repeated int32',
        'field p.A.e = 3: p.A.E in o', 'field p.A.f = 4: string in o',
        'enumerator p.A.E.NONE = 0', 'enumerator p.A.E.ONE = 1',
        'method p.S.M: p.A -> stream p.A'}, 'what a client relies on')
    for change, old, new in (
        ('a field that goes', 'string a = 1;', ''), ('another number', 'a = 1', 'a = 9'),
        ('another type', 'string a', 'bytes a'), ('another name', 'string a', 'string z'),
        ('a field that repeats no more', 'repeated int32', 'int32'),
        ('an enumerator that goes', 'ONE = 1;', ''),
        ('an enumerator with another number', 'ONE = 1', 'ONE = 2'),
        ('a method that goes', 'rpc M(A) returns (stream A);', ''),
        ('a method that streams no more', '(stream A)', '(A)')):
      assert old in good
      tap.check(known - facts(good.replace(old, new)), f'{change} is seen')
    grown = good.replace('string a = 1;', 'string a = 1; string more = 7;')
    tap.check(not known - facts(grown), 'a new field is fine')


def main():
  root, protoc = pathlib.Path(sys.argv[1]), sys.argv[2]
  update = os.environ.get('DEVMGR_UPDATE_GOLDEN') == '1'
  tap = Tap()
  self_test(tap, protoc)
  for name, schema in SCHEMAS.items():
    file = root / f'test/data/schemas/{name}.txt'
    known = set(file.read_text(encoding='utf-8').splitlines()) if file.exists() else set()
    facts = facts_of(protoc, str(root / 'proto'), schema)
    if update:
      known |= facts
      file.parent.mkdir(exist_ok=True)
      file.write_text(''.join(f'{fact}\n' for fact in sorted(known)), encoding='utf-8')
    tap.check(not known - facts, f'{schema} has all that clients rely on',
              'this is missing, or is another one now; a breaking change needs a new version:\n' +
              '\n'.join(sorted(known - facts)))
    tap.check(not facts - known, f'{schema} has nothing that is not kept',
              'DEVMGR_UPDATE_GOLDEN=1 meson test -C build schemas-only-grow adds:\n' +
              '\n'.join(sorted(facts - known)))
  tap.finish()


if __name__ == '__main__':
  main()
