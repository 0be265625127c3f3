// SPDX-License-Identifier: Apache-2.0
//
// Spec files that are gone when a container is about to start.
#include <filesystem>
#include <fstream>
#include <future>

#include "manager/manager_fixture.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SpecKeeperTest : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    node_.options.cdi_spec_dirs = {folder_.path()};
  }

  /// The fake driver calls the device of a claim by the claim's name.
  void WriteSpec(const std::string& claim) {
    std::ofstream(SpecOf(claim)) << "cdiVersion: 0.5.0\nkind: " << kDriver
                                 << "/x\ndevices: [{name: " << claim
                                 << ", containerEdits: {env: [A=1]}}]\n";
  }
  std::filesystem::path SpecOf(const std::string& claim) const {
    return folder_.path() / (claim + ".yaml");
  }

  /// Two Ready pods that share the claim `u-c`, named as its UID.
  void PreparePods() {
    WriteSpec("u-c");
    node_.Start();
    node_.Publish(ClaimYaml("u-c", "u-c", {kDriver}, {"u-p", "u-q"}) +
                  PodYaml("p", "u-p", {"u-c"}) + PodYaml("q", "u-q", {"u-c"}));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
    ASSERT_THAT(node_.drivers.calls(), SizeIs(1));
  }

  absl::Status BeforeStart(const std::string& pod) {
    return node_.manager().BeforeContainerStart(node_.UidOf(pod), "c");
  }

  std::size_t EventsOf(const std::string& reason) {
    std::size_t count = 0;
    for (const EventInfo& event : node_.manager().Events(0)) {
      if (event.reason == reason) ++count;
    }
    return count;
  }

  TempFolder folder_;
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
  EXPECT_THAT(BeforeStart("p"), StatusIs(absl::StatusCode::kUnavailable));
  const auto history = node_.manager().History(0);
  ASSERT_THAT(history, IsOk());
  EXPECT_THAT(
      *history,
      Contains(AllOf(
          Field(&DecisionInfo::kind, "Repair"),
          Field(&DecisionInfo::claims, ElementsAre("default/u-c")),
          Field(&DecisionInfo::pods, ElementsAre("default/p", "default/q")),
          Field(&DecisionInfo::message,
                AllOf(HasSubstr("before a container starts"),
                      HasSubstr("d.example.com/x=u-c"))))));
  EXPECT_EQ(EventsOf("Repaired"), 1u);
}

// A driver that does not write its file again will not do so the third time.
TEST_F(SpecKeeperTest, ADriverIsAskedOnceAndThenTheRuntimeDecides) {
  PreparePods();
  std::filesystem::remove(SpecOf("u-c"));
  EXPECT_THAT(BeforeStart("p"), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(BeforeStart("p"), IsOk());
  EXPECT_THAT(node_.drivers.calls(), SizeIs(2));
  EXPECT_EQ(EventsOf("MissingCdiSpec"), 1u);
  // What was there meanwhile is missed again.
  WriteSpec("u-c");
  EXPECT_THAT(BeforeStart("p"), IsOk());
  std::filesystem::remove(SpecOf("u-c"));
  EXPECT_THAT(BeforeStart("p"), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(node_.drivers.WaitForCalls(3));
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
  EXPECT_THAT(BeforeStart("p"), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(node_.drivers.WaitForCalls(3));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
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
