#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our programs and the official Go modules on the two ends of the wire.

  interop_test.py BUILD_ROOT SOURCE_ROOT

A driver on the official helper and a device plugin on the official stubs are
served by devmgrd (more of drivers in drivers/), and our fake driver by a client with the official stubs. A kubelet on the official stubs takes our fake
device plugin, and the plugin that is built on them, through all calls. grpc-go
is a client of the CRI proxy, and the runtime behind it (proxy/). Skipped where
Go, or its modules, are absent.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                '..', 'headers'))

from tap import Tap  # noqa: E402

DRIVER = 'gpu.example.com'
CARD = 'example.com/card'
CLAIM = '6b2e1d5f-0000-4000-8000-0000000000c1'
DIRECT_CLAIM = '6b2e1d5f-0000-4000-8000-0000000000c2'
DEVICES = [f'{DRIVER}/claim={DIRECT_CLAIM}-port-3', f'{DRIVER}/claim={CLAIM}-gpu-0']
PATIENCE = 60  # seconds, for what takes none


def run(command, **keywords):
  return subprocess.run(command, capture_output=True, text=True, check=False,
                        stdin=subprocess.DEVNULL, **keywords)


def wait_for(condition):
  """Whether `condition` became true in time."""
  end = time.monotonic() + PATIENCE
  while not condition():
    if time.monotonic() > end:
      return False
    time.sleep(0.02)  # Another process is looked at: there is nothing to wait on.
  return True


class Program:
  """A program in the background, and what it printed."""

  def __init__(self, log, *command):
    self.log = log
    with open(log, 'ab') as out:
      self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=out)

  def lines(self):
    with open(self.log, encoding='utf-8', errors='replace') as text:
      return text.read().splitlines()

  def stop(self, how=signal.SIGTERM):
    if self._process.poll() is None:
      self._process.send_signal(how)
    try:
      self._process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
      self._process.kill()
      self._process.wait()


def build(source, out):
  """Builds the Go programs; why they cannot be built, or ''."""
  if shutil.which('go') is None:
    return 'Go is not installed'
  modules = run(['go', 'mod', 'download'], cwd=source, timeout=300)
  if modules.returncode != 0:
    return 'the Go modules cannot be had: ' + modules.stderr.strip()[-200:]
  os.makedirs(out, exist_ok=True)
  for command in (['go', 'build', '-o', out + '/', './...'],
                  ['go', 'test', '-c', '-o', out + '/', './drivers', './proxy']):
    built = run(command, cwd=source)
    if built.returncode != 0:
      raise RuntimeError(built.stderr)
  return ''


class Node:
  """A root folder with devmgrd on it."""

  def __init__(self, tools, folder):
    self._tools = tools
    self.root = folder
    self.start()

  def tool(self, name):
    return os.path.join(self._tools, name, name)

  def start(self):
    self.daemon = Program(self.root + '/devmgrd.log', self.tool('devmgrd'),
                          '--root', self.root)

  def ctl(self, *arguments):
    return run([self.tool('devmgrctl'), '--endpoint', self.root + '/devmgr.sock',
                *arguments])

  def plugins(self):
    done = self.ctl('get', 'plugins', '-o', 'json')
    return json.loads(done.stdout)['items'] if done.returncode == 0 else []

  def connected(self):
    return any(p['metadata']['name'] == DRIVER and
               p['status']['state'] == 'Connected' for p in self.plugins())

  def devices(self):
    return self.ctl('resolve', 'interop', '-o', 'name').stdout.split()


def official_driver(tap, node, go, manifest):
  """devmgrd serves a driver that is built on the official helper."""
  driver = Program(node.root + '/driver.log', go + '/driver', '--name', DRIVER,
                   '--root', node.root, '--manifest', manifest)
  prepared = [f'prepared default/interop-extended-resources-x2m9k {CLAIM}',
              f'prepared default/network {DIRECT_CLAIM}']

  def said(word):
    return sorted(line for line in driver.lines() if line.startswith(word + ' '))

  try:
    tap.check(wait_for(node.connected), 'the official helper registers',
              '\n'.join(driver.lines()))
    shutil.copy(manifest, node.root + '/manifests/objects.yaml')
    ready = node.ctl('wait', 'pod', 'interop', '--for=ready', '--timeout', '60s')
    tap.check(ready.returncode == 0, 'a pod becomes ready', ready.stderr)
    tap.equal(sorted(node.devices()), sorted(DEVICES),
              'the container gets what the driver said')
    tap.equal(said('prepared'), prepared, 'each claim was prepared once')

    node.daemon.stop(signal.SIGKILL)
    node.start()
    tap.check(wait_for(node.connected), 'the driver is found again after kill -9')
    tap.equal(sorted(node.devices()), sorted(DEVICES), 'the answer is the same')
    tap.equal(said('prepared'), prepared, 'nothing was prepared again')

    os.remove(node.root + '/manifests/objects.yaml')
    gone = node.ctl('wait', 'pod', 'interop', '--for=released', '--timeout', '60s')
    tap.check(gone.returncode == 0, 'the pod is released', gone.stderr)
    tap.equal(said('unprepared'), ['un' + line for line in prepared],
              'each claim was unprepared once')
  finally:
    driver.stop()
  tap.check(wait_for(lambda: not node.connected()), 'the driver leaves')


