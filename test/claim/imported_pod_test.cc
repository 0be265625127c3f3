// SPDX-License-Identifier: Apache-2.0
//
// A pod of which only a kubelet's checkpoint files are known is shown by the
// source: it keeps what it holds, and the rest is taken from its object.
#include "claim/imported_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "claim/container_answer.h"
#include "support/builders.h"
#include "support/status_matchers.h"
#include "support/test_ledger.h"

namespace devmgr::claim {
namespace {

using device::ContainerKind;
using device::ReservationPhase;
using state::PodPhase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kImportedGpu[] = "example.com/gpu";

state::DeviceHold ImportedHold(const std::string& container,
                               const std::string& id) {
  state::DeviceHold hold;
  hold.container = container;
  hold.resource = kImportedGpu;
  hold.phase = ReservationPhase::kCommitted;
  hold.devices = {{.id = id}};
  hold.edits.env = {{"GPU", id, {}}};
  return hold;
}

class ImportedPodTest : public testing::Test {
 protected:
  /// Ready with what its containers hold, as an import leaves it.
  void Import(std::vector<state::DeviceHold> holds) {
    auto pod = Imported();
    for (const state::DeviceHold& hold : holds) {
      pod->needs.push_back({hold.container, false, {}});
    }
    pod->holds = std::move(holds);
    pod->phase = PodPhase::kReady;
    pod->boot_id = ledger_.boot_id();
    const auto answer =
        AnswerFor(*pod, [](const ClaimUid&) { return nullptr; });
    ASSERT_THAT(answer, IsOk());
    pod->answer = *answer;
    Put(pod);
  }
  /// Of a pod with claims, which containers use them is not known.
  void ImportWithClaim() {
    auto claim = std::make_shared<state::ClaimRecord>();
    claim->uid = ClaimUid{"u-C"};
    claim->name = NameOf("C");
    claim->pods = {PodUid{"u-P"}};
    state::DriverRecord& part = claim->drivers[kDriver];
    part.phase = state::DriverPhase::kPrepared;
    part.boot_id = ledger_.boot_id();
    part.devices = {Prepared("dev-1", {"d.example.com/x=1"})};
    auto pod = Imported();
    pod->claims = {claim->uid};
    pod->phase = PodPhase::kPreparing;
    state::Decision decision;
    decision.kind = state::DecisionKind::kImported;
    decision.changes = {state::PutClaim{claim}, state::PutPod{pod}};
    ledger_.Take(decision);
  }
  void Put(std::shared_ptr<state::PodRecord> pod) {
    state::Decision decision;
    decision.kind = state::DecisionKind::kImported;
    decision.changes = {state::PutPod{std::move(pod)}};
    ledger_.Take(decision);
  }
  static std::shared_ptr<state::PodRecord> Imported() {
    auto pod = std::make_shared<state::PodRecord>();
    pod->uid = PodUid{"u-P"};
    pod->name = state::ImportedName(pod->uid);
    pod->imported = true;
    return pod;
  }

  /// Whether something was recorded.
  bool Show(const Pod& pod) {
    const auto decision = RecordShown(state(), pod);
    EXPECT_THAT(decision, IsOk());
    return decision.ok() && ledger_.Take(*decision);
  }
  const state::State& state() const { return ledger_.state(); }
  const state::PodRecord& Record() const {
    return *state().FindPod(PodUid{"u-P"});
  }
  std::vector<std::string> AnswerNames() const {
    std::vector<std::string> names;
    for (const auto& container : Record().answer->containers) {
      names.push_back(container.name);
    }
    return names;
  }

