// SPDX-License-Identifier: Apache-2.0
//
// Calling a container runtime by CRI, with messages as bytes: for programs that
// have its messages and want no gRPC of their own.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/export.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace devmgr {

/// A container runtime, or a CriShim in front of one. It is connected to when
/// it is first called, and anew after it has hung up. Thread-safe; calls block,
/// and any number may be under way.
class DEVMGR_EXPORT CriConnection {
 public:
  /// Needs no runtime yet. Unavailable: there are no threads for it.
  static absl::StatusOr<std::unique_ptr<CriConnection>> Open(
      std::filesystem::path socket);
  /// No call may be under way.
  virtual ~CriConnection() = default;

  /// Calls a method of `runtime.v1` such as `RuntimeService/RunPodSandbox` with
  /// a serialised request; returns the serialised answer, of up to 128 MiB.
  /// Errors are the runtime's, with the method in front. Besides:
  ///   InvalidArgument   the timeout is not positive
  ///   Unavailable       no process listens there, or it has hung up; it may
  ///                     have acted in this case
  ///   PermissionDenied  the socket is not ours to use
  ///   DeadlineExceeded  it did not answer in time; it may have acted
  virtual absl::StatusOr<std::string> Call(
      const std::string& method, std::string request,
      std::chrono::milliseconds timeout) = 0;
};

}  // namespace devmgr
