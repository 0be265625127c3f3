// SPDX-License-Identifier: Apache-2.0
//
// Each violation is made from a state in which everything holds, by one step
// that a wrong decision could take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "state/record_builders.h"
#include "state/state.h"

namespace devmgr::state {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const kNextBoot = "boot-2";

/// Pods `a` and `b` are Ready and share the claim, with two drivers.
class InvariantsTest : public ::testing::Test {
 protected:
  InvariantsTest() {
    ClaimRecord claim = MakeClaim(DriverPhase::kPrepared, {kPodA, kPodB});
    claim.drivers["e.example.com"] = claim.drivers[kDriver];
    Put(claim);
    Put(MakePod(kPodA, "a", PodPhase::kReady));
    Put(MakePod(kPodB, "b", PodPhase::kReady));
    Put(MakeIdentity("a", kPodA.value));
  }

  template <typename Record>
  void Put(Record record) {
    state_.Put(std::make_shared<const Record>(std::move(record)));
  }
  void EditPod(const PodUid& uid, const std::function<void(PodRecord&)>& edit) {
    PodRecord pod = *state_.FindPod(uid);
    edit(pod);
    Put(pod);
  }
  void EditClaim(const std::function<void(ClaimRecord&)>& edit) {
    ClaimRecord claim = *state_.FindClaim(kGpu);
    edit(claim);
    Put(claim);
  }
  void SetDrivers(DriverPhase phase, const std::string& boot_id) {
    EditClaim([&](ClaimRecord& claim) {
      for (auto& [name, driver] : claim.drivers) {
        driver.phase = phase;
        driver.boot_id = boot_id;
      }
    });
  }
  /// Both pods give the claim up.
  void Release() {
    SetDrivers(DriverPhase::kUnpreparing, kBoot);
    Put(MakePod(kPodA, "a", PodPhase::kReleasing));
    Put(MakePod(kPodB, "b", PodPhase::kReleasing));
  }
  void ExpectViolation(const std::string& text) {
    const auto violations = CheckInvariants(state_, kBoot);
    EXPECT_THAT(violations, ::testing::Contains(HasSubstr(text)));
  }

