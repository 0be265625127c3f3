// SPDX-License-Identifier: Apache-2.0
#include "server/change_polls.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "rpc/message.h"
#include "server/access.h"

namespace devmgr::server {
namespace {

void Answer(const absl::StatusOr<DeviceChanges>& changes,
            const rpc::Respond& respond) {
  if (!changes.ok()) return respond(AboutOurs(changes.status()));
  respond(rpc::Encode(ToProto(*changes)));
}

/// There is nothing to say yet.
bool IsEmpty(const absl::StatusOr<DeviceChanges>& changes) {
  return changes.ok() && changes->changes.empty();
}

constexpr std::chrono::milliseconds kAtOnce(0);

}  // namespace

void ChangePolls::Poll(const pb::ChangesRequest& request,
                       std::chrono::milliseconds most, rpc::Respond respond) {
  DEVMGR_ASSERT_ON(executor_);
  const ChangesFrom from = FromProto(request);
  const auto changes = manager_.Changes(from, kAtOnce);
  if (!IsEmpty(changes) || request.wait_ms() <= 0) {
    return Answer(changes, respond);
  }
  const std::uint64_t id = ++last_;
  Poller& poller = pollers_[id];
  poller.after = changes->next;
  poller.respond = std::move(respond);
  poller.timer = executor_.PostAfter(
      std::min(std::chrono::milliseconds(request.wait_ms()), most),
      [this, id] { End(id); });
}

void ChangePolls::End(std::uint64_t id) {
  const auto found = pollers_.find(id);
  if (found == pollers_.end()) return;
  const Poller over = std::move(found->second);
  pollers_.erase(found);
  Answer(manager_.Changes(over.after, kAtOnce), over.respond);
}

void ChangePolls::Note() {
  if (noted_.exchange(true)) return;
  executor_.Post([this] { Look(); });
}

void ChangePolls::Look() {
  // First: what comes from here on is looked at once more.
  noted_ = false;
  for (auto next = pollers_.begin(); next != pollers_.end();) {
    const auto changes = manager_.Changes(next->second.after, kAtOnce);
    if (IsEmpty(changes)) {
      next->second.after = changes->next;
      ++next;
      continue;
    }
    const Poller over = std::move(next->second);
    next = pollers_.erase(next);
    executor_.Cancel(over.timer);
    Answer(changes, over.respond);
  }
}

}  // namespace devmgr::server
