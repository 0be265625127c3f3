# SPDX-License-Identifier: Apache-2.0
"""The API server killed and started anew, certificates rotated, many pods."""

import collections
import os

from interop import wait_for
from cluster import GPU, SCHEDULER_PATIENCE, Refused, container

SCALE = float(os.environ.get('DEVMGR_TEST_SCALE', '1'))
PODS = max(8, int(200 * SCALE))
AT_ONCE = 6


def four_containers():
  """Four containers; two of them have a device of the pod's special claim."""
  return [container('a', limits={GPU: 1}), container('b'), container('c', limits={GPU: 1}),
          container('d')]


class Load:
  """Pods that are made, become ready and are deleted, some of them at a time."""

  def __init__(self, cluster, prefix, count):
    self._cluster = cluster
    self._names = [f'{prefix}-{number}' for number in range(count)]
    self._waiting = collections.deque(self._names)
    self._alive = {}  # name: UID of its claim; '' while it is not ready
    self._ending = set()
    self.unprepared_alive = []
    self.claims = []

  def _start_one(self):
    name = self._waiting[0]
    try:
      self._cluster.make_pod(name, four_containers())
    except Refused as refused:
      if refused.code != 409:  # Made, and the server died before it said so.
        raise
    self._waiting.popleft()
    self._alive[name] = ''

  def _end(self, name):
    uid = self._alive[name]
    # A server that dies may have deleted the pod before; then it is no longer alive.
    if name not in self._ending and self._cluster.node.calls('unpreparing', uid):
      self.unprepared_alive.append(name)
    self._ending.add(name)
    self._cluster.api.delete('Pod', name, grace=0)
    self.claims.append(uid)
    del self._alive[name]

  def step(self):
    """Does what can be done now; whether all is done. Raises OSError or Refused
    while there is no server: what was not done is done next time."""
    while self._waiting and len(self._alive) < AT_ONCE:
      self._start_one()
    for name, uid in list(self._alive.items()):
      if uid:
        self._end(name)
      elif len(self._cluster.node.gets(name)) == 2:
        self._alive[name] = self._cluster.special(name)[0]['metadata']['uid']
    return not self._waiting and not self._alive

  def step_or_not(self):
    try:
      return self.step()
    except OSError:
      return False
    except Refused as refused:
      # A server that starts answers so before it is ready.
      if refused.code not in (403, 429, 500, 503, 504):
        raise
      return False

  def run_until(self, condition):
    """Goes on until `condition` or the end; whether that came in time."""
    return wait_for(lambda: self.step_or_not() or condition(), SCHEDULER_PATIENCE)

  def progress(self):
    return len(self.claims)


def counts(cluster, load):
  """What is wrong with how often claims were prepared and unprepared."""
  wrong = []
  for word in ('prepared', 'unprepared'):
    often = collections.Counter(cluster.node.said(word))
    wrong += [f'{uid} {word} {often[uid]} times' for uid in load.claims if often[uid] != 1]
  return wrong + [f'{name} lost its claim alive' for name in load.unprepared_alive]


