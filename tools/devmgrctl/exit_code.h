// SPDX-License-Identifier: Apache-2.0
//
// What devmgrctl ends with. A `wait` whose time is over ends with kExitFailed,
// and with kExitUnreachable only if it never reached a daemon (wait.cc).
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

namespace devmgr::ctl {

/// What the shell gets to see.
enum ExitCode {
  kExitDone = 0,  ///< An empty list is that too.
  kExitFailed = 1,
  kExitUsage = 2,
  kExitNotFound = 3,
  kExitUnreachable = 4,
  kExitPermission = 5,
  kExitTrouble = 8,        ///< Where 1 says what was found: could not look.
  kExitInterrupted = 130,  ///< Before any output.
};

inline ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitUnreachable;
    case absl::StatusCode::kPermissionDenied:
      return kExitPermission;
    case absl::StatusCode::kAborted:
      return kExitTrouble;
    default:
      return kExitFailed;
  }
}

inline absl::Status MakeError(absl::StatusCode code, const std::string& text) {
  return absl::Status(code, absl::string_view(text.data(), text.size()));
}

inline std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

/// Where 1 says that something was found, nothing else may.
inline absl::Status AsTrouble(const absl::Status& status) {
  if (status.ok() || ExitCodeOf(status) != kExitFailed) return status;
  return MakeError(absl::StatusCode::kAborted, MessageOf(status));
}

}  // namespace devmgr::ctl
