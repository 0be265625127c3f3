// SPDX-License-Identifier: Apache-2.0
//
// Making and extending absl::Status. Codes are chosen by what the caller does
// next; messages are lower case, quote the thing and include the numbers.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace devmgr {

/// The message as a std::string: Debian's absl::string_view is a type of its
/// own that neither converts nor prints.
inline std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

inline absl::Status MakeStatus(absl::StatusCode code, std::string_view text) {
  return absl::Status(code, absl::string_view(text.data(), text.size()));
}

// What the templates below do, compiled once.
absl::Status FormatStatus(absl::StatusCode code, fmt::string_view format,
                          fmt::format_args args);
absl::Status FormatContext(const absl::Status& status, fmt::string_view format,
                           fmt::format_args args);

/// The same code with `context: ` in front of the message. OK stays OK.
template <typename... Args>
absl::Status WithContext(const absl::Status& status,
                         fmt::format_string<Args...> format, Args&&... args) {
  if (status.ok()) return status;
  return FormatContext(status, format, fmt::make_format_args(args...));
}

#define DEVMGR_DEFINE_ERROR(Code)                              \
  template <typename... Args>                                  \
  absl::Status Code##Error(fmt::format_string<Args...> format, \
                           Args&&... args) {                   \
    return FormatStatus(absl::StatusCode::k##Code, format,     \
                        fmt::make_format_args(args...));       \
  }
DEVMGR_DEFINE_ERROR(Aborted)
DEVMGR_DEFINE_ERROR(AlreadyExists)
DEVMGR_DEFINE_ERROR(Cancelled)
DEVMGR_DEFINE_ERROR(DataLoss)
DEVMGR_DEFINE_ERROR(DeadlineExceeded)
DEVMGR_DEFINE_ERROR(FailedPrecondition)
DEVMGR_DEFINE_ERROR(Internal)
DEVMGR_DEFINE_ERROR(InvalidArgument)
DEVMGR_DEFINE_ERROR(NotFound)
DEVMGR_DEFINE_ERROR(OutOfRange)
DEVMGR_DEFINE_ERROR(PermissionDenied)
DEVMGR_DEFINE_ERROR(ResourceExhausted)
DEVMGR_DEFINE_ERROR(Unavailable)
DEVMGR_DEFINE_ERROR(Unimplemented)
#undef DEVMGR_DEFINE_ERROR

/// The text of an errno value. Thread-safe.
std::string ErrnoText(int error_number);

/// An error for a failed system call: EACCES and EPERM become PermissionDenied,
/// ENOENT NotFound, all else Unavailable.
absl::Status ErrnoStatus(int error_number, std::string_view what);

}  // namespace devmgr

/// Returns from the enclosing function when `expression` is not OK.
#define DEVMGR_RETURN_IF_ERROR(expression)                                  \
  do {                                                                      \
    if (absl::Status devmgr_status_ = (expression); !devmgr_status_.ok()) { \
      return devmgr_status_;                                                \
    }                                                                       \
  } while (false)

#define DEVMGR_CONCAT_INNER(a, b) a##b
#define DEVMGR_CONCAT(a, b) DEVMGR_CONCAT_INNER(a, b)

/// Declares or assigns `target` from a StatusOr, or returns its error.
#define DEVMGR_ASSIGN_OR_RETURN(target, expression)        \
  auto DEVMGR_CONCAT(devmgr_or_, __LINE__) = (expression); \
  if (!DEVMGR_CONCAT(devmgr_or_, __LINE__).ok()) {         \
    return DEVMGR_CONCAT(devmgr_or_, __LINE__).status();   \
  }                                                        \
  target = *std::move(DEVMGR_CONCAT(devmgr_or_, __LINE__))
