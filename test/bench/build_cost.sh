#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What it costs to build: the last commit, from an empty folder, without a
# cache. Takes half an hour on two cores; have the machine to yourself.
#
#   test/bench/build_cost.sh          prints the table
#   test/bench/build_cost.sh --keep   the same, and writes it to
#                                     docs/performance.md
set -euo pipefail
cd "$(dirname "$0")/../.."
export CCACHE_DISABLE=1
source=$PWD
folder=$(mktemp -d /tmp/devmgr-cost-XXXXXX)
trap 'rm -rf "$folder"' EXIT
git clone --quiet "$source" "$folder/tree"
cd "$folder/tree"

rows=
TIMEFORMAT='%0R %0U %0S'
# What it is, the goal in words, then the command. CPU seconds are user and
# system time of all processes.
measure() {
  local what=$1 goal=$2 real user system
  shift 2
  { time "$@" >"$folder/log" 2>&1; } 2>"$folder/time" ||
    { tail -n 40 "$folder/log"; echo "failed: $*" >&2; exit 1; }
  read -r real user system < <(tail -n 1 "$folder/time")
  rows+="| $what | $real | $((user + system)) | $goal |"$'\n'
  printf '%-60s %5d s %6d CPU s\n' "$what" "$real" $((user + system))
}

# Changes one line of a file, builds core_test, and runs the tests of a filter.
core_after() {
  echo '// One more line.' >>"$1"
  ninja -C work test/core_test && work/test/core_test --gtest_filter="$2"
}
all_after() {
  echo '// One more line.' >>"$1"
  ninja -C work
}

# The GoogleTest suites of a folder, as a filter.
suites_of() {
  sed -nE 's/^TEST(_F|_P)?\(([A-Za-z0-9_]+),.*/\2.*/p' "$1"/*_test.cc |
    sort -u | paste -sd:
}

first() { meson setup build && ninja -C build programs; }
second() { ninja -C build; }
measure 'the demo (`examples/demo.sh`)' '<= 600 CPU s' first
measure 'all the rest, with the tests (`test/run.sh`)' '<= 1,700 CPU s with the demo' second
size=$(test/bench/build_size.py build | tail -n 1)
rm -rf build

# As CONTRIBUTING.md says.
CXX=clang++-14 meson setup work --buildtype=debug -Dunity=off >/dev/null
measure 'a working folder, all of it' '' ninja -C work
measure 'one line of `state.h`, until `core` has run' '<= 90 s' \
  core_after lib/state/state.h '*'
measure 'one line of `state.h`, the rest' '' ninja -C work
measure 'one line of `device_manager.h`, all of it' '' \
  all_after lib/include/devmgr/device_manager.h
measure 'one line of a leaf, until the tests of its room have run' '<= 15 s' \
  core_after lib/claim/prepare_intent.cc "$(suites_of test/claim)"

[ "${1:-}" = --keep ] || exit 0
cd "$source"
{
  echo "Measured on $(date +%F) with \`test/bench/build_cost.sh --keep\`: $(nproc) cores, no cache."
  echo
  echo '| What | s | CPU s | Goal |'
  echo '| --- | ---: | ---: | --- |'
  printf '%s\n' "$rows"
  echo "What CI holds a build against: $size."
} >"$folder/section"
awk -v section="$folder/section" '
  /^<!-- build: written by/ { print; while ((getline line < section) > 0) print line; skip = 1; next }
  /^<!-- end of build -->/ { skip = 0 }
  !skip' docs/performance.md >"$folder/document"
cat "$folder/document" >docs/performance.md
