// SPDX-License-Identifier: Apache-2.0
//
// `dra_manager_state` of kubelets since 1.32: which claims a node has prepared,
// and for which pods. Layout: README.md. Upstream:
// pkg/kubelet/cm/dra/state/checkpoint.go and state.go.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/kubelet/json_field.h"

namespace devmgr::kubelet_checkpoint {

/// The name of the file, in the kubelet's root directory.
inline constexpr std::string_view kDraStateName = "dra_manager_state";

/// Texts in the order of the file. Nothing is Go's nil, which is written as
/// null.
using TextList = std::optional<std::vector<std::string>>;

/// A device as its driver described it when it prepared the claim.
struct DraDevice {
  std::string pool;
  std::string device;
  std::optional<std::string> share_id;  ///< Since 1.35.
  TextList request_names;
  TextList cdi_device_ids;

  friend bool operator==(const DraDevice&, const DraDevice&) = default;
};

struct DraDriverState {
  /// Nothing, or none, of a driver that has not prepared the claim.
  std::optional<std::vector<DraDevice>> devices;
  /// Calls that the kubelet leaves out for this driver, `*` for all; any
  /// words. Since 1.37, and not written when empty.
  std::vector<std::string> skip_node_operations;

  friend bool operator==(const DraDriverState&,
                         const DraDriverState&) = default;
};

struct DraClaim {
  ClaimUid uid;
  ObjectName name;
  std::optional<std::set<PodUid>> pods;
  /// By driver: all that have results in the claim's allocation.
  std::optional<std::map<std::string, DraDriverState>> drivers;

  friend bool operator==(const DraClaim&, const DraClaim&) = default;
};

struct DraCheckpoint {
  // The kubelet writes these, and reads any others, too. Empty: not there.
  std::string kind = "DRACheckpoint";
  std::string api_version = "checkpoint.dra.kubelet.k8s.io/v1";
  /// Nothing in the file of a kubelet's very first start.
  std::optional<std::vector<DraClaim>> claims;

  friend bool operator==(const DraCheckpoint&, const DraCheckpoint&) = default;
};

/// The file as the kubelet would write it, byte by byte, with claims in the
/// order that they have. Reentrant.
///   InvalidArgument  a text is not UTF-8, or more bytes than
///                    DecodeDraStateFile reads
absl::StatusOr<std::string> EncodeDraCheckpoint(
    const DraCheckpoint& checkpoint);

/// What stands in the outer object of a file, once its checksum is found right.
/// Use DecodeDraStateFile (dra_state_file.h). Errors: DataLoss, with the place.
absl::StatusOr<DraCheckpoint> ReadDraCheckpoint(const JsonField& file);

}  // namespace devmgr::kubelet_checkpoint
