// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/objects.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/unique_fd.h"

namespace devmgr::testing {

/// A device as the driver answers it.
struct PreparedDevice {
  std::vector<std::string> requests;  ///< Base names.
  std::string pool;
  std::string device;
  std::vector<std::string> cdi_ids;
  std::string share_id;  ///< Empty when there is none.
};

struct PreparedClaim {
  ObjectName name;
  std::string uid;
  std::vector<PreparedDevice> devices;
};

/// What is done about a spec file that got lost, of a claim that is prepared.
enum class LostSpec { kWrite, kLeave };

/// What a fake driver has prepared. On disk:
///
///     <state>.lock                        held while any of it is changed
///     <state>/<claim uid>.json            what was answered for a claim
///     <cdi>/<driver>-<claim uid>.json     its CDI spec file; none when the
///                                         claim has no device of the driver
///
/// The record is written before the spec file and removed after it, so that
/// a driver that dies in between finds the spec file through the record.
/// Several stores, in any processes, may be open on the same folders: what is
/// on disk is asked before anything is done about a claim.
/// Thread-bound. Calls block for disk, and for other stores.
class FakeDriverStore {
 public:
  /// Makes the directories and reads what is there.
  ///   DataLoss  a record cannot be decoded; the message names the file
  static absl::StatusOr<FakeDriverStore> Open(std::string driver,
                                              std::filesystem::path state,
                                              std::filesystem::path cdi);

  /// Prepares the devices that the allocation of `claim` gives to the driver.
  /// A claim that is prepared already keeps its answer; a spec file that got
  /// lost is written again, or not.
  ///   InvalidArgument  `uid` cannot be part of a file name and of a CDI name
  absl::StatusOr<PreparedClaim> Prepare(const ResourceClaim& claim,
                                        const std::string& uid,
                                        LostSpec lost = LostSpec::kWrite);

  /// The same by a handle alone: one device for each structured result, or
  /// one in all.
  absl::StatusOr<PreparedClaim> PrepareByHandle(
      const ObjectName& name, const std::string& uid,
      const ResourceHandle& handle, LostSpec lost = LostSpec::kWrite);

  /// Forgets a claim and removes its files. Fine when it is not known.
  absl::Status Unprepare(const std::string& uid);

  /// As this store has seen them; others may have changed them since.
  const std::map<std::string, PreparedClaim>& claims() const { return claims_; }

  /// What is on disk now, by UID.
  ///   DataLoss  as for Open
  absl::StatusOr<std::map<std::string, PreparedClaim>> ReadClaims() const;

 private:
  using Planner = std::function<absl::StatusOr<PreparedClaim>()>;

  FakeDriverStore() = default;
  /// Nobody else changes anything while the result lives.
  absl::StatusOr<UniqueFd> Lock() const;
  absl::StatusOr<PreparedClaim> ReadRecord(
      const std::filesystem::path& file) const;
  /// Looks at what is on disk of one claim.
  absl::Status RefreshClaim(const std::string& uid);
  /// `plan` says what to prepare, for a claim that is new.
  absl::StatusOr<PreparedClaim> Prepare(const std::string& uid, LostSpec lost,
                                        const Planner& plan);
  std::filesystem::path RecordFile(const std::string& uid) const;
  std::string SpecName(const std::string& uid) const;
  absl::Status WriteSpecFile(const PreparedClaim& claim) const;

  std::string driver_;
  std::filesystem::path state_;
  std::filesystem::path cdi_;
  std::map<std::string, PreparedClaim> claims_;  ///< By UID.
};

/// `<vendor>/claim`, where the vendor is the driver name if CDI allows it.
std::string CdiKindOfDriver(std::string_view driver);

}  // namespace devmgr::testing
