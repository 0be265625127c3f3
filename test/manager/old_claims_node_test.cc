// SPDX-License-Identifier: Apache-2.0
//
// Claims of Kubernetes 1.30 on a whole node: how many pods have one at a time.
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OldClaimsNodeTest : public ManagerTest {
 protected:
  /// Claim `c1`, which `p` and `q` are meant to use.
  static std::string Claim(bool is_shareable) {
    return std::string(
               "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\n"
               "metadata: {name: c1, uid: u-c}\n"
               "spec: {resourceClassName: s}\n"
               "status:\n"
               "  driverName: d.example.com\n"
               "  allocation:\n"
               "    resourceHandles: [{data: handle-c}]\n"
               "    shareable: ") +
           (is_shareable ? "true" : "false") +
           "\n  reservedFor:\n"
           "  - {resource: pods, name: p, uid: u-p}\n"
           "  - {resource: pods, name: q, uid: u-q}\n---\n";
  }
  static std::string Pod(const std::string& name) {
    return PodYaml(name, "u-" + name, {"c1"});
  }
  /// `p` is Ready, and `q` is judged.
  void StartWith(bool is_shareable) {
    node_.Start();
    node_.Publish(Claim(is_shareable) + Pod("p"));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    node_.Publish(Claim(is_shareable) + Pod("p") + Pod("q"));
  }
};

// AL-129
TEST_F(OldClaimsNodeTest, TheSecondPodWaitsForTheFirstAndThenGetsTheClaim) {
  StartWith(false);
  ASSERT_TRUE(node_.WaitForReason("q", "ClaimInUse"));
  EXPECT_EQ(node_.PodNamed("q").message,
            "ResourceClaim c1 is not shareable, and pod default/p has it");
  // Over a restart, too.
  node_.Restart();
  node_.Publish(Claim(false) + Pod("p") + Pod("q"));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitForReason("q", "ClaimInUse"));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"})));
  node_.Publish(Claim(false) + Pod("q"));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(),
              ElementsAre(Prepare(kDriver, {"c1"}), Unprepare(kDriver, {"c1"}),
                          Prepare(kDriver, {"c1"})));
  EXPECT_THAT(node_.drivers.prepared(kDriver), ElementsAre("u-c"));
}

TEST_F(OldClaimsNodeTest, AShareableClaimIsForBoth) {
  StartWith(true);
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"})));
}

TEST_F(OldClaimsNodeTest, AClaimThatBecomesShareableIsForBoth) {
  StartWith(false);
  ASSERT_TRUE(node_.WaitForReason("q", "ClaimInUse"));
  node_.Publish(Claim(true) + Pod("p") + Pod("q"));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
}

}  // namespace
}  // namespace devmgr
