// SPDX-License-Identifier: Apache-2.0
#include "admission/wait_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admission/resource_names.h"

namespace devmgr::admission {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

constexpr std::int64_t kStarved = 5 * 60 * 1000;
constexpr std::int64_t kTurn = 10 * 1000;

class WaitQueueTest : public testing::Test {
 protected:
  /// A pod that came at `seen` and is short of all it needs.
  static WaitQueue::Place Place(std::int64_t seen, DeviceCounts needs,
                                std::int32_t priority = 0) {
    WaitQueue::Place place;
    place.priority = priority;
    place.first_seen_ms = seen;
    for (const auto& [resource, count] : needs) {
      place.short_of.insert(resource);
    }
    place.needs = std::move(needs);
    return place;
  }
  void Enter(const std::string& pod, WaitQueue::Place place) {
    queue_.Enter(PodUid{pod}, std::move(place), now_);
  }
  std::vector<std::string> Turns(const std::set<ResourceName>& changed) {
    std::vector<std::string> pods;
    for (const PodUid& pod : queue_.Turns(changed, now_, Free())) {
      pods.push_back(pod.value);
    }
    return pods;
  }
  std::optional<std::string> FirstBefore(const std::string& pod,
                                         const WaitQueue::Place& place) {
    const auto first = queue_.FirstBefore(PodUid{pod}, place, now_, Free());
    if (!first.has_value()) return std::nullopt;
    return first->value;
  }
  WaitQueue::FreeCount Free() {
    return [this](const std::string& resource) { return free_[resource]; };
  }

