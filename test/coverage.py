#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Line coverage per room, held against floors.

    test/coverage.py BUILD_FOLDER

The folder is one configured with -Dcoverage=true whose core tests have run.
Prints a table; exits 1 when a room is below its floor, or was not measured.
The rooms are those of the core library: a new one has a floor from its first day.
"""
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

# Where the hard rules live, tests reach every line that can be reached.
STRICT = {'lib/state': 90, 'lib/claim': 90, 'lib/device': 90, 'lib/topology': 90}
FLOOR = 85


def measure(build, root):
    """Lines and covered lines by room."""
    command = ['gcovr', '--root', str(root), '--object-directory', str(build),
               '--filter', 'lib/', '--exclude-throw-branches',
               '--json-summary-pretty', '--output', '-', str(build)]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    rooms = defaultdict(lambda: [0, 0])
    for file in json.loads(text)['files']:
        name = '/'.join(Path(file['filename']).parts[:2])
        if name == 'lib/include':  # Comparisons of plain values; no room.
            continue
        room = rooms[name]
        room[0] += file['line_total']
        room[1] += file['line_covered']
    return rooms


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = Path(__file__).resolve().parent.parent
    rooms = measure(Path(sys.argv[1]).resolve(), root)
    for room in STRICT:
        rooms.setdefault(room, [0, 0])
    bad = []
    print('room            lines  covered  floor')
    for room, (total, covered) in sorted(rooms.items()):
        floor = STRICT.get(room, FLOOR)
        percent = 100 * covered / total if total else 0
        print(f'{room:14}  {total:5}  {percent:6.1f}%   {floor}%')
        if percent < floor:
            bad.append(room)
    for room in bad:
        print(f'error: {room} is below its floor', file=sys.stderr)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
