#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A driver that dies while it unprepares: what it owes is remembered, shown, and
# asked for again when it is back.
. "$(dirname "$0")/node.sh"

wait_until() { # what, command
  for _ in $(seq 400); do
    bash -c "$2" && return 0
    sleep 0.05
  done
  fail "$1: has not come"
}
export -f devmgrctl
export build

step "Two pods share a claim"
start_daemon
cat >"$root/hang.yaml" <<'YAML'
steps:
- {action: hang, method: unprepare}
YAML
start_driver --scenario "$root/hang.yaml"
wait_for_driver
cp examples/manifests/shared/shared.yaml "$root/manifests/"
run wait pod reader --for=ready --timeout 10s
run wait pod writer --for=ready --timeout 10s
run get claims

step "Both go; the driver is killed while it unprepares"
rm "$root/manifests/shared.yaml"
wait_until "the call" "grep -q '\"method\":\"unprepare\"' '$root/driver.log'"
kill -9 "$driver"; wait "$driver" 2>/dev/null || true
driver=
wait_until "the debt" \
  "devmgrctl get debts -o json | jq -e '.items | length == 1' >/dev/null"
run get debts
run get pods

step "kill -9 of devmgrd: the debt is still there"
kill -9 "$daemon"; wait "$daemon" 2>/dev/null || true
start_daemon
wait_until "devmgrd" "devmgrctl status >/dev/null 2>&1"
expect "debts" "shared-gpu gpu.example.com" "$(devmgrctl get debts -o json |
  jq -r '.items[].status | .claim + " " + .driver')"
run get claims

step "The driver is back, and asked at once"
start_driver
wait_until "the end" \
  "devmgrctl get claims -o json | jq -e '.items | length == 0' >/dev/null"
for pod in reader writer; do
  run wait pod "$pod" --for=released --timeout 10s
done
run get debts
expect "debts" "0" "$(devmgrctl get debts -o json | jq '.items | length')"
expect "CDI spec files" "" "$(ls "$root/cdi")"
kill "$daemon"; wait "$daemon" || fail "devmgrd did not stop cleanly"
daemon=
printf '\ndebts: all as it should be\n'
