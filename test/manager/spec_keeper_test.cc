// SPDX-License-Identifier: Apache-2.0
//
// Spec files that are gone when a container is about to start.
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "manager/spec_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SpecKeeperTest : public SpecNodeTest {
 protected:
  absl::Status BeforeStart(const std::string& pod) {
    return node_.manager().BeforeContainerStart(node_.UidOf(pod), "c");
  }

  /// The driver is asked, and answers once the start was refused: a start that
  /// comes after an answer in vain is let go on.
  void ExpectRefusalUntilTheDriverAnswers(const std::string& pod) {
    node_.drivers.Hold(kDriver);
    EXPECT_THAT(BeforeStart(pod), StatusIs(absl::StatusCode::kUnavailable));
    node_.drivers.Let(kDriver);
  }

  std::size_t EventsOf(const std::string& reason) {
    std::size_t count = 0;
    for (const EventInfo& event : node_.manager().Events(0)) {
      if (event.reason == reason) ++count;
    }
    return count;
  }
};

TEST_F(SpecKeeperTest, LetsPassWhatIsThere) {
  PreparePods();
  const std::size_t batches = node_.store.batches();
  EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_THAT(BeforeStart("q"), IsOk());
  EXPECT_EQ(node_.store.batches(), batches);
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
}

TEST_F(SpecKeeperTest, AMissingSpecHasTheDriverPrepareAgainBeforeTheStart) {
  PreparePods();
  std::filesystem::remove(SpecOf("u-c"));
  node_.drivers.Hold(kDriver);
  EXPECT_THAT(BeforeStart("p"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("'default/u-c'"),
                             HasSubstr("d.example.com/x=u-c"))));
  // Until the driver has answered nothing starts and nothing resolves.
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  for (const std::string pod : {"p", "q"}) {
    EXPECT_EQ(node_.PodNamed(pod).state, PodState::kPreparing);
    EXPECT_THAT(BeforeStart(pod), StatusIs(absl::StatusCode::kUnavailable,
                                           AllOf(HasSubstr("'default/u-c'"),
                                                 HasSubstr(kDriver))));
    EXPECT_THAT(node_.Resolve(pod, "c"),
                ElementsAre(HasSubstr("being prepared")));
  }
  WriteSpec("u-c");
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_THAT(BeforeStart("q"), IsOk());
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"u-c"}),
                                                 Prepare(kDriver, {"u-c"})));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=u-c"));
}

TEST_F(SpecKeeperTest, TheRepairIsThatOfFsck) {
  PreparePods();
  std::filesystem::remove(SpecOf("u-c"));
  node_.drivers.Hold(kDriver);
  EXPECT_THAT(BeforeStart("p"), StatusIs(absl::StatusCode::kUnavailable));
  const auto history = node_.manager().maintenance().History(0);
  ASSERT_THAT(history, IsOk());
  EXPECT_THAT(
      *history,
      Contains(AllOf(
          Field(&DecisionInfo::kind, DecisionKind::kRepair),
          Field(&DecisionInfo::claims, ElementsAre("default/u-c")),
          Field(&DecisionInfo::pods, ElementsAre("default/p", "default/q")),
          Field(&DecisionInfo::message,
                AllOf(HasSubstr("before a container starts"),
                      HasSubstr("d.example.com/x=u-c"))))));
  EXPECT_EQ(EventsOf("Repaired"), 1u);
  node_.drivers.Let(kDriver);
}

// A driver that does not write its file again, asked in either way, will not do
// so the next time.
TEST_F(SpecKeeperTest, ADriverIsAskedInEachWayOnceAndThenTheRuntimeDecides) {
  PreparePods();
  std::filesystem::remove(SpecOf("u-c"));
  ExpectRefusalUntilTheDriverAnswers("p");
  ASSERT_TRUE(node_.drivers.WaitForCalls(4));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_THAT(
      node_.drivers.calls(),
      ElementsAre(Prepare(kDriver, {"u-c"}), Prepare(kDriver, {"u-c"}),
                  Unprepare(kDriver, {"u-c"}), Prepare(kDriver, {"u-c"})));
  EXPECT_EQ(EventsOf("MissingCdiSpec"), 1u);
  // Nor is it after a restart: the ledger knows.
  node_.Restart();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_THAT(node_.drivers.calls(), SizeIs(4));
  // What was there meanwhile is missed again.
  WriteSpec("u-c");
  EXPECT_THAT(BeforeStart("p"), IsOk());
  std::filesystem::remove(SpecOf("u-c"));
  ExpectRefusalUntilTheDriverAnswers("p");
  ASSERT_TRUE(node_.drivers.WaitForCalls(5));
}

