# SPDX-License-Identifier: Apache-2.0
"""Outcomes of two allocators: what has to be equal, and where ours differs from
the official one on purpose. Each such difference is a predicate over the world
and both outcomes."""

import re
from fractions import Fraction

UNITS = {'': 1, 'n': Fraction(1, 10**9), 'u': Fraction(1, 10**6), 'm': Fraction(1, 1000)}
UNITS.update({unit: 1000**(i + 1) for i, unit in enumerate('kMGTPE')})
UNITS.update({unit + 'i': 1024**(i + 1) for i, unit in enumerate('KMGTPE')})


def amount(text):
  """The number that a quantity is."""
  number, unit = re.fullmatch(r'([-+]?[0-9.]+)((?:[eE][-+]?[0-9]+)|[a-zA-Z]*)', text).groups()
  if re.fullmatch(r'[eE][-+]?[0-9]+', unit):
    return Fraction(number) * Fraction(10)**int(unit[1:])
  return Fraction(number) * UNITS[unit]


def without_empty(value):
  if isinstance(value, dict):
    members = ((key, without_empty(each)) for key, each in value.items())
    return {key: each for key, each in members if each not in (None, '', [], {}, False)}
  if isinstance(value, list):
    return [without_empty(each) for each in value]
  return value


def allocation(value):
  """What has to be equal of one allocation: the IDs of shares are by chance, and
  amounts may be spelt in another way."""
  result = {'config': without_empty(value.get('devices', {}).get('config', [])),
            'nodeSelector': without_empty(value.get('nodeSelector'))}
  for term in (result['nodeSelector'] or {}).get('nodeSelectorTerms', ()):
    for requirement in term.get('matchExpressions', []) + term.get('matchFields', []):
      requirement.setdefault('values', [])
  results = []
  for each in value.get('devices', {}).get('results', ()):
    each = dict(without_empty(each))
    each['shareID'] = 'shareID' in each
    each['consumedCapacity'] = {name: amount(text) for name, text
                                in each.get('consumedCapacity', {}).items()}
    results.append(each)
  return {**result, 'results': results}


def outcome(answer):
  """What has to be equal of an answer."""
  return answer['result'], [allocation(each) for each in answer.get('allocations') or ()]


def spellings(answer):
  """How amounts are written."""
  return [sorted(each.get('consumedCapacity', {}).items())
          for one in answer.get('allocations') or ()
          for each in one.get('devices', {}).get('results', ())]


def share_ids(answer):
  return [each['shareID'] for one in answer.get('allocations') or ()
          for each in one.get('devices', {}).get('results', ()) if each.get('shareID')]


def requests(world):
  """All requests and alternatives."""
  for claim in world['claims']:
    for request in claim['spec']['devices']['requests']:
      if 'exactly' in request:
        yield request['exactly']
      yield from request.get('firstAvailable', ())


def devices(world):
  for one in world['slices'] or ():
    for device in one['spec'].get('devices', ()):
      yield one, device


def has_admin(world):
  return any(request.get('adminAccess') for request in requests(world))


def admin_shares(world):
  """Something that admin access takes of others there: counters, capacity, or
  the device itself."""
  return has_admin(world) and (
      any('consumesCounters' in device or 'capacity' in device for _, device in devices(world)) or
      any(not request.get('adminAccess') for request in requests(world)))


def is_shared(device):
  return device.get('allowMultipleAllocations', False)


def has_turned_dedicated(world):
  """A device with shares that is not for sharing any more."""
  shares = {(each['driver'], each['pool'], each['device'])
            for claim in world.get('allocated') or ()
            for each in claim['status']['allocation']['devices'].get('results', ()) if 'shareID' in each}
  return any((one['spec']['driver'], one['spec']['pool']['name'], device['name']) in shares and
             not is_shared(device) for one, device in devices(world))


def fractional(text):
  return amount(text).denominator != 1


def has_fractional_policy(world):
  """A range in whose arithmetic fractions are rounded there."""
  ranges = [capacity['requestPolicy']['validRange'] for _, device in devices(world)
            for capacity in device.get('capacity', {}).values()
            if 'validRange' in capacity.get('requestPolicy', {})]
  asked = [text for request in requests(world)
           for text in request.get('capacity', {}).get('requests', {}).values()]
  return not world['features']['FractionalCapacityRange'] and bool(ranges) and any(
      fractional(text) for text in asked + [text for each in ranges for text in each.values()])


def said(official, text):
  return text in official.get('error', '')


def fails_in_selector(ours):
  """Of a device that the official search has not come to."""
  return re.search(r': selector #\d+ on device ', ours.get('error', '')) is not None


# Names begin with the row of deviations that they are; the first that applies
# counts, so that those which are certain come first.
DIFFERENCES = (
    ('D13 the official search was ended after many steps',
     lambda world, official, ours: official['result'] == 'interrupted'),
    ('what no API server takes in is refused when it is read',
     lambda world, official, ours: ours['result'] == 'unreadable' and official['result'] == 'error' and
     any(text in ours['error'] for text in ("'Future' is unknown", 'has neither matchAttribute'))),
    ('D3 All: only pools that may have a matching device count',
     lambda world, official, ours: said(official, 'asks for all devices, but resource pool')),
    ('D4 All: a constraint that is not fulfilled is no error',
     lambda world, official, ours: said(official, 'a claim constraint would not be satisfied')),
    ('selectors are not run on devices of other nodes',
     lambda world, official, ours: (said(official, 'CEL runtime error') or said(official, 'CEL compile error')) and
     ours['result'] != 'error' and
     any(one['spec'].get('perDeviceNodeSelection') for one in world['slices'] or ())),
    ('allowMultipleAllocations is known whatever the gates are',
     lambda world, official, ours: said(official, 'allowMultipleAllocations')),
    ('D8 amounts beyond 64 bits, or none of a thousandth, are no error',
     lambda world, official, ours: said(official, 'cannot be represented') and ours['result'] != 'error'),
    ('D8 amounts are exact, not whole numbers',
     lambda world, official, ours: official['result'] != 'error' and ours['result'] != 'error' and
     has_fractional_policy(world)),
    ('D7 a device with shares is not handed out as a whole',
     lambda world, official, ours: (official['result'] == 'solved' or said(official, 'CEL runtime error')) and
     (ours['result'] != 'error' or fails_in_selector(ours)) and has_turned_dedicated(world)),
    ('D2 admin access takes nothing of others',
     lambda world, official, ours: ours['result'] == 'solved' and admin_shares(world)),
)


CHARGES = 'D6 devices are charged what was recorded, not what slices say now'


def difference(world, official, ours):
  """The name of the difference: empty when there is none, None when it is not
  one on purpose. Where charges were recorded, what counts is the official
  outcome with slices that say the same."""
  now, official = official, world.get('asCharged', official)
  if outcome(official) == outcome(ours):
    return '' if outcome(now) == outcome(official) or now['result'] == 'interrupted' else CHARGES
  for name, applies in DIFFERENCES:
    if applies(world, official, ours):
      return name
  return None
