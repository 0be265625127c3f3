# SPDX-License-Identifier: Apache-2.0
"""Makes a world as small as it can be while a question is answered as before."""

import copy

# Members of a world without which it would be none.
NEEDED = {'apiVersion', 'kind', 'metadata', 'name', 'namespace', 'uid', 'spec', 'driver', 'pool', 'generation',
          'resourceSliceCount', 'node', 'features', 'deviceClassName', 'allocationMode', 'count', 'exactly',
          'value', 'counterSet', 'key', 'operator', 'effect', 'default', 'status', 'allocation',
          'devices', 'results', 'requests', 'request', 'device'}
OUTCOME = ('expect', 'asCharged', 'default', 'variants', 'decides')


def places(value, path=()):
  """All that may be left out, large things first: paths of members and entries."""
  entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
  found = []
  for key, each in entries:
    if not isinstance(key, str) or key not in NEEDED:
      found.append(path + (key,))
    if key != 'features':
      found += places(each, path + (key,))
  # The last entries of a list first, so that places of others stay as they are.
  return sorted(found, key=lambda each: (len(each), [str(key) if isinstance(key, str) else f'{10**6 - key}'
                                                     for key in each]))


def without(world, path):
  result = copy.deepcopy(world)
  inner = result
  for key in path[:-1]:
    inner = inner[key]
  del inner[path[-1]]
  return result


def exists(world, path):
  for key in path:
    try:
      world = world[key]
    except (KeyError, IndexError, TypeError):
      return False
  return True


def fix_counts(world):
  """Sets the number of slices of pools that were complete to what is left."""
  result = copy.deepcopy(world)
  for one in result['slices'] or ():
    pool = one['spec']['pool']
    pool['resourceSliceCount'] = sum(
        each['spec']['driver'] == one['spec']['driver'] and each['spec']['pool']['name'] == pool['name'] and
        each['spec']['pool']['generation'] == pool['generation'] for each in result['slices'])
  return result


def candidates(world, path):
  smaller = without(world, path)
  yield smaller
  if path[0] == 'slices' and len(path) == 2:
    yield fix_counts(smaller)


def shrink(world, ask, rounds=6):
  """`ask` answers a world with itself and its outcome while it differs, and with
  None when it does not."""
  world = {key: each for key, each in world.items() if key not in OUTCOME}
  smallest = ask(world)
  if smallest is None:
    return world
  for _ in range(rounds):
    world = {key: each for key, each in smallest.items() if key not in OUTCOME}
    changed = False
    for path in places(world):
      if not exists(world, path) or path == ('slices',) or path == ('classes',) or path == ('claims',):
        continue
      for candidate in candidates(world, path):
        answered = ask(candidate)
        if answered is not None:
          smallest = answered
          world = {key: each for key, each in answered.items() if key not in OUTCOME}
          changed = True
          break
    if not changed:
      break
  return smallest
