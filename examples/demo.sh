#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The main job, shown and checked: pods that ask for extended resources get
# devices that a DRA driver has published, as the CDI device IDs that it
# prepared, and what a device plugin answers, and keep them over kill -9. No
# claim is written by hand: devmgrd makes and allocates them.
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

# Each device once; more than one of a container after each other.
all_devices() {
  for container in demo/demo training/trainer training/viewer "$@"; do
    devices "${container%/*}" "${container#*/}"
  done | xargs -n 1 | sort
}
wait_for_slices() {
  for _ in $(seq 400); do
    devmgrctl get slices -o json |
      jq -e '.items | length > 0 and all(.status.state == "Complete")' \
      >/dev/null && return 0
    sleep 0.05
  done
  fail "the driver does not publish"
}

step "A driver registers, and publishes its devices as to an API server"
start_daemon --node-name node-1
wait_for_daemon
run endpoint kubeconfig gpu.example.com
start_driver --publish
wait_for_driver
wait_for_slices
run get plugins
run get slices

step "Two pods: KEP-5004's own, and one with an init container"
cp examples/manifests/*.yaml "$root/manifests/"
run wait pod demo --for=ready --timeout 10s
run wait pod training --for=ready --timeout 10s
run get claims

step "What each container gets"
run resolve demo
run resolve training
expect "devices of demo" 1 "$(devices demo demo | wc -w)"
expect "devices of training/trainer" 2 "$(devices training trainer | wc -w)"
expect "training/warm-up, which ends before the trainer starts" \
  "$(devices training trainer)" "$(devices training warm-up)"
expect "devices of training/viewer" 1 "$(devices training viewer | wc -w)"
expect "training/logger" "" "$(devices training logger)"
expect "devices that two pods have" "" "$(all_devices | uniq -d)"
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
expect "devices of mixed/worker" 1 "$(devices mixed worker | wc -w)"
expect "devices that two pods have" "" "$(all_devices mixed/worker | uniq -d)"
gpu=$(devices mixed worker)
expect "mixed/worker, plugin" "tpu-0" "$(devmgrctl resolve mixed -o json |
  jq -r '.containers[0].env[] | select(.name == "EXAMPLE_COM_TPU") | .value')"

step "The ledger, the CDI specs and the driver agree"
run fsck

step "kill -9 of devmgrd, driver and plugin stopped, devmgrd again: the same answer"
kill -9 "$daemon"; wait "$daemon" 2>/dev/null || true
kill "$driver" "$plugin"; wait "$driver" "$plugin" 2>/dev/null || true
driver= plugin=
start_daemon --node-name node-1
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
    "$gpu tpu-0 /dev/tpu-0 is device 1:3 /run/devices/tpu-0" \
    "$(sed 's/^[A-Z].*=//' "$root/seen" | xargs)"
else
  echo "cannot run containers here: $(cat "$root/reason")"
fi

step "Slices stay, and count again when their driver registers"
run get slices -o wide
start_driver --publish
wait_for_driver
wait_for_slices

step "The pods go: released, unprepared, nothing left"
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
