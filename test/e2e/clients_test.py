#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The clients of examples/clients, made from the installed schemas, drive a daemon.

  clients_test.py BUILD_ROOT SOURCE_ROOT LANGUAGE

Skipped where the toolchain of the language is not there. The client in Rust is
only counted: its crates are many, and building them takes a minute.
"""

import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'interop'))
sys.path.insert(0, os.path.join(HERE, '..', 'headers'))

from interop import DRIVER, Node, Program, run, wait_for  # noqa: E402
from tap import Tap  # noqa: E402

LINES = 60
PROTOS = ['devmgr/control/v1/control.proto', 'devmgr/inspection/v1/inspection.proto']
MANIFEST = f'''\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: gpu, uid: u-gpu}}
spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu}}}}]}}}}
status:
  allocation:
    devices: {{results: [{{request: r, driver: {DRIVER}, pool: pool-1, device: gpu-0}}]}}
  reservedFor: [{{resource: pods, name: train, uid: u-train}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: train, uid: u-train}}
spec:
  containers: [{{name: main, resources: {{claims: [{{name: gpu}}]}}}}]
  resourceClaims: [{{name: gpu, resourceClaimName: gpu}}]
'''


class NotHere(Exception):
  """The toolchain is not there; says what of it."""


def must(command, **keywords):
  done = run(command, **keywords)
  if done.returncode != 0:
    raise RuntimeError(f'{command}: {done.stdout}{done.stderr}')
  return done


def need(condition, what):
  if not condition:
    raise NotHere(what)


def python_client(source, protos, work):
  # Debian's modules are those of its own Python.
  python = '/usr/bin/python3'
  need(os.path.exists(python), python)
  found = run([python, '-c', 'import grpc, google.protobuf'])
  need(found.returncode == 0, 'python3-grpcio or python3-protobuf')
  must(['protoc', '-I', protos, '--python_out', work, *PROTOS], cwd=protos)
  return [python, '-B', f'{source}/client.py'], {'PYTHONPATH': work}


def go_client(source, protos, work):
  need(shutil.which('go'), 'go')
  shutil.copytree(source, work + '/client')
  folder = work + '/client'
  plugin = 'google.golang.org/protobuf/cmd/protoc-gen-go'
  found = run(['go', 'list', '-deps', 'google.golang.org/grpc', plugin], cwd=folder, timeout=300)
  need(found.returncode == 0, 'way to the Go modules')
  must(['go', 'build', '-o', work + '/bin/', plugin], cwd=folder)
  module = 'devmgr.example.com/client'
  options = [f'--go_opt=M{name}={module}/{os.path.dirname(name)}' for name in PROTOS]
  must(['protoc', '-I', protos, f'--go_out={folder}', f'--go_opt=module={module}', *options,
        *PROTOS], cwd=protos, env={**os.environ, 'PATH': work + '/bin:' + os.environ['PATH']})
  must(['go', 'build', '-o', work + '/bin/client', '.'], cwd=folder)
  return [work + '/bin/client'], {}


CLIENTS = {'python': python_client, 'go': go_client}
MAIN_FILES = ('go/main.go', 'python/client.py', 'rust/src/main.rs')


def drive(tap, node, manifest, command, environment):
  """The client has the pod prepared, and its devices; then it is released."""
  done = run([*command, node.root + '/devmgr.sock', manifest, 'main'],
             env={**os.environ, **environment}, timeout=120)
  if not tap.equal((done.returncode, done.stdout.split()),
                   (0, [f'{DRIVER}/claim=u-gpu-gpu-0-0']), 'the client has its devices'):
    print('# ' + (done.stderr + '\n'.join(node.daemon.lines())).replace('\n', '\n# '))
  tap.check(wait_for(lambda: node.ctl('get', 'pods', '-o', 'name').stdout == ''),
            'the pod is released')
  history = node.ctl('history', 'train').stdout
  tap.check('Wanted' in history and 'Unwanted' in history and
            f'is wanted by uid {os.getuid()}, pid ' in history,
            'the history has the calls', history)


def main():
  build_root, source_root = (os.path.abspath(path) for path in sys.argv[1:3])
  language = sys.argv[3]
  source = f'{source_root}/examples/clients/{language}'
  tap = Tap()
  for main_file in MAIN_FILES:
    with open(f'{source_root}/examples/clients/{main_file}', encoding='utf-8') as text:
      tap.check(len(text.readlines()) <= LINES, f'{main_file} has at most {LINES} lines')
  with tempfile.TemporaryDirectory(prefix='devmgr-', dir='/tmp') as folder:
    must(['meson', 'install', '-C', build_root, '--no-rebuild', '--destdir', folder + '/installed',
          '--tags', 'proto'])
    protos = [top for top, folders, _ in os.walk(folder + '/installed')
              if top.endswith('/devmgr/proto')]
    tap.equal(len(protos), 1, 'the schemas are installed')
    os.makedirs(folder + '/work')
    os.makedirs(folder + '/node')
    try:
      command, environment = CLIENTS[language](source, protos[0], folder + '/work')
    except NotHere as missing:
      tap.skip(f'the client in {language}', f'there is no {missing}')
      tap.finish()
    with open(folder + '/pod.yaml', 'w', encoding='utf-8') as text:
      text.write(MANIFEST)
    node = Node(build_root + '/tools', folder + '/node')
    driver = Program(folder + '/driver.log', node.tool('fake-dra-driver'), '--name', DRIVER,
                     '--root', node.root)
    try:
      tap.check(wait_for(node.connected), 'the driver is connected')
      drive(tap, node, folder + '/pod.yaml', command, environment)
    finally:
      driver.stop()
      node.daemon.stop()
  tap.finish()


if __name__ == '__main__':
  main()
