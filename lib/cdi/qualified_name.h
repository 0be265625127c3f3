// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace devmgr::cdi {

/// The parts of `vendor/class=name`. Unqualified input: vendor and class are
/// empty and the name is the input, untouched.
struct QualifiedName {
  std::string vendor;
  std::string device_class;
  std::string name;
};

/// Cuts at the first `=`, then at the first `/` of the left part. No check of
/// the parts.
QualifiedName SplitQualifiedName(std::string_view device);

/// Splits and checks all parts.
///   InvalidArgument  quotes the device and names the offending part and rule
absl::StatusOr<QualifiedName> ParseQualifiedName(std::string_view device);

/// OK or the error of ParseQualifiedName.
absl::Status CheckQualifiedName(std::string_view device);

}  // namespace devmgr::cdi
