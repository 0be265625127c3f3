// SPDX-License-Identifier: Apache-2.0
#include "common/status.h"

#include <absl/strings/cord.h>

#include <cerrno>
#include <system_error>

namespace devmgr {

absl::Status FormatStatus(absl::StatusCode code, fmt::string_view format,
                          fmt::format_args args) {
  return MakeStatus(code, fmt::vformat(format, args));
}

absl::Status FormatContext(const absl::Status& status, fmt::string_view format,
                           fmt::format_args args) {
  absl::Status result = MakeStatus(
      status.code(), fmt::vformat(format, args) + ": " + MessageOf(status));
  status.ForEachPayload(
      [&result](absl::string_view type, const absl::Cord& payload) {
        result.SetPayload(type, payload);
      });
  return result;
}

std::string ErrnoText(int error_number) {
  return std::generic_category().message(error_number);
}

absl::Status ErrnoStatus(int error_number, std::string_view what) {
  switch (error_number) {
    case EACCES:
    case EPERM:
      return PermissionDeniedError("{}: {}", what, ErrnoText(error_number));
    case ENOENT:
      return NotFoundError("{}: {}", what, ErrnoText(error_number));
    default:
      return UnavailableError("{}: {}", what, ErrnoText(error_number));
  }
}

}  // namespace devmgr
