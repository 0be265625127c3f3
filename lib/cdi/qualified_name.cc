// SPDX-License-Identifier: Apache-2.0
//
// Qualified names of CDI devices, as the CDI project's Go parser takes them:
// bytes only, case kept, nothing cut at a NUL.
#include "cdi/qualified_name.h"

#include <algorithm>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::cdi {
namespace {

using api::Quoted;

bool IsLetter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool IsAlnum(char c) { return IsLetter(c) || (c >= '0' && c <= '9'); }

/// Checks one part. What differs between parts: whether a digit may begin it,
/// and whether `:` may stand inside.
absl::Status CheckPart(std::string_view device, std::string_view what,
                       std::string_view part, bool is_device_name) {
  if (is_device_name ? !IsAlnum(part.front()) : !IsLetter(part.front())) {
    return InvalidArgumentError(
        "invalid device {}: invalid {} {}: it must start with a letter{}",
        Quoted(device), what, Quoted(part), is_device_name ? " or digit" : "");
  }
  if (!std::all_of(part.begin(), part.end(), [&](char c) {
        return IsAlnum(c) || c == '_' || c == '-' || c == '.' ||
               (is_device_name && c == ':');
      })) {
    return InvalidArgumentError(
        "invalid device {}: invalid {} {}: it may hold only letters, digits, "
        "'_', '-', '.'{}",
        Quoted(device), what, Quoted(part), is_device_name ? " and ':'" : "");
  }
  if (!IsAlnum(part.back())) {
    return InvalidArgumentError(
        "invalid device {}: invalid {} {}: it must end with a letter or digit",
        Quoted(device), what, Quoted(part));
  }
  return absl::OkStatus();
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

absl::StatusOr<QualifiedName> ParseQualifiedName(std::string_view device) {
  QualifiedName name = SplitQualifiedName(device);
  if (name.vendor.empty()) {
    return InvalidArgumentError(
        "unqualified device {}: missing {}; 'vendor/class=name' is expected",
        Quoted(device), MissingPart(device));
  }
  DEVMGR_RETURN_IF_ERROR(CheckPart(device, "vendor", name.vendor, false));
  DEVMGR_RETURN_IF_ERROR(CheckPart(device, "class", name.device_class, false));
  DEVMGR_RETURN_IF_ERROR(CheckPart(device, "device name", name.name, true));
  return name;
}

absl::Status CheckQualifiedName(std::string_view device) {
  return ParseQualifiedName(device).status();
}

}  // namespace devmgr::cdi
