// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "cel/value.h"
#include "cel/work.h"

namespace devmgr::cel {

/// `text` with its clauses replaced by `values` in turn. The clauses are `%s %d
/// %f %e %b %o %x %X`, with a precision as in `%.3f`, and `%%`. The result is
/// an error when a value does not fit its clause.
Value FormatText(std::string_view text, const std::vector<Value>& values,
                 Work& work);

}  // namespace devmgr::cel
