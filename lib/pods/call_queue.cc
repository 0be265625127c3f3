// SPDX-License-Identifier: Apache-2.0
#include "pods/call_queue.h"

#include <algorithm>
#include <utility>

namespace devmgr::pods {

void CallQueue::Add(const std::string& driver, const ClaimUid& claim) {
  lanes_[driver].due.push_back(claim);
}

void CallQueue::Drop(const ClaimUid& claim) {
  for (auto it = lanes_.begin(); it != lanes_.end();) {
    std::erase(it->second.due, claim);
    it = it->second.due.empty() && it->second.calls == 0 ? lanes_.erase(it)
                                                         : std::next(it);
  }
  std::erase_if(suspects_,
                [&](const auto& suspect) { return suspect.second == claim; });
}

std::optional<CallQueue::Call> CallQueue::Next(const std::string& driver,
                                               const NeedOf& need) {
  const auto found = lanes_.find(driver);
  if (found == lanes_.end() || found->second.due.empty()) return std::nullopt;
  Lane& lane = found->second;
  const Need first = need(lane.due.front());
  if (first != Need::kNothing && lane.calls >= at_once_) return std::nullopt;
  Call call{first, {}};
  const bool alone = suspects_.contains({driver, lane.due.front()});
  // Who needs something else keeps his place, so nobody is overtaken for long.
  std::deque<ClaimUid> rest;
  for (ClaimUid& claim : lane.due) {
    const bool fits =
        call.claims.empty() ||
        (!alone && call.claims.size() < kClaimsPerCall &&
         !suspects_.contains({driver, claim}) && need(claim) == first);
    if (fits) {
      call.claims.push_back(std::move(claim));
    } else {
      rest.push_back(std::move(claim));
    }
  }
  lane.due = std::move(rest);
  if (first != Need::kNothing) {
    ++lane.calls;
  } else if (lane.due.empty() && lane.calls == 0) {
    lanes_.erase(found);
  }
  return call;
}

void CallQueue::End(const std::string& driver) {
  const auto found = lanes_.find(driver);
  if (found == lanes_.end()) return;
  if (--found->second.calls == 0 && found->second.due.empty()) {
    lanes_.erase(found);
  }
}

}  // namespace devmgr::pods
