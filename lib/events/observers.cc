// SPDX-License-Identifier: Apache-2.0
#include "events/observers.h"

#include <algorithm>
#include <utility>

#include "common/run_on.h"

namespace devmgr::events {

class Observers::Handle : public Observation {
 public:
  Handle(std::weak_ptr<Observers> all, DeviceManagerObserver& observer)
      : all_(std::move(all)), observer_(observer) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() override {
    const auto all = all_.lock();
    if (all == nullptr) return;
    RunOn(all->executor_, [&] { std::erase(all->observers_, &observer_); });
  }

 private:
  const std::weak_ptr<Observers> all_;
  DeviceManagerObserver& observer_;
};

std::unique_ptr<Observation> Observers::Add(DeviceManagerObserver& observer) {
  RunOn(executor_, [&] { observers_.push_back(&observer); });
  return std::make_unique<Handle>(weak_from_this(), observer);
}

void Observers::Tell(std::function<void(DeviceManagerObserver&)> act) {
  DEVMGR_ASSERT_ON(executor_);
  executor_.Afterwards([self = shared_from_this(), act = std::move(act)] {
    self->TellNow(act);
  });
}

void Observers::TellNow(
    const std::function<void(DeviceManagerObserver&)>& act) const {
  const std::vector<DeviceManagerObserver*> all = observers_;
  for (DeviceManagerObserver* observer : all) {
    const auto& now = observers_;
    if (std::find(now.begin(), now.end(), observer) == now.end()) continue;
    act(*observer);
  }
}

}  // namespace devmgr::events
