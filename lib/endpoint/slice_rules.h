// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with an object that a driver wants to store, and which of its
// fields are not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apistore/answer.h"

namespace devmgr::endpoint {

/// Of a slice of v1, by the rules that this node reads slices with.
std::vector<apistore::Cause> CheckSliceRules(const apistore::Json& slice,
                                             std::string_view node_name);
/// Owners of the kind Node must be this node.
std::vector<apistore::Cause> CheckNodeOwners(const apistore::Json& object,
                                             std::string_view node_name,
                                             std::string_view node_uid);

/// Removes what no version of the kind has, by the version and the kind that
/// the body names; the paths of the first hundred. Bodies of other kinds are
/// left alone.
std::vector<std::string> DropUnknownFields(apistore::Json& body);

}  // namespace devmgr::endpoint
