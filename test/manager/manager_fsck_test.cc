// SPDX-License-Identifier: Apache-2.0
//
// Checking and repairing while the manager runs.
#include <filesystem>
#include <fstream>

#include "cdistore/spec_directory.h"
#include "manager/device_fixture.h"
#include "manager/spec_fixture.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ManagerFsckTest : public SpecNodeTest {
 protected:
  FsckReport Fsck(FsckMode mode = FsckMode::kCheck) {
    auto report = node_.manager().maintenance().Fsck(mode);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : FsckReport();
  }
};

TEST_F(ManagerFsckTest, FindsNothingWhereNothingIsWrong) {
  PreparePods();
  const FsckReport report = Fsck();
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.ledger_sequence,
            node_.manager().View()->Node().ledger_sequence);
  EXPECT_THAT(Fsck(FsckMode::kRepair).repairs, IsEmpty());
}

TEST_F(ManagerFsckTest, CheckingChangesNothing) {
  PreparePods();
  std::filesystem::remove(folder_.path() / "u-c.yaml");
  const std::size_t batches = node_.store.batches();
  const FsckReport report = Fsck();
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].check, "missing-spec");
  EXPECT_EQ(node_.store.batches(), batches);
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
}

TEST_F(ManagerFsckTest, MissingSpecIsPreparedAgainForAllPods) {
  PreparePods();
  std::filesystem::remove(folder_.path() / "u-c.yaml");
  node_.drivers.Hold(kDriver);
  const FsckReport report = Fsck(FsckMode::kRepair);
  ASSERT_THAT(report.repairs, SizeIs(1));
  EXPECT_EQ(report.repairs[0].error, "");
  EXPECT_THAT(report.findings, IsEmpty());
  // No answer holds until the driver has answered.
  for (const std::string pod : {"p", "q"}) {
    EXPECT_EQ(node_.PodNamed(pod).state, PodState::kPreparing);
    EXPECT_THAT(node_.Resolve(pod, "c"),
                ElementsAre(HasSubstr("being prepared")));
  }
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  WriteSpec("u-c");
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"u-c"}),
                                                 Prepare(kDriver, {"u-c"})));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=u-c"));
  EXPECT_THAT(Fsck().findings, IsEmpty());
}

TEST_F(ManagerFsckTest, RepairsAreInHistoryAndEvents) {
  PreparePods();
  std::filesystem::remove(folder_.path() / "u-c.yaml");
  Fsck(FsckMode::kRepair);
  const auto history = node_.manager().maintenance().History(0);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_THAT(
      *history,
      Contains(AllOf(
          Field(&DecisionInfo::kind, DecisionKind::kRepair),
          Field(&DecisionInfo::claims, ElementsAre("default/u-c")),
          Field(&DecisionInfo::pods, ElementsAre("default/p", "default/q")),
          Field(&DecisionInfo::message, HasSubstr("d.example.com/x=u-c")))));
  EXPECT_THAT(node_.manager().Events(0),
              Contains(AllOf(Field(&EventInfo::reason, "Repaired"),
                             Field(&EventInfo::warning, true))));
}

TEST_F(ManagerFsckTest, ADriverThatFailsTheRepairIsAskedAgain) {
  PreparePods();
  node_.drivers.Answer(kDriver, FailTimes(true, "u-c", 1));
  std::filesystem::remove(folder_.path() / "u-c.yaml");
  Fsck(FsckMode::kRepair);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
}

// A restart in the middle of a repair does not lose it.
TEST_F(ManagerFsckTest, RepairGoesOnAfterARestart) {
  PreparePods();
  std::filesystem::remove(folder_.path() / "u-c.yaml");
  node_.drivers.Hold(kDriver);
  Fsck(FsckMode::kRepair);
  node_.Stop();
  node_.drivers.Let(kDriver);
  node_.Start();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
}

TEST_F(ManagerFsckTest, OrphanIsSetAsideAndRecorded) {
  PreparePods();
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  const std::filesystem::path file = folder_.path() / "u-c.yaml";
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(Fsck().findings.at(0).check, "orphaned-spec");
  ASSERT_TRUE(std::filesystem::exists(file));
  const FsckReport report = Fsck(FsckMode::kRepair);
  ASSERT_THAT(report.repairs, SizeIs(1));
  EXPECT_EQ(report.repairs[0].error, "");
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::exists(cdistore::AsidePath(file)));
  EXPECT_THAT(
      *node_.manager().maintenance().History(0),
      Contains(AllOf(Field(&DecisionInfo::kind, DecisionKind::kRepair),
                     Field(&DecisionInfo::message, HasSubstr(file.string())))));
}

