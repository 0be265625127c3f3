# SPDX-License-Identifier: Apache-2.0
"""A control plane with one node: devmgrd, a driver on the official helper, and
the test as the rest of the node's agent."""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'interop'))

from interop import DRIVER, Program, run, wait_for  # noqa: E402
from api import Refused  # noqa: E402
from control_plane import NODE, ControlPlane  # noqa: E402

CLASS = 'gpu.example.com'
GPU = 'example.com/gpu'
IMPLICIT = f'deviceclass.resource.kubernetes.io/{CLASS}'
# Seconds. After outages of the server that follow each other within two minutes,
# a reflector of client-go waits 30 to 60 s before it lists again, and so long the
# scheduler binds nothing: the third of three outages of 5 s costs it 40 s.
SCHEDULER_PATIENCE = 150


def container(name, **keywords):
  """`limits` by resource, `claims` by name, or nothing."""
  resources = {}
  if 'limits' in keywords:
    resources['limits'] = {name: str(count) for name, count in keywords['limits'].items()}
  if 'claims' in keywords:
    resources['claims'] = [{'name': claim} for claim in keywords['claims']]
  return {'name': name, 'image': 'devmgr.test/busybox:1', 'resources': resources}


class Runtime:
  """containerd behind a shim, with a client that does what it is asked to."""

  def __init__(self, program, log, *arguments):
    self.lines = []
    self.why_not = self.socket = ''
    # Over with its input.
    self._process = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=log, text=True)
    words = self._process.stdout.readline().split()
    if words:
      self.socket = words[1]
      return
    self.why_not = f'exit code {self._process.wait()}'

  def ask(self, *words):
    """Why it failed, or ''. What it printed is in `lines`."""
    self._process.stdin.write(' '.join(words) + '\n')
    self._process.stdin.flush()
    self.lines = []
    for line in self._process.stdout:
      if line == 'done\n':
        return ''
      if line.startswith('failed '):
        return line
      self.lines.append(line.rstrip('\n'))
    return 'the runtime ended'

  def stop(self):
    self._process.stdin.close()
    self._process.wait()


class Node:
  """devmgrd below the API server, and the driver, on one folder."""

  def __init__(self, tools, go, plane, root, name=NODE, account='node'):
    self._tools, self._go, self._plane = tools, go, plane
    self._name, self._account = name, account
    self.root = root
    self.cdi = root + '/cdi'
    os.makedirs(self.cdi)
    self.devices = 0
    self.daemon = self.driver = None

  def tool(self, name):
    return os.path.join(self._tools, name, name)

  def start(self, runtime=''):
    """With the socket of a container runtime as the agent of the node, too."""
    more = []
    if runtime:
      with open(self.root + '/config.yaml', 'w', encoding='utf-8') as config:
        config.write('apiServer: {nodeAgent: true}\n')
      more = ['--config', self.root + '/config.yaml', '--runtime-endpoint', runtime]
    self.daemon = Program(self.root + '/devmgrd.log', self.tool('devmgrd'), '--root', self.root,
                          '--node-name', self._name,
                          '--kubeconfig', self._plane.kubeconfigs[self._account],
                          '--cdi-spec-dir', self.cdi, *more)

  def another(self, root, name, account):
    """devmgrd of another node, which has nothing yet."""
    os.makedirs(root)
    return Node(self._tools, self._go, self._plane, root, name, account)

  def restart(self, runtime=''):
    self.daemon.stop()
    self.start(runtime)
    return wait_for(lambda: self.ctl('status').returncode == 0)

  def start_driver(self, devices):
    self.devices = devices
    self.driver = Program(self.root + '/driver.log', self._go + '/driver', '--name', DRIVER,
                          '--root', self.root, '--cdi', self.cdi,
                          '--server', f'https://127.0.0.1:{self._plane.port}',
                          '--credentials', self._plane.pki, '--devices', str(devices))

  def start_plugin(self, resource):
    return Program(self.root + '/plugin.log', self._go + '/plugin', '--resource', resource,
                   '--root', self.root)

  def ctl(self, *arguments):
    return run([self.tool('devmgrctl'), '--endpoint', self.root + '/devmgr.sock', *arguments])

  def items(self, what):
    done = self.ctl('get', what, '-o', 'json')
    return json.loads(done.stdout)['items'] if done.returncode == 0 else []

  def connected(self):
    return any(plugin['metadata']['name'] == DRIVER and
               plugin['status']['state'] == 'Connected' for plugin in self.items('plugins'))

  def answer(self, pod):
    """{container: what it gets}; {} while the pod is not ready."""
    done = self.ctl('resolve', pod, '-o', 'json')
    if done.returncode != 0:
      return {}
    return {each['name']: each for each in json.loads(done.stdout)['containers']}

  def gets(self, pod):
    """{container: CDI device IDs}, of containers that get any."""
    names = {name: [device['name'] for device in each.get('cdiDevices') or []]
             for name, each in self.answer(pod).items()}
    return {name: ids for name, ids in names.items() if ids}

  def calls(self, word, uid):
    """How often the driver has said `word` of a claim."""
    return sum(line.startswith(word + ' ') and line.endswith(' ' + uid)
               for line in self.driver.lines())

  def said(self, word):
    """UIDs of the claims of which the driver has said `word`, in their order."""
    return [line.split()[2] for line in self.driver.lines() if line.startswith(word + ' ')]

  def story(self):
    """What a failed case shows of the node."""
    lines = self.driver.lines()[-10:] if self.driver else []
    return '\n'.join([*self.daemon.lines()[-15:], self.ctl('status').stdout,
                      self.ctl('get', 'pods').stdout, *lines])

  def stop(self):
    for program in (self.driver, self.daemon):
      if program is not None:
        program.stop()


