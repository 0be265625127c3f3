#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each public header alone, as the first line of a program.

  public_headers.py INCLUDE_ROOT --headers FILE... --compiler WORD...

A header that leans on what was included before it fails here. The list is the
one that is installed; a header on disk that is missing from it fails too.
"""

import argparse
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tap import Tap  # noqa: E402

FLAGS = ['-x', 'c++', '-std=c++20', '-fsyntax-only', '-Wall', '-Wextra',
         '-Wpedantic', '-Wshadow', '-Werror']


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument('include_root')
  parser.add_argument('--headers', nargs='+', required=True)
  parser.add_argument('--compiler', nargs=argparse.REMAINDER, required=True)
  options = parser.parse_args()
  tap = Tap()

  root = os.path.realpath(options.include_root)
  listed = {os.path.relpath(os.path.realpath(header), root)
            for header in options.headers}
  on_disk = {os.path.relpath(os.path.join(folder, file), root)
             for folder, _, files in os.walk(root) for file in files
             if file.endswith('.h')}
  tap.equal(sorted(listed), sorted(on_disk),
            'every public header is installed')

  for header in sorted(listed):
    # Twice: a header must also stand being included again.
    program = f'#include <{header}>\n' * 2 + 'int main() { return 0; }\n'
    done = subprocess.run(
        options.compiler + FLAGS + ['-I', root, '-'], input=program,
        capture_output=True, text=True, check=False)
    tap.check(done.returncode == 0, f'<{header}> compiles alone', done.stderr)
  tap.finish()


if __name__ == '__main__':
  main()
