// SPDX-License-Identifier: Apache-2.0
//
// Looking at a device manager from outside: through its inspection socket, or
// by reading the state directory of one that is stopped.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/container_devices.h>
#include <devmgr/control.h>
#include <devmgr/device_changes.h>
#include <devmgr/device_holders.h>
#include <devmgr/device_manager.h>
#include <devmgr/export.h>
#include <devmgr/fsck.h>
#include <devmgr/host.h>
#include <devmgr/runtime_source.h>
#include <devmgr/source_info.h>
#include <devmgr/status_types.h>
#include <devmgr/topology.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// The inspection endpoint of a manager: a gRPC service on a Unix socket of
/// mode 0600. A stale socket is replaced. What changes something is for root
/// and our own user, whatever users may connect. The control service
/// (docs/control.md) is on the same socket.
class DEVMGR_EXPORT InspectionServer {
 public:
  /// `manager` is borrowed and must outlive the server. `log` hears of clients
  /// that are hung up on, such as because 256 of them are connected, on a
  /// thread of the server's, at a bounded rate. `sources` says how the sources
  /// of objects do (ApiServerSource::Info), and is called on a thread of the
  /// server's; without it there is what the manager knows of its one source.
  /// `runtime`, the manager's Host::runtime, takes what CRI shims report of the
  /// runtimes behind them; borrowed as well.
  ///   FailedPrecondition  a process listens there; the message names it
  ///   PermissionDenied    the directory is not ours to write
  ///   Unimplemented       there are control users, and the file system has no
  ///                       access control lists
  static absl::StatusOr<std::unique_ptr<InspectionServer>> Start(
      DeviceManager& manager, const std::filesystem::path& endpoint,
      LogSink log = nullptr, const ControlOptions& control = {},
      std::function<std::vector<SourceInfo>()> sources = nullptr,
      ReportedRuntimeSource* runtime = nullptr);
  /// Ends within a second; calls under way are cancelled.
  virtual ~InspectionServer() = default;
};

/// Reason of a waiting pod that the source has and no request has named
/// (`actuate: embedder`).
inline constexpr std::string_view kNotRequestedReason = "NotRequested";
/// The same of a pod that has finished by what its object says.
inline constexpr std::string_view kFinishedReason = "Finished";

/// What DeviceManager::Simulate is asked for over the socket, with objects as
/// documents.
struct SimulationDocuments {
  struct Document {
    std::string name;  ///< Of the file, for messages.
    std::string text;  ///< YAML or JSON.
  };
  /// Pods, and claims, templates, classes and slices for them.
  std::vector<Document> documents;
  SimulationView view;  ///< `slices` come as documents.
  bool independent = false;
  bool count_fits = false;
  std::uint64_t steps = 1'000'000;
  std::chrono::milliseconds deadline{10'000};
};

/// Reads what a manager knows. One thread at a time.
/// All methods of a connected inspector may return Unavailable (nothing answers
/// there) or DeadlineExceeded.
class DEVMGR_EXPORT Inspector {
 public:
  /// Connects to a running daemon.
  ///   Unavailable       no process listens at `endpoint`
  ///   PermissionDenied  the socket is not ours to use
  static absl::StatusOr<std::unique_ptr<Inspector>> Connect(
      const std::filesystem::path& endpoint, std::chrono::milliseconds timeout);

  /// Reads the state directory of a stopped or crashed manager, without
  /// changing a byte of it.
  ///   FailedPrecondition  a running process holds it; the message names it
  ///   NotFound            there is no ledger
  ///   DataLoss            the ledger cannot be decoded
  static absl::StatusOr<std::unique_ptr<Inspector>> OpenStateDir(
      const std::filesystem::path& state_dir);

  virtual ~Inspector() = default;

  virtual absl::StatusOr<NodeInfo> Node() = 0;
  virtual absl::StatusOr<std::vector<PodInfo>> Pods() = 0;
  virtual absl::StatusOr<std::vector<ClaimInfo>> Claims() = 0;
  /// The same with ClaimInfo::object.
  virtual absl::StatusOr<std::vector<ClaimInfo>> ClaimsWithObjects() = 0;
  virtual absl::StatusOr<std::vector<DebtInfo>> Debts() = 0;
  virtual absl::StatusOr<std::vector<PluginInfo>> Plugins() = 0;
  virtual absl::StatusOr<std::vector<DeviceInfo>> Devices() = 0;
  virtual absl::StatusOr<std::vector<ResourceInfo>> Resources() = 0;
  virtual absl::StatusOr<std::vector<DeviceClassInfo>> DeviceClasses() = 0;
  /// Known to a running daemon only.
  virtual absl::StatusOr<std::vector<SliceInfo>> Slices() = 0;
  virtual absl::StatusOr<std::vector<ForeignHolderInfo>> ForeignHolders() = 0;
  /// See NodeView::DeviceHolders. Of a stopped manager no container has an ID.
  virtual absl::StatusOr<std::vector<DeviceHolderInfo>> DeviceHolders() = 0;
  /// Where objects come from; known to a running daemon only.
  virtual absl::StatusOr<std::vector<SourceInfo>> Sources() = 0;
  /// NUMA nodes and the devices on them; known to a running daemon only,
  /// Unimplemented by an older one.
  virtual absl::StatusOr<NumaInfo> Numa() = 0;
  /// See NodeView::AlignmentOf. Unimplemented by an older daemon.
  virtual absl::StatusOr<PodAlignmentInfo> AlignmentOf(const PodUid& pod) = 0;
  /// Decisions after `sequence` that the bounded history has, oldest first.
  virtual absl::StatusOr<std::vector<DecisionInfo>> History(
      std::uint64_t after) = 0;
  /// What the ledger held at an earlier moment.
  ///   OutOfRange  that decision is yet to come, or the history does not reach
  ///               back to it; the message says how far it does
  virtual absl::StatusOr<LedgerView> StateAt(const LedgerPoint& at) = 0;

