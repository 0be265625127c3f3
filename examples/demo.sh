#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The main job, shown and checked: pods that ask for extended resources get the
# CDI device IDs that a DRA driver prepared and what a device plugin answers, and
# keep them over kill -9.
# Everything runs below one temporary folder. Exits non-zero when anything
# differs from what it should be.
#
#   DEVMGR_BUILD_DIR   the build folder (default: build)
set -euo pipefail
exec </dev/null
cd "$(dirname "$0")/.."

build=${DEVMGR_BUILD_DIR:-build}
tools/bootstrap.sh
[ -f "$build/build.ninja" ] || meson setup "$build" >/dev/null
ninja -C "$build" tools/devmgrd/devmgrd tools/devmgrctl/devmgrctl \
  tools/fake-dra-driver/fake-dra-driver \
  tools/fake-device-plugin/fake-device-plugin >"$build/demo-build.log" ||
  { tail -n 40 "$build/demo-build.log"; exit 1; }

root=$(mktemp -d /tmp/devmgr-demo-XXXXXX)
export DEVMGR_ENDPOINT=$root/devmgr.sock
daemon= driver= plugin=
finish() {
  local code=$?
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
fail() { echo "demo: $*" >&2; exit 1; }
expect() { # what, expected, found
  [ "$2" = "$3" ] || fail "$1: expected '$2', found '$3'"
}
start_daemon() {
  "$build/tools/devmgrd/devmgrd" --root "$root" 2>>"$root/log" &
  daemon=$!
}
start_driver() {
  "$build/tools/fake-dra-driver/fake-dra-driver" --name gpu.example.com \
    --root "$root" >>"$root/driver.log" &
  driver=$!
}
start_plugin() {
  "$build/tools/fake-device-plugin/fake-device-plugin" \
    --resource example.com/tpu --root "$root" >>"$root/plugin.log" &
  plugin=$!
}
# What a container gets, as `pool/device` of each CDI device in order.
devices() { # pod, container
  devmgrctl resolve "$1" -c "$2" -o json |
    jq -r '[.containers[].cdiDevices[].origin | .pool + "/" + .device] | join(" ")'
}
ids() { devmgrctl resolve "$1" -o name; }

step "A driver registers"
start_daemon
start_driver
for _ in $(seq 200); do
  devmgrctl get plugins -o json 2>/dev/null |
    jq -e '.items[] | select(.status.state == "Connected")' >/dev/null && break
  sleep 0.05
done
run get plugins

step "Two pods: KEP-5004's own, and one with an init container"
cp examples/manifests/*.yaml "$root/manifests/"
run wait pod demo --for=ready --timeout 10s
run wait pod training --for=ready --timeout 10s
run get claims

step "What each container gets"
run resolve demo
run resolve training
expect "demo/demo" "node-1/gpu-0" "$(devices demo demo)"
expect "training/warm-up" "node-1/gpu-1" "$(devices training warm-up)"
expect "training/trainer" "node-1/gpu-2 node-1/gpu-3" "$(devices training trainer)"
expect "training/viewer" "node-1/gpu-4" "$(devices training viewer)"
expect "training/logger" "" "$(devices training logger)"
before=$(ids demo; ids training)
for id in $before; do
  grep -rqF "\"${id#*=}\"" "$root/cdi" || fail "no CDI spec file has '$id'"
done
echo "each of these IDs is in a CDI spec file of the driver"

step "One device of a driver and one of a device plugin, which comes late"
cp examples/manifests/device-plugin/mixed.yaml "$root/manifests/"
run wait pod mixed --for=waiting --timeout 10s
run get pods
start_plugin
run wait pod mixed --for=ready --timeout 10s
run resolve mixed
expect "mixed/worker, driver" "node-1/gpu-5" "$(devices mixed worker)"
expect "mixed/worker, plugin" "tpu-0" "$(devmgrctl resolve mixed -o json |
  jq -r '.containers[0].env[] | select(.name == "EXAMPLE_COM_TPU") | .value')"

step "The ledger, the CDI specs and the driver agree"
run fsck

step "kill -9 of devmgrd, driver and plugin stopped, devmgrd again: the same answer"
kill -9 "$daemon"; wait "$daemon" 2>/dev/null || true
kill "$driver" "$plugin"; wait "$driver" "$plugin" 2>/dev/null || true
driver= plugin=
start_daemon
run wait pod training --for=ready --timeout 10s
expect "answers after the restart" "$before" "$(ids demo; ids training)"
echo "the same $(wc -w <<<"$before") device IDs, with no driver running"
run wait pod mixed --for=ready --timeout 10s

step "The pods go: released, unprepared, nothing left"
start_driver
rm "$root"/manifests/*.yaml
run wait pod demo --for=released --timeout 10s
run wait pod training --for=released --timeout 10s
run wait pod mixed --for=released --timeout 10s
expect "claims" "0" "$(devmgrctl get claims -o json | jq '.items | length')"
expect "CDI spec files" "" "$(ls "$root/cdi")"
run history
prepares=$(grep -c '"event":"call".*"method":"prepare"' "$root/driver.log")
expect "prepare calls" "3" "$prepares"
kill "$daemon"; wait "$daemon" || fail "devmgrd did not stop cleanly"
daemon=
printf '\ndemo: all as it should be\n'
