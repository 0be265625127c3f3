// SPDX-License-Identifier: Apache-2.0
//
// Which sandboxes and containers of which pods a container runtime has, and
// since when that is known.
#pragma once

#include <devmgr/export.h>
#include <devmgr/runtime_inspection.h>
#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace devmgr {

/// A sandbox of a pod, as its runtime lists it.
struct SandboxRun {
  std::string id;
  std::uint32_t attempt = 0;
  bool ready = false;
  WallTime created_at;
  /// Of one that is ready: at most one of IPv4 and one of IPv6, the first one
  /// first. Empty: the runtime says none, as on the host's network.
  std::vector<std::string> ips;
  friend bool operator==(const SandboxRun&, const SandboxRun&) = default;
};

/// A container of a pod, as its runtime lists it. The end of one that has
/// exited is there when the runtime was asked for it.
struct ContainerRun {
  std::string id;
  std::string name;  ///< In its pod.
  std::uint32_t attempt = 0;
  RuntimeContainer::State state = RuntimeContainer::State::kUnknown;
  std::string image;     ///< As it was asked for.
  std::string image_id;  ///< As the runtime calls it.
  WallTime created_at;
  std::optional<WallTime> started_at;
  std::optional<WallTime> finished_at;
  std::int32_t exit_code = 0;  ///< Of one that has exited.
  std::string reason;          ///< CamelCase, such as `OOMKilled`.
  std::string message;         ///< For people.
  friend bool operator==(const ContainerRun&, const ContainerRun&) = default;
};

/// All that a runtime has of a pod.
struct PodRun {
  ObjectName name;
  std::vector<SandboxRun> sandboxes;     ///< Newest first.
  std::vector<ContainerRun> containers;  ///< By name; newest first.
  /// A container has begun, or may begin, and has not exited, or a sandbox is
  /// ready: its devices may be in use.
  DEVMGR_EXPORT bool IsRunning() const;
  friend bool operator==(const PodRun&, const PodRun&) = default;
};

/// What a runtime has at one moment. Immutable once published.
struct RuntimeSnapshot {
  /// All pods of the runtime are below. False: the runtime does not answer, or
  /// has not been asked yet; a pod that is missing may run.
  bool known = false;
  /// Since when `known` is what it is.
  WallTime since;
  std::string reason;   ///< Why it is not known.
  std::string runtime;  ///< Name and version; empty: not known yet.
  std::map<PodUid, std::shared_ptr<const PodRun>> pods;
};

/// Thread-safe.
class DEVMGR_EXPORT RuntimeSource {
 public:
  virtual ~RuntimeSource() = default;
  /// Never null.
  virtual std::shared_ptr<const RuntimeSnapshot> Snapshot() const = 0;
  /// Calls `changed` after every new snapshot until `Unsubscribe`, on a thread
  /// of the source's. `changed` must not block and must not call back. One
  /// subscriber at a time; a second call replaces the first.
  virtual void Subscribe(std::function<void()> changed) = 0;
  /// No call of the subscriber runs after this returns.
  virtual void Unsubscribe() = 0;
  /// For people: `runtime /run/containerd/containerd.sock`.
  virtual std::string Describe() const = 0;

  /// Asks the runtime anew. `done` is called once, on another thread, when
  /// Snapshot shows what the runtime had after this call, or that it does not
  /// answer. False, and `done` is not called: what was published is what there
  /// is. The default answers that. Must not block. A source that ends drops the
  /// call.
  virtual bool Refresh(std::function<void()> done);

  /// Whether pods are there that may begin to run at any time: a source that
  /// has to ask for news does so then, though nothing runs. Must not block. The
  /// default does nothing.
  virtual void Expect(bool pods);
};

/// Nothing due, nothing done: it asks while something runs, while pods are
/// expected, or while it is not known what runs.
struct RuntimeWatchOptions {
  /// Between the end of one look and the next. Must be positive.
  std::chrono::milliseconds period{1'000};
  /// After a look that failed, doubled from one to the next.
  std::chrono::milliseconds first_retry{100};
  std::chrono::milliseconds last_retry{5'000};
};

/// A container runtime, asked by CRI (`runtime.v1`) at its socket, which may
/// appear later. When an answer is late, or the runtime goes, what runs is not
/// known until it has answered again; its pods stay as they were last. Never
/// blocks for long; stops its threads in the destructor.
DEVMGR_EXPORT std::unique_ptr<RuntimeSource> WatchRuntime(
    std::filesystem::path endpoint, RuntimeWatchOptions options = {});

namespace shim {
class ShimRuntime;
}  // namespace shim

/// The same of the runtime behind a CriShim of this process, asked over the
/// connection that the shim has, and at once when a call that changes
/// containers has passed the shim. It comes before the manager, whose
/// Host::runtime it is, and outlives manager and shim; the shim gets it as
/// CriShimOptions::runtime_source. What runs is not known before that shim has
/// started and after it has ended; another one may follow.
class DEVMGR_EXPORT ShimRuntimeSource : public RuntimeSource {
 public:
  static std::unique_ptr<ShimRuntimeSource> Make(
      RuntimeWatchOptions options = {});

 private:
  friend class shim::ShimRuntime;
  ShimRuntimeSource() = default;
};

struct RuntimeReport;

/// The same of the runtimes behind CRI shims of other processes, as those
/// report it (InspectionServer::Start): what runs is known while each shim that
/// has ever reported says so, and is what all of them say together. A shim that
/// ends, that is cut off, or that has not looked in time when it was asked to,
/// makes it unknown until it has looked again.
class DEVMGR_EXPORT ReportedRuntimeSource : public RuntimeSource {
 public:
  /// `patience`: for a look that was asked for. Must be positive.
  static std::unique_ptr<ReportedRuntimeSource> Make(
      std::chrono::milliseconds patience = std::chrono::seconds(10));
  /// The same where the shims have names (CriShimOptions::name): what runs is
  /// not known before each of `shims` has reported, and others say nothing of
  /// it. Of two at one name both count as long as they are there. Empty: as
  /// above.
  static std::unique_ptr<ReportedRuntimeSource> Make(
      std::vector<std::string> shims,
      std::chrono::milliseconds patience = std::chrono::seconds(10));

  /// Takes what a report says of the runtime. It has passed
  /// DeviceManager::ReportRuntime. Must not block.
  virtual void Take(const RuntimeReport& report) = 0;
  /// Whether what a shim of this name reports counts.
  virtual bool Wants(const std::string& shim) const = 0;
  /// The connection to the shim with this session has ended, or it has not
  /// asked for the next look. Must not block.
  virtual void OnCutOff(const std::string& session) = 0;

  /// The number of the look that was asked for last; never 0, and another one
  /// in each process. A shim reports it with what it saw after it knew it.
  virtual std::uint64_t WantedLook() const = 0;
  /// Calls `wanted` after every new one, on a thread of the source's; as
  /// Subscribe. Empty: no more; no call runs after this returns.
  virtual void SubscribeLooks(std::function<void()> wanted) = 0;
};

}  // namespace devmgr