  WaitQueue queue_{WaitQueueOptions{}};
  std::map<std::string, std::int64_t> free_;
  std::int64_t now_ = 0;
};

TEST_F(WaitQueueTest, AFreedDeviceGoesToTheFirst) {
  Enter("b", Place(2, {{kGpu, 1}}));
  Enter("a", Place(1, {{kGpu, 1}}));
  Enter("c", Place(3, {{kGpu, 1}}));
  free_[kGpu] = 2;
  EXPECT_THAT(Turns({kGpu}), ElementsAre("a", "b"));
  EXPECT_THAT(Turns({kGpu}), IsEmpty());  // Told once.
}

TEST_F(WaitQueueTest, PriorityComesBeforeAge) {
  Enter("old", Place(1, {{kGpu, 1}}));
  Enter("important", Place(2, {{kGpu, 1}}, 1000));
  free_[kGpu] = 1;
  EXPECT_THAT(Turns({kGpu}), ElementsAre("important"));
}

TEST_F(WaitQueueTest, AnUnrelatedEventWakesNobody) {
  Enter("a", Place(1, {{kGpu, 1}}));
  free_ = {{kGpu, 5}, {kNic, 5}};
  EXPECT_THAT(Turns({kNic}), IsEmpty());
  WaitQueue::Place any = Place(2, {{kGpu, 9}});
  any.any_change = true;
  Enter("any", any);
  EXPECT_THAT(Turns({kNic}), IsEmpty());
  EXPECT_THAT(Turns({kGpu}), ElementsAre("a", "any"));
}

TEST_F(WaitQueueTest, TheWholeNeedMustBeMet) {
  Enter("both", Place(1, {{kGpu, 1}, {kNic, 1}}));
  Enter("gpu", Place(2, {{kGpu, 1}}));
  free_[kGpu] = 1;
  // What the first cannot use yet, the second may have.
  EXPECT_THAT(Turns({kGpu}), ElementsAre("gpu"));
}

TEST_F(WaitQueueTest, ASmallerPodMayPassUntilTheFirstHasWaitedTooLong) {
  Enter("large", Place(1, {{kGpu, 4}}));
  Enter("small", Place(2, {{kGpu, 1}}));
  free_[kGpu] = 1;
  now_ = kStarved - 1;
  EXPECT_EQ(FirstBefore("new", Place(3, {{kGpu, 1}})), std::nullopt);
  EXPECT_THAT(Turns({kGpu}), ElementsAre("small"));
  now_ = kStarved;
  Enter("small", Place(2, {{kGpu, 1}}));  // It was not quick enough.
  EXPECT_THAT(Turns({kGpu}), IsEmpty());
  EXPECT_THAT(FirstBefore("new", Place(3, {{kGpu, 1}})),
              Optional(std::string("large")));
  // Other resources are nobody's, and those before it need not care.
  EXPECT_EQ(FirstBefore("new", Place(3, {{kNic, 1}})), std::nullopt);
  EXPECT_EQ(FirstBefore("vip", Place(3, {{kGpu, 1}}, 7)), std::nullopt);
  free_[kGpu] = 4;
  EXPECT_THAT(Turns({kGpu}), ElementsAre("large"));
  free_[kGpu] = 5;
  EXPECT_THAT(Turns({kGpu}), ElementsAre("small"));
}

TEST_F(WaitQueueTest, DevicesAreKeptForWhoseTurnItIs) {
  Enter("first", Place(1, {{kGpu, 2}}));
  free_[kGpu] = 2;
  EXPECT_THAT(Turns({kGpu}), ElementsAre("first"));
  EXPECT_THAT(FirstBefore("quick", Place(9, {{kGpu, 1}})),
              Optional(std::string("first")));
  EXPECT_EQ(FirstBefore("first", Place(1, {{kGpu, 2}})), std::nullopt);
  free_[kGpu] = 3;
  EXPECT_EQ(FirstBefore("quick", Place(9, {{kGpu, 1}})), std::nullopt);
  EXPECT_THAT(queue_.Leave(PodUid{"first"}), ElementsAre(kGpu));
  free_[kGpu] = 1;
  EXPECT_EQ(FirstBefore("quick", Place(9, {{kGpu, 1}})), std::nullopt);
}

TEST_F(WaitQueueTest, ATurnThatIsNotTakenEnds) {
  Enter("gone", Place(1, {{kGpu, 1}}));
  Enter("next", Place(2, {{kGpu, 1}}));
  free_[kGpu] = 1;
  EXPECT_THAT(Turns({kGpu}), ElementsAre("gone"));
  EXPECT_THAT(queue_.NextDeadline(), Optional(kTurn));
  now_ = kTurn - 1;
  EXPECT_THAT(queue_.Due(now_).resources, IsEmpty());
  now_ = kTurn;
  EXPECT_THAT(queue_.Due(now_).resources, ElementsAre(kGpu));
  EXPECT_EQ(queue_.NextDeadline(), std::nullopt);
  EXPECT_THAT(Turns({kGpu}), ElementsAre("next"));
  queue_.Leave(PodUid{"next"});
  Enter("gone", Place(1, {{kGpu, 1}}));  // It has come after all.
  EXPECT_THAT(Turns({kGpu}), ElementsAre("gone"));
}

TEST_F(WaitQueueTest, TheTimeOfWaitingOutlivesANewPlace) {
  WaitQueue::Place place = Place(1, {{kGpu, 1}});
  place.limit = milliseconds(1'000);
  Enter("a", place);
  now_ = 600;
  Enter("a", place);
  EXPECT_EQ(queue_.WaitedFor(PodUid{"a"}, now_), milliseconds(600));
  EXPECT_THAT(queue_.NextDeadline(), Optional(1'000));
  EXPECT_THAT(queue_.Due(999).pods, IsEmpty());
  EXPECT_THAT(queue_.Due(1'000).pods, ElementsAre(PodUid{"a"}));
  EXPECT_THAT(queue_.Due(1'000).pods, IsEmpty());  // Told once.
  queue_.Leave(PodUid{"a"});
  EXPECT_EQ(queue_.WaitedFor(PodUid{"a"}, now_), milliseconds(0));
}

TEST_F(WaitQueueTest, WhoAsksAgainUnderAnotherTimeIsNotBehindHimself) {
  Enter("a", Place(1, {{kGpu, 1}}));
  free_[kGpu] = 1;
  EXPECT_THAT(Turns({kGpu}), ElementsAre("a"));
  EXPECT_EQ(FirstBefore("a", Place(2, {{kGpu, 1}})), std::nullopt);
}

TEST_F(WaitQueueTest, WhatNobodyElseHasIsNotKeptForWhoWaitsForIt) {
  WaitQueue::Place hopeless = Place(1, {{kGpu, 16}});
  hopeless.any_change = true;  // There are not so many.
  Enter("hopeless", hopeless);
  now_ = kStarved;
  Enter("small", Place(2, {{kGpu, 1}}));
  free_[kGpu] = 1;
  EXPECT_EQ(FirstBefore("new", Place(3, {{kGpu, 1}})), std::nullopt);
  EXPECT_THAT(Turns({kGpu}), ElementsAre("hopeless", "small"));
}

TEST_F(WaitQueueTest, AnotherPlaceLetsGoOfWhatWasKept) {
  Enter("a", Place(1, {{kGpu, 1}, {kNic, 1}}));
  Enter("b", Place(2, {{kGpu, 1}}));
  free_ = {{kGpu, 1}, {kNic, 1}};
  EXPECT_THAT(Turns({kGpu}), ElementsAre("a"));
  WaitQueue::Place failed = Place(1, {{kGpu, 1}, {kNic, 1}});
  failed.short_of.clear();
  EXPECT_THAT(queue_.Enter(PodUid{"a"}, failed, now_), ElementsAre(kGpu, kNic));
  EXPECT_THAT(queue_.Enter(PodUid{"a"}, failed, now_), IsEmpty());
  EXPECT_THAT(Turns({kGpu}), ElementsAre("b"));
  // Who has waited for too long keeps what he waits for.
  now_ = kStarved;
  EXPECT_THAT(queue_.Enter(PodUid{"b"}, Place(2, {{kGpu, 2}}), now_),
              IsEmpty());
}

TEST_F(WaitQueueTest, WhoTakesNothingHasNoTurn) {
  WaitQueue::Place holder = Place(1, {{kGpu, 1}});
  holder.takes = false;
  holder.any_change = true;
  Enter("holder", holder);
  Enter("next", Place(2, {{kGpu, 1}}));
  free_[kGpu] = 1;
  EXPECT_THAT(Turns({kGpu}), ElementsAre("holder", "next"));
  EXPECT_THAT(Turns({kGpu}), ElementsAre("holder"));
}

TEST_F(WaitQueueTest, NobodyHasATurnThatHeCouldNotTake) {
  Enter("a", Place(1, {{kNic, 2}}));
  now_ = kStarved;
  Enter("b", Place(2, {{kGpu, 1}, {kNic, 1}}));
  free_ = {{kGpu, 1}, {kNic, 1}};
  // What is left of the other resource is kept for somebody else.
  EXPECT_THAT(Turns({kGpu}), IsEmpty());
}

TEST_F(WaitQueueTest, WhoeverHasJustBeenJudgedIsNotToldAgain) {
  Enter("a", Place(1, {{kGpu, 1}}));
  Enter("b", Place(2, {{kGpu, 1}}));
  free_[kGpu] = 1;
  EXPECT_THAT(queue_.Turns({kGpu}, now_, Free(), PodUid{"a"}),
              ElementsAre(PodUid{"b"}));
}

TEST_F(WaitQueueTest, WhoComesAgainByHimselfKeepsNothingFromOthers) {
  WaitQueue::Place failed = Place(1, {{kGpu, 1}});
  failed.short_of.clear();
  Enter("failed", failed);
  free_[kGpu] = 1;
  now_ = kStarved;
  EXPECT_THAT(Turns({kGpu}), IsEmpty());
  EXPECT_EQ(FirstBefore("other", Place(2, {{kGpu, 1}})), std::nullopt);
}

// Enough free devices do not do for one that waits for certain NUMA nodes.
TEST_F(WaitQueueTest, WhatWaitsForSomethingElseKeepsNothingFromOthers) {
  Enter("a", Place(1, {{kGpu, 4}}));
  free_[kGpu] = 2;
  now_ = kStarved;
  const WaitQueue::Place small = Place(2, {{kGpu, 1}});
  EXPECT_THAT(FirstBefore("b", small), Optional(std::string("a")));
  EXPECT_THAT(queue_.StepAside(PodUid{"a"}), ElementsAre(kGpu));
  EXPECT_EQ(FirstBefore("b", small), std::nullopt);
  EXPECT_THAT(Turns({kGpu}), IsEmpty());
  EXPECT_THAT(queue_.StepAside(PodUid{"a"}), IsEmpty());
  EXPECT_THAT(queue_.StepAside(PodUid{"unknown"}), IsEmpty());
  // It has waited all the time.
  EXPECT_EQ(queue_.WaitedFor(PodUid{"a"}, now_), milliseconds(kStarved));
  Enter("a", Place(1, {{kGpu, 4}}));
  EXPECT_THAT(FirstBefore("b", small), Optional(std::string("a")));
}

TEST_F(WaitQueueTest, AnAlignedPlaceHasItsTurnWhenItsDevicesAlign) {
  WaitQueue::Place place = Place(1, {{kGpu, 2}, {kNic, 1}});
  place.aligned = true;
  Enter("a", place);
  free_ = {{kGpu, 4}, {kNic, 4}};
  bool aligns = false;
  int asked = 0;
  const auto turns = [&](const ResourceName& changed) {
    return queue_.Turns({changed}, now_, Free(), {}, [&](const PodUid& pod) {
      EXPECT_EQ(pod.value, "a");
      ++asked;
      return aligns;
    });
  };
  EXPECT_THAT(turns(kGpu), IsEmpty());
  EXPECT_THAT(turns("example.com/other"), IsEmpty());
  EXPECT_EQ(asked, 1);
  aligns = true;
  // Also of a resource that it does not lack: it stands in each line.
  EXPECT_THAT(turns(kNic), ElementsAre(PodUid{"a"}));
  // What is not free in number is not asked about.
  Enter("a", place);
  free_[kGpu] = 1;
  EXPECT_THAT(turns(kGpu), IsEmpty());
  EXPECT_EQ(asked, 2);
}

// Which devices it will need is not known by their number: all are kept.
TEST_F(WaitQueueTest, ForAStarvedAlignedPlaceAllIsKept) {
  WaitQueue::Place place = Place(1, {{kGpu, 2}});
  place.aligned = true;
  Enter("a", place);
  free_[kGpu] = 8;
  EXPECT_EQ(FirstBefore("b", Place(2, {{kGpu, 1}})), std::nullopt);
  now_ += kStarved;
  EXPECT_THAT(FirstBefore("b", Place(2, {{kGpu, 1}})),
              Optional(std::string("a")));
  EXPECT_EQ(FirstBefore("b", Place(2, {{kNic, 1}})), std::nullopt);
  // One of a higher priority goes first.
  EXPECT_EQ(FirstBefore("b", Place(2, {{kGpu, 1}}, 5)), std::nullopt);
}

}  // namespace
}  // namespace devmgr::admission
