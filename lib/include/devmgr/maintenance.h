// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/export.h>
#include <devmgr/fsck.h>
#include <devmgr/options.h>
#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace devmgr {

/// What a client has said about a pod.
struct PodWish {
  bool wanted = true;
  PodUid uid;
  ObjectName name;     ///< Empty when it is not known.
  std::string caller;  ///< For people, such as `uid 0, pid 4711`.
};

/// What an operator says about the slices of a driver.
struct SliceDeletion {
  std::string driver;
  std::string caller;  ///< For people, such as `uid 0, pid 4711`.
  std::string reason;
};

/// What an operator looks at and decides: DeviceManager::maintenance. Each of
/// his decisions is in the history with his reason, and is a warning event.
///
/// Thread-safe, with the rules of DeviceManager for `Start...` and for what
/// waits.
class DEVMGR_EXPORT Maintenance {
 public:
  using Done = std::function<void(absl::Status)>;

  virtual ~Maintenance() = default;

  /// Waits no longer for drivers that were to unprepare a claim and have not:
  /// claims of this name that are being unprepared are gone. What its drivers
  /// still do with its devices is the operator's to know.
  ///   InvalidArgument     there is no reason
  ///   NotFound            no claim of that name is known
  ///   FailedPrecondition  pods use it: they have to be released first
  virtual void StartForceReleaseClaim(const ObjectName& claim,
                                      const std::string& reason, Done done) = 0;
  absl::Status ForceReleaseClaim(const ObjectName& claim,
                                 const std::string& reason);

  /// Gives the name of an extended resource to its owner at once, whether that
  /// is there or not; it stays with it until the next call, kAutomatic: until
  /// the rules say otherwise. What pods hold stays theirs, and devices that are
  /// held one way are not given the other way before.
  ///   InvalidArgument  there is no reason, or that is no extended resource
  ///   NotFound         kAutomatic, and that name has never been served
  virtual void StartHandOverResource(const ResourceName& resource,
                                     ResourceOwner owner,
                                     const std::string& reason, Done done) = 0;
  absl::Status HandOverResource(const ResourceName& resource,
                                ResourceOwner owner, const std::string& reason);

  /// Says that the pods which the source lacks are gone, where it is not
  /// trusted (ObjectSnapshot::vouched): they are released.
  ///   InvalidArgument     there is no reason
  ///   FailedPrecondition  the source is trusted already, or there is none
  virtual void StartConfirmSource(const std::string& reason, Done done) = 0;
  absl::Status ConfirmSource(const std::string& reason);

  /// Frees the devices of a foreign holder, though its container may still run:
  /// pods may have them from now on. What is reported of that container counts
  /// no more until it is gone. `container_id` may be only what the ID begins
  /// with.
  ///   InvalidArgument     there is no reason, or several IDs begin so
  ///   NotFound            the ledger has no such holder
  ///   FailedPrecondition  its devices are free already
  virtual void StartFreeHolder(const std::string& container_id,
                               const std::string& reason, Done done) = 0;
  absl::Status FreeHolder(const std::string& container_id,
                          const std::string& reason);

  /// Devices of a resource or of a DRA driver that did not work, and have not
  /// worked for long enough since (HealthOptions::healthy_for), are given to
  /// pods from now on, as far as they work. `device`: one, by its ID, of a
  /// driver as `pool/device`; empty: all of them.
  ///   InvalidArgument     there is no reason
  ///   NotFound            no such device is withheld
  ///   FailedPrecondition  it does not work
  virtual void StartRecheckDevices(const std::string& name,
                                   const std::string& device,
                                   const std::string& reason, Done done) = 0;
  absl::Status RecheckDevices(const std::string& name,
                              const std::string& device,
                              const std::string& reason);

  /// Hands the authority over to another party (docs/architecture.md,
  /// "Authority"). Ends when that has begun: pods wait until the other party is
  /// it, which a restart does not stop. What pods hold stays theirs.
  ///   InvalidArgument     there is no reason
  ///   FailedPrecondition  that party is it, or the devices are split: that
  ///                       takes a configuration
  virtual void StartSetAuthority(Authority to, const std::string& reason,
                                 Done done) = 0;
  absl::Status SetAuthority(Authority to, const std::string& reason);

  /// Has the history say that a client wants a pod, or wants it no longer; for
  /// sources that clients write to, before they do. Changes nothing else, and
  /// is no event.
  ///   InvalidArgument  there is no UID
  ///   Unavailable      the ledger cannot be written now
  virtual void StartRecordWish(const PodWish& wish, Done done) = 0;
  absl::Status RecordWish(const PodWish& wish);

  /// Has the history say that what a driver has published is deleted; for the
  /// endpoint that has it, before it is. Changes nothing else, and is no event.
  ///   InvalidArgument  there is no driver
  ///   Unavailable      the ledger cannot be written now
  virtual void StartRecordSliceDeletion(const SliceDeletion& deletion,
                                        Done done) = 0;
  absl::Status RecordSliceDeletion(const SliceDeletion& deletion);

  // The ledger's bounded history. These read the disk on the caller's thread,
  // and fail with Unavailable while the ledger takes no decisions.

  /// Decisions after `sequence`, oldest first; `most` of them at most.
  virtual absl::StatusOr<std::vector<DecisionInfo>> History(
      std::uint64_t after, std::size_t most) const = 0;
  absl::StatusOr<std::vector<DecisionInfo>> History(std::uint64_t after) const {
    return History(after, std::numeric_limits<std::size_t>::max());
  }
  /// What the ledger held at an earlier moment.
  ///   OutOfRange  that decision is yet to come, or the history does not reach
  ///               back to it; the message says how far it does
  virtual absl::StatusOr<LedgerView> StateAt(const LedgerPoint& at) const = 0;

  /// Checks the ledger against itself, the CDI directories, drivers, plugins
  /// and the source; with kRepair also mends what can be mended, one recorded
  /// decision each, and checks again. What a driver has to prepare again goes
  /// on after the return: watch its pods. Blocks for disk.
  ///   DataLoss            the history cannot be read
  ///   FailedPrecondition  kRepair, from a completion or an observer
  virtual absl::StatusOr<FsckReport> Fsck(FsckMode mode) = 0;

 private:
  /// As DeviceManager::RunUntilFinished.
  virtual bool RunUntilFinished(
      const std::function<void(std::function<void()> finish)>& begin);
  template <typename Result, typename Start>
  Result WaitFor(Start start);
};

}  // namespace devmgr
