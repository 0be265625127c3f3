// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/objects.h>

#include <string>
#include <vector>

#include "api/field.h"

namespace devmgr::api {

/// A rule of the API that a pod breaks.
struct PodProblem {
  std::string field;  ///< Path such as `spec.containers[0].name`.
  std::string message;
};

/// Reads a pod as it is written, without defaults. Wrong types are reported to
/// the field's Problems. `broken` gets the rules about what a Pod does not
/// keep: ephemeral containers, and two spellings of one thing.
Pod DecodePod(const Field& root, std::vector<PodProblem>& broken);

/// Fills in what an API server fills in: a container's request for a resource
/// is its limit where it has none; the namespace is `default`.
void DefaultPod(Pod& pod);

/// The rules of the API for the parts of a pod that are kept, as upstream's
/// core validation has them; the pod has its defaults. A pod claim without any
/// source passes: whatever resolves claims has upstream's answer.
std::vector<PodProblem> ValidatePod(const Pod& pod);

/// Of `kubernetes.io/config.source`, which says where a pod is from: `api`.
inline constexpr char kConfigSource[] = "kubernetes.io/config.source";
inline constexpr char kFromApiServer[] = "api";

/// An API server has the pod: a control plane has bound it to this node.
bool IsFromApiServer(const Pod& pod);

/// All of them as one: the field of the first, the others in the message, as
/// far as it stays short. `broken` is not empty.
PodProblem Summary(const std::vector<PodProblem>& broken);

}  // namespace devmgr::api
