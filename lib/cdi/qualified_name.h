// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/cdi_spec.h>

#include <string_view>

namespace devmgr::cdi {

/// Unqualified input: vendor and class are empty and the name is the input,
/// untouched.
using QualifiedName = CdiName;

/// Cuts at the first `=`, then at the first `/` of the left part. No check of
/// the parts.
QualifiedName SplitQualifiedName(std::string_view device);

/// OK or the error of ParseCdiName.
absl::Status CheckQualifiedName(std::string_view device);

/// Checks `vendor/class`, what a spec calls its kind.
///   InvalidArgument  names the offending part and rule
absl::Status CheckKind(std::string_view kind);

/// Checks the last part of a name.
///   InvalidArgument  names the rule
absl::Status CheckDeviceName(std::string_view name);

}  // namespace devmgr::cdi