  TestLedger ledger_;
};

TEST_F(ImportedPodTest, APodThatIsShownHasItsNameAndKeepsItsDevices) {
  Import({ImportedHold("main", "gpu-0")});
  EXPECT_TRUE(IsImported(state(), PodUid{"u-P"}));
  const Pod pod = PodBuilder().Container("main");
  const auto decision = RecordShown(state(), pod);
  ASSERT_THAT(decision, IsOk());
  EXPECT_EQ(decision->kind, state::DecisionKind::kShown);
  EXPECT_THAT(decision->pods, ElementsAre(NameOf("P")));
  EXPECT_THAT(decision->message, HasSubstr("u-P"));
  ledger_.Take(*decision);
  EXPECT_FALSE(IsImported(state(), PodUid{"u-P"}));
  EXPECT_EQ(Record().name, NameOf("P"));
  EXPECT_EQ(Record().phase, PodPhase::kReady);
  EXPECT_EQ(Record().boot_id, ledger_.boot_id());
  ASSERT_NE(Record().answer, nullptr);
  EXPECT_EQ(Record().answer->name, NameOf("P"));
  ASSERT_EQ(Record().holds.size(), 1U);
  EXPECT_EQ(Record().holds[0], ImportedHold("main", "gpu-0"));
  // Nothing is left to record.
  EXPECT_FALSE(Show(pod));
}

TEST_F(ImportedPodTest, OnlyImportedPodsAreRecorded) {
  EXPECT_FALSE(IsImported(state(), PodUid{"u-P"}));
  EXPECT_FALSE(Show(PodBuilder().Container("main")));
  auto pod = Imported();
  pod->imported = false;
  pod->name = NameOf("P");
  pod->phase = PodPhase::kWaiting;
  Put(pod);
  EXPECT_FALSE(IsImported(state(), PodUid{"u-P"}));
  EXPECT_FALSE(Show(PodBuilder().Container("main")));
}

TEST_F(ImportedPodTest, HoldsGetTheKindsOfTheirContainers) {
  Import({ImportedHold("warm", "gpu-0"), ImportedHold("log", "gpu-1"),
          ImportedHold("main", "gpu-2")});
  Pod pod = PodBuilder()
                .InitContainer("warm")
                .InitContainer("log")
                .Container("main")
                .Container("plain");
  pod.spec.init_containers[1].restart_policy = "Always";
  EXPECT_TRUE(Show(pod));
  ASSERT_EQ(Record().holds.size(), 3U);
  EXPECT_EQ(Record().holds[0].kind, ContainerKind::kInit);
  EXPECT_EQ(Record().holds[1].kind, ContainerKind::kSidecar);
  EXPECT_EQ(Record().holds[2].kind, ContainerKind::kApp);
  // All containers are in the answer, in the order of the pod, those without
  // devices too.
  EXPECT_THAT(AnswerNames(), ElementsAre("warm", "log", "main", "plain"));
  EXPECT_TRUE(Record().answer->containers[0].init);
  EXPECT_FALSE(Record().answer->containers[2].init);
  EXPECT_THAT(Record().answer->containers[3].resources, IsEmpty());
}

// A debug container, or a file that does not fit the object: what a container
// holds is not lost because the object does not name it.
TEST_F(ImportedPodTest, AContainerThatOnlyTheFilesNameStaysInTheAnswer) {
  Import({ImportedHold("main", "gpu-0"), ImportedHold("debug", "gpu-1")});
  EXPECT_TRUE(Show(PodBuilder().Container("main")));
  EXPECT_THAT(AnswerNames(), ElementsAre("main", "debug"));
  EXPECT_EQ(Record().answer->containers[1].env.at(0).value, "gpu-1");
  EXPECT_EQ(Record().holds[1].kind, ContainerKind::kApp);
}

// The files had nothing of its claims: they are prepared before the pod is
// Ready again, and its devices stay with it meanwhile.
TEST_F(ImportedPodTest, APodWhoseObjectNamesClaimsIsPreparedFirst) {
  Import({ImportedHold("main", "gpu-0")});
  EXPECT_TRUE(Show(PodBuilder().Claim("c", "C").Container("main").Uses("c")));
  EXPECT_EQ(Record().phase, PodPhase::kAdmitted);
  EXPECT_EQ(Record().answer, nullptr);
  ASSERT_EQ(Record().holds.size(), 1U);
  EXPECT_TRUE(Record().holds[0].Holds());
}

TEST_F(ImportedPodTest, TheClaimOfExtendedResourcesIsPreparedFirstToo) {
  Import({ImportedHold("main", "gpu-0")});
  EXPECT_TRUE(Show(PodBuilder().Container("main").SpecialClaim("made")));
  EXPECT_EQ(Record().phase, PodPhase::kAdmitted);
  EXPECT_EQ(Record().answer, nullptr);
}

// Its plan says which container uses which claim: BookPod makes it Ready.
TEST_F(ImportedPodTest, APodWithClaimsStaysWhatItIsUntilItIsBooked) {
  ImportWithClaim();
  const Verdict wait = WaitToBeShown(Record());
  EXPECT_EQ(wait.kind, Verdict::Kind::kWait);
  EXPECT_EQ(wait.reason, kPodNotShown);
  ASSERT_EQ(wait.waiting_for.size(), 1U);
  EXPECT_EQ(wait.waiting_for[0].kind, WaitingFor::Kind::kPod);
  EXPECT_EQ(wait.waiting_for[0].name, Record().name.ToString());
  EXPECT_TRUE(Show(PodBuilder().Claim("c", "C").Container("main").Uses("c")));
  EXPECT_FALSE(IsImported(state(), PodUid{"u-P"}));
  EXPECT_EQ(Record().name, NameOf("P"));
  EXPECT_EQ(Record().phase, PodPhase::kPreparing);
  EXPECT_THAT(Record().claims, ElementsAre(ClaimUid{"u-C"}));
  EXPECT_THAT(Record().needs, IsEmpty());
}

// It is shown while it is being released: its phase does not go back.
TEST_F(ImportedPodTest, APodThatIsBeingReleasedIsOnlyNamed) {
  auto pod = Imported();
  pod->holds = {ImportedHold("main", "gpu-0")};
  pod->phase = PodPhase::kReleasing;
  Put(pod);
  EXPECT_TRUE(Show(PodBuilder().Claim("c", "C").Container("main").Uses("c")));
  EXPECT_EQ(Record().name, NameOf("P"));
  EXPECT_EQ(Record().phase, PodPhase::kReleasing);
  EXPECT_THAT(Record().needs, IsEmpty());
}

}  // namespace
}  // namespace devmgr::claim