def under_load(cluster):
  """Pods come and go while the server is killed and started anew."""
  cluster.make_pod('witness', [container('main', limits={GPU: 1})])
  cluster.ready('witness')
  before = cluster.node.gets('witness')
  load = Load(cluster, 'load', PODS)
  for kill in range(1, 3):
    load.run_until(lambda goal=kill * PODS // 3: load.progress() >= goal)
    cluster.plane.kill('kube-apiserver')
    cluster.equal(cluster.node.gets('witness'), before,
                  f'disturbances: answers while the API server is dead, time {kill}')
    cluster.plane.start_api_server()
  cluster.check(all(load.run_until(lambda goal=goal: load.progress() >= goal)
                    for goal in range(load.progress(), PODS + 1)),
                f'disturbances: {PODS} pods of 4 containers come and go, the server dies twice',
                f'{load.progress()} of {PODS}')
  # Those of the last pods are given back after the watch has said so.
  wait_for(lambda: not counts(cluster, load))
  wrong = counts(cluster, load)
  cluster.check(not wrong, 'disturbances: each claim was prepared once and unprepared once, '
                'none under a living pod', '\n'.join(wrong[:10]))
  cluster.equal(cluster.node.gets('witness'), before,
                'disturbances: another pod keeps its devices all the time')


def server_and_node_down(cluster):
  """Both restart while the other is away: nothing that cannot be seen is gone."""
  before = cluster.node.gets('witness')
  cluster.plane.kill('kube-apiserver')
  cluster.kill_node()
  cluster.node.start()
  cluster.check(wait_for(lambda: cluster.node.gets('witness') == before),
                'disturbances: a restart without the server answers the same')
  cluster.plane.start_api_server()
  wait_for(cluster.plane.ready)
  cluster.make_pod('later', [container('main', limits={GPU: 1})])
  cluster.check(cluster.ready('later'), 'disturbances: the node follows the server again')
  cluster.equal(cluster.node.gets('witness'), before, 'disturbances: and has lost nothing')
  cluster.api.delete('Pod', 'later', grace=0)
  cluster.released('later')


def rotated(cluster):
  """Another authority for all: the node's old certificate is refused."""
  cluster.plane.kill('kube-apiserver')
  cluster.plane.rotate()
  cluster.plane.start_api_server()
  cluster.check(wait_for(cluster.plane.ready), 'disturbances: the server has new certificates',
                cluster.plane.tail('kube-apiserver'))
  for program in ('kube-scheduler', 'kube-controller-manager'):
    cluster.plane.kill(program)
  cluster.plane.start_scheduler()
  cluster.plane.start_controllers()
  # The helper of 0.34 reads its authority once.
  cluster.node.driver.stop()
  cluster.node.start_driver(cluster.node.devices)
  cluster.make_pod('rotated', [container('main', limits={GPU: 1})])
  cluster.check(cluster.ready('rotated'),
                'disturbances: devmgrd takes new certificates and authority without a restart')
  cluster.api.delete('Pod', 'rotated', grace=0)
  cluster.released('rotated')


def older_state(cluster):
  """The server's store is that of before: pods that it had since never were."""
  before = cluster.node.gets('witness')
  # The node's start has deleted the slices, and the driver makes them anew after
  # 30 s. With a backup from before that they would be gone for good: its watch of
  # a version that the restored server has yet to reach says nothing.
  published = wait_for(lambda: cluster.published() == cluster.node.devices)
  listed = cluster.plane.lists()
  cluster.plane.save()
  cluster.check(wait_for(cluster.plane.ready), 'disturbances: the server has a backup',
                cluster.plane.tail('kube-apiserver'))
  names = ['newer-a', 'newer-b']
  for name in names:
    cluster.make_pod(name, [container('main', limits={GPU: 1})])
  ready = all([cluster.ready(name) for name in names])
  claims = [cluster.special(name)[0]['metadata']['uid'] for name in names]
  # After a break it lists once; from then on it has only its watch.
  settled = wait_for(lambda: cluster.plane.lists() > listed)
  cluster.plane.restore()
  cluster.make_pod('restored', [container('main', limits={GPU: 1})])
  cluster.check(published and ready and settled and cluster.ready('restored'),
                'disturbances: the node follows a server with an older state')
  cluster.check(all([cluster.released(name) for name in names]) and
                [cluster.node.calls('unprepared', uid) for uid in claims] == [1, 1],
                'disturbances: pods that this server never had are released')
  cluster.equal(cluster.node.gets('witness'), before,
                'disturbances: a pod that it has keeps its devices')
  cluster.api.delete('Pod', 'restored', grace=0)
  cluster.released('restored')


def all_cases(cluster):
  under_load(cluster)
  server_and_node_down(cluster)
  older_state(cluster)
  rotated(cluster)
  cluster.api.delete('Pod', 'witness', grace=0)
  cluster.check(cluster.idle(), 'disturbances: nothing is left', cluster.leftovers())
  found = cluster.node.ctl('fsck')
  cluster.check(found.returncode == 0, 'disturbances: fsck finds nothing',
                found.stdout + found.stderr)
