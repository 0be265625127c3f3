#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs what building, testing and checking needs on Debian 12. Prints
# nothing and returns at once when nothing is missing. Why each package is
# needed: docs/dependencies.md.
set -eu

packages="
  binutils
  build-essential
  busybox-static
  ca-certificates
  ccache
  clang-14
  clang-format-14
  clang-tidy-14
  containerd
  g++
  gcovr
  git
  googletest
  jq
  libabsl-dev
  libboost-dev
  libclang-rt-14-dev
  libcli11-dev
  libcurl4-openssl-dev
  libfmt-dev
  libgmock-dev
  libgrpc++-dev
  libgtest-dev
  libnghttp2-dev
  libprotobuf-dev
  libre2-dev
  librocksdb-dev
  libspdlog-dev
  libssl-dev
  libyaml-cpp-dev
  meson
  mold
  ninja-build
  nlohmann-json3-dev
  pkg-config
  podman
  prometheus-cpp-dev
  protobuf-compiler
  python3
  python3-grpcio
  python3-protobuf
  runc
  zlib1g-dev
"

say() { printf 'bootstrap: %s\n' "$*" >&2; }

if ! command -v dpkg-query >/dev/null; then
  say 'this is not a Debian system: install the packages of docs/dependencies.md by hand'
  exit 1
fi

# A package that dpkg never heard of is absent from the answer and makes
# dpkg-query fail; both mean missing.
installed=$(dpkg-query --show --showformat='${Package}=${db:Status-Status}\n' \
  $packages 2>/dev/null || true)
missing=''
for package in $packages; do
  case "
$installed
" in
    *"
$package=installed
"*) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
  say "missing packages:$missing"
  say 'without root nothing can be installed; run this and try again:'
  say "  sudo apt-get install --no-install-recommends$missing"
  exit 1
fi

say "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

install_missing() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -o DPkg::Lock::Timeout=120 update &&
    apt-get -o DPkg::Lock::Timeout=120 install --yes --no-install-recommends \
      $missing
}

# Mirrors fail now and then; a second try is cheaper than a lost run.
if ! (install_missing) </dev/null >"$log" 2>&1; then
  say 'apt-get failed, trying once more'
  sleep 5
  if ! (install_missing) </dev/null >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    say "could not install:$missing"
    exit 1
  fi
fi