  State state_;
};

TEST_F(InvariantsTest, HoldForTwoReadyPods) {
  EXPECT_THAT(CheckInvariants(state_), IsEmpty());
  EXPECT_THAT(CheckInvariants(state_, kBoot), IsEmpty());
}

TEST_F(InvariantsTest, OnlyWhatIsToBePreparedIsUnpreparedFirst) {
  EditClaim([](ClaimRecord& claim) {
    claim.drivers[kDriver].spec_recovery = SpecRecovery::kUnprepareFirst;
  });
  ExpectViolation("is to be unprepared before it is prepared by driver");
}

TEST_F(InvariantsTest, HoldForPodsWithoutClaims) {
  for (const PodPhase phase : {PodPhase::kWaiting, PodPhase::kRejected}) {
    Put(MakePod(PodUid{"c"}, "c", phase));
    EXPECT_THAT(CheckInvariants(state_), IsEmpty()) << PodPhaseName(phase);
  }
  PodRecord ready = MakePod(PodUid{"c"}, "c", PodPhase::kReady);
  ready.claims.clear();
  ready.needs.clear();
  Put(ready);
  EXPECT_THAT(CheckInvariants(state_, kBoot), IsEmpty());
}

TEST_F(InvariantsTest, HoldWhileTheLastReferenceIsUnprepared) {
  Release();
  EXPECT_THAT(CheckInvariants(state_, kBoot), IsEmpty());
  EditClaim([](ClaimRecord& claim) { claim.drivers.erase(kDriver); });
  EXPECT_THAT(CheckInvariants(state_, kBoot), IsEmpty());
}

TEST_F(InvariantsTest, HoldAtEveryStepOfPreparingAgainAfterAReboot) {
  EXPECT_THAT(CheckInvariants(state_, kNextBoot), IsEmpty());
  // Pod `a` is prepared again; `b` still has its answer of the old boot.
  SetDrivers(DriverPhase::kPreparing, "");
  Put(MakePod(kPodA, "a", PodPhase::kPreparing));
  EXPECT_THAT(CheckInvariants(state_, kNextBoot), IsEmpty());
  EXPECT_THAT(CheckInvariants(state_), IsEmpty());
  EditClaim([](ClaimRecord& claim) {
    claim.drivers[kDriver] = {DriverPhase::kPrepared, {}, kNextBoot};
  });
  EXPECT_THAT(CheckInvariants(state_, kNextBoot), IsEmpty());
  SetDrivers(DriverPhase::kPrepared, kNextBoot);
  PodRecord pod = MakePod(kPodA, "a", PodPhase::kReady);
  pod.boot_id = kNextBoot;
  Put(pod);
  EXPECT_THAT(CheckInvariants(state_, kNextBoot), IsEmpty());
  EXPECT_THAT(CheckInvariants(state_), IsEmpty());
}

TEST_F(InvariantsTest, FindAReadyPodWithAClaimOfAnotherBoot) {
  SetDrivers(DriverPhase::kPrepared, "boot-0");
  ExpectViolation("prepared by 0 of 2 drivers");
  EXPECT_THAT(CheckInvariants(state_), IsEmpty());
}

TEST_F(InvariantsTest, FindAReadyPodThatADriverHasNotPrepared) {
  EditClaim([](ClaimRecord& claim) {
    claim.drivers[kDriver].phase = DriverPhase::kPreparing;
  });
  ExpectViolation(
      "Ready pod 'default/a' (pod-a) uses claim 'default/gpu' (claim-gpu), "
      "prepared by 1 of 2 drivers");
  EXPECT_EQ(CheckInvariants(state_).size(), 2u);
}

TEST_F(InvariantsTest, FindAUsedClaimThatIsUnprepared) {
  EditClaim([](ClaimRecord& claim) {
    claim.drivers[kDriver].phase = DriverPhase::kUnpreparing;
  });
  ExpectViolation("which is being unprepared");
}

TEST_F(InvariantsTest, FindAClaimThatIsNotKnown) {
  state_.Erase(kGpu);
  ExpectViolation("lists claim 'claim-gpu', which is not known");
}

TEST_F(InvariantsTest, FindAPodThatItsClaimDoesNotList) {
  EditClaim([](ClaimRecord& claim) { claim.pods.erase(kPodA); });
  ExpectViolation("pod 'default/a' (pod-a) is not among the pods of its claim");
}

TEST_F(InvariantsTest, FindAClaimThatItsPodDoesNotList) {
  EditPod(kPodA, [](PodRecord& pod) {
    pod.claims.clear();
    pod.needs.clear();
  });
  EXPECT_THAT(CheckInvariants(state_, kBoot),
              ElementsAre("claim 'default/gpu' (claim-gpu) is not among the "
                          "claims of its pod 'default/a' (pod-a)"));
}

TEST_F(InvariantsTest, FindAPodThatIsGoneButHoldsAClaim) {
  state_.Erase(kPodA);
  EXPECT_THAT(CheckInvariants(state_, kBoot),
              ElementsAre("claim 'default/gpu' (claim-gpu) lists pod 'pod-a', "
                          "which is not known"));
}

TEST_F(InvariantsTest, FindWaitingAndRejectedPodsWithClaims) {
  for (const PodPhase phase : {PodPhase::kWaiting, PodPhase::kRejected}) {
    PodRecord pod = MakePod(kPodA, "a", phase);
    pod.claims = {kGpu};
    Put(pod);
    ExpectViolation("pod 'default/a' (pod-a) holds 1 claims");
    ExpectViolation("is held by " + std::string(PodPhaseName(phase)) + " pod");
  }
}

TEST_F(InvariantsTest, FindAnswersMissingMisplacedAndOfAnother) {
  EditPod(kPodA, [](PodRecord& pod) { pod.answer = nullptr; });
  ExpectViolation("Ready pod 'default/a' (pod-a) has no answer");
  EditPod(kPodA,
          [&](PodRecord& pod) { pod.answer = state_.FindPod(kPodB)->answer; });
  ExpectViolation("has the answer of pod 'default/b' (pod-b)");
  EditPod(kPodA, [&](PodRecord& pod) { pod.phase = PodPhase::kPreparing; });
  ExpectViolation("Preparing pod 'default/a' (pod-a) has an answer");
}

TEST_F(InvariantsTest, FindMissingBootIds) {
  EditPod(kPodA, [](PodRecord& pod) { pod.boot_id.clear(); });
  ExpectViolation("does not say in which boot");
  SetDrivers(DriverPhase::kPrepared, "");
  ExpectViolation("is prepared by driver 'd.example.com' in no boot");
}

TEST_F(InvariantsTest, FindAWantOfAClaimThePodDoesNotHold) {
  EditPod(kPodA, [](PodRecord& pod) {
    pod.needs[1].wants.push_back({ClaimUid{"other"}, "", ""});
  });
  EXPECT_THAT(
      CheckInvariants(state_, kBoot),
      ElementsAre(HasSubstr("wants claim 'other' in container 'main'")));
}

TEST_F(InvariantsTest, FindAClaimThatStaysPreparedForNobody) {
  Release();
  SetDrivers(DriverPhase::kPrepared, kBoot);
  ExpectViolation("is Prepared by driver 'd.example.com' for no pod");
  EditClaim([](ClaimRecord& claim) {
    claim.pods.clear();
    claim.drivers.clear();
  });
  ExpectViolation("has neither pods nor drivers");
}

TEST_F(InvariantsTest, FindTwoHeldClaimsOfOneName) {
  ClaimRecord again = MakeClaim(DriverPhase::kPreparing, {PodUid{"c"}});
  again.uid.value = "claim-again";
  PodRecord pod = MakePod(PodUid{"c"}, "c", PodPhase::kPreparing);
  pod.claims = {again.uid};
  pod.needs.clear();
  Put(again);
  Put(pod);
  EXPECT_THAT(CheckInvariants(state_, kBoot),
              ElementsAre("claims claim-again and claim-gpu of the name "
                          "'default/gpu' are both held"));
  // The older one may still be on its way out.
  Release();
  EXPECT_THAT(CheckInvariants(state_, kBoot), IsEmpty());
}

TEST_F(InvariantsTest, FindUidsThatTwoObjectsOfAKindShare) {
  Put(MakeIdentity("b", kPodA.value));
  EXPECT_THAT(
      CheckInvariants(state_, kBoot),
      ElementsAre("Pod 'default/a' and 'default/b' have the same uid 'pod-a'"));
  IdentityRecord claim = MakeIdentity("b", kPodA.value);
  claim.kind = "ResourceClaim";
  state_.Erase(IdentityKey("Pod", {"default", "b"}));
  Put(claim);
  EXPECT_THAT(CheckInvariants(state_, kBoot), IsEmpty());
}

TEST_F(InvariantsTest, FindRecordsThatTheIndexesMiss) {
  state_.pod_names.erase({state_.FindPod(kPodA)});
  ClaimRecord renamed = *state_.FindClaim(kGpu);
  renamed.name = {"x", "y"};
  state_.claim_names.insert({&renamed});
  ExpectViolation("pod 'default/a' (pod-a) is not found by its name");
  ExpectViolation("2 claim names for 1 records");
}

TEST_F(InvariantsTest, FindRecordsUnderTheWrongKey) {
  state_.pods.insert_or_assign(PodUid{"elsewhere"}, state_.pods.at(kPodA));
  state_.claims.insert_or_assign(ClaimUid{"elsewhere"}, state_.claims.at(kGpu));
  state_.identities.insert_or_assign(IdentityKey("Pod", {"x", "y"}),
                                     state_.identities.begin()->second);
  ExpectViolation("pod 'default/a' (pod-a) is kept under 'elsewhere'");
  ExpectViolation("claim 'default/gpu' (claim-gpu) is kept under 'elsewhere'");
  ExpectViolation("the identity of Pod 'default/a' is kept under Pod 'x/y'");
}

TEST_F(InvariantsTest, ADeviceIsHeldByOnePod) {
  EditPod(kPodA, [](PodRecord& pod) { pod.holds = {MakeHold({"0", "1"})}; });
  EditPod(kPodB, [](PodRecord& pod) { pod.holds = {MakeHold({"2"})}; });
  EXPECT_THAT(CheckInvariants(state_), IsEmpty());
  EditPod(kPodB, [](PodRecord& pod) { pod.holds = {MakeHold({"1", "2"})}; });
  EXPECT_THAT(
      CheckInvariants(state_),
      ElementsAre(HasSubstr("device '1' of 'example.com/tpu' is held by")));
}

TEST_F(InvariantsTest, AReadyPodHasItsPluginsAnswers) {
  EditPod(kPodA, [](PodRecord& pod) {
    pod.holds = {MakeHold({"0"}, device::ReservationPhase::kReserved)};
  });
  EXPECT_THAT(CheckInvariants(state_),
              ElementsAre(HasSubstr("has not answered")));
}

TEST_F(InvariantsTest, AContainerMayHaveGivenDevicesBackWhereItsAnswerSaysSo) {
  EditPod(kPodA, [](PodRecord& pod) {
    pod.holds = {MakeHold({"0"}, device::ReservationPhase::kReleased)};
  });
  EXPECT_THAT(CheckInvariants(state_), ElementsAre(HasSubstr("given back")));
  EditPod(kPodA, [](PodRecord& pod) {
    auto answer = std::make_shared<PodDevices>(*pod.answer);
    for (ContainerDevices& container : answer->containers) {
      container.devices_released = true;
      pod.holds[0].container = container.name;
    }
    pod.answer = std::move(answer);
  });
  EXPECT_THAT(CheckInvariants(state_), IsEmpty());
}

TEST_F(InvariantsTest, AWaitingPodHoldsNoDevices) {
  PodRecord pod = MakePod({"pod-c"}, "c", PodPhase::kWaiting);
  pod.claims.clear();
  pod.holds = {MakeHold({"0"})};
  Put(pod);
  EXPECT_THAT(CheckInvariants(state_),
              ElementsAre(HasSubstr("holds devices of 'example.com/tpu'")));
}

TEST_F(InvariantsTest, DevicesOfAContainerAreNamedOnce) {
  for (const std::vector<std::string>& devices :
       {std::vector<std::string>(), {"0", "0"}}) {
    EditPod(kPodA, [&](PodRecord& pod) { pod.holds = {MakeHold(devices)}; });
    EXPECT_THAT(CheckInvariants(state_), ElementsAre(HasSubstr("double")));
  }
  EditPod(kPodA, [](PodRecord& pod) {
    pod.holds = {MakeHold({"0"}), MakeHold({"1"})};
  });
  EXPECT_THAT(CheckInvariants(state_), ElementsAre(HasSubstr("twice")));
}

TEST_F(InvariantsTest, ADeviceIsAllocatedToOneClaimHere) {
  Put(MakeLocalClaim("c1"));
  Put(MakeLocalClaim("c2"));
  EXPECT_THAT(CheckInvariants(state_), IsEmpty());
  const auto put_with = [&](bool shared) {
    LocalClaimRecord other = MakeLocalClaim("c2");
    auto object = std::make_shared<ResourceClaim>(*other.object);
    auto& result = object->status.allocation->results[0];
    result.device = "gpu-c1";
    if (shared) result.share_id = "7f0e1c52-0000-4000-8000-000000000009";
    other.object = object;
    Put(other);
  };
  put_with(true);
  EXPECT_THAT(CheckInvariants(state_), IsEmpty());
  put_with(false);
  ExpectViolation(
      "device 'gpu-c1' of 'd.example.com' is allocated to the claims 'c1' and "
      "'c2'");
}

class HolderInvariantsTest : public InvariantsTest {
 protected:
  HolderInvariantsTest() {
    EditPod(kPodA, [](PodRecord& pod) { pod.holds = {MakeHold({"0"})}; });
    Put(MakeHolder("c1", {"1", "2"}));
    Put(MakeHolder("c2", {"2"}));
  }
};

TEST_F(HolderInvariantsTest, HoldWhereNoPodHasWhatAForeignContainerHas) {
  EXPECT_THAT(CheckInvariants(state_), IsEmpty());
}

TEST_F(HolderInvariantsTest, NoPodIsGivenWhatAForeignContainerHas) {
  EditPod(kPodB, [](PodRecord& pod) { pod.holds = {MakeHold({"1"})}; });
  ExpectViolation(
      "device '1' of 'example.com/tpu' is held by the pod 'pod-b' and by "
      "foreign container c1 (pod default/stray)");
}

TEST_F(HolderInvariantsTest, AllowTheContainersOwnPodAndWhatWasFreed) {
  ForeignHolderRecord own = MakeHolder("c1", {"1", "2"});
  own.pod_uid = kPodB;
  Put(own);
  ForeignHolderRecord freed = MakeHolder("c2", {"2"});
  freed.freed = "it hangs";
  Put(freed);
  EditPod(kPodB, [](PodRecord& pod) { pod.holds = {MakeHold({"1", "2"})}; });
  EXPECT_THAT(CheckInvariants(state_), IsEmpty());
}

TEST_F(HolderInvariantsTest, AHolderHoldsSomething) {
  Put(MakeHolder("c3", {}));
  ExpectViolation("foreign container c3 (pod default/stray) holds nothing");
}

TEST_F(HolderInvariantsTest, TheIndexKnowsWhatTheyHold) {
  state_.foreign_devices.clear();
  ExpectViolation("3 devices are held by foreign containers, 0 are found");
  state_.foreign_holders.insert_or_assign({"c4"},
                                          state_.foreign_holders.at({"c1"}));
  ExpectViolation("foreign container 'c1' is kept under 'c4'");
}

}  // namespace
}  // namespace devmgr::state
