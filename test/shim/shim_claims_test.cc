// SPDX-License-Identifier: Apache-2.0
//
// The shim over a real manager, with claims and drivers.
#include "manager/manager_fixture.h"
#include "shim/shim_fixture.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Pod `default/p` has a claim `c1`, whose device a spec declares.
class ShimClaimsTest : public ShimTest {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    WriteSpec(kEdits);
    node_.drivers.Register(kDriver);
    node_.drivers.Prepares("c1",
                           {{{"r"}, "pool-1", "dev-1", {"v.com/c=1"}, ""}});
    node_.options.cdi_spec_dirs = {Path("cdi")};
    node_.Start();
    options_.manager = &node_.manager();
  }

  void PublishPod() {
    node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                  PodYaml("p", "u-p", {"c1"}));
  }
  static Request ForPod() {
    Request request = ForContainer("c", "u-p");
    request.mutable_sandbox_config()->mutable_metadata()->set_namespace_(
        "default");
    return request;
  }

  static constexpr char kEdits[] = R"({"env": ["K=cdi"]})";
  TestNode node_;
};

// BO-104.
TEST_F(ShimClaimsTest, HoldsBackAContainerWhoseClaimIsNotPrepared) {
  node_.drivers.Hold(kDriver);
  PublishPod();
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kPreparing));
  Start();
  EXPECT_THAT(Refused(ForPod()),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("c1"), HasSubstr(kDriver))));
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(NamesOf(Created(ForPod())), ElementsAre("v.com/c=1"));
}

// Specs that vanished while the ledger remembers the claim, as where their
// directory lies in memory.
TEST_F(ShimClaimsTest, HasAClaimPreparedAgainWhoseSpecVanished) {
  PublishPod();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  std::filesystem::remove_all(Path("cdi"));
  node_.drivers.Answer(kDriver, [this](bool, const dra::ClaimReference&) {
    WriteSpec(kEdits);
    return absl::OkStatus();
  });
  Start("1.6.33");
  EXPECT_THAT(PairsOf(Created(ForPod()).envs()), ElementsAre("K=cdi"));
  EXPECT_THAT(node_.drivers.calls(),
              ElementsAre(Prepare(kDriver, {"c1"}), Prepare(kDriver, {"c1"})));
}

}  // namespace
}  // namespace devmgr
