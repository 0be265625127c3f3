#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds everything and runs all tests; the last line is
# `N passed, N failed`. Arguments go to `meson test`:
#
#   test/run.sh                       everything
#   test/run.sh --suite core          one suite: core, grpc, e2e, headers
#   test/run.sh core --test-args=--gtest_filter='ClaimTable*'
#
# DEVMGR_BUILD_DIR    the build folder (default: build)
# DEVMGR_TEST_SCALE   multiplies the counts of random tests (default: 1)
# DEVMGR_TEST_REPLAY  the seed of the one life that random tests live again
set -eu
exec </dev/null
cd "$(dirname "$0")/.."

build=${DEVMGR_BUILD_DIR:-build}

. tools/build-env.sh

give_up() {
  echo "test/run.sh: $1" >&2
  echo '0 passed, 1 failed'
  exit 1
}

tools/bootstrap.sh || give_up 'packages are missing'

if [ ! -f "$build/build.ninja" ]; then
  # Meson puts ccache in front of the compiler by itself unless CXX is set.
  meson setup "$build" || give_up "cannot configure '$build'"
fi
ninja -C "$build" || give_up "the build in '$build' failed"

python3 test/report.py --forget "$build"
code=0
meson test -C "$build" --no-rebuild --print-errorlogs "$@" || code=$?
exec python3 test/report.py --exit-code "$code" "$build"
