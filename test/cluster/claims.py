# SPDX-License-Identifier: Apache-2.0
"""Claims from templates, shared claims, and the ways in which pods go."""

from interop import DRIVER, wait_for
from cluster import container


def claim_of(cluster, pod):
  """(name, UID) of the claim that the controller made for the pod's only entry."""
  statuses = cluster.pod(pod)['status'].get('resourceClaimStatuses', [])
  name = statuses[0]['resourceClaimName'] if statuses else ''
  claim = cluster.api.get('ResourceClaim', name) if name else None
  return (name, claim['metadata']['uid']) if claim else (name, '')


def ids(cluster, name, uid):
  return sorted(f'{DRIVER}/claim={uid}-{device}'
                for devices in cluster.devices_of(name).values() for device in devices)


def gets_the_claim(cluster, pod, name, uid, case):
  got = {each: sorted(names) for each, names in cluster.node.gets(pod).items()}
  return cluster.equal(got, {'main': ids(cluster, name, uid)}, case)


def make_template_pod(cluster, name):
  cluster.make_pod(name, [container('main', claims=['c'])],
                   claims=[{'name': 'c', 'resourceClaimTemplateName': 'template'}])


def make_claim_pod(cluster, name, claim='shared'):
  cluster.make_pod(name, [container('main', claims=['c'])],
                   claims=[{'name': 'c', 'resourceClaimName': claim}])


def is_unprepared(cluster, uid):
  """Whether the driver gave the claim back exactly once."""
  wait_for(lambda: cluster.node.calls('unprepared', uid))
  return cluster.node.calls('unprepared', uid) == 1


def with_grace(cluster):
  make_template_pod(cluster, 'graceful')
  cluster.check(cluster.ready('graceful'), 'claims: a pod with a template becomes ready')
  name, uid = claim_of(cluster, 'graceful')
  gets_the_claim(cluster, 'graceful', name, uid, 'claims: it gets the devices of its own claim')
  before = cluster.node.gets('graceful')
  cluster.api.delete('Pod', 'graceful')
  # Later pods of the same watch were seen: so was the deletion.
  make_template_pod(cluster, 'after')
  cluster.check(cluster.ready('after') and cluster.node.gets('graceful') == before and
                not cluster.node.calls('unpreparing', uid),
                'claims: a pod that is being deleted keeps its devices')
  cluster.finish('graceful')
  cluster.check(cluster.released('graceful') and is_unprepared(cluster, uid),
                'claims: its claim is unprepared after the last delete (by the test)')
  cluster.check(wait_for(lambda: cluster.api.get('ResourceClaim', name) is None),
                'claims: the claim is deleted with its pod', cluster.leftovers())


def by_force(cluster):
  _, uid = claim_of(cluster, 'after')
  cluster.api.delete('Pod', 'after', grace=0)
  cluster.check(cluster.released('after') and is_unprepared(cluster, uid),
                'claims: force-deleted')


def while_down(cluster):
  make_template_pod(cluster, 'goes')
  make_template_pod(cluster, 'stays')
  ready = cluster.ready('goes') and cluster.ready('stays')
  _, gone = claim_of(cluster, 'goes')
  name, kept = claim_of(cluster, 'stays')
  cluster.kill_node()
  cluster.api.delete('Pod', 'goes', grace=0)
  make_template_pod(cluster, 'comes')
  cluster.node.start()
  cluster.check(ready and wait_for(lambda: cluster.node.calls('unprepared', gone)),
                'claims: deleted while devmgrd was down')
  cluster.check(cluster.ready('comes'), 'claims: created while devmgrd was down')
  gets_the_claim(cluster, 'stays', name, kept, 'claims: another pod keeps its devices meanwhile')
  cluster.equal([cluster.node.calls(word, kept) for word in ('prepared', 'unpreparing')], [1, 0],
                'claims: neither prepared again nor unprepared')
  for pod in ('stays', 'comes'):
    cluster.api.delete('Pod', pod, grace=0)
    cluster.released(pod)


def shared(cluster):
  uid = cluster.make_claim('shared')
  for pod in ('first', 'second'):
    make_claim_pod(cluster, pod)
    cluster.check(cluster.ready(pod), f'claims: the {pod} pod of a shared claim becomes ready')
    gets_the_claim(cluster, pod, 'shared', uid, f'claims: the {pod} pod gets its device')
  cluster.equal(cluster.node.calls('prepared', uid), 1, 'claims: a shared claim is prepared once')
  cluster.api.delete('Pod', 'first', grace=0)
  cluster.check(cluster.released('first') and not cluster.node.calls('unpreparing', uid),
                'claims: it stays prepared for the other pod')
  cluster.api.delete('Pod', 'second', grace=0)
  cluster.check(cluster.released('second') and is_unprepared(cluster, uid),
                'claims: it is unprepared with the last pod')


def allocated_anew(cluster):
  """The claim of before, with other devices: what was read of it is no longer so."""
  uid = cluster.api.get('ResourceClaim', 'shared')['metadata']['uid']
  cluster.check(wait_for(lambda: not cluster.devices_of('shared')),
                'claims: the controller deallocates it')
  make_template_pod(cluster, 'takes')  # The first device that is free.
  cluster.ready('takes')
  make_claim_pod(cluster, 'third')
  cluster.check(cluster.ready('third'), 'claims: allocated anew')
  gets_the_claim(cluster, 'third', 'shared', uid, 'claims: its pod gets the device of now')
  cluster.equal(cluster.node.calls('prepared', uid), 2, 'claims: it was prepared again')
  for pod in ('takes', 'third'):
    cluster.api.delete('Pod', pod, grace=0)
    cluster.released(pod)
  cluster.api.delete('ResourceClaim', 'shared')


def under_one_name(cluster):
  """A claim and its pod deleted and made again under their names, at once."""
  uids = []
  for _ in range(3):
    wait_for(lambda: cluster.api.get('ResourceClaim', 'again') is None)
    uids.append(cluster.make_claim('again'))
    make_claim_pod(cluster, 'again', 'again')
    ready = wait_for(lambda: cluster.bound('again')) and wait_for(
        lambda uid=uids[-1]: cluster.node.gets('again') == {'main': ids(cluster, 'again', uid)})
    cluster.check(ready, f'claims: pod and claim of one name, number {len(uids)}',
                  str(cluster.node.gets('again')))
    cluster.api.delete('Pod', 'again', grace=0)
    cluster.api.delete('ResourceClaim', 'again')
  cluster.check(all(is_unprepared(cluster, uid) for uid in uids),
                'claims: each of them is unprepared')


def all_cases(cluster):
  cluster.make_template('template')
  with_grace(cluster)
  by_force(cluster)
  while_down(cluster)
  shared(cluster)
  allocated_anew(cluster)
  under_one_name(cluster)
  cluster.check(cluster.idle(), 'claims: nothing is left', cluster.leftovers())
