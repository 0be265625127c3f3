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
. "$(dirname "$0")/node.sh"

# What a container gets, as `pool/device` of each CDI device in order.
devices() { # pod, container
  devmgrctl resolve "$1" -c "$2" -o json |
    jq -r '[.containers[].cdiDevices[].origin | .pool + "/" + .device] | join(" ")'
}
ids() { devmgrctl resolve "$1" -o name; }

# A container made of one program, which tells what devices it has, and ends.
write_config() {
  mkdir -p "$root/rootfs/bin"
  cp "$(command -v busybox)" "$root/rootfs/bin/"
  ctr oci spec | jq --arg rootfs "$root/rootfs" '.root.path = $rootfs |
    del(.linux.cgroupsPath) | .process.args = ["/bin/busybox", "sh", "-c",
    "busybox env | busybox grep -E \"FAKE_DEVICE|TPU\" | busybox sort
     for file in /dev/tpu-*; do
       [ ! -c $file ] || busybox stat -c \"%n is device %t:%T\" $file
     done
     for file in /run/devices/*; do [ ! -e $file ] || echo $file; done"]' \
    >"$root/config.json"
}
in_containerd() { # name, seconds at most; leaves what it said in $root/seen
  local code=0
  examples/run-in-containerd.sh "$(basename "$root")-$1" "$root/config.json" \
    "$2" >"$root/seen" &
  container=$!
  wait "$container" || code=$?
  container=
  return $code
}

step "A driver registers"
start_daemon
start_driver
wait_for_driver
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

step "A container of containerd, without and with what a pod was given"
deadline=$((SECONDS + 30))
if { write_config && in_containerd without 15; } 2>"$root/reason"; then
  expect "what a container sees that was given nothing" "" "$(cat "$root/seen")"
  echo "without: no device and no variable"
  run inject --pod mixed -c worker --cdi-spec-dir "$root/cdi" \
    --spec "$root/config.json" -o "$root/config.json"
  in_containerd with $((deadline - SECONDS))
  cat "$root/seen"
  expect "what the container sees" \
    "node-1/gpu-5 tpu-0 /dev/tpu-0 is device 1:3 /run/devices/tpu-0" \
    "$(sed 's/^[A-Z].*=//' "$root/seen" | xargs)"
else
  echo "cannot run containers here: $(cat "$root/reason")"
fi

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
