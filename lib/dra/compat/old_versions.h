// SPDX-License-Identifier: Apache-2.0
//
// Which API a driver of Kubernetes 1.26 to 1.33 speaks.
#pragma once

#include <string>
#include <vector>

#include "dra/api_version.h"

namespace devmgr::dra {

/// The old versions that a driver may mean by what it advertises, to be tried
/// in this order. Empty: none.
std::vector<const ApiVersion*> OldVersions(
    const std::vector<std::string>& advertised);

/// v1alpha4 and v1alpha3 have the same methods and differ in the answer to
/// prepare: which of the two this one is of. Null when it does not show.
const ApiVersion* TellApart(const std::string& prepare_answer);

}  // namespace devmgr::dra
