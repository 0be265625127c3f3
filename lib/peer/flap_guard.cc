// SPDX-License-Identifier: Apache-2.0
#include "peer/flap_guard.h"

#include <algorithm>

namespace devmgr::peer {

void FlapGuard::OnLost(TimePoint now) {
  if (IsBlank(now)) {
    losses_.clear();
    until_.reset();
    quarantines_.Reset();
  }
  losses_.push_back(now);
  const auto most = static_cast<std::size_t>(std::max(1, options_.max_losses));
  while (losses_.size() > most) losses_.pop_front();
  const bool too_many =
      losses_.size() == most && now - losses_.front() <= options_.window;
  if (!too_many && !QuarantinedUntil(now).has_value()) return;
  until_ = now + quarantines_.Next();
}

std::optional<FlapGuard::TimePoint> FlapGuard::QuarantinedUntil(
    TimePoint now) const {
  return until_.has_value() && now < *until_ ? until_ : std::nullopt;
}

bool FlapGuard::IsBlank(TimePoint now) const {
  if (until_.has_value()) return now - *until_ > options_.last_quarantine;
  return losses_.empty() || now - losses_.back() > options_.window;
}

std::shared_ptr<FlapGuard> FlapGuards::Of(const std::string& name,
                                          const std::string& endpoint,
                                          FlapGuard::TimePoint now) {
  std::erase_if(guards_, [&](const auto& entry) {
    return entry.second.use_count() == 1 && entry.second->IsBlank(now);
  });
  auto& guard = guards_[{name, endpoint}];
  if (guard == nullptr) guard = std::make_shared<FlapGuard>(options_);
  return guard;
}

}  // namespace devmgr::peer