def card_pod(name):
  return f"""apiVersion: v1
kind: Pod
metadata: {{name: {name}, uid: uid-of-{name}}}
spec:
  containers:
  - name: main
    resources: {{limits: {{{CARD}: 1}}}}
"""


def official_plugin(tap, node, go, way, *flags):
  """devmgrd serves a device plugin that is built on the official stubs."""
  plugin = Program(f'{node.root}/{way}.log', go + '/plugin', '--resource', CARD,
                   '--root', node.root, *flags)

  def add(pod):
    with open(f'{node.root}/{pod}.tmp', 'w', encoding='utf-8') as text:
      text.write(card_pod(pod))
    os.rename(f'{node.root}/{pod}.tmp', f'{node.root}/manifests/{pod}.yaml')
    done = node.ctl('wait', 'pod', pod, '--for=ready', '--timeout', '60s')
    tap.check(done.returncode == 0, f'{way}: pod {pod} becomes ready', done.stderr)

  def gets(pod):
    done = node.ctl('resolve', pod, '-o', 'json')
    if done.returncode != 0:
      return done.stderr
    container = json.loads(done.stdout)['containers'][0]
    return [container['cdiDevices'][0]['name'], container['env'][0]['value'],
            container['devices'][0]['containerPath']]

  try:
    add('first')
    first = [f'{CARD}=card-1', 'card-1', '/dev/card-1']
    tap.equal(gets('first'), first, f'{way}: the container gets what the plugin prefers')
    node.daemon.stop(signal.SIGKILL)
    node.start()
    tap.check(wait_for(lambda: gets('first') == first),
              f'{way}: the answer is the same after kill -9')
    add('second')
    tap.equal(gets('second'), [f'{CARD}=card-0', 'card-0', '/dev/card-0'],
              f'{way}: the plugin came back by itself')
    tap.equal([line for line in plugin.lines() if line.startswith('allocate')],
              ['allocate card-1', 'allocate card-0'],
              f'{way}: each device was allocated once')
    for pod in ('first', 'second'):
      os.remove(f'{node.root}/manifests/{pod}.yaml')
      node.ctl('wait', 'pod', pod, '--for=released', '--timeout', '60s')
  finally:
    plugin.stop()


def official_client(tap, node, go, manifest):
  """Our fake driver understands the kubelet's stubs."""
  shutil.copy(manifest, node.root + '/manifests/objects.yaml')
  registration = f'{node.root}/plugins_registry/{DRIVER}-reg.sock'
  node.daemon.stop()  # The client stands in for the kubelet.
  driver = Program(node.root + '/fake.log', node.tool('fake-dra-driver'),
                   '--name', DRIVER, '--root', node.root)
  try:
    tap.check(wait_for(lambda: os.path.exists(registration)),
              'the fake driver offers itself', '\n'.join(driver.lines()))
    done = run([go + '/client', '--socket', registration, '--claim', 'network',
                '--uid', DIRECT_CLAIM], timeout=PATIENCE)
    lines = done.stdout.splitlines()
    device = f'[port] node-1 port-3 [{DRIVER}/claim={DIRECT_CLAIM}-port-3-0]'
    tap.equal(lines, [
        f'info DRAPlugin {DRIVER} v1.DRAPlugin,v1beta1.DRAPlugin',
        f'v1 prepared {device}',
        'v1 error ""',
        f'v1beta1 prepared {device}',
        'v1beta1 unprepared ""',
        'v1 unprepared once more',
    ], 'the official stubs prepare and unprepare in both versions')
    if done.returncode != 0:
      print('# ' + done.stderr)
  finally:
    driver.stop()


def answers(variable, options, devices, chosen, edits):
  """What the stand-in for the kubelet prints for one round of calls."""
  return [f'options {options}', f'list {devices}', f'preferred {chosen}',
          f'env map[{variable}:{chosen}]', *edits,
          'unknown device refused true', 'pre-start done']


def official_kubelet(tap, folder, name, command, kubelet, expected):
  """A stand-in for the kubelet takes a plugin through all calls."""
  plugin = Program(f'{folder}/{name}.log', *command)
  try:
    done = run(kubelet, timeout=PATIENCE)
    if not tap.equal(done.stdout.splitlines(), expected,
                     f'the official stubs and {name}'):
      print('# ' + done.stderr.replace('\n', '\n# '))
      print('# ' + '\n# '.join(plugin.lines()))
  finally:
    plugin.stop()


