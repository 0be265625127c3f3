// SPDX-License-Identifier: Apache-2.0
//
// Pods that clients want: what the control service (docs/control.md) writes
// down, and how that joins the objects of another source.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/export.h>
#include <devmgr/host.h>
#include <devmgr/objects.h>
#include <devmgr/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

class DriverEndpoint;

/// A pod that a client wants, or wants no longer.
struct WantedPod {
  PodUid uid;
  ObjectName name;                        ///< Empty when it is not known.
  std::shared_ptr<const Pod> pod;         ///< Null for one that is unwanted.
  bool was_wanted = false;                ///< Before this.
  bool changed = false;                   ///< This was not so before.
  std::vector<ManifestProblem> warnings;  ///< Of its manifest.
};

/// The pods that clients want, each with its claims in a file of its own, and
/// those that they want no longer, until these are forgotten. An object source,
/// which vouches for what it says: a pod that is wanted no longer is gone
/// (ObjectSnapshot::gone_pods). What is changed here is on disk on return.
/// Thread-safe, but for one change at a time.
class DEVMGR_EXPORT WantedPods : public ObjectSource {
 public:
  /// Bytes of one manifest, wanted pods, and bytes of all. Above:
  /// ResourceExhausted.
  static constexpr std::size_t kMaxBytes = 4 << 20;
  static constexpr std::size_t kMaxPods = 10'000;
  static constexpr std::size_t kMaxTotalBytes = 256 << 20;

  /// Reads `directory`, which is made when there is something to write. A file
  /// that cannot be used is a problem of the snapshot, and makes it incomplete.
  /// `node_name`: of other nodes no pod can be wanted; empty: of any. `others`
  /// (borrowed, may be null): what that has cannot be wanted, too.
  ///   PermissionDenied, Unavailable  the directory cannot be read
  static absl::StatusOr<std::unique_ptr<WantedPods>> Open(
      std::filesystem::path directory, std::string node_name,
      const ObjectSource* others);

  /// Called when it is certain what is asked for, and before it is written. An
  /// error of it ends the call.
  using Record = std::function<absl::Status(const WantedPod&)>;

  /// Wants the pod of `text`: a manifest of one pod that has a UID, and of its
  /// claims. Of a pod that is wanted already the new text counts.
  ///   InvalidArgument    the text cannot be used; the message has the line
  ///   AlreadyExists      another pod has its name or UID, or another manifest
  ///                      has one of its claims; the message names both
  ///   ResourceExhausted  it is too large, or too many pods are wanted
  ///   Unavailable        it cannot be written
  virtual absl::StatusOr<WantedPod> Want(std::string_view text,
                                         const Record& record) = 0;

  /// Wants it no longer. Unknown pods are fine: `was_wanted` says so.
  ///   FailedPrecondition  it is of `others`, which has to lose it
  ///   Unavailable         that cannot be written
  virtual absl::StatusOr<WantedPod> Unwant(const PodUid& pod,
                                           const Record& record) = 0;

  /// Forgets that this pod is wanted no longer: no trace of it is left that
  /// would have to go.
  virtual void Forget(const PodUid& pod) = 0;
};

/// The control service of an InspectionServer.
struct ControlOptions {
  /// Borrowed. Null: there is no control service.
  WantedPods* wanted = nullptr;
  /// UIDs that may use what writes, besides root's and our own. The socket lets
  /// these users connect.
  std::vector<unsigned> users;
  /// Borrowed. Null: drivers publish elsewhere.
  DriverEndpoint* driver_endpoint = nullptr;
};

/// The objects of both. `first` gives its name, watch and marker to it; a pod
/// or claim that `wanted` has, too, counts as it is there, and is a problem.
/// Both are borrowed. Its subscriber is called on threads of both.
DEVMGR_EXPORT std::unique_ptr<ObjectSource> CombineSources(ObjectSource& first,
                                                           WantedPods& wanted);

}  // namespace devmgr
