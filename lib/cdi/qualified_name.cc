// SPDX-License-Identifier: Apache-2.0
//
// Qualified names of CDI devices, as the CDI project's Go parser takes them:
// bytes only, case kept, nothing cut at a NUL.
#include "cdi/qualified_name.h"

#include <algorithm>

#include "api/quote.h"
#include "common/ascii.h"
#include "common/status.h"

namespace devmgr {
namespace cdi {
namespace {

using api::Quoted;

/// Checks one part. What differs between parts: whether a digit may begin it,
/// and whether `:` may stand inside.
absl::Status CheckPart(std::string_view what, std::string_view part,
                       bool is_device_name) {
  if (part.empty()) return InvalidArgumentError("{} is empty", what);
  if (is_device_name ? !IsLetterOrDigit(part.front())
                     : !IsLetter(part.front())) {
    return InvalidArgumentError("invalid {} {}: it must start with a letter{}",
                                what, Quoted(part),
                                is_device_name ? " or digit" : "");
  }
  if (!std::all_of(part.begin(), part.end(), [&](char c) {
        return IsLetterOrDigit(c) || c == '_' || c == '-' || c == '.' ||
               (is_device_name && c == ':');
      })) {
    return InvalidArgumentError(
        "invalid {} {}: it may hold only letters, digits, '_', '-', '.'{}",
        what, Quoted(part), is_device_name ? " and ':'" : "");
  }
  if (!IsLetterOrDigit(part.back())) {
    return InvalidArgumentError(
        "invalid {} {}: it must end with a letter or digit", what,
        Quoted(part));
  }
  return absl::OkStatus();
}

absl::Status CheckParts(const QualifiedName& name) {
  DEVMGR_RETURN_IF_ERROR(CheckPart("vendor", name.vendor, false));
  DEVMGR_RETURN_IF_ERROR(CheckPart("class", name.device_class, false));
  return CheckDeviceName(name.name);
}

/// Which part an unqualified device lacks.
std::string_view MissingPart(std::string_view device) {
  if (device.empty() || device.front() == '/') return "vendor";
  const std::string_view left = device.substr(0, device.find('='));
  const std::size_t slash = left.find('/');
  if (left.empty() || slash == 0) return "vendor";
  if (slash == std::string_view::npos) return "vendor or class";
  return slash + 1 == left.size() ? "class" : "device name";
}

}  // namespace

QualifiedName SplitQualifiedName(std::string_view device) {
  const QualifiedName unqualified = {"", "", std::string(device)};
  if (device.empty() || device.front() == '/') return unqualified;
  const std::size_t equals = device.find('=');
  if (equals == std::string_view::npos || equals + 1 == device.size()) {
    return unqualified;
  }
  const std::string_view left = device.substr(0, equals);
  const std::size_t slash = left.find('/');
  if (slash == std::string_view::npos || slash == 0 ||
      slash + 1 == left.size()) {
    return unqualified;
  }
  return {std::string(left.substr(0, slash)),
          std::string(left.substr(slash + 1)),
          std::string(device.substr(equals + 1))};
}

absl::Status CheckQualifiedName(std::string_view device) {
  return ParseCdiName(device).status();
}

absl::Status CheckKind(std::string_view kind) {
  const std::size_t slash = kind.find('/');
  if (slash == std::string_view::npos) {
    return InvalidArgumentError("{} is not 'vendor/class'", Quoted(kind));
  }
  DEVMGR_RETURN_IF_ERROR(CheckPart("vendor", kind.substr(0, slash), false));
  return CheckPart("class", kind.substr(slash + 1), false);
}

absl::Status CheckDeviceName(std::string_view name) {
  return CheckPart("device name", name, true);
}

}  // namespace cdi

absl::StatusOr<CdiName> ParseCdiName(std::string_view name) {
  CdiName parts = cdi::SplitQualifiedName(name);
  if (parts.vendor.empty()) {
    return InvalidArgumentError(
        "unqualified device {}: missing {}; 'vendor/class=name' is expected",
        api::Quoted(name), cdi::MissingPart(name));
  }
  DEVMGR_RETURN_IF_ERROR(WithContext(cdi::CheckParts(parts),
                                     "invalid device {}", api::Quoted(name)));
  return parts;
}

}  // namespace devmgr
