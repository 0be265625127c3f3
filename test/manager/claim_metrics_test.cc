// SPDX-License-Identifier: Apache-2.0
//
// What a host is told of claims for its metrics.
#include "manager/manager_fixture.h"
#include "manager/recorded_metrics.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ClaimMetricsSink final : public RecordedMetrics {
 public:
  void OnClaimsPrepared(std::chrono::nanoseconds took, bool failed) override {
    Add(failed ? "prepare failed" : "prepared", took);
  }
  void OnClaimsUnprepared(std::chrono::nanoseconds took, bool failed) override {
    Add(failed ? "unprepare failed" : "unprepared", took);
  }
  void OnPrepareSkipped(const std::string& driver) override {
    Add("no prepare by " + driver);
  }
  void OnUnprepareSkipped(const std::string& driver) override {
    Add("no unprepare by " + driver);
  }
};

class ClaimMetricsTest : public ManagerTest {
 protected:
  ClaimMetricsTest() { node_.metrics = &sink_; }
  ~ClaimMetricsTest() override { node_.Stop(); }

  /// Nobody drives the pod but the test.
  void Admit(const std::string& claims) {
    node_.Start(false);
    node_.Publish(claims + PodYaml("p", "u-p", {"c1"}));
    while (node_.manager().Objects()->claims.empty())
      node_.manager().View()->Node();
    const Pod pod = *node_.manager().Objects()->pods.at({"default", "p"});
    const auto verdict = node_.manager().AdmitPod(pod);
    ASSERT_THAT(verdict, IsOk());
    ASSERT_EQ(verdict->kind, Verdict::Kind::kAdmit) << verdict->message;
  }
  absl::Status PrepareP() { return node_.manager().PreparePod({"u-p"}); }
  absl::Status UnprepareP() { return node_.manager().UnpreparePod({"u-p"}); }

  ClaimMetricsSink sink_;
};

// DRA-168
TEST_F(ClaimMetricsTest, EachOperationIsToldWithHowItEnded) {
  Admit(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}));
  node_.drivers.Answer(kDriver, FailTimes(true, "c1", 1));
  EXPECT_FALSE(PrepareP().ok());
  EXPECT_THAT(sink_.calls(), ElementsAre("prepare failed"));
  EXPECT_THAT(PrepareP(), IsOk());
  EXPECT_THAT(sink_.calls(), ElementsAre("prepare failed", "prepared"));
  node_.drivers.Answer(kDriver, FailTimes(false, "c1", 1));
  EXPECT_FALSE(UnprepareP().ok());
  EXPECT_THAT(UnprepareP(), IsOk());
  EXPECT_THAT(sink_.calls(), ElementsAre("prepare failed", "prepared",
                                         "unprepare failed", "unprepared"));
}

TEST_F(ClaimMetricsTest, TheTimeOfAnOperationIsThatUntilItsEnd) {
  constexpr std::chrono::milliseconds kHeld(20);
  Admit(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}));
  node_.drivers.Hold(kDriver);
  node_.manager().StartPreparePod({"u-p"}, [](const absl::Status&) {});
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  EXPECT_THAT(sink_.calls(), IsEmpty());
  node_.RunAfter(kHeld, [this] { node_.drivers.Let(kDriver); });
  ASSERT_TRUE(
      node_.WaitUntil("it has ended", [&] { return !sink_.calls().empty(); }));
  EXPECT_THAT(sink_.calls(), ElementsAre("prepared"));
  EXPECT_GE(sink_.longest(), kHeld);
}

// DRA-108: the skip counters, each once; nobody is called, nor is there.
TEST_F(ClaimMetricsTest, CallsThatADriverDoesWithoutAreCountedOnce) {
  node_.options.feature_gates["DRAOptionalNodeOperations"] = true;
  node_.drivers.Deregister(kDriver);
  std::string claim = ClaimYaml("c1", "u-c", {kDriver}, {"u-p"});
  const std::string device = "device: dev-1";
  claim.replace(claim.find(device), device.size(),
                device + ", skipNodeOperations: [\"*\"]");
  Admit(claim);
  EXPECT_THAT(PrepareP(), IsOk());
  const std::string skipped = "no prepare by " + std::string(kDriver);
  EXPECT_THAT(sink_.calls(), ElementsAre(skipped, "prepared"));
  EXPECT_THAT(PrepareP(), IsOk());
  EXPECT_THAT(sink_.calls(), ElementsAre(skipped, "prepared", "prepared"));
  EXPECT_THAT(UnprepareP(), IsOk());
  EXPECT_THAT(sink_.calls(),
              ElementsAre(skipped, "prepared", "prepared",
                          "no unprepare by d.example.com", "unprepared"));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
}

TEST_F(ClaimMetricsTest, NoCallsAreCountedOfDriversThatAreCalled) {
  Admit(ClaimYaml("c1", "u-c", {kDriver, kOther}, {"u-p"}));
  EXPECT_THAT(PrepareP(), IsOk());
  EXPECT_THAT(UnprepareP(), IsOk());
  EXPECT_THAT(sink_.calls(), ElementsAre("prepared", "unprepared"));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(4));
}

// DRA-167: what the gauge is made of. A claim counts while it is Prepared, for
// each of its drivers; the page's own test is test/tools/metrics_test.cc.
TEST_F(ClaimMetricsTest, ClaimsInUseAreThoseOfTheLedgerUntilTheyAreGone) {
  Admit(ClaimYaml("c1", "u-c", {kDriver, kOther}, {"u-p"}));
  EXPECT_THAT(node_.manager().View()->Claims(), IsEmpty());
  EXPECT_THAT(PrepareP(), IsOk());
  const auto claims = node_.manager().View()->Claims();
  ASSERT_THAT(claims, SizeIs(1));
  EXPECT_EQ(claims[0].state, ClaimState::kPrepared);
  EXPECT_THAT(claims[0].drivers, SizeIs(2));
  EXPECT_THAT(UnprepareP(), IsOk());
  EXPECT_THAT(node_.manager().View()->Claims(), IsEmpty());
}

}  // namespace
}  // namespace devmgr
