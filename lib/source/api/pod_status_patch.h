// SPDX-License-Identifier: Apache-2.0
//
// The status of a Pod object: what it says, and the patch that makes it say
// what the agent of the node says. Pure.
#pragma once

#include <devmgr/pod_status.h>

#include <optional>
#include <string>
#include <string_view>

#include "api/value.h"

namespace devmgr::apiserver {

/// What a Pod object says.
struct PodStatusView {
  std::string uid;
  bool is_deleted = false;  ///< Its deletion was asked for.
  api::ValuePtr status;     ///< Null: there is none.
};

/// Reads a Pod object. Nothing when it is none, or has no UID.
std::optional<PodStatusView> ParsePodStatus(std::string_view text);

/// The strategic merge patch that makes it say this, with the UID of the pod;
/// empty when it says it already, or has ended, which it does once. Conditions
/// of others stay, and so does the time since which a condition has its status.
std::string PodStatusPatch(const PodStatusView& pod,
                           const ReportedPodStatus& wanted);

}  // namespace devmgr::apiserver
