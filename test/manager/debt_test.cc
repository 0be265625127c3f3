// SPDX-License-Identifier: Apache-2.0
//
// Drivers that do not unprepare: what they owe is on disk, seen at once, asked
// for again when they are back, and waited for as long as the policy says.
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Policy = DebtPolicy::Kind;

class DebtTest : public ManagerTest {
 protected:
  /// Pod `p` with claim `c1` of kDriver is Ready, then gone.
  void EndPod() {
    node_.Start();
    node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                  PodYaml("p", "u-p", {"c1"}));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    before_end_();
    node_.Publish("");
  }
  /// Nobody but the test drives the pod.
  void PreparePodByHand() {
    node_.Start(false);
    node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                  PodYaml("p", "u-p", {"c1"}));
    while (node_.manager().Objects()->claims.empty())
      node_.manager().View()->Node();
    const Pod pod = *node_.manager().Objects()->pods.at({"default", "p"});
    ASSERT_THAT(node_.manager().AdmitPod(pod), IsOk());
    ASSERT_THAT(node_.manager().PreparePod(PodUid{"u-p"}), IsOk());
  }

  std::vector<DebtInfo> Debts() {
    node_.Sync();
    return node_.manager().View()->Debts();
  }
  testing::AssertionResult WaitForDebt() {
    return node_.WaitUntil("there is a debt", [&] { return !Debts().empty(); });
  }
  testing::AssertionResult WaitUntilSettled() {
    return node_.WaitUntil("nothing is owed", [&] {
      return Debts().empty() && node_.manager().View()->Claims().empty();
    });
  }
  std::vector<std::string> Reasons() {
    std::vector<std::string> reasons;
    for (const EventInfo& event : node_.manager().Events(0)) {
      if (event.object_kind == "ResourceClaim") reasons.push_back(event.reason);
    }
    return reasons;
  }

  std::function<void()> before_end_ = [] {};
};

TEST_F(DebtTest, OfADriverThatIsGoneIsInTheBatchOfTheIntent) {
  before_end_ = [&] { node_.drivers.Deregister(kDriver); };
  EndPod();
  ASSERT_TRUE(WaitForDebt());
  const DebtInfo debt = Debts().front();
  EXPECT_EQ(debt.claim, (ObjectName{"default", "c1"}));
  EXPECT_EQ(debt.uid.value, "u-c");
  EXPECT_EQ(debt.driver, kDriver);
  EXPECT_THAT(debt.pods, ElementsAre("default/p"));
  EXPECT_EQ(debt.attempts, 0u);
  EXPECT_THAT(debt.last_error, HasSubstr("is not registered"));
  EXPECT_EQ(debt.policy, "block");
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReleasing);
  const auto decisions = node_.manager().maintenance().History(0);
  ASSERT_THAT(decisions, IsOk());
  EXPECT_EQ(decisions->back().kind, DecisionKind::kUnprepareIntent);

  node_.drivers.Register(kDriver);
  ASSERT_TRUE(WaitUntilSettled());
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(Reasons(), ElementsAre("DriverOwesUnprepare", "DebtSettled"));
}

