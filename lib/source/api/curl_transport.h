// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>

#include "common/executor.h"
#include "source/api/kubeconfig.h"
#include "source/api/transport.h"

namespace devmgr::apiserver {

/// How much of an answer waits for its user before the server is not read from.
inline constexpr std::size_t kMaxPendingBytes = std::size_t{1} << 20;

/// A transport by libcurl, on a thread of its own that sleeps while nothing
/// comes and nothing is due. HTTP/1.1: a connection that hangs takes one
/// request with it. Events come on `executor`, which outlives the transport.
///   Unavailable  libcurl cannot be loaded or started
absl::StatusOr<std::unique_ptr<Transport>> StartCurlTransport(
    const Kubeconfig& config, Executor& executor);

/// Has a connection notice within a minute that its peer is gone without a
/// word. False when the kernel refuses.
bool KeepAlive(int socket);

}  // namespace devmgr::apiserver
