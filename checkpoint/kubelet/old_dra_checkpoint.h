// SPDX-License-Identifier: Apache-2.0
//
// `dra_manager_state` of kubelets 1.27 to 1.31, which no later one reads
// (k/k#123552, k/k#127653). Layouts: README.md. Upstream then:
// pkg/kubelet/cm/dra/state/checkpoint.go and state_checkpoint.go.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/kubelet/dra_checkpoint.h"
#include "checkpoint/kubelet/json_field.h"

namespace devmgr::kubelet_checkpoint {

/// What a classic driver was to be handed for a claim.
struct OldResourceHandle {
  std::string driver;
  std::string data;
  /// It has structured parameters, too. They are not kept.
  bool has_structured_data = false;

  friend bool operator==(const OldResourceHandle&,
                         const OldResourceHandle&) = default;
};

struct OldDraClaim {
  std::string driver;      ///< Not in kDriverState.
  std::string class_name;  ///< Not in kDriverState.
  DraClaim claim;          ///< With drivers in kDriverState only.
  std::optional<std::vector<OldResourceHandle>> resource_handles;
  /// CDI devices by driver.
  std::optional<std::map<std::string, TextList>> cdi_devices;

  friend bool operator==(const OldDraClaim&, const OldDraClaim&) = default;
};

struct OldDraCheckpoint {
  enum class Layout {
    kCdiDevices,       ///< The oldest: CDI devices by driver.
    kResourceHandles,  ///< These, and resource handles.
    kDriverState,      ///< 1.31: devices by driver, as in DraCheckpoint.
  };

  std::string version = "v1";
  Layout layout = Layout::kDriverState;
  std::optional<std::vector<OldDraClaim>> claims;
  /// The checksum is that of the Go dump of these values. Else the file is
  /// damaged, or its kubelet had other fields in the types that are dumped,
  /// which changes the dump: which of the two is not known. Only reading sets
  /// it.
  bool is_checksum_proven = true;

  friend bool operator==(const OldDraCheckpoint&,
                         const OldDraCheckpoint&) = default;
};

/// The file as such a kubelet would write it, byte by byte. Reentrant.
///   InvalidArgument  a value that the layout does not have, structured
///                    parameters, a text that is not UTF-8, or more bytes than
///                    DecodeDraStateFile reads
absl::StatusOr<std::string> EncodeOldDraCheckpoint(
    const OldDraCheckpoint& checkpoint);

/// What a kubelet of today would have written for the same claims: a device for
/// each driver that has CDI devices, with these and without names; nothing for
/// a driver that has not prepared the claim. Reentrant.
DraCheckpoint Upgraded(const OldDraCheckpoint& old);

/// What stands in the object of a file. Use DecodeDraStateFile
/// (dra_state_file.h). Errors: DataLoss, with the place.
absl::StatusOr<OldDraCheckpoint> ReadOldDraCheckpoint(const JsonField& file);

}  // namespace devmgr::kubelet_checkpoint