TEST_F(DebtTest, OfADriverThatFailsIsRecordedWithItsErrorAndOutlivesARestart) {
  before_end_ = [&] {
    node_.drivers.Answer(kDriver, FailTimes(false, "c1", 1'000));
  };
  EndPod();
  ASSERT_TRUE(node_.WaitUntil("two attempts failed", [&] {
    const auto debts = Debts();
    return !debts.empty() && debts.front().attempts >= 2;
  }));
  EXPECT_THAT(Debts().front().last_error, HasSubstr("boom"));
  const WallTime since = Debts().front().since;
  node_.Stop();
  node_.Start(false);  // Nobody asks again.
  ASSERT_THAT(Debts(), SizeIs(1));
  EXPECT_GE(Debts().front().attempts, 2u);
  EXPECT_EQ(Debts().front().since, since);
}

TEST_F(DebtTest, OfAFirstFailureIsSeenBeforeAnyRetry) {
  node_.options.retries.first = std::chrono::hours(1);
  node_.options.retries.last = std::chrono::hours(1);
  before_end_ = [&] {
    node_.drivers.Answer(kDriver, FailTimes(false, "c1", 1'000));
  };
  EndPod();
  ASSERT_TRUE(WaitForDebt());
  EXPECT_EQ(Debts().front().attempts, 1u);
  EXPECT_THAT(Debts().front().last_error, HasSubstr("boom"));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(2))
      << "one to prepare, one to unprepare";
  const auto decisions = node_.manager().maintenance().History(0);
  ASSERT_THAT(decisions, IsOk());
  EXPECT_EQ(decisions->back().kind, DecisionKind::kDebt);
}

TEST_F(DebtTest, IsAskedForWhenTheDriverIsBackThoughNobodyDrivesThePod) {
  ASSERT_NO_FATAL_FAILURE(PreparePodByHand());
  node_.drivers.Deregister(kDriver);
  EXPECT_THAT(
      node_.manager().UnpreparePod(PodUid{"u-p"}),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not registered")));
  EXPECT_THAT(Debts(), SizeIs(1));
  node_.drivers.Register(kDriver);
  EXPECT_TRUE(WaitUntilSettled());
  EXPECT_THAT(node_.manager().ReleasePod(PodUid{"u-p"}), IsOk());
}

// The process died between the intent and the call, and the driver does not
// come back.
TEST_F(DebtTest, OfTheProcessBeforeIsSeenAtOnce) {
  ASSERT_NO_FATAL_FAILURE(PreparePodByHand());
  node_.drivers.Hold(kDriver);
  node_.manager().StartUnpreparePod(PodUid{"u-p"}, [](const absl::Status&) {});
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  node_.Stop();
  node_.drivers.Deregister(kDriver);
  node_.drivers.Let(kDriver);
  node_.Start(false);  // Nobody drives the pod.
  ASSERT_TRUE(WaitForDebt());
  EXPECT_THAT(Debts().front().last_error, HasSubstr("is not registered"));
  node_.drivers.Register(kDriver);
  EXPECT_TRUE(WaitUntilSettled());
}

TEST_F(DebtTest, DeferLetsThePodGoAndTheDebtIsSettledLater) {
  node_.options.dra.debt_policies[kDriver] = {Policy::kDefer};
  before_end_ = [&] { node_.drivers.Deregister(kDriver); };
  EndPod();
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  ASSERT_THAT(Debts(), SizeIs(1));
  EXPECT_EQ(Debts().front().policy, "defer");
  EXPECT_THAT(node_.manager().View()->Claims(), SizeIs(1));
  EXPECT_THAT(node_.drivers.prepared(kDriver), ElementsAre("u-c"));
  node_.Restart();
  ASSERT_THAT(Debts(), SizeIs(1));
  node_.drivers.Register(kDriver);
  ASSERT_TRUE(WaitUntilSettled());
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

TEST_F(DebtTest, IsForgivenAfterItsTime) {
  node_.options.dra.debt_policy = {Policy::kForgive,
                                   std::chrono::milliseconds(50)};
  before_end_ = [&] { node_.drivers.Deregister(kDriver); };
  EndPod();
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(Debts(), IsEmpty());
  EXPECT_THAT(node_.manager().View()->Claims(), IsEmpty());
  EXPECT_THAT(Reasons(), testing::Contains("DebtForgiven"));
}

TEST_F(DebtTest, APolicyOfZeroSecondsIsRefused) {
  DeviceManagerOptions options;
  options.ledger.in_memory = true;
  options.dra.debt_policies[kDriver] = {Policy::kForgive};
  EXPECT_THAT(DeviceManager::Open(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(kDriver)));
}

TEST_F(DebtTest, AnOperatorGivesTheClaimUp) {
  before_end_ = [&] { node_.drivers.Deregister(kDriver); };
  EndPod();
  ASSERT_TRUE(WaitForDebt());
  EXPECT_THAT(
      node_.manager().maintenance().ForceReleaseClaim({"default", "c1"}, ""),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reason")));
  EXPECT_THAT(
      node_.manager().maintenance().ForceReleaseClaim({"default", "x"}, "r"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("default/x")));
  ASSERT_THAT(node_.manager().maintenance().ForceReleaseClaim(
                  {"default", "c1"}, "the card was pulled"),
              IsOk());
  EXPECT_THAT(Debts(), IsEmpty());
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  const auto decisions = node_.manager().maintenance().History(0);
  ASSERT_THAT(decisions, IsOk());
  const auto forgiven = std::find_if(
      decisions->begin(), decisions->end(),
      [](const DecisionInfo& d) { return d.kind == DecisionKind::kForgiven; });
  ASSERT_NE(forgiven, decisions->end());
  EXPECT_THAT(forgiven->message, HasSubstr("the card was pulled"));
  EXPECT_THAT(forgiven->claims, ElementsAre("default/c1"));
}

TEST_F(DebtTest, AClaimInUseIsNotGivenUp) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(
      node_.manager().maintenance().ForceReleaseClaim({"default", "c1"}, "r"),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("used by default/p")));
}

// Four drivers, the third fails for good: what the others hold is prepared and
// recorded, or a debt, never unknown.
TEST_F(DebtTest, OfFourDriversTheThirdFailsForGood) {
  const std::vector<std::string> drivers = {"a.example.com", "b.example.com",
                                            "c.example.com", "d.example.com"};
  for (const std::string& driver : drivers) node_.drivers.Register(driver);
  const std::string& bad = drivers[2];
  node_.drivers.Answer(bad, [](bool, const dra::ClaimReference&) {
    return UnavailableError("it is on fire");
  });
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", drivers, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitUntil("the others have prepared", [&] {
    const auto claims = node_.manager().View()->Claims();
    return !claims.empty() &&
           std::count_if(claims[0].drivers.begin(), claims[0].drivers.end(),
                         [](const ClaimDriverInfo& driver) {
                           return driver.state == ClaimState::kPrepared;
                         }) == 3;
  }));
  ASSERT_TRUE(node_.WaitUntil("the third is told", [&] {
    return ::testing::Matches(ElementsAre(HasSubstr("on fire")))(
        node_.Resolve("p", "c"));
  }));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntil("only the third owes", [&] {
    const auto claims = node_.manager().View()->Claims();
    return claims.size() == 1 && claims[0].drivers.size() == 1 &&
           Debts().size() == 1;
  }));
  EXPECT_EQ(Debts().front().driver, bad);
  for (const std::string& driver : drivers) {
    EXPECT_THAT(node_.drivers.prepared(driver), IsEmpty()) << driver;
  }
  node_.drivers.Answer(bad, nullptr);
  node_.drivers.Deregister(bad);
  node_.drivers.Register(bad);
  EXPECT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_TRUE(WaitUntilSettled());
}

}  // namespace
}  // namespace devmgr