TEST_F(ManagerFsckTest, NothingIsRepairedThatCannotBeRecorded) {
  PreparePods();
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  node_.store.FailNext(SharedStore::Failure::kLost);
  const FsckReport report = Fsck(FsckMode::kRepair);
  ASSERT_THAT(report.repairs, SizeIs(1));
  EXPECT_THAT(report.repairs[0].error, HasSubstr("input/output error"));
  EXPECT_THAT(report.findings, SizeIs(1));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "u-c.yaml"));
}

TEST_F(ManagerFsckTest, WarnsOfDriversThatAreAway) {
  PreparePods();
  node_.drivers.Deregister(kDriver);
  const FsckReport report = Fsck();
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].check, "absent-driver");
  EXPECT_FALSE(report.findings[0].error);
}

TEST_F(ManagerFsckTest, WarnsOfPodsThatNobodyReleases) {
  node_.Start(false);
  node_.Publish(PodYaml("p", "u-p", {}));
  // The manager sees an object once its thread has come to it.
  while (node_.manager().Objects()->pods.empty())
    node_.manager().View()->Node();
  Pod pod;
  pod.metadata.name = "p";
  pod.metadata.ns = "default";
  pod.metadata.uid = "u-p";
  pod.spec.containers.resize(1);
  pod.spec.containers[0].name = "main";
  ASSERT_TRUE(node_.manager().AdmitPod(pod).ok());
  ASSERT_TRUE(node_.manager().PreparePod(PodUid{"u-p"}).ok());
  EXPECT_THAT(Fsck().findings, IsEmpty());
  node_.Publish("");
  while (!node_.manager().Objects()->pods.empty())
    node_.manager().View()->Node();
  const FsckReport report = Fsck();
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].check, "gone-pod");
}

TEST_F(ManagerFsckTest, WithoutDirectoriesNoSpecIsMissed) {
  node_.options.cdi_spec_dirs.clear();
  PreparePods();
  std::filesystem::remove(folder_.path() / "u-c.yaml");
  EXPECT_THAT(Fsck().findings, IsEmpty());
}

/// Pod `p` is Ready with GPU 0 of two.
class ManagerDeviceFsckTest : public ManagerFsckTest {
 protected:
  void SetUp() override {
    ManagerFsckTest::SetUp();
    WriteGpuSpec();
    node_.Start();
    node_.plugins.Serve(kGpu, 2);
    node_.Publish(DevicePod("p", {{kGpu, 1}}));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  }
  void WriteGpuSpec() {
    std::ofstream(folder_.path() / "gpu.yaml")
        << "cdiVersion: 0.5.0\nkind: " << kGpu
        << "\ndevices: [{name: \"0\", containerEdits: {env: [A=0]}}]\n";
  }
  /// What is told before this is heard before the checks look.
  std::vector<std::string> Checks() {
    std::vector<std::string> checks;
    for (const FsckFinding& finding : Fsck().findings) {
      checks.push_back(finding.check);
    }
    return checks;
  }
};

TEST_F(ManagerDeviceFsckTest, FindsNothingWhereNothingIsWrong) {
  EXPECT_THAT(Checks(), IsEmpty());
}

TEST_F(ManagerDeviceFsckTest, WarnsOfDevicesThatThePluginDoesNotVouchFor) {
  node_.plugins.Report(kGpu, {{"0", device::Health::kUnhealthy, {}}});
  EXPECT_THAT(Checks(), ElementsAre("unhealthy-device"));
  node_.plugins.Report(kGpu, {{"1", device::Health::kHealthy, {}}});
  EXPECT_THAT(Checks(), ElementsAre("unlisted-device"));
  node_.plugins.Report(kGpu, HealthyDevices(2));
  EXPECT_THAT(Checks(), IsEmpty());
}

TEST_F(ManagerDeviceFsckTest, WarnsOfPluginsThatAreAway) {
  node_.plugins.Lose(kGpu);
  EXPECT_THAT(Checks(), ElementsAre("absent-plugin"));
  node_.Restart();
  EXPECT_THAT(Checks(), ElementsAre("absent-plugin"));
  node_.plugins.Connect(kGpu);  // And tells nothing.
  EXPECT_THAT(Checks(), ElementsAre("absent-plugin"));
  node_.plugins.Report(kGpu, HealthyDevices(2));
  EXPECT_THAT(Checks(), IsEmpty());
}

TEST_F(ManagerDeviceFsckTest, MissingSpecOfAPluginIsLeftToPeople) {
  std::filesystem::remove(folder_.path() / "gpu.yaml");
  const FsckReport report = Fsck(FsckMode::kRepair);
  EXPECT_THAT(report.repairs, IsEmpty());
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].check, "missing-spec");
  EXPECT_EQ(report.findings[0].object, "pod/default/p");
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  WriteGpuSpec();
  EXPECT_THAT(Checks(), IsEmpty());
}

}  // namespace
}  // namespace devmgr
