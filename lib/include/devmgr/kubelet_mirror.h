// SPDX-License-Identifier: Apache-2.0
//
// The kubelet's checkpoint file of devices, kept up to date for programs that
// read it.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/export.h>
#include <devmgr/host.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace devmgr {

struct KubeletMirrorOptions {
  /// As the kubelet has it:
  /// `/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint`. An absolute
  /// path, and of no directory. Required.
  std::filesystem::path file;
  /// Between two writes at least; what changes meanwhile is in the next one.
  std::chrono::milliseconds pause{100};
  /// A write that failed is tried again after this, or with the next change.
  std::chrono::milliseconds retry{30'000};
  /// Hears once that the file cannot be written, and once that it can again, on
  /// the mirror's thread.
  LogSink log;
};

struct KubeletMirrorCounters {
  std::uint64_t writes = 0;
  std::uint64_t failures = 0;
};

/// Writes the file, in one step and synced, when devices are allocated or
/// released, when plugins list others, and when it is destroyed: byte by byte
/// as the kubelet would. It says what is in the ledger, some time later, so
/// that nothing waits for it; what was between two writes is in none. A file
/// that cannot be written does no harm, and nothing reads it here. A file that
/// is there already is replaced. If it names pods that the ledger does not
/// know, or is no such file, a copy is kept first, beside it, whose name ends
/// in `.kept-` and a checksum.
class DEVMGR_EXPORT KubeletMirror {
 public:
  /// `manager` is borrowed and must outlive the mirror. Waits for its thread.
  ///   InvalidArgument  the file is not given, not absolute, or a directory
  static absl::StatusOr<std::unique_ptr<KubeletMirror>> Start(
      DeviceManager& manager, const KubeletMirrorOptions& options);
  /// Writes what has changed since the last write.
  virtual ~KubeletMirror() = default;

  /// Thread-safe.
  virtual KubeletMirrorCounters Counters() const = 0;
};

}  // namespace devmgr
