// SPDX-License-Identifier: Apache-2.0
//
// What makes a CDI spec valid, and which version it needs.
#pragma once

#include <devmgr/cdi_spec.h>

#include <functional>
#include <string>
#include <string_view>

namespace devmgr::cdi {

/// Hears of a violation: a path such as `devices[0].containerEdits.env[1]` and
/// a sentence without full stop.
using ReportProblem =
    std::function<void(const std::string& field, const std::string& message)>;

/// Reports all that is wrong with a spec.
void CheckSpec(const CdiSpec& spec, const ReportProblem& report);

/// `text` without a leading `v`.
std::string_view PlainVersion(std::string_view text);

}  // namespace devmgr::cdi
