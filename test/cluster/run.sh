#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The proof on a real control plane: etcd, kube-apiserver, kube-scheduler and
# kube-controller-manager, with devmgrd as the node. Prints one line per case
# and, last, `N passed, N failed` (and `, N skipped` when some were).
#
#   test/cluster/run.sh                         everything
#   test/cluster/run.sh claims disturbances     these parts, see cluster_test.py
#
# DEVMGR_CLUSTER_BIN    folder with the four programs; without it they are built
#                       from their public Go modules, once, which takes half an
#                       hour of processor time and 3 GB of memory
# DEVMGR_CLUSTER_CACHE  where they are built (default: ~/.cache/devmgr/cluster)
# DEVMGR_BUILD_DIR      the build folder (default: build)
# DEVMGR_TEST_SCALE     multiplies the number of pods that come and go
set -eu
exec </dev/null
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

build=${DEVMGR_BUILD_DIR:-build}
needed_kb=$((3 * 1024 * 1024))

skip() {
  echo "skipped: $1"
  echo '0 passed, 0 failed, 1 skipped'
  exit 0
}

give_up() {
  echo "test/cluster/run.sh: $1" >&2
  echo '0 passed, 1 failed'
  exit 1
}

# Module, package, program. Linking one needs most of the memory.
build_program() {
  [ -x "$DEVMGR_CLUSTER_BIN/$3" ] && return
  echo "building $3"
  (cd "$here/$1" && nice go build -p 1 -buildvcs=false -mod=readonly \
    -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" \
    -o "$DEVMGR_CLUSTER_BIN/$3" "$2") || give_up "cannot build $3"
}

if [ -z "${DEVMGR_CLUSTER_BIN:-}" ]; then
  command -v go >/dev/null || skip 'Go is not installed, and DEVMGR_CLUSTER_BIN is not set'
  version=$(sed -n 's|.*k8s.io/kubernetes => k8s.io/kubernetes ||p' "$here/kubernetes/go.mod")
  cache=${DEVMGR_CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/devmgr/cluster}
  export DEVMGR_CLUSTER_BIN="$cache/$version"
  mkdir -p "$DEVMGR_CLUSTER_BIN"
  if [ ! -x "$DEVMGR_CLUSTER_BIN/kube-scheduler" ]; then
    available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
    [ "$available" -ge "$needed_kb" ] ||
      skip "building kube-apiserver needs $((needed_kb / 1024)) MB of memory, $((available / 1024)) MB are available"
    for module in etcd kubernetes; do
      (cd "$here/$module" && go mod download) || skip "the Go modules of $module cannot be had"
    done
    build_program etcd go.etcd.io/etcd/server/v3 etcd
    for program in kube-apiserver kube-controller-manager kube-scheduler; do
      build_program kubernetes "k8s.io/kubernetes/cmd/$program" "$program"
    done
  fi
fi

. tools/build-env.sh
tools/bootstrap.sh || give_up 'packages are missing'
[ -f "$build/build.ninja" ] || meson setup "$build" || give_up "cannot configure '$build'"
ninja -C "$build" tools/devmgrd/devmgrd tools/devmgrctl/devmgrctl examples/cri-shim/devmgr-cri-shim \
  test/cluster/runtime_of_node >/dev/null || give_up "the build in '$build' failed"

# From TAP to lines for people; what a failed case says comes below it.
python3 -B "$here/cluster_test.py" "$build" . "$@" | python3 -B "$here/summary.py"