TEST_F(SpecKeeperTest, TwoStartsAtOnceMakeOneRepair) {
  PreparePods();
  std::filesystem::remove(SpecOf("u-c"));
  // Who looks only when it has answered in vain is let go on.
  node_.drivers.Hold(kDriver);
  std::vector<std::future<absl::Status>> ends;
  for (const std::string pod : {"p", "q", "p"}) {
    auto end = std::make_shared<std::promise<absl::Status>>();
    ends.push_back(end->get_future());
    node_.manager().StartBeforeContainerStart(
        node_.UidOf(pod), "c",
        [end](absl::Status status) { end->set_value(std::move(status)); });
  }
  for (auto& end : ends) {
    EXPECT_THAT(end.get(), StatusIs(absl::StatusCode::kUnavailable));
  }
  WriteSpec("u-c");
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(2));
  EXPECT_EQ(EventsOf("Repaired"), 1u);
}

TEST_F(SpecKeeperTest, ARefusalLeavesTheContainerUnavailable) {
  PreparePods();
  std::filesystem::remove(SpecOf("u-c"));
  node_.drivers.Answer(kDriver, FailTimes(true, "u-c", 1));
  ExpectRefusalUntilTheDriverAnswers("p");
  ASSERT_TRUE(node_.drivers.WaitForCalls(3));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// --- Drivers that remember ---------------------------------------------------

/// As stock drivers: what is in their checkpoint is answered from it, and its
/// spec is not written again.
class RememberingDriverTest : public SpecKeeperTest {
 protected:
  void SetUp() override {
    SpecKeeperTest::SetUp();
    node_.drivers.Answer(
        kDriver, [this](bool prepare, const dra::ClaimReference& claim) {
          if (!prepare) {
            known_.erase(claim.name.name);
            std::filesystem::remove(SpecOf(claim.name.name));
          } else if (known_.insert(claim.name.name).second) {
            WriteSpec(claim.name.name);
          }
          return absl::OkStatus();
        });
  }
  void LoseSpecs() { std::filesystem::remove(SpecOf("u-c")); }
  bool HasSpec() const { return std::filesystem::exists(SpecOf("u-c")); }
  std::vector<FsckFinding> Missing() {
    std::vector<FsckFinding> missing;
    const auto report = node_.manager().maintenance().Fsck(FsckMode::kCheck);
    EXPECT_THAT(report, IsOk());
    for (const FsckFinding& finding : report->findings) {
      if (finding.check == "missing-spec") missing.push_back(finding);
    }
    return missing;
  }
  const std::vector<FakeDrivers::Call> kRenewal = {
      Prepare(kDriver, {"u-c"}), Prepare(kDriver, {"u-c"}),
      Unprepare(kDriver, {"u-c"}), Prepare(kDriver, {"u-c"})};

 private:
  std::set<std::string> known_;  ///< Used on the manager's thread only.
};

TEST_F(RememberingDriverTest, UnpreparesAndPreparesBeforeTheFirstStart) {
  PreparePods();
  LoseSpecs();
  ExpectRefusalUntilTheDriverAnswers("p");
  ASSERT_TRUE(node_.drivers.WaitForCalls(4));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_TRUE(HasSpec());
  EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_EQ(node_.drivers.calls(), kRenewal);
  EXPECT_EQ(EventsOf("Repaired"), 2u);
  EXPECT_EQ(EventsOf("MissingCdiSpec"), 0u);
  EXPECT_THAT(Missing(), IsEmpty());
}

// Specs lay in memory, the checkpoint on disk. Nobody has to start a container
// for it to be noticed.
TEST_F(RememberingDriverTest, UnpreparesAndPreparesAfterAReboot) {
  PreparePods();
  EXPECT_THAT(BeforeStart("p"), IsOk());  // of the boot before
  node_.Stop();
  LoseSpecs();
  node_.boot_id = "boot-2";
  node_.Start();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_TRUE(HasSpec());
  EXPECT_EQ(node_.drivers.calls(), kRenewal);
  EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=u-c"));
}

TEST_F(RememberingDriverTest, WhatIsThereAfterARebootIsLeftAlone) {
  PreparePods();
  node_.Reboot();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(2));
}

TEST_F(RememberingDriverTest, NeverUnpreparesUnderAContainerThatMayRun) {
  PreparePods();
  EXPECT_THAT(BeforeStart("q"), IsOk());
  LoseSpecs();
  ExpectRefusalUntilTheDriverAnswers("p");
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(BeforeStart("p"), IsOk());  // the runtime decides
  EXPECT_THAT(node_.drivers.calls(), SizeIs(2));
  EXPECT_EQ(EventsOf("MissingCdiSpec"), 1u);
  // The advice helps: the last pod that goes takes the claim along.
  const auto missing = Missing();
  ASSERT_THAT(missing, SizeIs(1));
  EXPECT_EQ(missing[0].repair, "");
  EXPECT_THAT(missing[0].hint, AllOf(HasSubstr("'default/p', 'default/q'"),
                                     HasSubstr("delete these pods")));
  EXPECT_THAT(missing[0].message, HasSubstr(folder_.path().string()));
}

// Of a manager that was opened in the middle nobody knows what runs.
TEST_F(RememberingDriverTest, NeverUnpreparesWhatMayHaveBegunBeforeARestart) {
  PreparePods();
  node_.Restart();
  LoseSpecs();
  ExpectRefusalUntilTheDriverAnswers("p");
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_THAT(node_.drivers.calls(), SizeIs(2));
}