  /// Events after `sequence`. With `wait` > 0 and none there, waits that long
  /// for one; empty when none came.
  virtual absl::StatusOr<std::vector<EventInfo>> Events(
      std::uint64_t after, std::chrono::milliseconds wait) = 0;

  /// See DeviceManager::Changes. Of a state directory: what the history has,
  /// and no health but what the ledger keeps of it; never waits.
  virtual absl::StatusOr<DeviceChanges> Changes(
      const ChangesFrom& from, std::chrono::milliseconds wait) = 0;

  /// The newest pod of that name; NotFound when neither source nor ledger
  /// knows one.
  virtual absl::StatusOr<PodInfo> FindPod(const ObjectName& name) = 0;

  /// The answer for all containers of the newest pod of that name.
  virtual absl::StatusOr<PodDevices> Resolve(const ObjectName& name) = 0;

  /// Waits until anything changed after `version` or `wait` is over; returns
  /// the version now. Pass 0 to get it at once.
  virtual absl::StatusOr<std::uint64_t> WaitForChange(
      std::uint64_t version, std::chrono::milliseconds wait) = 0;

  /// Wants a pod of the source prepared (released). Returns when that is
  /// accepted, not when it is done: then wait for its state.
  ///   FailedPrecondition  the daemon acts on manifests by itself
  virtual absl::Status PreparePod(const ObjectName& name) = 0;
  virtual absl::Status ReleasePod(const ObjectName& name) = 0;

  /// What an operator decides: see DeviceManager::StartForceReleaseClaim,
  /// StartHandOverResource, StartConfirmSource, StartSetAuthority,
  /// StartFreeHolder and StartRecheckDevices. Return when it is done.
  virtual absl::Status ForceReleaseClaim(const ObjectName& claim,
                                         const std::string& reason) = 0;
  virtual absl::Status HandOverResource(const ResourceName& resource,
                                        ResourceOwner owner,
                                        const std::string& reason) = 0;
  virtual absl::Status ConfirmSource(const std::string& reason) = 0;
  virtual absl::Status SetAuthority(Authority to,
                                    const std::string& reason) = 0;
  virtual absl::Status FreeHolder(const std::string& container_id,
                                  const std::string& reason) = 0;
  virtual absl::Status RecheckDevices(const std::string& name,
                                      const std::string& device,
                                      const std::string& reason) = 0;

  // Of the endpoint for drivers (devmgr/driver_endpoint.h); for root and the
  // daemon's own user.

  /// Lets a driver connect, from now on and after restarts; returns where its
  /// kubeconfig is. Repeating it is fine.
  ///   InvalidArgument     that is no name of a driver
  ///   FailedPrecondition  the daemon serves no endpoint, or could not write a
  ///                       file; the message says which
  virtual absl::StatusOr<std::filesystem::path> DriverKubeconfig(
      const std::string& driver) = 0;
  /// Deletes what a driver has published, with the caller in the history; how
  /// many slices that were. A driver that runs publishes anew.
  ///   InvalidArgument     there is no driver, or no reason
  ///   FailedPrecondition  as above
  virtual absl::StatusOr<std::size_t> DeleteSlices(
      const std::string& driver, const std::string& reason) = 0;

  /// See DeviceManager::Simulate; the result as EncodeSimulation writes it.
  ///   InvalidArgument     an object is wrong; the message names it
  ///   ResourceExhausted   too many simulations run or wait
  ///   FailedPrecondition  of a state directory: it takes a running daemon
  virtual absl::StatusOr<std::string> Simulate(
      const SimulationDocuments& request) = 0;

  /// Checks, and repairs if asked to: see DeviceManager::Fsck. Of a state
  /// directory, whose daemon is stopped, the repair takes the lock and writes.
  ///   FailedPrecondition  a running process holds the state directory
  virtual absl::StatusOr<FsckReport> Fsck(const FsckRequest& request) = 0;
};

/// What a ledger loses when it is converted to an older format.
struct LedgerConversion {
  std::uint64_t batches = 0;      ///< Decisions of the history that are left.
  std::vector<std::string> lost;  ///< One sentence for each loss.
};

/// Converts the ledger of a stopped devmgrd to the older `format`, so that an
/// older version can open it; without `apply` only says what that would lose.
/// Pods, claims and the holders of devices stay in any case.
///   InvalidArgument     nothing can be converted to that format
///   NotFound            there is no ledger
///   FailedPrecondition  it has that format or an older one already, or a
///                       running process holds it
///   DataLoss            it is damaged; nothing was changed
DEVMGR_EXPORT absl::StatusOr<LedgerConversion> ConvertStateDir(
    const std::filesystem::path& state_dir, std::uint64_t format, bool apply);

}  // namespace devmgr
