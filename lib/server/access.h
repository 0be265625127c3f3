// SPDX-License-Identifier: Apache-2.0
//
// Which callers may use which method of the socket. The methods of the control
// service that change something ask CheckUser themselves (control_service.cc).
#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/server.h"

namespace devmgr::server {

/// Which callers may use what changes something. Immutable.
class Access {
 public:
  /// `users` may use the control service. Owners are root and the user that we
  /// are; they may do everything. `on_denied` hears of calls that are refused,
  /// on any thread.
  explicit Access(std::vector<uid_t> users,
                  std::function<void(const std::string& why)> on_denied = {})
      : users_(std::move(users)), on_denied_(std::move(on_denied)) {}

  /// PermissionDenied names the caller and the option of devmgrd.
  absl::Status CheckUser(const rpc::Caller& caller,
                         std::string_view method) const;
  absl::Status CheckOwner(const rpc::Caller& caller,
                          std::string_view method) const;

  const std::vector<uid_t>& users() const { return users_; }

 private:
  absl::Status Denied(const absl::Status& status) const;

  const std::vector<uid_t> users_;
  const std::function<void(const std::string& why)> on_denied_;
};

/// For people: `uid 0, pid 4711`.
std::string CallerText(const rpc::Caller& caller);

/// The methods of the inspection service. Control users may call those that
/// read, and BeforeContainerStart; all others are for owners.
std::map<std::string, rpc::CallerHandler> GuardInspection(
    std::map<std::string, rpc::UnaryHandler> methods, const Access& access);

/// Whether it is a reason that an operator gives, for the history.
///   InvalidArgument  it is empty, too long, or has control characters
absl::Status CheckReason(const std::string& reason);

/// A client takes Unavailable, DeadlineExceeded and PermissionDenied for "no
/// daemon there" or "not allowed to connect"; about pods, files and the ledger
/// the daemon says FailedPrecondition instead.
absl::Status AboutOurs(const absl::Status& status);

}  // namespace devmgr::server
