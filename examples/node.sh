# SPDX-License-Identifier: Apache-2.0
#
# A node below one temporary folder, for the scripts beside this file, which
# source it: builds the programs, starts and stops them, cleans up at the end.
#
#   DEVMGR_BUILD_DIR   the build folder (default: build)
set -euo pipefail
exec </dev/null
cd "$(dirname "$0")/.."
name=$(basename "$0" .sh)

build=${DEVMGR_BUILD_DIR:-build}
. tools/build-env.sh
tools/bootstrap.sh
[ -f "$build/build.ninja" ] || meson setup "$build" >/dev/null
# Two of these scripts may run at once.
flock "$build" ninja -C "$build" programs >"$build/$name-build.log" ||
  { tail -n 40 "$build/$name-build.log"; exit 1; }

root=$(mktemp -d "/tmp/devmgr-$name-XXXXXX")
export DEVMGR_ENDPOINT=$root/devmgr.sock
daemon= driver= plugin= container=
finish() {
  local code=$?
  # Ends by itself, soon, and with all it has started.
  [ -z "$container" ] || wait "$container" || true
  for process in $daemon $driver $plugin; do
    kill -9 "$process" 2>/dev/null && wait "$process" 2>/dev/null || true
  done
  [ "$code" -eq 0 ] || { echo "FAILED; devmgrd said:"; tail -n 20 "$root/log"; }
  rm -rf "$root"
  exit "$code"
}
trap finish EXIT

step() { printf '\n== %s\n' "$*"; }
run() { printf '$ devmgrctl %s\n' "$*"; devmgrctl "$@"; }
devmgrctl() { "$build/tools/devmgrctl/devmgrctl" "$@"; }
fail() { echo "$name: $*" >&2; exit 1; }
expect() { # what, expected, found
  [ "$2" = "$3" ] || fail "$1: expected '$2', found '$3'"
}
start_daemon() { # further options
  "$build/tools/devmgrd/devmgrd" --root "$root" "$@" 2>>"$root/log" &
  daemon=$!
}
wait_for_daemon() {
  for _ in $(seq 400); do
    devmgrctl status >/dev/null 2>&1 && return 0
    sleep 0.05
  done
  fail "devmgrd does not come"
}
start_driver() { # further options
  "$build/tools/fake-dra-driver/fake-dra-driver" --name gpu.example.com \
    --root "$root" "$@" >>"$root/driver.log" &
  driver=$!
}
wait_for_driver() {
  for _ in $(seq 200); do
    devmgrctl get plugins -o json 2>/dev/null |
      jq -e '.items[] | select(.status.state == "Connected")' >/dev/null &&
      return 0
    sleep 0.05
  done
  fail "the driver does not come"
}
start_plugin() {
  "$build/tools/fake-device-plugin/fake-device-plugin" \
    --resource example.com/tpu --root "$root" >>"$root/plugin.log" &
  plugin=$!
}
