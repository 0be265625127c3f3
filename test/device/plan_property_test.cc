// SPDX-License-Identifier: Apache-2.0
//
// Random pods, lists and answers of plugins, held against what must be true of
// every plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/devices.h"
#include "device/pod_plan.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr::device {
namespace {

class PlanLife {
 public:
  explicit PlanLife(Luck& luck) : luck_(luck) {
    inventories_[Resource(0)].Connect(1, 0);
    inventories_[Resource(1)].Connect(1, 0);
  }

  void End() {
    for (const std::string& pod : pods_) Release(pod);
    EXPECT_TRUE(table_.resources().empty());
  }

  void AdmitSomePod() {
    if (luck_.Below(3) == 0) ReportSomeList();
    if (luck_.Below(2) == 0 && !pods_.empty()) {
      const auto pod =
          pods_.begin() + luck_.Below(static_cast<int>(pods_.size()));
      Release(*pod);
      pods_.erase(pod);
    }
    const std::string pod = "pod-" + std::to_string(++made_);
    PlanInput input{.pod = {pod},
                    .needs = SomeNeeds(),
                    .inventories = inventories_,
                    .reservations = table_,
                    .asking = {Resource(0)}};
    for (const DeviceNeed& need : input.needs) {
      if (luck_.Below(2) == 0) {
        input.masks[{need.container, need.resource}] = {luck_.Below(2)};
      }
    }
    const bool should_fit = ShouldFit(input.needs);
    const PodPlan plan = PlanWithAnswers(input);
    ASSERT_EQ(plan.Complete(), should_fit);
    if (!plan.Complete()) {
      EXPECT_TRUE(plan.reservations.empty());
      return;
    }
    CheckPlan(input.needs, plan.reservations);
    for (const Reservation& one : plan.reservations) Take(one);
    // Planned again, it needs nothing more.
    const PodPlan again = PlanPod(input);
    EXPECT_TRUE(again.Complete());
    EXPECT_TRUE(again.reservations.empty());
    pods_.push_back(pod);
    ++admitted_;
  }

  int admitted() const { return admitted_; }

 private:
  static std::string Id(int i) { return "d" + std::to_string(i); }
  static std::string Resource(int i) { return "r" + std::to_string(i); }

  void ReportSomeList() {
    std::vector<Device> list;
    for (int i = 0; i < 12; ++i) {
      if (luck_.Below(6) == 0) continue;
      list.push_back(
          {Id(i),
           luck_.Below(5) == 0 ? Health::kUnhealthy : Health::kHealthy,
           {luck_.Below(2)}});
    }
    std::shuffle(list.begin(), list.end(), luck_);
    const std::string resource = Resource(luck_.Below(2));
    inventories_[resource].Connect(1, 0);
    inventories_[resource].Report(1, list, HeldOf(resource), 0);
  }

  IsHeld HeldOf(const std::string& resource) const {
    return [this, resource](const std::string& id) {
      return table_.HolderOf(resource, id) != nullptr;
    };
  }

  /// The inventory hears of what is freed always, of what is taken sometimes:
  /// it may be behind the table that way.
  void Release(const std::string& pod) {
    for (const FreedDevices& freed : table_.ReleasePod({pod})) {
      inventories_[freed.resource].UpdateHeld(freed.ids,
                                              HeldOf(freed.resource));
    }
  }
  void Take(const Reservation& planned) {
    ASSERT_THAT(table_.Add(planned), IsOk());
    if (luck_.Below(2) == 0) return;
    std::vector<DeviceId> ids;
    for (const HeldDevice& device : planned.devices) ids.push_back(device.id);
    inventories_[planned.resource].UpdateHeld(ids, HeldOf(planned.resource));
  }

