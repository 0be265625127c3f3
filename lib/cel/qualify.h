// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cel/value.h"

namespace devmgr::cel {

/// What `value` has under `key`: an entry of a map, an element of a list.
/// `present` tells whether it is there; if it is not, null when
/// `may_be_missing` and an error such as `no such key: NAME` when not. A key of
/// a wrong type is an error for a list either way; so is any key of what is
/// neither a map nor a list, when `strict`.
Value LookUp(const Value& value, const Value& key, bool may_be_missing,
             bool strict, bool& present);

}  // namespace devmgr::cel
