// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "api/value.h"

namespace devmgr::api {

/// The value as compact JSON, keys in order. Numbers that JSON does not have
/// (infinity) become null.
std::string JsonText(const Value& value);

}  // namespace devmgr::api
