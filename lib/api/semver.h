// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace devmgr::api {

/// Whether `text` is a version by Semantic Versioning 2.0.0, strictly.
bool IsSemanticVersion(std::string_view text);

}  // namespace devmgr::api
