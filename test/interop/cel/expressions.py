# SPDX-License-Identifier: Apache-2.0
"""Expressions of device selectors, made by chance, over the device that the two
programs which judge them have (cel_peer.cc, cel/main.go).

Most have types that fit, so that they are evaluated; some do not, some fail when
they are run, and some cost much.
"""

import random

DEVICE = 'device.attributes["gpu.example.com"]'
CAPACITY = 'device.capacity["gpu.example.com"]'

# What a type may be made of: templates in which {TYPE} is an expression of that
# type, {v:TYPE} too, but one that may use the variable v. Macros over maps are such
# that the order of entries, which is by chance in Go, changes neither value nor cost.
RULES = {
    'bool': [
        'true', 'false', 'device.allowMultipleAllocations', f'{DEVICE}.flag',
        '{int} == {int}', '{int} < {int}', '{int} >= {uint}', '{double} > {int}',
        '{string} == {string}', '{string} <= {string}', '{string} != {string}',
        '{bool} && {bool}', '{bool} || {bool}', '!{bool}', '({bool} ? {bool} : {bool})',
        '{int} in {ints}', '{string} in {strings}', '{string} in {map}', '{int} in [1, 2, 3]',
        '{string} in ["a", "b", "A100"]', '{bool} && {bool} && {bool}',
        '{string}.startsWith({string})', '{string}.contains({string})',
        '{string}.endsWith({string})', '{string}.matches("^[A-Za-z]+")',
        '{string}.matches({string})', f'has({DEVICE}.model)', f'has({DEVICE}.nope)',
        'has({map}.a)', '{ints}.all(x, {x:int} > 0)', '{ints}.exists(x, {x:int} == 2)',
        '{ints}.exists_one(x, {x:int} == 2)', '{strings}.all(y, {y:string} != "q")',
        '{strings}.exists(y, {y:string} == "a")', '{map}.all(y, size(y) >= 0)',
        '{map}.all(y, x, x == x && y != "q")', '{ints}.all(x, z, {x:int} <= {z:int})',
        '{ints} == {ints}', '{strings} == {strings}', '{map} == {map}', '{map} != {map}',
        '{quantity} == {quantity}', '{quantity}.isGreaterThan({quantity})',
        '{quantity}.isLessThan({quantity})', '{quantity}.isInteger()', 'isQuantity({string})',
        '{semver}.isLessThan({semver})', '{semver} == {semver}', 'isSemver({string})',
        f'{DEVICE}.names.includes({{string}})', f'{DEVICE}.model.includes({{string}})',
        f'{DEVICE}.numbers.exists(x, x == {{int}})', f'{DEVICE}.names.all(y, y != {{string}})',
        'sets.contains({ints}, {ints})', 'sets.intersects({strings}, {strings})',
        'sets.equivalent({ints}, {ints})', '{ints}.isSorted()', '{strings}.isSorted()',
        '{optional}.hasValue()', '{optional} == {optional}', '{optional}.or({optional}).hasValue()',
        'cel.bind(x, {int}, {x:int} > 1)', 'cel.bind(y, {string}, {y:string} == "a")',
        f'cel.bind(d, {DEVICE}, d.flag && d.index > 3)', 'dyn({int}) == {int}',
        'dyn({int}) < dyn({double})', 'type({int}) == int', 'bool("true")',
        f'{DEVICE}.model == {{string}}', f'{DEVICE}.index > {{int}}', f'{DEVICE}.nope == 1',
        f'{DEVICE}[{{string}}] == 1', 'device.attributes[{string}].index == {int}',
        '"gpu.example.com" in device.attributes', '{string} in device.attributes',
        f'"model" in {DEVICE}', f'{CAPACITY}.exists_one(y, y == "memory")',
        'device.attributes.all(y, y in device.attributes)', 'optional.none() == {optional}',
        '{duration} > {duration}', '{strings}.exists(y, y.matches("a+"))',
    ],
    'int': [
        '0', '1', '2', '3', '-5', '7', f'{DEVICE}.index', '{int} + {int}', '{int} - {int}',
        '{int} * {int}', '{int} / {int}', '{int} % {int}', '-{int}', 'size({string})',
        '{string}.size()', '{ints}.size()', 'size({map})', 'int({string})', 'int({double})',
        'int({uint})', '{ints}[{int}]', '{ints}[0]', '{map}["a"]', '{map}[{string}]', '{map}.b',
        '({bool} ? {int} : {int})', '{ints}.sum()', '{ints}.max()', '{ints}.min()',
        '{ints}.indexOf({int})', '{ints}.lastIndexOf({int})', '{string}.indexOf({string})',
        '{string}.lastIndexOf({string})', '{semver}.major()', '{semver}.minor()',
        '{semver}.compareTo({semver})', '{quantity}.compareTo({quantity})',
        '{quantity}.asInteger()', 'sign({quantity})', '{optional}.orValue({int})',
        '{optional}.value()', 'cel.bind(x, {int}, {x:int} + {x:int})',
        'cel.bind(x, {int}, {int})', f'{DEVICE}.?index.orValue({{int}})',
        f'{DEVICE}.?nope.orValue({{int}})', f'device.attributes["o"].?x.orValue({{int}})',
        '{duration}.getSeconds()', '{strings}.size()', f'{DEVICE}.numbers[{{int}}]',
    ],
    'uint': ['0u', '1u', '3u', 'uint({int})', '{uint} + {uint}', '{uint} * {uint}',
             '{uint} - {uint}', '({bool} ? {uint} : {uint})'],
    'double': ['0.5', '1.0', '-2.5', 'double({int})', 'double({string})', '{double} + {double}',
               '{double} / {double}', '{quantity}.asApproximateFloat()'],
    'string': [
        '"a"', '"b"', '""', '"hello world"', '"A100"', '"1"', '"\\u00e9\\u4e16"', 'device.driver',
        f'{DEVICE}.model', '{string} + {string}', 'string({int})', 'string({bool})',
        '{string}.lowerAscii()', '{string}.upperAscii()', '{string}.substring({int})',
        '{string}.substring(0, {int})', '{string}.trim()', '{string}.charAt({int})',
        '{string}.replace({string}, {string})', '{string}.replace({string}, {string}, {int})',
        '{strings}.join()', '{strings}.join({string})', '{strings}[{int}]', '{strings}[0]',
        '({bool} ? {string} : {string})', '{string}.find("[a-z]+")',
        'cel.bind(y, {string}, {y:string} + {y:string})', 'strings.quote({string})',
        '"%d-%s".format([{int}, {string}])', f'{DEVICE}.?model.orValue({{string}})',
        'string({duration})', '{ints}.map(x, string({x:int})).join(",")',
    ],
    'ints': [
        '[]', '[1]', '[1, 2, 3]', '[{int}, {int}]', '[{int}, 2]', '{ints} + {ints}',
        '{ints}.map(x, {x:int} * 2)', '{ints}.filter(x, {x:int} > 1)',
        '{ints}.map(x, {x:int} > 1, {x:int} + 1)', '{strings}.map(y, {y:string}.size())',
        '{ints}.transformList(z, x, {x:int} + {z:int})', '({bool} ? {ints} : {ints})',
        '{ints}.slice(0, {int})', '{ints}.reverse()', '{ints}.distinct()', '{ints}.sort()',
        '{ints}.sortBy(x, -{x:int})', 'lists.range({int})', 'lists.range(20)',
        '[{ints}, {ints}].flatten()', '[?{optional}]', '[?{optional}, {int}]',
        'cel.bind(x, {int}, [{x:int}, {x:int}])', '{ints}.map(x, [{x:int}]).flatten()',
    ],
    'strings': [
        '["a"]', '["a", "b"]', '[{string}, {string}]', '{strings} + {strings}',
        '{string}.split({string})', '{string}.split(" ")', '{string}.split(" ", {int})',
        '{strings}.map(y, {y:string} + "z")', '{strings}.filter(y, {y:string} != "a")',
        '{string}.findAll("[a-z]")', '{strings}.sort()', '{strings}.reverse()',
        '{strings}.distinct()', '{map}.map(y, {y:string}).sort()', '{strings}.sortBy(y, {y:string}.size())',
    ],
    'map': [
        '{{}}', '{{"a": 1}}', '{{"a": 1, "b": 2}}', '{{"a": {int}}}', '{{{string}: {int}, "b": 2}}',
        '({bool} ? {map} : {map})', '{map}.transformMap(y, x, {x:int} + 1)',
        '{strings}.transformMapEntry(z, y, {{y: {z:int}}})', '{{"a": 1, ?"c": {optional}}}',
        '{map}.transformMap(y, x, {x:int} > 1, {x:int})',
    ],
    'quantity': [f'{CAPACITY}.memory', f'{CAPACITY}.cores', 'quantity("1Gi")', 'quantity("500m")',
                 'quantity("1024Mi")', '{quantity}.add({quantity})', '{quantity}.sub({int})',
                 '{quantity}.add({int})', 'quantity({string})'],
    'semver': ['semver("1.2.3")', 'semver("1.10.0-rc.1")', 'semver("v1.2", true)', 'semver({string})'],
    'duration': ['duration("1h")', 'duration("90s")', '{duration} + {duration}'],
    'optional': ['optional.of({int})', 'optional.none()', '{map}[?"a"]', '{map}[?{string}]',
                 '{map}.?b', '{ints}[?0]', '{ints}[?{int}]', 'optional.ofNonZeroValue({int})',
                 '{optional}.optMap(x, {x:int} + 1)', '{optional}.or({optional})',
                 '{optional}.optFlatMap(x, optional.of({x:int}))', '{ints}.first()', '{ints}.last()'],
}

