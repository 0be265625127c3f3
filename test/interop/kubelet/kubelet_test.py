#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kubelet on the official stubs takes our fake device plugin, and the plugin
that is built on them, through all calls."""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

from interop import PATIENCE, Program, main, wait_for  # noqa: E402


def answers(variable, options, devices, chosen, edits):
  """What the stand-in for the kubelet prints for one round of calls."""
  return [f'options {options}', f'list {devices}', f'preferred {chosen}',
          f'env map[{variable}:{chosen}]', *edits,
          'unknown device refused true', 'pre-start done']


def official_kubelet(tap, folder, name, command, kubelet, expected, socket=''):
  """A stand-in for the kubelet takes a plugin through all calls. The plugin
  begins when there is its `socket`: as a kubelet it removes all others first,
  and with them one that a plugin is just making."""
  stub = subprocess.Popen(kubelet, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
  if socket:
    wait_for(lambda: os.path.exists(socket))
  plugin = Program(f'{folder}/{name}.log', *command)
  try:
    out, errors = stub.communicate(timeout=PATIENCE)
    if not tap.equal(out.splitlines(), expected, f'the official stubs and {name}'):
      print('# ' + errors.replace('\n', '\n# '))
      print('# ' + '\n# '.join(plugin.lines()))
  finally:
    stub.kill()
    plugin.stop()


def test(setting):
  tap, go = setting.tap, setting.go
  fake = setting.tools + '/fake-device-plugin/fake-device-plugin'
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
        both_lives('example.com_gpu.sock', ours), folder + '/device-plugins/kubelet.sock')
  with tempfile.TemporaryDirectory(prefix='devmgr-', dir='/tmp') as folder:
    official_kubelet(
        tap, folder, 'the official plugin',
        [go + '/plugin', '--resource', resource, '--root', folder],
        [go + '/kubelet', '--root', folder],
        both_lives('interop.sock', theirs), folder + '/device-plugins/kubelet.sock')
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


if __name__ == '__main__':
  main(test)
