#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much a build makes the compiler read.

  test/bench/build_size.py BUILD            translation units and lines, per part
  test/bench/build_size.py BUILD --check    fails when the sums exceed those kept in
                                            docs/performance.md by more than a tenth

BUILD is a complete build folder. Lines are those of all files that a translation unit includes, each unit counted by
itself, as ninja recorded them; files of one unit count once.
"""

import argparse
import collections
import functools
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = SOURCE / 'docs/performance.md'
KEPT = re.compile(r'\*\*([\d,]+) translation units, ([\d,]+) thousand lines\*\*')


@functools.lru_cache(maxsize=None)
def lines_of(path):
    try:
        return path.read_bytes().count(b'\n')
    except OSError:
        return 0


def measure(build):
    """{part: (units, lines)}, where a part is a top folder of the build."""
    shown = subprocess.run(['ninja', '-C', str(build), '-t', 'deps'], stdout=subprocess.PIPE, check=True, text=True)
    parts = collections.defaultdict(lambda: [0, 0])
    for unit in re.split(r'\n\n+', shown.stdout):
        head, *files = unit.splitlines() or ['']
        target = head.split(':')[0]
        if not target.endswith('.o'):
            continue
        part = parts[target.split('/')[0]]
        part[0] += 1
        part[1] += sum(lines_of((build / name.strip()).resolve()) for name in set(files))
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('--check', action='store_true')
    args = parser.parse_args()
    parts = measure(args.build.resolve())
    units = sum(part[0] for part in parts.values())
    thousands = sum(part[1] for part in parts.values()) // 1000
    for name, (count, lines) in sorted(parts.items()):
        print(f'{name:12} {count:5} {lines // 1000:8,}')
    print(f'**{units:,} translation units, {thousands:,} thousand lines**')
    if not args.check:
        return 0
    found = KEPT.search(DOCUMENT.read_text())
    if not found:
        print(f'error: {DOCUMENT.name} does not say how many there were', file=sys.stderr)
        return 1
    kept_units, kept_thousands = (int(text.replace(',', '')) for text in found.groups())
    if units * 10 <= kept_units * 11 and thousands * 10 <= kept_thousands * 11:
        return 0
    print(f'error: a build has grown by more than a tenth since {kept_units:,} translation units and'
          f' {kept_thousands:,} thousand lines.\nMake it smaller, or say why it has to be so: put the line above into'
          ' "What it costs to build"\nin docs/performance.md, with the reason.', file=sys.stderr)
    return 1


if __name__ == '__main__':
    sys.exit(main())
