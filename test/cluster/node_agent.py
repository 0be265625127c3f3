# SPDX-License-Identifier: Apache-2.0
"""devmgrd as the agent of the node: the status of pods, and their last delete."""

import collections

from interop import wait_for
from cluster import GPU, container

FOREVER = 'trap "exit 0" TERM; while :; do sleep 1 & wait; done'


def status(cluster, name):
  return (cluster.pod(name) or {}).get('status', {})


def state(cluster, name):
  """(kind of state, its contents) of the pod's only container."""
  for each in status(cluster, name).get('containerStatuses', []):
    for kind, contents in each.get('state', {}).items():
      return kind, contents
  return '', {}


def conditions(cluster, name):
  return {each['type']: each['status'] for each in status(cluster, name).get('conditions', [])}


def has_phase(cluster, name, phase):
  return wait_for(lambda: status(cluster, name).get('phase') == phase)


def gone(cluster, name):
  return wait_for(lambda: cluster.pod(name) is None)


def special_uid(cluster, pod):
  claim, _ = cluster.special(pod)
  return claim['metadata']['uid'] if claim else ''


def prepared_only(cluster, uid):
  return cluster.node.calls('prepared', uid) == 1 and not cluster.node.calls('unpreparing', uid)


def a_pod_that_runs(cluster, runtime):
  uid = cluster.make_pod('runs', [container('main', limits={GPU: 1})])
  cluster.check(cluster.ready('runs'), 'node agent: a pod becomes ready')
  claim = special_uid(cluster, 'runs')
  why = runtime.ask('run', 'runs', uid, 'main', FOREVER)
  cluster.check(not why and has_phase(cluster, 'runs', 'Running'),
                'node agent: the server knows that it runs', why or str(status(cluster, 'runs')))
  kind, _ = state(cluster, 'runs')
  known = status(cluster, 'runs').get('containerStatuses', [{}])[0]
  cluster.check(kind == 'running' and known.get('ready') and
                known.get('containerID', '').startswith('containerd://'),
                'node agent: and its container', str(known))
  cluster.equal([conditions(cluster, 'runs').get(each) for each in
                 ('PodScheduled', 'Initialized', 'ContainersReady', 'Ready')], ['True'] * 4,
                'node agent: its conditions')
  cluster.check(status(cluster, 'runs').get('extendedResourceClaimStatus'),
                'node agent: what the scheduler wrote stays')
  return claim


def deleted_with_grace(cluster, runtime, claim):
  cluster.api.delete('Pod', 'runs')
  cluster.make_pod('after', [container('main')])
  cluster.check(cluster.ready('after') and cluster.pod('runs') is not None and
                prepared_only(cluster, claim),
                'node agent: a pod that is being deleted stays while its container runs')
  why = runtime.ask('stop', 'runs')
  cluster.check(not why and gone(cluster, 'runs'),
                'node agent: it is deleted when nothing of it runs', why)
  cluster.check(wait_for(lambda: cluster.node.calls('unprepared', claim) == 1),
                'node agent: its devices were released')


def requests_of_a_life(cluster, before):
  """From its start to its end the kubelet reads a pod and patches its status when
  its containers are being created, when they run, and when they have ended, and
  deletes it; it reads the claim; and it sends events Pulled, Created, Started and
  Killing."""
  kubelets = 3 * 2 + 1 + 1 + 4
  ours = collections.Counter()
  for each in cluster.plane.requests()[before:]:
    what = each.get('objectRef', {})
    is_of_pod = what.get('resource') in ('events', 'pods', 'resourceclaims') and (
        what.get('name', 'runs').startswith('runs'))
    if (is_of_pod and each['stage'] == 'ResponseComplete' and
        each.get('userAgent', '').startswith('devmgr') and
        each['verb'] not in ('list', 'watch')):
      ours[' '.join((each['verb'], what['resource'], what.get('subresource', ''))).strip()] += 1
  listed = ', '.join(f'{count} {what}' for what, count in sorted(ours.items()))
  cluster.tap.note(f'requests of a pod\'s life: {listed}; the kubelet: {kubelets}')
  cluster.check(0 < sum(ours.values()) <= kubelets,
                'node agent: no more requests than the kubelet has for a pod', listed)


