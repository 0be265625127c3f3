// SPDX-License-Identifier: Apache-2.0
//
// The kubelet's pod-resources API, served for a device manager.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/export.h>
#include <devmgr/host.h>

#include <cstdint>
#include <filesystem>
#include <memory>

namespace devmgr {

struct PodResourcesOptions {
  /// Where clients look: `/var/lib/kubelet/pod-resources/kubelet.sock`.
  /// Required. Its directory is made, with mode 0750, if it is missing; the
  /// socket has mode 0660.
  std::filesystem::path socket;
  /// As the kubelet: one limit of 100 calls a second, 10 at once, for all
  /// clients together, and the codes of its errors. Otherwise each client
  /// process has that limit for itself, and all together have ten times as
  /// much.
  bool strict_kubelet = false;
  /// Hears of clients that are hung up on, on a thread of the server's, at a
  /// bounded rate.
  LogSink log;
};

/// Calls since the server was started. What a limit refused is counted as that
/// and as nothing else.
struct PodResourcesCounters {
  struct OfVersion {
    std::uint64_t requests = 0;  ///< All of those below.
    std::uint64_t list = 0;
    std::uint64_t get_allocatable = 0;
    std::uint64_t get = 0;
    std::uint64_t errors_list = 0;
    std::uint64_t errors_get_allocatable = 0;
    std::uint64_t errors_get = 0;
  };
  OfVersion v1;
  OfVersion v1alpha1;
  /// Refused because a client calls too often, or does not read its answers.
  std::uint64_t refused = 0;
  /// Claims that were left out of answers (PodResources::missing_claims).
  std::uint64_t missing_claims = 0;
};

/// `v1.PodResourcesLister` and `v1alpha1.PodResourcesLister` on one Unix
/// socket. Answers come from the manager's view of the node: none waits for a
/// decision or a call. Pods are kept encoded for a minute after they were asked
/// for, and encoded again when they change.
class DEVMGR_EXPORT PodResourcesServer {
 public:
  /// `manager` is borrowed and must outlive the server. A stale socket is
  /// replaced, in one step.
  ///   InvalidArgument     there is no socket
  ///   FailedPrecondition  a process listens there; the message names it
  ///   PermissionDenied    the directory is not ours to make or to write
  static absl::StatusOr<std::unique_ptr<PodResourcesServer>> Start(
      DeviceManager& manager, const PodResourcesOptions& options);
  /// Ends within a second; calls under way are cancelled.
  virtual ~PodResourcesServer() = default;

  /// Thread-safe.
  virtual PodResourcesCounters Counters() const = 0;
};

}  // namespace devmgr
