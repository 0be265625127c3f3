// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cel/value.h"

namespace devmgr::cel {

/// Looks up `key` in `value`: the entry of a map, or the element of a list.
/// `present` is set to whether it exists. If it does not, the result is null
/// when `may_be_missing`, and otherwise an error such as `no such key: NAME`.
/// Two mistakes are errors in both cases: an index of a list that is no number,
/// and, when `strict`, a value that is neither a map nor a list.
Value LookUp(const Value& value, const Value& key, bool may_be_missing,
             bool strict, bool& present);

}  // namespace devmgr::cel