# The type of each variable that a rule may bring.
VARIABLES = {'x': 'int', 'z': 'int', 'y': 'string'}
WRONG = ('device.nope', 'undeclared', '1 + "a"', '"a" && true', '[1, "a"]', '{1: 2', '1 +', 'foo()')


class Generator:
  """Expressions in an endless sequence, the same one for the same seed."""

  def __init__(self, seed):
    self.random = random.Random(seed)

  def expression(self):
    if self.random.random() < 0.02:
      return self.random.choice(WRONG)
    return self.make('bool', self.random.randint(0, 5), ())

  def make(self, kind, depth, variables):
    """`variables`: the names that may be used here."""
    fitting = [name for name in variables if VARIABLES[name] == kind]
    if fitting and self.random.random() < 0.4:
      return self.random.choice(fitting)
    rules = RULES[kind]
    if depth <= 0:
      rules = [rule for rule in rules if '{' not in rule.replace('{{', '')] or rules
    rule = self.random.choice(rules)
    return self.fill(rule, depth - 1, variables)

  def fill(self, rule, depth, variables):
    made = []
    at = 0
    while at < len(rule):
      if rule.startswith(('{{', '}}'), at) and not rule.startswith('{{{', at):
        made.append(rule[at])
        at += 2
      elif rule[at] == '{' and rule.startswith('{{{', at):
        made.append('{')
        at += 2
      elif rule[at] == '{':
        end = rule.index('}', at)
        *names, kind = rule[at + 1:end].split(':')
        made.append(self.operand(kind, depth, variables + tuple(names)))
        at = end + 1
      else:
        made.append(rule[at])
        at += 1
    return ''.join(made)

  def operand(self, kind, depth, variables):
    text = self.make(kind, depth, variables)
    needs_brackets = any(mark in text for mark in (' ', '-')) and self.random.random() < 0.95
    return f'({text})' if needs_brackets else text
