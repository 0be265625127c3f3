// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "manager/health_names.h"
#include "manager/manager_fixture.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"

namespace devmgr {

inline device::DeviceReport Of(const std::string& device, device::Health health,
                               const std::string& message = "",
                               std::int64_t lease_ms = 60'000) {
  return {{"pool-1", device}, health, message, lease_ms};
}

inline state::PreparedDevice Device(const std::string& name,
                                    std::vector<std::string> requests = {},
                                    std::vector<std::string> cdi = {},
                                    const std::string& share = "") {
  return {std::move(requests), "pool-1", name, std::move(cdi), share};
}

/// Pods with a claim each, and what their driver says of its health.
class DraHealthTest : public ManagerTest {
 protected:
  class Listener : public DeviceManagerObserver {
   public:
    void OnResourceHealth(const std::vector<PodUid>& pods) override {
      told.push_back(pods);
    }
    void OnPod(const PodInfo& pod, bool gone) override {
      if (gone) last = pod;
    }
    std::vector<std::vector<PodUid>> told;  ///< On the manager's thread.
    PodInfo last;
  };

  void TearDown() override { StopListening(); }
  void StopListening() { listening_.reset(); }

  /// Pods `p0`, `p1`, ... with claims `c0`, `c1`, ... on devices `dev-0`, ...
  void Start(int pods) {
    std::string all;
    for (int i = 0; i < pods; ++i) {
      const std::string n = std::to_string(i);
      node_.drivers.Prepares("c" + n, {Device("dev-" + n)});
      all += ClaimYaml("c" + n, "u-c" + n, {kDriver}, {"u-p" + n}) +
             PodYaml("p" + n, "u-p" + n, {"c" + n});
    }
    Start(all, pods);
  }
  void Start(const std::string& yaml, int pods) {
    node_.Start();
    Listen();
    node_.Publish(yaml);
    for (int i = 0; i < pods; ++i) {
      ASSERT_TRUE(node_.WaitFor("p" + std::to_string(i), PodState::kReady));
    }
    Told();
  }
  void Listen() { listening_ = node_.manager().Observe(listener_); }
  void Restart() {
    StopListening();
    node_.Restart();
    Listen();
  }

  void Report(std::vector<device::DeviceReport> report) {
    node_.drivers.ReportHealth(kDriver, std::move(report));
  }

  /// Since the last call; all that was reported before has been heard.
  std::vector<std::vector<PodUid>> Told() {
    std::vector<std::vector<PodUid>> told;
    // Once for what was reported, once for what that made to be told.
    node_.Sync();
    node_.RunAndWait([&] { told = std::exchange(listener_.told, {}); });
    return told;
  }

  static std::vector<std::string> StatusOf(const PodInfo& pod) {
    std::vector<std::string> all;
    for (const auto& container : pod.allocated_resources) {
      for (const ResourceStatus& resource : container.resources) {
        for (const ResourceHealth& device : resource.resources) {
          all.push_back(container.container.value + " " + resource.name + " " +
                        device.resource_id + " " +
                        std::string(device.health.name()) +
                        (device.message.empty() ? "" : ": " + device.message));
        }
      }
    }
    return all;
  }
  std::vector<std::string> StatusOf(const std::string& pod) {
    return StatusOf(node_.PodNamed(pod));
  }

  std::vector<std::string> MessagesOf(const std::string& reason) {
    std::vector<std::string> messages;
    for (const EventInfo& event : node_.manager().Events(0)) {
      if (event.reason == reason) messages.push_back(event.message);
    }
    return messages;
  }

  /// `device health message` of the ledger's records.
  std::vector<std::string> Kept() {
    std::vector<std::string> all;
    for (const auto& [key, record] : node_.store.Load().healths) {
      all.push_back(record->device + " " +
                    std::string(DeviceHealthName(PublicOf(record->health))) +
                    " " + record->message);
    }
    return all;
  }
  /// Nothing tells when the ledger has written: looked at again and again.
  bool WaitForLedger(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    Mailbox<int> ticks;
    while (std::chrono::steady_clock::now() < deadline) {
      if (condition()) return true;
      node_.RunAfter(std::chrono::milliseconds(10), [&] { ticks.Put(0); });
      ticks.Take();
    }
    return false;
  }

  template <typename Matcher>
  bool WaitForKept(const Matcher& matcher) {
    return WaitForLedger([&] { return ::testing::Matches(matcher)(Kept()); });
  }

  state::HealthRecord LeaseOf(const std::string& device) {
    const auto state = node_.store.Load();
    const auto* record = state.FindHealth({kDriver, "pool-1", device});
    return record != nullptr ? *record : state::HealthRecord();
  }
  /// While no manager runs: as if the driver had told it so much earlier.
  void ToldEarlier(const std::string& device, std::chrono::milliseconds by) {
    auto record = std::make_shared<state::HealthRecord>(LeaseOf(device));
    record->told_ms -= by.count();
    const auto store = node_.store.Open();
    auto state = store->Load();
    ASSERT_THAT(state, IsOk());
    state::Batch batch;
    batch.seq = state->seq + 1;
    batch.decision.kind = state::DecisionKind::kHealth;
    batch.decision.changes.push_back(state::PutHealth{std::move(record)});
    ASSERT_THAT(state::ApplyNew(*state, batch), IsOk());
    ASSERT_THAT(store->Append({&batch, 1}), IsOk());
  }

  Listener listener_;
  std::unique_ptr<Observation> listening_;
};

}  // namespace devmgr