def a_pod_that_never_ran(cluster):
  cluster.api.delete('Pod', 'after')
  cluster.check(gone(cluster, 'after'), 'node agent: a pod that never ran is deleted')


def a_pod_that_ends(cluster, runtime):
  for name, text, phase, code in (('succeeds', 'true', 'Succeeded', 0),
                                  ('fails', 'exit 3', 'Failed', 3)):
    uid = cluster.make_pod(name, [container('main', limits={GPU: 1})], restartPolicy='Never')
    ready = cluster.ready(name)
    claim = special_uid(cluster, name)
    why = runtime.ask('run', name, uid, 'main', text)
    cluster.check(ready and not why and has_phase(cluster, name, phase) and
                  state(cluster, name)[1].get('exitCode') == code,
                  f'node agent: a pod that {name}', why or str(status(cluster, name)))
    runtime.ask('stop', name)
    cluster.check(wait_for(lambda uid=claim: cluster.node.calls('unprepared', uid) == 1) and
                  cluster.pod(name) is not None,
                  f'node agent: a pod that {name} gives its devices back, and its object stays')
    cluster.api.delete('Pod', name)
    cluster.check(gone(cluster, name), f'node agent: a pod that {name} is deleted')


def deleted_by_force(cluster, runtime):
  uid = cluster.make_pod('forced', [container('main', limits={GPU: 1})])
  ready = cluster.ready('forced')
  claim = special_uid(cluster, 'forced')
  why = runtime.ask('run', 'forced', uid, 'main', FOREVER)
  cluster.check(ready and not why and has_phase(cluster, 'forced', 'Running'),
                'node agent: a pod that will be deleted by force runs', why)
  cluster.api.delete('Pod', 'forced', grace=0)
  held = wait_for(lambda: 'ContainersRunning' in
                  cluster.node.ctl('explain', 'pod', 'forced').stdout)
  cluster.check(gone(cluster, 'forced') and held and prepared_only(cluster, claim),
                'node agent: its devices are kept while its container runs',
                cluster.node.ctl('explain', 'pod', 'forced').stdout)
  why = runtime.ask('stop', 'forced')
  cluster.check(not why and wait_for(lambda: cluster.node.calls('unprepared', claim) == 1),
                'node agent: they are released when that has ended', why)


def over_a_restart(cluster, runtime):
  uid = cluster.make_pod('waits', [container('main', limits={GPU: 1})])
  ready = cluster.ready('waits')
  why = runtime.ask('run', 'waits', uid, 'main', FOREVER)
  running = has_phase(cluster, 'waits', 'Running')
  cluster.kill_node()
  cluster.api.delete('Pod', 'waits')
  stopped = runtime.ask('stop', 'waits')
  cluster.node.start(runtime.socket)
  cluster.check(ready and running and not why and not stopped and gone(cluster, 'waits'),
                'node agent: a pod that ended while devmgrd was down is deleted', why or stopped)


def all_cases(cluster):
  runtime = cluster.runtime()
  if runtime.why_not:
    cluster.tap.skip('node agent', 'cannot run containers here: ' + runtime.why_not)
    return
  cluster.node.restart(runtime.socket)
  cluster.check(wait_for(lambda: 'known for' in cluster.node.ctl('status').stdout),
                'node agent: devmgrd knows what the runtime runs')
  before = len(cluster.plane.requests())
  claim = a_pod_that_runs(cluster, runtime)
  deleted_with_grace(cluster, runtime, claim)
  requests_of_a_life(cluster, before)
  a_pod_that_never_ran(cluster)
  a_pod_that_ends(cluster, runtime)
  deleted_by_force(cluster, runtime)
  over_a_restart(cluster, runtime)
  cluster.check(cluster.idle(), 'node agent: nothing is left', cluster.leftovers())
  cluster.node.restart()
