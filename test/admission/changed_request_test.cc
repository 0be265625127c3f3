// SPDX-License-Identifier: Apache-2.0
#include "admission/changed_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "admission/resource_names.h"
#include "support/builders.h"

namespace devmgr::admission {
namespace {

using device::DeviceNeed;
using testing::HasSubstr;
using Kind = Verdict::Kind;

/// Pod `P` is Ready: `c` has two GPUs, request `r` of its claim `c1` (`C`), and
/// request `nr` of the special claim `S` for a NIC; `i`, an init container, has
/// given back one GPU.
class ChangedRequestTest : public testing::Test {
 protected:
  ChangedRequestTest() {
    record_.uid = PodUid{"u-P"};
    record_.name = NameOf("P");
    record_.phase = state::PodPhase::kReady;
    record_.claims = {ClaimUid{"u-C"}, ClaimUid{"u-S"}};
    record_.needs = {{"i", true, {}},
                     {"c",
                      false,
                      {{ClaimUid{"u-C"}, "r", "", "c1"},
                       {ClaimUid{"u-S"}, "nr", kNic, ""}}}};
    record_.holds = {Hold("i", {"2"}), Hold("c", {"0", "1"})};
    record_.holds.front().phase = device::ReservationPhase::kReleased;
    for (const char* name : {"C", "S"}) {
      auto claim = std::make_shared<state::ClaimRecord>();
      claim->uid = ClaimUid{std::string("u-") + name};
      claim->name = NameOf(name);
      state_.Put(std::move(claim));
    }
  }

  static state::DeviceHold Hold(const std::string& container,
                                const std::vector<std::string>& ids) {
    state::DeviceHold hold;
    hold.container = container;
    hold.resource = kGpu;
    hold.phase = device::ReservationPhase::kCommitted;
    for (const std::string& id : ids) hold.devices.push_back({id, {}});
    return hold;
  }

  /// As it was, and more: a builder is not to be copied midway.
  static Pod PodAsItWas(const std::function<void(PodBuilder&)>& add = {}) {
    PodBuilder builder("P");
    builder.Claim("c1", "C")
        .SpecialClaim("S")
        .Maps("c", kNic, "nr")
        .InitContainer("i")
        .Container("c")
        .Uses("c1", "r")
        .Requests(kNic);
    if (add) add(builder);
    return builder;
  }
  static std::vector<DeviceNeed> Needs(std::int64_t gpus) {
    return {{"i", device::ContainerKind::kInit, kGpu, 1},
            {"c", device::ContainerKind::kApp, kGpu, gpus}};
  }
  Verdict Check(const Pod& pod, const std::vector<DeviceNeed>& needs) {
    return CheckUnchanged(pod, record_, needs, state_, {}, {},
                          {Authority::kNode, profile_});
  }
  void ExpectRefused(const Verdict& verdict, const std::string& text) {
    EXPECT_EQ(verdict.kind, Kind::kReject) << verdict.message;
    EXPECT_EQ(verdict.reason, "UnexpectedAdmissionError");
    EXPECT_THAT(verdict.message, HasSubstr(text));
    EXPECT_THAT(verdict.message,
                HasSubstr("pod \"u-P\" container \"c\" changed request for "));
  }

