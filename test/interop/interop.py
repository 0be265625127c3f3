# SPDX-License-Identifier: Apache-2.0
"""What the tests against the official Go modules share.

Each of them is `TEST.py BUILD_ROOT SOURCE_ROOT` and prints TAP. They are skipped
where Go, or its modules, are absent. `interop.py BUILD_ROOT SOURCE_ROOT STAMP`
builds the Go programs ahead of them.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                '..', 'headers'))

from tap import Tap  # noqa: E402

DRIVER = 'gpu.example.com'
SLICES = '/apis/resource.k8s.io/v1/resourceslices'
# Of Kubernetes itself, with which it tests itself.
TEST_DRIVER = 'dra-test-driver'
TEST_DRIVER_PACKAGE = 'k8s.io/kubernetes/test/e2e/dra/test-driver'
PATIENCE = 60  # seconds, for what takes none


def run(command, **keywords):
  return subprocess.run(command, capture_output=True, text=True, check=False,
                        stdin=subprocess.DEVNULL, **keywords)


def wait_for(condition, patience=PATIENCE):
  """Whether `condition` became true in time."""
  end = time.monotonic() + patience
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

  def ended(self):
    return self._process.poll() is not None

  def stop(self, how=signal.SIGTERM):
    if self._process.poll() is None:
      self._process.send_signal(how)
    try:
      self._process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
      self._process.kill()
      self._process.wait()


def build(source, out):
  """Builds the Go programs, once; why they cannot be built, or ''."""
  if shutil.which('go') is None:
    return 'Go is not installed'
  os.makedirs(out, exist_ok=True)
  # Tests run side by side. The build of the tree leaves nothing to do, unless it
  # could not get at the modules then.
  with open(out + '/lock', 'w', encoding='utf-8') as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    modules = run(['go', 'mod', 'download'], cwd=source, timeout=300)
    if modules.returncode != 0:
      return 'the Go modules cannot be had: ' + modules.stderr.strip()[-200:]
    for command in (['go', 'build', '-o', out + '/', './...'],
                    ['go', 'test', '-c', '-o', out + '/', './drivers', './endpoint',
                     './podresources', './proxy']):
      built = run(command, cwd=source)
      if built.returncode != 0:
        raise RuntimeError(built.stderr)
  return ''


def build_with(source, out, package, modfile=''):
  """Builds a Go program of the folder with other modules: its path and '', or
  None and why it cannot be built."""
  flags, name = [], package
  if modfile:
    flags = ['-modfile=' + modfile]
    name = f"{package}-{modfile.removesuffix('.mod')}"
  if modfile == 'newest.mod':
    flags += ['-tags', 'newest']
  with open(out + '/lock', 'w', encoding='utf-8') as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    modules = run(['go', 'mod', 'download'] + flags[:1], cwd=source, timeout=300)
    if modules.returncode != 0:
      return None, 'the Go modules cannot be had: ' + modules.stderr.strip()[-200:]
    built = run(['go', 'build', *flags, '-o', f'{out}/{name}', './' + package], cwd=source)
    if built.returncode != 0:
      raise RuntimeError(built.stderr)
  return f'{out}/{name}', ''


def scaled(count):
  """As often as DEVMGR_TEST_SCALE says, and once at least."""
  return max(1, int(count * float(os.environ.get('DEVMGR_TEST_SCALE') or 1)))


def build_program(source, out, name, package='.'):
  """Builds the Go program of a folder that has modules of its own: its path and
  '', or None and why it cannot be built."""
  if shutil.which('go') is None:
    return None, 'Go is not installed'
  os.makedirs(out, exist_ok=True)
  modules = run(['go', 'mod', 'download'], cwd=source, timeout=300)
  if modules.returncode != 0:
    return None, 'the Go modules cannot be had: ' + modules.stderr.strip()[-200:]
  built = run(['go', 'build', '-o', f'{out}/{name}', package], cwd=source)
  if built.returncode != 0:
    raise RuntimeError(built.stderr)
  return f'{out}/{name}', ''


def build_newest(source, out):
  """Builds the tests of endpoint/ with the newest modules, which want a newer Go
  than the others; why they cannot be built, or ''."""
  with open(out + '/lock', 'w', encoding='utf-8') as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    modules = run(['go', 'mod', 'download', '-modfile=newest.mod'], cwd=source,
                  timeout=300)
    if modules.returncode != 0:
      return 'the newest Go modules cannot be had: ' + modules.stderr.strip()[-200:]
    built = run(['go', 'test', '-modfile=newest.mod', '-tags', 'newest', '-c', '-o',
                 out + '/newest.test', './endpoint'], cwd=source)
    if built.returncode != 0:
      raise RuntimeError(built.stderr)
  return ''


class Reader:
  """Reads slices from the endpoint of devmgrd, as their driver does."""

  def __init__(self, root):
    self._folder = root + '/kubeconfig'

  def list(self):
    """The version of the list, and its objects; None while there is no answer."""
    try:
      with open(f'{self._folder}/{DRIVER}', encoding='utf-8') as text:
        server = next(line.split()[1] for line in text if line.strip().startswith('server:'))
      with open(f'{self._folder}/.serviceaccount/{DRIVER}/token', encoding='utf-8') as text:
        request = urllib.request.Request(server.strip('"') + SLICES,
                                         headers={'Authorization': 'Bearer ' + text.read()})
      trust = ssl.create_default_context(cafile=self._folder + '/.tls/ca.crt')
      with urllib.request.urlopen(request, context=trust, timeout=10) as answer:
        body = json.load(answer)
    except (OSError, StopIteration, urllib.error.URLError):
      return None
    return int(body['metadata']['resourceVersion']), body['items']


class Node:
  """A root folder with devmgrd on it."""

  def __init__(self, tools, folder, config=''):
    """`config`: of devmgrd, as YAML."""
    self._tools = tools
    self.root = folder
    self._config = folder + '/config.yaml'
    with open(self._config, 'w', encoding='utf-8') as text:
      text.write(config)
    self.start()

  def tool(self, name):
    return os.path.join(self._tools, name, name)

  def example(self, name):
    return os.path.join(os.path.dirname(self._tools), 'examples', name, name)

  def start(self, *flags):
    self.daemon = Program(self.root + '/devmgrd.log', self.tool('devmgrd'),
                          '--root', self.root, '--config', self._config, *flags)

  def ctl(self, *arguments):
    return run([self.tool('devmgrctl'), '--endpoint', self.root + '/devmgr.sock',
                *arguments])

  def plugins(self):
    done = self.ctl('get', 'plugins', '-o', 'json')
    return json.loads(done.stdout)['items'] if done.returncode == 0 else []

  def connected(self):
    return any(p['metadata']['name'] == DRIVER and
               p['status']['state'] == 'Connected' for p in self.plugins())

  def devices(self, pod='interop'):
    return self.ctl('resolve', pod, '-o', 'name').stdout.split()


class Setting:
  """Where the programs are, and what the test reports to."""

  def __init__(self, tap, build_root, source):
    self.tap = tap
    self.build_root = build_root
    self.tools = build_root + '/tools'
    self.source = source
    self.go = build_root + '/test/interop/bin'

  @contextlib.contextmanager
  def node(self, config='', kind=Node):
    """A node whose daemon answers; a failed case where it does not."""
    with tempfile.TemporaryDirectory(prefix='devmgr-', dir='/tmp') as folder:
      node = kind(self.tools, folder, config)
      try:
        self.tap.check(wait_for(lambda: node.ctl('status').returncode == 0),
                       'the daemon answers', '\n'.join(node.daemon.lines()))
        yield node
      finally:
        node.daemon.stop()


def main(*tests):
  """Runs the tests, each of which takes a Setting."""
  build_root, source_root = (os.path.abspath(path) for path in sys.argv[1:3])
  setting = Setting(Tap(), build_root, source_root + '/test/interop')
  why_not = build(setting.source, setting.go)
  if why_not:
    setting.tap.skip('the official Go modules on the other end', why_not)
  else:
    for test in tests:
      test(setting)
  setting.tap.finish()


def build_ahead(stamp):
  """Where the programs cannot be built, the tests say why."""
  build_root, source_root = (os.path.abspath(path) for path in sys.argv[1:3])
  source, out = source_root + '/test/interop', build_root + '/test/interop/bin'
  why_not = build(source, out) or build_newest(source, out)
  for modfile in ('v036.mod', 'newest.mod'):
    why_not = why_not or build_with(source, out, 'stock', modfile)[1]
  why_not = why_not or build_program(source + '/testdriver', out, TEST_DRIVER,
                                     TEST_DRIVER_PACKAGE)[1]
  with open(stamp, 'w', encoding='utf-8') as text:
    text.write(why_not + '\n')


if __name__ == '__main__':
  build_ahead(sys.argv[3])
