// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "cel/value.h"
#include "cel/work.h"

namespace devmgr::cel {

/// `text` with its clauses (`%s %d %f %e %b %o %x %X`, a precision as in
/// `%.3f`, and `%%`) replaced by `values`, one after the other; an error when
/// they do not fit.
Value FormatText(std::string_view text, const std::vector<Value>& values,
                 Work& work);

}  // namespace devmgr::cel
