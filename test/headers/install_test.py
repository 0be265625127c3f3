#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs into an empty prefix and looks at it as an embedder would.

  install_test.py BUILD_ROOT SOURCE_ROOT VERSION SOVERSION
                  --programs NAME... --headers FILE... --compiler WORD...
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tap import Tap  # noqa: E402

# Compiled when examples/embed is not built: uses nothing but the public API.
PROGRAM = '''
#include <iostream>
int main() { std::cout << devmgr::Version() << "\\n"; }
'''

# What may leave the library besides ours: instances of the standard library's
# templates. GCC shows them whatever our visibility is, as weak symbols.
STANDARD = re.compile(r'(std|__gnu_cxx|__cxxabiv1)::|operator (new|delete)|'
                      r'^void (\(\*\))?\(\)$')


def run(command, **keywords):
  return subprocess.run(command, capture_output=True, text=True, check=False,
                        **keywords)


def explain(done):
  return f'{shlex.join(done.args)}\n{done.stdout}{done.stderr}'


def subject(symbol):
  """`devmgr::A::B()` of `vtable for devmgr::A` and the like."""
  name = re.sub(r'^(vtable|VTT|typeinfo name|typeinfo|guard variable|'
                r'(non-)?virtual thunk|construction vtable) (for|to) ', '',
                symbol)
  return re.sub(r'\[abi:\w+\]', '', name)


def exported(library):
  """[(type letter, demangled name)] of the dynamic symbols defined in it."""
  done = run(['nm', '--dynamic', '--defined-only', '--demangle', library])
  symbols = []
  for line in done.stdout.splitlines():
    match = re.match(r'[0-9a-f]+ (\w) (.*)', line)
    if match:
      symbols.append((match[1], match[2]))
  return symbols


def leaks(symbols, namespace, inner_rooms):
  """Those symbols that are no part of the public API in `namespace`."""
  found = []
  inner = re.compile(r'devmgr::(%s)::' % '|'.join(inner_rooms))
  for letter, symbol in symbols:
    name = subject(symbol)
    if letter in 'WVuw' and STANDARD.search(name):
      continue
    if letter in 'WVuw' and name.startswith('devmgr::'):
      continue  # Inline members and templates over public types.
    if not name.startswith(namespace) or inner.match(name):
      found.append(f'{letter} {symbol}')
  return found


class Prefix:
  """The installed tree."""

  def __init__(self, root, prefix):
    self.root = root + prefix
    self.files = sorted(
        os.path.relpath(os.path.join(folder, file), self.root)
        for folder, _, files in os.walk(self.root) for file in files)
    self.strays = sorted(
        file for folder, _, files in os.walk(root) for file in files
        if not folder.startswith(self.root))

  def find(self, name):
    """The full path of the one installed file `name`."""
    found = [f for f in self.files if os.path.basename(f) == name]
    return os.path.join(self.root, found[0]) if len(found) == 1 else None


def soname(library):
  done = run(['readelf', '--dynamic', library])
  match = re.search(r'SONAME\).*\[(.*)\]', done.stdout)
  return match[1] if match else done.stderr


class Environment:
  """pkg-config and the loader, pointed at the prefix."""

  def __init__(self, tree, pc_name, prefix):
    pc = tree.find(pc_name)
    self.folder = os.path.dirname(pc)
    self.env = dict(os.environ, PKG_CONFIG_PATH=self.folder,
                    LD_LIBRARY_PATH=os.path.dirname(self.folder))
    # The files say where they will be, not where this test puts them.
    for file in os.listdir(self.folder):
      path = os.path.join(self.folder, file)
      with open(path, encoding='utf-8') as stream:
        text = stream.read()
      with open(path, 'w', encoding='utf-8') as stream:
        stream.write(re.sub(rf'^prefix={re.escape(prefix)}$',
                            f'prefix={tree.root}', text, flags=re.MULTILINE))

  def pkg_config(self, *arguments):
    return run(['pkg-config', *arguments], env=self.env)


def check_library(tap, tree, name, namespace, soversion, inner_rooms):
  library = tree.find(f'lib{name}.so.{soversion}')
  if not tap.check(library is not None, f'lib{name} is installed',
                   '\n'.join(tree.files)):
    return
  tap.equal(soname(library), f'lib{name}.so.{soversion}',
            f'the soname of lib{name} is major.minor')
  link = tree.find(f'lib{name}.so')
  tap.check(link is not None and
            os.path.realpath(link) == os.path.realpath(library),
            f'lib{name}.so leads to it', '\n'.join(tree.files))
  symbols = exported(library)
  found = leaks(symbols, namespace, inner_rooms)
  tap.check(not found, f'lib{name} shows its public API only',
            '\n'.join(found[:40]) + f'\n{len(found)} of {len(symbols)}')