  std::vector<DeviceNeed> SomeNeeds() {
    std::vector<DeviceNeed> needs;
    const int inits = luck_.Below(4);
    for (int i = 0; i < inits + 2; ++i) {
      const auto kind = i >= inits            ? ContainerKind::kApp
                        : luck_.Below(3) == 0 ? ContainerKind::kSidecar
                                              : ContainerKind::kInit;
      for (int r = 0; r < 2; ++r) {
        if (luck_.Below(2) == 0) continue;
        needs.push_back(
            {"c" + std::to_string(i), kind, Resource(r), luck_.Below(4)});
      }
    }
    return needs;
  }

  std::vector<DeviceId> SomeAnswer() {
    std::vector<DeviceId> answer;
    for (int i = luck_.Below(5); i > 0; --i)
      answer.push_back(Id(luck_.Below(14)));
    return answer;
  }

  int Free(const std::string& resource) {
    int free = 0;
    for (const InventoryDevice& known : inventories_[resource].devices()) {
      if (known.Usable() &&
          table_.HolderOf(resource, known.device.id) == nullptr) {
        ++free;
      }
    }
    return free;
  }

  /// A pod that holds nothing gets all it needs exactly when there is enough.
  bool ShouldFit(const std::vector<DeviceNeed>& needs) {
    for (const auto& [resource, count] : EffectiveNeeds(needs)) {
      if (Free(resource) < count) return false;
    }
    return true;
  }

  PodPlan PlanWithAnswers(PlanInput& input) {
    PodPlan plan = PlanPod(input);
    for (std::size_t rounds = 0; !plan.questions.empty(); ++rounds) {
      EXPECT_LE(rounds, input.needs.size());
      for (const PreferenceQuestion& question : plan.questions) {
        CheckQuestion(question);
        input.preferences[{question.container, question.resource}] =
            SomeAnswer();
      }
      plan = PlanPod(input);
    }
    return plan;
  }

  static void CheckQuestion(const PreferenceQuestion& question) {
    EXPECT_GT(static_cast<std::int64_t>(question.available.size()), 0);
    EXPECT_GE(static_cast<std::int64_t>(question.available.size()),
              question.size);
    EXPECT_LT(static_cast<std::int64_t>(question.must_include.size()),
              question.size);
    EXPECT_TRUE(std::includes(
        question.available.begin(), question.available.end(),
        question.must_include.begin(), question.must_include.end(), IdLess));
  }

  /// Every need is met, with usable devices, and only what init containers had
  /// is shared.
  void CheckPlan(const std::vector<DeviceNeed>& needs,
                 const std::vector<Reservation>& plan) {
    std::size_t next = 0;
    std::map<std::string, IdSet> exclusive;
    for (const DeviceNeed& need : needs) {
      if (need.count == 0) continue;
      ASSERT_LT(next, plan.size());
      const Reservation& one = plan[next++];
      ASSERT_EQ(one.container, need.container);
      ASSERT_EQ(one.resource, need.resource);
      ASSERT_EQ(static_cast<std::int64_t>(one.devices.size()), need.count);
      for (const HeldDevice& device : one.devices) {
        ASSERT_FALSE(exclusive[need.resource].contains(device.id));
        if (need.kind != ContainerKind::kInit) {
          exclusive[need.resource].insert(device.id);
        }
      }
    }
    EXPECT_EQ(next, plan.size());
    EXPECT_THAT(CheckStillUsable(plan, inventories_), IsOk());
  }

  Luck& luck_;
  InventoryMap inventories_;
  ReservationTable table_;
  std::vector<std::string> pods_;
  int made_ = 0;
  int admitted_ = 0;
};

TEST(PlanPropertyTest, EveryPodGetsAllItNeedsWheneverThereIsEnough) {
  LiveEach({7, 1}, [](Luck& luck) {
    PlanLife life(luck);
    TakeSteps(3'000, luck, {{"pod", 1, [&] { life.AdmitSomePod(); }}});
    EXPECT_GT(life.admitted(), 100);
    life.End();
  });
}

}  // namespace
}  // namespace devmgr::device
