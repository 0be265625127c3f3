#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""devmgrd and a device plugin on the official stubs."""

import json
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

from interop import Program, main, wait_for  # noqa: E402

CARD = 'example.com/card'


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


def test(setting):
  with setting.node() as node:
    official_plugin(setting.tap, node, setting.go, 'registry socket')
    official_plugin(setting.tap, node, setting.go, 'registration directory',
                    '--directory')


if __name__ == '__main__':
  main(test)