def device_plugins(tap, build_root, go):
  fake = build_root + '/tools/fake-device-plugin/fake-device-plugin'
  resource = 'example.com/gpu'
  flags = ['--devices', '2', '--numa', '0,1', '--preferred', '--prestart']
  ours = answers('EXAMPLE_COM_GPU', 'true true',
                 'gpu-0=Healthy@0,gpu-1=Healthy@1', 'gpu-1',
                 ['device /dev/gpu-1 /dev/null rw',
                  'mount /run/devices/gpu-1 true'])
  theirs = answers('CARDS', 'true true',
                   'card-0=Healthy,card-1=Healthy@0', 'card-1',
                   ['device /dev/card-1 /dev/null rw', 'mount /opt/card-1 true',
                    f'cdi {resource}=card-1'])

  def both_lives(endpoint, round_of_calls):
    return [f'registered v1beta1 {endpoint} {resource} true true',
            *round_of_calls, 'stream ended',
            f'registered again v1beta1 {endpoint} {resource}', *round_of_calls]

  with tempfile.TemporaryDirectory(prefix='devmgr-', dir='/tmp') as folder:
    official_kubelet(
        tap, folder, 'our fake plugin',
        [fake, '--resource', resource, '--root', folder, *flags],
        [go + '/kubelet', '--root', folder],
        both_lives('example.com_gpu.sock', ours))
  with tempfile.TemporaryDirectory(prefix='devmgr-', dir='/tmp') as folder:
    official_kubelet(
        tap, folder, 'the official plugin',
        [go + '/plugin', '--resource', resource, '--root', folder],
        [go + '/kubelet', '--root', folder],
        both_lives('interop.sock', theirs))
  for name, command, socket, round_of_calls in (
      ('our fake plugin in the directory',
       [fake, '--resource', resource, '--register', 'directory', *flags],
       'example.com_gpu.sock', ours),
      ('the official plugin in the directory',
       [go + '/plugin', '--resource', resource, '--directory'],
       'interop.sock', theirs)):
    with tempfile.TemporaryDirectory(prefix='devmgr-', dir='/tmp') as folder:
      socket = f'{folder}/plugins_registry/{socket}'
      official_kubelet(
          tap, folder, name, [*command, '--root', folder],
          [go + '/kubelet', '--registration', socket],
          [f'info DevicePlugin {resource}  v1beta1', *round_of_calls,
           'notified'])


def go_cases(tap, build_root, go, package):
  """Each subtest of the Go tests is a case."""
  environment = {**os.environ, 'DEVMGR_TOOLS': build_root + '/tools',
                 'DEVMGR_CRI_PEER': build_root + '/test/interop/cri_peer',
                 'DEVMGR_INTEROP_BIN': go}
  done = run([f'{go}/{package}.test', '-test.v', '-test.timeout', '600s'],
             env=environment)
  text = done.stdout + done.stderr
  verdicts = re.findall(r'^ *--- (PASS|FAIL): (\S+)', text, re.MULTILINE)
  failed = [name for verdict, name in verdicts if verdict == 'FAIL']
  for verdict, name in verdicts:
    # What failed outside of its cases is told by its own name.
    inside = any(other.startswith(name + '/') for other in failed)
    if '/' in name or (verdict == 'FAIL' and not inside):
      tap.check(verdict == 'PASS', f'{package}: ' + name.replace('_', ' '), text)
  tap.check(done.returncode == 0 or failed, f'{package}: the Go tests end', text)


def main():
  build_root, source_root = (os.path.abspath(path) for path in sys.argv[1:3])
  tap = Tap()
  source = source_root + '/test/interop'
  go = build_root + '/test/interop/bin'
  why_not = build(source, go)
  if why_not:
    tap.skip('the official Go modules on the other end', why_not)
    tap.finish()
  with tempfile.TemporaryDirectory(prefix='devmgr-', dir='/tmp') as folder:
    node = Node(build_root + '/tools', folder)
    try:
      if tap.check(wait_for(lambda: node.ctl('status').returncode == 0),
                   'devmgrd answers', '\n'.join(node.daemon.lines())):
        official_driver(tap, node, go, source + '/objects.yaml')
        official_plugin(tap, node, go, 'registry socket')
        official_plugin(tap, node, go, 'registration directory', '--directory')
        official_client(tap, node, go, source + '/objects.yaml')
    finally:
      node.daemon.stop()
  device_plugins(tap, build_root, go)
  for package in ('drivers', 'proxy'):
    go_cases(tap, build_root, go, package)
  tap.finish()


if __name__ == '__main__':
  main()