class Cluster:
  """The control plane, the node, and what tests do with them."""

  def __init__(self, tap, programs, build_root, folder):
    self.tap = tap
    self.folder = folder
    self.plane = ControlPlane(programs, folder)
    self.api = self.plane.admin
    os.makedirs(folder + '/node')
    self.node = Node(build_root + '/tools', build_root + '/test/interop/bin', self.plane,
                     folder + '/node')
    self._program = build_root + '/test/cluster/runtime_of_node'
    self._runtime = None

  def check(self, good, name, detail=''):
    """One case; a failed one shows how the node is."""
    return self.tap.check(good, name, '' if good else f'{detail}\n{self.node.story()}')

  def equal(self, got, want, name):
    return self.check(got == want, name, f'got:  {got!r}\nwant: {want!r}')

  # What an administrator does.

  def make_objects(self):
    self.make_role('driver', [
        {'apiGroups': [''], 'resources': ['nodes'], 'verbs': ['get']},
        {'apiGroups': ['resource.k8s.io'], 'resources': ['resourceclaims'], 'verbs': ['get']},
        {'apiGroups': ['resource.k8s.io'], 'resources': ['resourceslices'],
         'verbs': ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']}], 'drivers')
    self.make_class(CLASS, GPU)
    self.api.create({'apiVersion': 'v1', 'kind': 'Node', 'metadata': {
        'name': NODE, 'labels': {'kubernetes.io/hostname': NODE}}})
    capacity = {'cpu': '16', 'memory': '32Gi', 'ephemeral-storage': '100Gi', 'pods': '1000'}
    self.patch_node({'capacity': capacity, 'allocatable': capacity, 'conditions': [
        {'type': 'Ready', 'status': 'True', 'reason': 'Test', 'message': 'there is no kubelet',
         'lastHeartbeatTime': '2026-01-01T00:00:00Z',
         'lastTransitionTime': '2026-01-01T00:00:00Z'}]})

  def make_role(self, name, rules, group):
    """What all accounts of a group may do."""
    version = {'apiVersion': 'rbac.authorization.k8s.io/v1', 'metadata': {'name': name}}
    self.api.create({**version, 'kind': 'ClusterRole', 'rules': rules})
    self.api.create({
        **version, 'kind': 'ClusterRoleBinding',
        'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': name},
        'subjects': [{'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'Group', 'name': group}]})

  def make_class(self, name, resource):
    """A class of the driver's devices, which backs an extended resource."""
    self.api.create({
        'apiVersion': 'resource.k8s.io/v1', 'kind': 'DeviceClass', 'metadata': {'name': name},
        'spec': {'extendedResourceName': resource, 'selectors': [
            {'cel': {'expression': f'device.driver == "{DRIVER}"'}}]}})

  def patch_node(self, status):
    self.api.patch('Node', NODE, {'status': status}, '/status')

  def published(self):
    """Devices of the driver that the API server has."""
    return sum(len(each['spec'].get('devices') or []) for each in self.api.list('ResourceSlice')
               if each['spec']['driver'] == DRIVER)

  # What users do.

  def make_pod(self, name, containers, init=(), claims=(), **spec):
    """`claims` is a list of entries of `spec.resourceClaims`. Returns its UID."""
    return self.api.create({
        'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name},
        'spec': {'containers': containers, 'initContainers': list(init),
                 'resourceClaims': list(claims), 'tolerations': [{'operator': 'Exists'}],
                 'terminationGracePeriodSeconds': 600, **spec}})['metadata']['uid']

  def make_template(self, name, count=1):
    self.api.create({'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaimTemplate',
                     'metadata': {'name': name}, 'spec': {'spec': self._claim_spec(count)}})

  def make_claim(self, name, count=1):
    """Returns its UID."""
    return self.api.create({
        'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': name},
        'spec': self._claim_spec(count)})['metadata']['uid']

  @staticmethod
  def _claim_spec(count):
    return {'devices': {'requests': [
        {'name': 'r', 'exactly': {'deviceClassName': CLASS, 'count': count}}]}}

  # What the server has.

  def pod(self, name):
    return self.api.get('Pod', name)

  def bound(self, name):
    return (self.pod(name) or {'spec': {}})['spec'].get('nodeName') == NODE

  def unschedulable(self, name):
    """What the scheduler says of it; '' while it says nothing."""
    for condition in (self.pod(name) or {}).get('status', {}).get('conditions', []):
      if condition['type'] == 'PodScheduled' and condition['status'] == 'False':
        return condition.get('message', '')
    return ''

  def devices_of(self, claim):
    """The devices that the scheduler chose for a claim, by request."""
    status = (self.api.get('ResourceClaim', claim) or {}).get('status', {})
    by_request = {}
    for each in status.get('allocation', {}).get('devices', {}).get('results', []):
      by_request.setdefault(each['request'], []).append(each['device'])
    return by_request

  def special(self, pod):
    """(claim object, mappings) of a pod's extended resources."""
    status = self.pod(pod)['status'].get('extendedResourceClaimStatus')
    if status is None:
      return None, []
    return self.api.get('ResourceClaim', status['resourceClaimName']), status['requestMappings']

  # What the node's agent does.

  def ready(self, name):
    """Waits until the pod is bound and has all that it wants on the node."""
    if not wait_for(lambda: self.bound(name), SCHEDULER_PATIENCE):
      said = self.unschedulable(name) or 'and says nothing about it'
      self.tap.note(f'the scheduler has not bound {name}: {said}\n' +
                    self.plane.tail('kube-scheduler'))
      return False
    return self.node.ctl('wait', 'pod', name, '--for=ready', '--timeout', '60s').returncode == 0

  def runtime(self):
    """The node's runtime, which is started when it is first needed."""
    if self._runtime is None:
      with open(self.folder + '/runtime.log', 'wb') as log:
        self._runtime = Runtime(self._program, log, self.node.root + '/devmgr.sock',
                                self.node.cdi)
      if self._runtime.why_not:
        with open(self.folder + '/runtime.log', encoding='utf-8') as log:
          self._runtime.why_not = log.read().strip() or self._runtime.why_not
    return self._runtime

  def finish(self, name):
    """The last delete of a pod whose containers have ended, where devmgrd is not
    the agent of the node."""
    pod = self.pod(name)
    return pod is None or self.api.delete('Pod', name, grace=0, uid=pod['metadata']['uid'])

  def released(self, name):
    """Waits until the node holds nothing for the pod."""
    return self.node.ctl('wait', 'pod', name, '--for=released', '--timeout', '90s').returncode == 0

  def idle(self):
    """Waits until neither the server nor the node has anything left of pods."""
    return wait_for(lambda: not self.api.list('Pod') and not self.api.list('ResourceClaim') and
                    not self.node.items('pods') and not os.listdir(self.node.cdi))

  def leftovers(self):
    names = {kind: [each['metadata']['name'] for each in self.api.list(kind)]
             for kind in ('Pod', 'ResourceClaim')}
    return f'{names}, CDI: {os.listdir(self.node.cdi)}'

  def kill_node(self):
    self.node.daemon.stop(signal.SIGKILL)

  # All of it.

  def start(self, devices):
    """Whether the control plane, the node and the driver are there."""
    why_not = self.plane.start()
    if not self.tap.check(not why_not, 'the control plane is ready', why_not):
      return False
    self.make_objects()
    self.node.start()
    # The folders are there once it answers.
    if not self.check(wait_for(lambda: self.node.ctl('status').returncode == 0),
                      'devmgrd answers'):
      return False
    self.node.start_driver(devices)
    return (self.check(wait_for(self.node.connected), 'devmgrd serves the driver') and
            self.check(wait_for(lambda: self.published() == devices),
                       'the driver publishes its devices', self.plane.tail('kube-apiserver')))

  def stop(self):
    if self._runtime is not None and not self._runtime.why_not:
      self._runtime.stop()
    self.node.stop()
    self.plane.stop()


__all__ = ['CLASS', 'GPU', 'IMPLICIT', 'SCHEDULER_PATIENCE', 'Cluster', 'Refused', 'container']
