#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the tests of google/cel-spec into JSON.

  convert.py TESTDATA_FOLDER    writes FILE.json beside this script for each
                                file of FILES

TESTDATA_FOLDER is `tests/simple/testdata` of the Go module cel.dev/expr. It was
run once, over v0.26.0; what it wrote is data of ours since.

A value is {"KIND": PAYLOAD}, with the kinds of cel.expr.Value. Numbers are text,
so that none is rounded; bytes are base64. What is about protobuf messages is
{"object_value": NAME_OF_THE_MESSAGE}, or {"enum_value": ...}.
"""

import base64
import json
import pathlib
import re
import sys

FILES = (
    'basic', 'bindings_ext', 'comparisons', 'conversions', 'fields', 'fp_math',
    'integer_math', 'lists', 'lists_ext', 'logic', 'macros', 'macros2', 'namespace',
    'optionals', 'parse', 'plumbing', 'sets_ext', 'string', 'string_ext', 'timestamps',
    'type_deduction')

TOKEN = re.compile(
    r'\s+|\#[^\n]*|'
    r'(?P<string>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')|'
    r'(?P<word>[A-Za-z0-9_.+-]+)|'
    r'(?P<extension>\[[^\]\s"\']+\])(?=\s*[:{])|'
    r'(?P<mark>[{}:<>\[\],;])', re.DOTALL)
ESCAPE = re.compile(
    rb'\\(?:([abfnrtv\\\'"?])|([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|'
    rb'u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))')
SIMPLE = {b'a': b'\a', b'b': b'\b', b'f': b'\f', b'n': b'\n', b'r': b'\r', b't': b'\t',
          b'v': b'\v'}


def unescape(text):
  """The bytes that the inside of a string literal stands for."""
  def replace(match):
    simple, octal, hexadecimal, short, long = match.groups()
    if simple:
      return SIMPLE.get(simple, simple)
    if octal:
      return bytes([int(octal, 8) & 255])
    if hexadecimal:
      return bytes([int(hexadecimal, 16)])
    return chr(int(short or long, 16)).encode()
  return ESCAPE.sub(replace, text.encode())


def tokens_of(text):
  at = 0
  while at < len(text):
    match = TOKEN.match(text, at)
    if not match:
      raise ValueError(f'unexpected text: {text[at:at + 40]!r}')
    at = match.end()
    if match.lastgroup:
      yield match.lastgroup, match.group()


class Parser:
  """Text format, without a schema: a message is {field: [values]}."""

  def __init__(self, text):
    self.tokens = list(tokens_of(text))
    self.at = 0

  def peek(self):
    return self.tokens[self.at] if self.at < len(self.tokens) else ('end', '')

  def take(self):
    token = self.peek()
    self.at += 1
    return token

  def take_if(self, mark):
    if self.peek() == ('mark', mark):
      self.at += 1
      return True
    return False

  def message(self, end):
    fields = {}
    while self.peek()[0] != 'end' and not (end and self.take_if(end)):
      name = self.take()[1]
      self.take_if(':')
      values = fields.setdefault(name, [])
      if self.take_if('['):
        while not self.take_if(']'):
          values.append(self.value())
          self.take_if(',')
      else:
        values.append(self.value())
      while self.take_if(',') or self.take_if(';'):
        pass
    return fields

  def value(self):
    if self.take_if('{'):
      return self.message('}')
    if self.take_if('<'):
      return self.message('>')
    kind, text = self.take()
    if kind != 'string':
      return text
    data = unescape(text[1:-1])
    while self.peek()[0] == 'string':
      data += unescape(self.take()[1][1:-1])
    return data


def first(message, name, otherwise=None):
  return message.get(name, [otherwise])[0]


def text_of(message, name):
  value = first(message, name, b'')
  return value.decode() if isinstance(value, bytes) else value


def value_of(message):
  """{KIND: PAYLOAD} of a cel.expr.Value."""
  for kind, values in message.items():
    value = values[0]
    if kind == 'list_value':
      return {kind: [value_of(element) for element in value.get('values', [])]}
    if kind == 'map_value':
      return {kind: [[value_of(first(entry, 'key')), value_of(first(entry, 'value'))]
                     for entry in value.get('entries', [])]}
    if kind == 'object_value':
      return {kind: object_of(value)}
    if kind == 'enum_value':
      return {kind: text_of(value, 'type')}
    if kind == 'bytes_value':
      data = value if isinstance(value, bytes) else value.encode()
      return {kind: base64.b64encode(data).decode()}
    return {kind: value.decode() if isinstance(value, bytes) else value}
  raise ValueError('a value without a kind')


def object_of(message):
  """Durations and timestamps have values of their own; of other messages only the
  name is kept."""
  for name, values in message.items():
    kind = name.strip('[]').split('/')[-1]
    if kind in ('google.protobuf.Duration', 'google.protobuf.Timestamp'):
      return {'type': kind, 'seconds': first(values[0], 'seconds', '0'),
              'nanos': first(values[0], 'nanos', '0')}
    return {'type': kind}
  return {'type': ''}


def type_of(message):
  """The text of a cel.expr.Type, as messages of the checker show it."""
  kind, values = next(iter(message.items()))
  value = values[0]
  if kind == 'primitive':
    return {'INT64': 'int', 'UINT64': 'uint'}.get(value, value.lower())
  if kind == 'well_known':
    return value.lower()
  if kind == 'list_type':
    return f'list({type_of(first(value, "elem_type"))})'
  if kind == 'map_type':
    return (f'map({type_of(first(value, "key_type"))}, '
            f'{type_of(first(value, "value_type"))})')
  if kind == 'wrapper':
    return f'wrapper({value.lower()})'
  if kind == 'type':
    return f'type({type_of(value)})' if value else 'type'
  if kind == 'abstract_type':
    params = ', '.join(type_of(param) for param in value.get('parameter_types', []))
    return f'{text_of(value, "name")}({params})'
  if kind in ('message_type', 'type_param'):
    return f'{kind}({value.decode()})'
  return {'null': 'null', 'dyn': 'dyn', 'error': 'error'}[kind]


def declaration_of(message):
  name = text_of(message, 'name')
  if 'ident' in message:
    return {'name': name, 'type': type_of(first(first(message, 'ident'), 'type'))}
  return {'name': name, 'function': True}


def test_of(message):
  test = {'name': text_of(message, 'name'), 'expr': text_of(message, 'expr')}
  for flag in ('disable_macros', 'disable_check', 'check_only'):
    if first(message, flag) == 'true':
      test[flag] = True
  if 'container' in message:
    test['container'] = text_of(message, 'container')
  if 'type_env' in message:
    test['type_env'] = [declaration_of(entry) for entry in message['type_env']]
  if 'bindings' in message:
    test['bindings'] = {
        text_of(entry, 'key'): value_of(first(first(entry, 'value'), 'value', {}))
        for entry in message['bindings']}
  if 'value' in message:
    test['value'] = value_of(first(message, 'value'))
  elif 'typed_result' in message:
    result = first(message, 'typed_result')
    if 'result' in result:
      test['value'] = value_of(first(result, 'result'))
    test['type'] = type_of(first(result, 'deduced_type'))
  elif 'eval_error' in message or 'any_eval_errors' in message:
    test['error'] = True
  elif 'unknown' in message or 'any_unknowns' in message:
    test['unknown'] = True
  return test


def main():
  source = pathlib.Path(sys.argv[1])
  for name in FILES:
    file = Parser((source / f'{name}.textproto').read_text()).message(None)
    sections = [{'name': text_of(section, 'name'),
                 'tests': [test_of(test) for test in section.get('test', [])]}
                for section in file.get('section', [])]
    lines = []
    for section in sections:
      tests = ',\n'.join(f'  {json.dumps(test)}' for test in section['tests'])
      lines.append(f'{{"name": {json.dumps(section["name"])}, "tests": [\n{tests}\n]}}')
    target = pathlib.Path(__file__).parent / f'{name}.json'
    target.write_text('[\n' + ',\n'.join(lines) + '\n]\n')
    print(name, sum(len(section['tests']) for section in sections))


if __name__ == '__main__':
  main()
