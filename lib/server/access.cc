// SPDX-License-Identifier: Apache-2.0
#include "server/access.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "api/quote.h"
#include "common/status.h"
#include "rpc/message.h"
#include "server/convert.h"

namespace devmgr::server {
namespace {

bool IsOwner(const rpc::Caller& caller) {
  return caller.has_value() && (caller->uid == 0 || caller->uid == ::geteuid());
}

/// Whether control users may call this method of the inspection service. What
/// is not named here is for owners: a method that is new, too.
bool IsForControlUsers(std::string_view method, const std::string& request) {
  static constexpr std::string_view kNames[] = {"BeforeContainerStart",
                                                "Alignment",
                                                "Changes",
                                                "Claims",
                                                "Debts",
                                                "DeviceClasses",
                                                "DeviceHolders",
                                                "Devices",
                                                "Events",
                                                "FindPod",
                                                "ForeignHolders",
                                                "History",
                                                "Node",
                                                "Numa",
                                                "Plugins",
                                                "PodDevicesOf",
                                                "Pods",
                                                "Resolve",
                                                "Resources",
                                                "Slices",
                                                "Sources",
                                                "StateAt",
                                                "WaitForChange"};
  if (method != "Fsck") {
    return std::find(std::begin(kNames), std::end(kNames), method) !=
           std::end(kNames);
  }
  // One that cannot be read is refused by its handler.
  const auto fsck = rpc::Decode<pb::FsckRequest>(request);
  return !fsck.ok() || !fsck->repair();
}

}  // namespace

absl::Status Access::CheckUser(const rpc::Caller& caller,
                               std::string_view method) const {
  if (IsOwner(caller)) return absl::OkStatus();
  if (caller.has_value() &&
      std::find(users_.begin(), users_.end(), caller->uid) != users_.end()) {
    return absl::OkStatus();
  }
  return Denied(PermissionDeniedError(
      "{} may not call {}: its user is neither root nor the daemon's (uid {}), "
      "nor among controlUsers",
      CallerText(caller), method, ::geteuid()));
}

absl::Status Access::CheckOwner(const rpc::Caller& caller,
                                std::string_view method) const {
  if (IsOwner(caller)) return absl::OkStatus();
  return Denied(PermissionDeniedError(
      "{} may not call {}: it is for root and the daemon's user (uid {}) only, "
      "and not for controlUsers",
      CallerText(caller), method, ::geteuid()));
}

absl::Status Access::Denied(const absl::Status& status) const {
  if (on_denied_) on_denied_(MessageOf(status));
  return status;
}

std::string CallerText(const rpc::Caller& caller) {
  if (!caller.has_value()) return "a client that is gone";
  return fmt::format("uid {}, pid {}", caller->uid, caller->pid);
}

absl::Status AboutOurs(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kPermissionDenied:
      return MakeStatus(absl::StatusCode::kFailedPrecondition,
                        MessageOf(status));
    default:
      return status;
  }
}

absl::Status CheckReason(const std::string& reason) {
  constexpr std::size_t kMaxBytes = 1024;
  if (reason.empty()) return InvalidArgumentError("a reason is required");
  if (reason.size() > kMaxBytes) {
    return InvalidArgumentError("the reason has {} bytes, at most {} are kept",
                                reason.size(), kMaxBytes);
  }
  if (api::HasControlCharacters(reason)) {
    return InvalidArgumentError("the reason has control characters");
  }
  return absl::OkStatus();
}

std::map<std::string, rpc::CallerHandler> GuardInspection(
    std::map<std::string, rpc::UnaryHandler> methods, const Access& access) {
  std::map<std::string, rpc::CallerHandler> guarded;
  for (auto& [path, handler] : methods) {
    const std::string method = path.substr(path.rfind('/') + 1);
    guarded[path] = [method, handler = std::move(handler), &access](
                        const rpc::Caller& caller, std::string request,
                        const rpc::Respond& respond) {
      if (!IsForControlUsers(method, request)) {
        const absl::Status allowed = access.CheckOwner(caller, method);
        if (!allowed.ok()) return respond(allowed);
      }
      handler(std::move(request), respond);
    };
  }
  return guarded;
}

}  // namespace devmgr::server