// Without BeforeContainerStart: who has read an answer may run a container.
TEST_F(RememberingDriverTest, FsckUnpreparesOnlyWhatNobodyHasRead) {
  PreparePods();
  EXPECT_THAT(node_.Resolve("q", "c"), SizeIs(1));
  LoseSpecs();
  ASSERT_THAT(node_.manager().maintenance().Fsck(FsckMode::kRepair), IsOk());
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  const auto missing = Missing();
  ASSERT_THAT(missing, SizeIs(1));
  EXPECT_THAT(missing[0].hint, HasSubstr("containers of 'default/q' may run"));
  ASSERT_THAT(node_.manager().maintenance().Fsck(FsckMode::kRepair), IsOk());
  EXPECT_THAT(node_.drivers.calls(), SizeIs(2));
  // One that asks before it starts any has not started one yet.
  ExpectRefusalUntilTheDriverAnswers("q");
  ASSERT_TRUE(node_.drivers.WaitForCalls(4));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_TRUE(HasSpec());
}

TEST_F(RememberingDriverTest, FsckUnpreparesAndPrepares) {
  PreparePods();
  LoseSpecs();
  ASSERT_THAT(node_.manager().maintenance().Fsck(FsckMode::kRepair), IsOk());
  ASSERT_TRUE(node_.drivers.WaitForCalls(4));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_EQ(node_.drivers.calls(), kRenewal);
  EXPECT_THAT(Missing(), IsEmpty());
}

// The driver is at it when we die: the intent is carried out.
TEST_F(RememberingDriverTest, ARestartInTheMiddleGoesOnWithIt) {
  PreparePods();
  LoseSpecs();
  node_.drivers.Hold(kDriver);
  EXPECT_THAT(BeforeStart("p"), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.drivers.WaitForCalls(3));
  node_.drivers.Hold(kDriver);
  node_.Restart();
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_TRUE(HasSpec());
  EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_THAT(Missing(), IsEmpty());
}

TEST_F(RememberingDriverTest, AnUnprepareThatFailsIsTriedAgain) {
  PreparePods();
  LoseSpecs();
  // Once in vain, from its memory.
  node_.drivers.Hold(kDriver);
  EXPECT_THAT(BeforeStart("p"), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  auto left = std::make_shared<int>(1);
  node_.drivers.Answer(kDriver,
                       [this, left](bool prepare, const dra::ClaimReference&) {
                         if (!prepare && (*left)-- > 0)
                           return absl::InternalError("busy");
                         if (prepare && *left <= 0) WriteSpec("u-c");
                         return absl::OkStatus();
                       });
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.drivers.WaitForCalls(5));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_TRUE(HasSpec());
  EXPECT_THAT(
      node_.drivers.calls(),
      ElementsAre(Prepare(kDriver, {"u-c"}), Prepare(kDriver, {"u-c"}),
                  Unprepare(kDriver, {"u-c"}), Unprepare(kDriver, {"u-c"}),
                  Prepare(kDriver, {"u-c"})));
}

// --- Directories -------------------------------------------------------------

TEST_F(SpecKeeperTest, ADirectoryThatAppearsLaterCounts) {
  const std::filesystem::path later = folder_.path() / "var/run/cdi";
  node_.options.cdi_spec_dirs.insert(node_.options.cdi_spec_dirs.begin(),
                                     later);
  PreparePods();
  EXPECT_THAT(BeforeStart("p"), IsOk());
  std::filesystem::create_directories(later);
  std::filesystem::rename(SpecOf("u-c"), later / "u-c.yaml");
  EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
  std::filesystem::remove_all(later);
  EXPECT_THAT(BeforeStart("p"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("in '" + later.string() + "', '" +
                                 folder_.path().string() + "' defines")));
}

// Where we cannot look everywhere, nothing is known to be missing.
TEST_F(SpecKeeperTest, AnUnreadableDirectoryHidesWhatIsMissing) {
  const std::filesystem::path file = folder_.path() / "file";
  std::ofstream(file) << "x";
  node_.options.cdi_spec_dirs.push_back(file);
  PreparePods();
  std::filesystem::remove(SpecOf("u-c"));
  EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
}

TEST_F(SpecKeeperTest, WithoutDirectoriesNothingIsLookedFor) {
  node_.options.cdi_spec_dirs.clear();
  PreparePods();
  std::filesystem::remove(SpecOf("u-c"));
  EXPECT_THAT(BeforeStart("p"), IsOk());
}

TEST_F(SpecKeeperTest, ACancelledStartIsOverAtOnce) {
  PreparePods();
  auto end = std::make_shared<std::promise<absl::Status>>();
  auto future = end->get_future();
  const OperationId id = node_.manager().StartBeforeContainerStart(
      node_.UidOf("p"), "c",
      [end](absl::Status status) { end->set_value(std::move(status)); });
  node_.manager().Cancel(id);
  const absl::Status status = future.get();
  EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
}

}  // namespace
}  // namespace devmgr
