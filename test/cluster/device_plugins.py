# SPDX-License-Identifier: Apache-2.0
"""Resources of a device plugin: capacity in the node, the scheduler counts."""

import json

from interop import wait_for
from cluster import container
from control_plane import NODE

CARD = 'example.com/card'


def shown(cluster, part):
  return cluster.api.get('Node', NODE)['status'].get(part, {}).get(CARD)


def cards(cluster, pod):
  """What the pod's container has of the plugin's devices."""
  given = cluster.node.answer(pod).get('main', {})
  return [each['value'] for each in given.get('env') or [] if each['name'] == 'CARDS']


def healthy(cluster):
  """How many healthy cards the node knows of."""
  done = cluster.node.ctl('get', 'devices', CARD, '-o', 'json')
  items = json.loads(done.stdout)['items'] if done.returncode == 0 else []
  return sum(each['status']['health'] == 'Healthy' for each in items)


def make_card_pod(cluster, name):
  cluster.make_pod(name, [container('main', limits={CARD: 1})])


def waiting_for(cluster, pod):
  """The reason why a pod waits on the node; '' when it does not."""
  return next((each['status'].get('reason') or '' for each in cluster.node.items('pods')
               if each['metadata']['name'] == pod), '')


def moves_to_a_class(cluster, held):
  """From now on a DeviceClass backs the resource. Pods that have a card of the
  plugin keep it; the next pod gets a device of the driver, once they are gone."""
  cluster.check(wait_for(lambda: shown(cluster, 'allocatable') in (None, '0')),
                'device plugins: the node has no more cards')
  cluster.make_class('cards', CARD)
  make_card_pod(cluster, 'moved')
  cluster.check(wait_for(lambda: waiting_for(cluster, 'moved') == 'ResourceHeldByPlugin'),
                'device plugins: the resource moves to a class, and its pod waits on the node '
                'for those with cards', cluster.unschedulable('moved'))
  cluster.equal({pod: cards(cluster, pod) for pod in held}, held,
                'device plugins: pods of before keep their cards')
  for pod in held:
    cluster.api.delete('Pod', pod, grace=0)
  cluster.check(cluster.ready('moved') and len(cluster.node.gets('moved')['main']) == 1 and
                cluster.special('moved')[0] is not None,
                'device plugins: then it has a device of the driver')


def all_cases(cluster):
  plugin = cluster.node.start_plugin(CARD)
  try:
    cluster.check(wait_for(lambda: 'registered' in plugin.lines()),
                  'device plugins: a plugin on the official stubs registers')
    cluster.check(wait_for(lambda: (shown(cluster, 'capacity'), shown(cluster, 'allocatable')) ==
                           ('2', '2')), 'device plugins: devmgrd writes what the node has')
    for pod in ('card-a', 'card-b'):
      make_card_pod(cluster, pod)
      cluster.check(cluster.ready(pod), f'device plugins: {pod} is scheduled and gets ready',
                    cluster.unschedulable(pod))
    given = {pod: cards(cluster, pod) for pod in ('card-a', 'card-b')}
    cluster.equal(sorted(given.values()), [['card-0'], ['card-1']],
                  'device plugins: each pod has a device of its own')
    make_card_pod(cluster, 'card-c')
    cluster.check(wait_for(lambda: cluster.unschedulable('card-c')),
                  'device plugins: the scheduler counts')

    plugin.stop()
    cluster.check(wait_for(lambda: healthy(cluster) == 0), 'device plugins: the plugin goes')
    cluster.equal({pod: cards(cluster, pod) for pod in given}, given,
                  'device plugins: pods keep their devices while the plugin is away')
    plugin = cluster.node.start_plugin(CARD)
    # The node has its list, too. A pod that comes before that is rejected.
    cluster.check(wait_for(lambda: healthy(cluster) == 2), 'device plugins: the plugin comes back')
    cluster.api.delete('Pod', 'card-a', grace=0)
    cluster.check(cluster.ready('card-c') and cards(cluster, 'card-c') == given['card-a'],
                  'device plugins: the next pod gets the device that became free',
                  f'{given}, {cards(cluster, "card-c")}')
    plugin.stop()
    moves_to_a_class(cluster, {'card-b': given['card-b'], 'card-c': given['card-a']})
    cluster.api.delete('Pod', 'moved', grace=0)
    cluster.check(cluster.idle(), 'device plugins: nothing is left', cluster.leftovers())
  finally:
    plugin.stop()
