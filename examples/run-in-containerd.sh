#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs one container with a containerd of its own, and tells what the container
# tells. Needs root, containerd, runc and util-linux; touches nothing of a
# containerd that may run on this machine.
#
#   run-in-containerd.sh NAME CONFIG SECONDS
#
#   NAME     of the container; unique on the machine, cgroups are named so
#   CONFIG   the container's OCI runtime configuration (config.json)
#   SECONDS  all of it may take
set -euo pipefail
name=$1 config=$2 limit=$3
socket=/run/c.sock

# Processes, mounts and sockets are in namespaces of their own and go with
# their first process, however that ends.
if [ "${4:-}" != inside ]; then
  [ "$(id -u)" -eq 0 ] || { echo "containers need root" >&2; exit 1; }
  for program in containerd ctr runc unshare; do
    command -v "$program" >/dev/null ||
      { echo "$program is not installed" >&2; exit 1; }
  done
  exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@" inside
fi

[ $$ -eq 1 ] || { echo "not in a namespace of its own" >&2; exit 1; }

# containerd, its shims and ctr have places below /run that no option moves;
# all else is there, too, in memory: there is nothing to keep.
mount -t tmpfs tmpfs /run
cat >/run/containerd.toml <<END
version = 2
root = "/run/root"
state = "/run/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "$socket"
[plugins."io.containerd.internal.v1.opt"]
  path = "/run/opt"
END

# All processes but this one, then the cgroups that they leave when killed.
finish() {
  disown -a
  kill -9 -1 2>/dev/null || true
  for _ in $(seq 20); do
    find /sys/fs/cgroup -depth -type d -name "$name" -exec rmdir {} + \
      2>/dev/null && return 0
    sleep 0.05
  done
}
trap finish EXIT
too_slow() { echo "it took $limit s" >&2; exit 1; }

containerd --config /run/containerd.toml 2>/run/containerd.log &
until [ -S "$socket" ]; do
  kill -0 $! 2>/dev/null || { tail -n 1 /run/containerd.log >&2; exit 1; }
  [ "$SECONDS" -lt "$limit" ] || too_slow
  sleep 0.1
done
ctr --address "$socket" run --rm --config "$config" "$name" &
container=$! code=0
sleep $((limit - SECONDS)) &
wait -n -p ended "$container" $! || code=$?
[ "$ended" = "$container" ] || too_slow
exit $code
