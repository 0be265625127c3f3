# SPDX-License-Identifier: Apache-2.0
"""Pods that want nothing but extended resources, which a DeviceClass backs."""

from interop import DRIVER, wait_for
from cluster import GPU, IMPLICIT, container


def wanted(cluster, pod):
  """{container: CDI device IDs} by what the scheduler wrote."""
  claim, mappings = cluster.special(pod)
  if claim is None:
    return {}
  devices = cluster.devices_of(claim['metadata']['name'])
  ids = {}
  for each in mappings:
    ids.setdefault(each['containerName'], []).extend(
        f'{DRIVER}/claim={claim["metadata"]["uid"]}-{device}'
        for device in devices[each['requestName']])
  return {name: sorted(names) for name, names in ids.items()}


def gets_what_was_allocated(cluster, pod, counts):
  """The pod becomes ready, and its containers get so many devices each, which
  are those of the special claim."""
  ready = cluster.ready(pod)
  got = {name: sorted(ids) for name, ids in cluster.node.gets(pod).items()}
  want = wanted(cluster, pod)
  return cluster.check(
      ready and got == want and {name: len(ids) for name, ids in got.items()} == counts,
      f'extended resources: {pod}', f'got {got}\nwant {want}\nnumbers {counts}\n'
      f'unschedulable: {cluster.unschedulable(pod)}')


def one_container(cluster):
  cluster.make_pod('one', [container('main', limits={GPU: 1}), container('plain')])
  gets_what_was_allocated(cluster, 'one', {'main': 1})
  claim, mappings = cluster.special('one')
  cluster.equal([(each['containerName'], each['resourceName']) for each in mappings],
                [('main', GPU)], 'extended resources: the scheduler wrote the mapping')
  uid = claim['metadata']['uid']
  cluster.equal(cluster.node.calls('prepared', uid), 1,
                'extended resources: the special claim was prepared once')
  return uid



def in_containers(cluster, pod, names):
  """Real containers of the pod, behind the shim, see what they were given."""
  case = 'extended resources: real containers have their devices'
  runtime = cluster.runtime()
  if runtime.why_not:
    cluster.tap.skip(case, 'cannot run containers here: ' + runtime.why_not)
    return
  uid = cluster.pod(pod)['metadata']['uid']
  got = []
  for name in names:
    why = runtime.ask('look', pod, uid, name)
    got += [why] if why else runtime.lines
  want = []
  for name, given in wanted(cluster, pod).items():
    devices = ['gpu-' + each.rsplit('-', 1)[1] for each in given]
    # Of one variable that several devices set the last one is left.
    variable = cluster.node.gets(pod)[name][-1].rsplit('-', 1)[1]
    want += [f'{name}: GPU=gpu-{variable}'] + [f'{name}: node /dev/{each} 1:3' for each in devices]
  cluster.equal(got, want, case)


def all_cases(cluster):
  first = one_container(cluster)
  cluster.make_pod('implicit-name', [container('main', limits={IMPLICIT: 1})])
  gets_what_was_allocated(cluster, 'implicit-name', {'main': 1})
  cluster.make_pod('two-containers', [container('a', limits={GPU: 1}),
                                      container('b', limits={GPU: 2}), container('c')])
  gets_what_was_allocated(cluster, 'two-containers', {'a': 1, 'b': 2})
  in_containers(cluster, 'two-containers', ['a', 'b', 'c'])
  cluster.make_pod('both-names', [container('main', limits={GPU: 1, IMPLICIT: 1})])
  gets_what_was_allocated(cluster, 'both-names', {'main': 2})
  cluster.make_pod('init-container', [container('main', limits={GPU: 1})],
                   init=[container('init', limits={GPU: 1})])
  gets_what_was_allocated(cluster, 'init-container', {'init': 1, 'main': 1})

  # gpu-0 to gpu-7; one of them at most is free.
  cluster.make_pod('one-too-many', [container('main', limits={GPU: 2})])
  cluster.check(wait_for(lambda: cluster.unschedulable('one-too-many')),
                'extended resources: a pod waits for the scheduler, not on the node')
  cluster.equal(cluster.node.gets('one-too-many'), {}, 'extended resources: it has nothing')
  cluster.api.delete('Pod', 'two-containers', grace=0)
  cluster.check(cluster.released('two-containers'), 'extended resources: a pod is released')
  gets_what_was_allocated(cluster, 'one-too-many', {'main': 2})

  for pod in ('one', 'implicit-name', 'both-names', 'init-container', 'one-too-many'):
    cluster.api.delete('Pod', pod, grace=0)
  cluster.check(cluster.idle(), 'extended resources: nothing is left', cluster.leftovers())
  cluster.equal(cluster.node.calls('unprepared', first), 1,
                'extended resources: the special claim was unprepared once')
