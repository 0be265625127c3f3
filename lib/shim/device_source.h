// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/runtime_report.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "common/executor.h"
#include "rpc/connection.h"

namespace devmgr::shim {

/// By what reports of a shim are known: its name, which may be empty, and the
/// session that it is from its start to its end.
struct ShimIdentity {
  std::string name;
  std::string session;
};

/// Distinct for each shim of a boot.
std::string NewShimSession();

/// Who knows which devices a pod has. Called on one thread; answers come once,
/// on any thread, perhaps within the call, perhaps after this is gone.
class DeviceSource {
 public:
  using DevicesDone =
      std::function<void(absl::StatusOr<std::shared_ptr<const PodDevices>>)>;
  using Done = std::function<void(absl::Status)>;
  using VersionDone = std::function<void(absl::StatusOr<std::uint64_t>)>;
  using LookDone = VersionDone;

  virtual ~DeviceSource() = default;

  ///   NotFound            the pod is not known
  ///   Unavailable         it has no answer yet, or the source is away
  ///   FailedPrecondition  it will get none
  ///   DeadlineExceeded    the source has not answered within `timeout`
  virtual void DevicesOf(const PodUid& pod, const ObjectName& name,
                         std::chrono::milliseconds timeout,
                         DevicesDone done) = 0;

  /// As DeviceManager::StartBeforeContainerStart; DeadlineExceeded after
  /// `timeout`.
  virtual void BeforeContainerStart(const PodUid& pod,
                                    const ContainerName& container,
                                    std::chrono::milliseconds timeout,
                                    Done done) = 0;

  /// Ends when pods may have changed since `version`, sooner or later also
  /// without. Gives the version to go on with; begin with 0, which never
  /// waits.
  ///   Unavailable  the source is away
  virtual void WaitForChange(std::uint64_t version, VersionDone done) = 0;

  /// As DeviceManager::ReportRuntime.
  ///   Unavailable  the source is away, or too old to take reports
  virtual void Report(const RuntimeReport& report, Done done) = 0;

  /// Ends when another look at the runtime than `look` is wanted of `shim`,
  /// sooner or later also without. Gives the one that was wanted last; begin
  /// with 0, which never waits. A shim that does not ask again in time counts
  /// as cut off.
  ///   FailedPrecondition  what is reported of the runtime is not gone by
  ///   Unavailable         the source is away, or too old to want looks
  virtual void WaitForLook(const ShimIdentity& shim, std::uint64_t look,
                           LookDone done) = 0;
};

/// A manager in this process, borrowed. Deadlines pass on `executor`, which has
/// to have stopped before the manager goes.
std::unique_ptr<DeviceSource> MakeManagerSource(
    DeviceManager& manager, std::shared_ptr<Executor> executor);

/// A daemon, by its inspection socket. `runtime` is borrowed. Connects when
/// something is asked. `timeout` is for what has none of its own, and for the
/// answer to a long poll, after it. `on_lost` runs, on any thread, when a
/// connection has ended by itself: by then it may have forgotten what was
/// reported to it.
std::unique_ptr<DeviceSource> MakeDaemonSource(
    rpc::Runtime& runtime, std::filesystem::path endpoint,
    std::chrono::milliseconds timeout, std::function<void()> on_lost);

}  // namespace devmgr::shim