def check_program(tap, environment, options, tree):
  """Builds a program against the prefix and runs it."""
  flags = environment.pkg_config('--cflags', '--libs', 'devmgr')
  if not tap.check(flags.returncode == 0, 'pkg-config knows devmgr',
                   explain(flags)):
    return
  headers = [os.path.join('devmgr', os.path.basename(header))
             for header in options.headers]
  source = os.path.join(tree.root, 'program.cc')
  with open(source, 'w', encoding='utf-8') as stream:
    stream.write(''.join(f'#include <{header}>\n' for header in headers))
    stream.write(PROGRAM)
  sources = [('a program over all public headers', source)]
  embed = os.path.join(options.source_root, 'examples', 'embed', 'main.cc')
  if os.path.exists(embed):
    sources.append(('examples/embed', embed))
  for what, file in sources:
    binary = os.path.join(tree.root, 'program')
    build = run(options.compiler + ['-std=c++20', '-Wall', '-Wextra', '-Werror',
                                    file, '-o', binary] +
                shlex.split(flags.stdout), env=environment.env)
    tap.check(build.returncode == 0, f'{what} builds against the prefix',
              explain(build))
    if file == source and build.returncode == 0:
      done = run([binary], env=environment.env)
      tap.equal(done.stdout.strip(), options.version,
                'and runs with the installed library')


def check_tree(tap, tree, options, inner_rooms):
  tap.equal(tree.strays, [], 'nothing is installed outside the prefix')
  tap.equal(sorted(os.path.basename(f) for f in tree.files
                   if f.startswith('include/')),
            sorted(os.path.basename(h) for h in options.headers),
            'the public headers are installed, and no other')
  tap.equal(sorted(os.path.basename(f) for f in tree.files
                   if f.startswith('bin/')),
            sorted(options.programs), 'the programs are installed')
  for name, namespace in (('devmgr', 'devmgr::'),
                          ('devmgr_endpoint', 'devmgr::'),
                          ('devmgr_testing', 'devmgr::testing::')):
    check_library(tap, tree, name, namespace, options.soversion, inner_rooms)


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument('build_root')
  parser.add_argument('source_root')
  parser.add_argument('version')
  parser.add_argument('soversion')
  parser.add_argument('--programs', nargs='*', required=True)
  parser.add_argument('--headers', nargs='+', required=True)
  parser.add_argument('--compiler', nargs=argparse.REMAINDER, required=True)
  options = parser.parse_args()
  # A room of the library is a namespace of its own; testing is public.
  library = os.path.join(options.source_root, 'lib')
  inner_rooms = sorted({'checkpoint', 'ledger', 'wire', *os.listdir(library)} -
                       {'include', 'meson.build', 'testing'})
  tap = Tap()
  with tempfile.TemporaryDirectory() as root:
    # The prefix is chosen when a build is configured; `--destdir` moves the
    # whole tree below a folder of ours.
    info = run(['meson', 'introspect', '--buildoptions', options.build_root])
    match = re.search(r'"name": "prefix", "value": "([^"]*)"', info.stdout)
    prefix = match[1] if match else '/usr/local'
    done = run(['meson', 'install', '-C', options.build_root, '--no-rebuild',
                '--quiet', '--destdir', root])
    if tap.check(done.returncode == 0, 'meson installs', explain(done)):
      tree = Prefix(root, prefix)
      check_tree(tap, tree, options, inner_rooms)
      if tap.check(tree.find('devmgr.pc') is not None,
                   'devmgr.pc is installed', '\n'.join(tree.files)):
        environment = Environment(tree, 'devmgr.pc', prefix)
        tap.equal(
            environment.pkg_config('--modversion', 'devmgr').stdout.strip(),
            options.version, 'devmgr.pc has the version')
        tap.equal(
            environment.pkg_config('--print-requires',
                                   'devmgr').stdout.split(),
            ['absl_status', 'absl_statusor'],
            'devmgr.pc requires what public headers include')
        check_program(tap, environment, options, tree)
  tap.finish()


if __name__ == '__main__':
  main()