  state::PodRecord record_;
  state::State state_;
  Profile profile_ = Profile::kDefault;
};

TEST_F(ChangedRequestTest, APodThatAsksForWhatItHasIsAdmitted) {
  EXPECT_EQ(Check(PodAsItWas(), Needs(2)).kind, Kind::kAdmit);
}

// DP-065
TEST_F(ChangedRequestTest, AnotherNumberOfDevicesIsRefused) {
  EXPECT_EQ(Check(PodAsItWas(), Needs(3)).message,
            "Allocate failed due to pod \"u-P\" container \"c\" changed "
            "request for resource \"example.com/gpu\" from 2 to 3, which is "
            "unexpected");
  ExpectRefused(Check(PodAsItWas(), Needs(1)), "from 2 to 1");
  ExpectRefused(Check(PodAsItWas(), Needs(0)), "from 2 to 0");
}

TEST_F(ChangedRequestTest, SoItIsWhileClaimsAreBeingPrepared) {
  record_.phase = state::PodPhase::kPreparing;
  ExpectRefused(Check(PodAsItWas(), Needs(3)), "from 2 to 3");
  // Claims are taken as they are named now.
  EXPECT_EQ(Check(PodAsItWas(
                      [](PodBuilder& pod) { pod.Claim("c2", "D").Uses("c2"); }),
                  Needs(2))
                .kind,
            Kind::kAdmit);
}

TEST_F(ChangedRequestTest, WhatIsNotGivenYetIsNoChange) {
  for (const auto phase :
       {state::PodPhase::kWaiting, state::PodPhase::kAllocating,
        state::PodPhase::kAdmitted, state::PodPhase::kReleasing}) {
    record_.phase = phase;
    EXPECT_EQ(Check(PodAsItWas(), Needs(3)).kind, Kind::kAdmit);
  }
  // Of a pod that was found by its claims after a recovery.
  record_.phase = state::PodPhase::kPreparing;
  record_.needs.clear();
  record_.holds.clear();
  EXPECT_EQ(Check(PodAsItWas(), Needs(3)).kind, Kind::kAdmit);
}

TEST_F(ChangedRequestTest, AFurtherResourceOrContainerIsRefused) {
  auto needs = Needs(2);
  needs.push_back({"c", device::ContainerKind::kApp, "example.com/tpu", 1});
  ExpectRefused(Check(PodAsItWas(), needs), "\"example.com/tpu\" from 0 to 1");
  needs.back().container = "new";
  EXPECT_THAT(Check(PodAsItWas(), needs).message,
              HasSubstr("container \"new\" changed request"));
  // The kubelet admits what it has never heard of, and gives nothing.
  profile_ = Profile::kStrictKubelet;
  EXPECT_EQ(Check(PodAsItWas(), needs).kind, Kind::kAdmit);
  ExpectRefused(Check(PodAsItWas(), Needs(3)), "from 2 to 3");
}

// A feature gate was turned since: what is held the other way is held.
TEST_F(ChangedRequestTest, WhatIsHeldTheOtherWayIsNoChange) {
  auto needs = Needs(2);
  needs.push_back({"c", device::ContainerKind::kApp, kNic, 1});
  EXPECT_EQ(Check(PodAsItWas(), needs).kind, Kind::kAdmit);
  const Pod mapped = PodAsItWas(
      [](PodBuilder& pod) { pod.Requests(kGpu, 2).Maps("c", kGpu, "gr"); });
  EXPECT_EQ(Check(mapped, {}).kind, Kind::kAdmit);
}

TEST_F(ChangedRequestTest, AFurtherClaimIsRefusedOnceReady) {
  ExpectRefused(Check(PodAsItWas([](PodBuilder& pod) {
                        pod.Claim("c2", "D").Uses("c2");
                      }),
                      Needs(2)),
                "resource claim \"c2\", which the pod was not prepared with");
  ExpectRefused(
      Check(PodAsItWas([](PodBuilder& pod) { pod.Uses("c1", "s"); }), Needs(2)),
      "resource claim \"c1\" request \"s\"");
  // Nothing is needed, or it is not made yet.
  EXPECT_EQ(Check(PodAsItWas([](PodBuilder& pod) {
                    pod.Template("c2").Made("c2", std::nullopt).Uses("c2");
                  }),
                  Needs(2))
                .kind,
            Kind::kAdmit);
}

TEST_F(ChangedRequestTest, AnotherClaimByTheSameEntryIsRefused) {
  const Pod other =
      PodBuilder("P").Claim("c1", "D").Container("c").Uses("c1", "r");
  ExpectRefused(Check(other, Needs(2)), "resource claim \"c1\"");
  // What is made for the pod has the name that its maker chose.
  const Pod made =
      PodBuilder("P").Template("c1").Made("c1", "D").Container("c").Uses("c1",
                                                                         "r");
  EXPECT_EQ(Check(made, Needs(2)).kind, Kind::kAdmit);
}

TEST_F(ChangedRequestTest, AnotherMappingOfAnExtendedResourceIsRefused) {
  ExpectRefused(
      Check(PodAsItWas([](PodBuilder& pod) { pod.Maps("c", kNic, "other"); }),
            Needs(2)),
      "resource \"example.com/nic\" to claim request \"other\"");
}

// Entries of `resourceClaims` were not kept at first.
TEST_F(ChangedRequestTest, APodThatWasPreparedLongAgoIsNotRefused) {
  record_.needs.back().wants.front().pod_claim.clear();
  EXPECT_EQ(Check(PodAsItWas(), Needs(2)).kind, Kind::kAdmit);
}

}  // namespace
}  // namespace devmgr::admission
