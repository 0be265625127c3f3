// SPDX-License-Identifier: Apache-2.0
#include "plugin/flap_guard.h"

#include <algorithm>

namespace devmgr::plugin {

void FlapGuard::OnLost(TimePoint now) {
  if (IsBlank(now)) {
    losses_.clear();
    until_.reset();
    last_length_ = std::chrono::milliseconds(0);
  }
  losses_.push_back(now);
  const auto most = static_cast<std::size_t>(std::max(1, options_.max_losses));
  while (losses_.size() > most) losses_.pop_front();
  const bool too_many =
      losses_.size() == most && now - losses_.front() <= options_.window;
  if (!too_many && !QuarantinedUntil(now).has_value()) return;
  last_length_ = last_length_.count() == 0
                     ? options_.first_quarantine
                     : std::min(last_length_ * 2, options_.last_quarantine);
  until_ = now + last_length_;
}

std::optional<FlapGuard::TimePoint> FlapGuard::QuarantinedUntil(
    TimePoint now) const {
  return until_.has_value() && now < *until_ ? until_ : std::nullopt;
}

bool FlapGuard::IsBlank(TimePoint now) const {
  if (until_.has_value()) return now - *until_ > options_.last_quarantine;
  return losses_.empty() || now - losses_.back() > options_.window;
}

}  // namespace devmgr::plugin
