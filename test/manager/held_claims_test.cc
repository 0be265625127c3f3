// SPDX-License-Identifier: Apache-2.0
//
// What a pod-resources endpoint asks for, and which class has a name.
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HeldClaimsViewTest : public ManagerTest {
 protected:
  ContainerClaims Held(const std::string& pod) {
    const auto held = node_.manager().View()->HeldClaims(node_.UidOf(pod), "c");
    EXPECT_THAT(held, IsOk());
    return held.ok() ? *held : ContainerClaims();
  }
};

// DRA-127, DRA-128
TEST_F(HeldClaimsViewTest, AreThoseOfTheLedgerOverARestart) {
  node_.Start();
  node_.Publish(PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  EXPECT_THAT(Held("p").missing,
              ElementsAre("unable to get information for ResourceClaim c1"));
  EXPECT_THAT(Held("p").claims, IsEmpty());
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ContainerClaims held = Held("p");
  ASSERT_THAT(held.claims, SizeIs(1));
  ASSERT_THAT(held.claims[0].devices, SizeIs(1));
  EXPECT_THAT(held.claims[0].devices[0].cdi_devices,
              ElementsAre("d.example.com/x=c1"));
  // It is the caller's to change.
  held.claims[0].devices.clear();
  EXPECT_THAT(Held("p").claims[0].devices, SizeIs(1));
  node_.Restart();
  EXPECT_THAT(Held("p").claims, SizeIs(1));
  EXPECT_THAT(Held("p").missing, IsEmpty());
  EXPECT_THAT(node_.manager().View()->HeldClaims(PodUid{"none"}, "c"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'none'")));
}

// DRA-127
TEST_F(HeldClaimsViewTest, APodClaimWithoutASourceIsNamed) {
  node_.Start();
  node_.Publish(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  containers:\n  - name: c\n    resources: {claims: [{name: x}]}\n"
      "  resourceClaims: [{name: x}]\n---\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_THAT(Held("p").missing,
              ElementsAre(HasSubstr("none of the supported fields are set")));
}

std::string ClassYaml(const std::string& name, const std::string& created) {
  return "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: "
         "{name: " +
         name + created + "}\nspec: {extendedResourceName: example.com/gpu}\n" +
         "---\n";
}

TEST_F(HeldClaimsViewTest, ClassesSayWhoHasTheNameInstead) {
  const auto shadows = [&] {
    std::vector<std::string> texts;
    for (const DeviceClassInfo& item :
         node_.manager().View()->DeviceClasses()) {
      texts.push_back(item.name + "<" + item.shadowed_by);
    }
    return texts;
  };
  const std::string old = ", creationTimestamp: '2020-01-01T00:00:00Z'";
  node_.Start();
  // A file says nothing of its age: it is as old as it is known.
  node_.Publish(ClassYaml("a", old) + ClassYaml("b", ""));
  ASSERT_TRUE(
      node_.WaitUntil("both are known", [&] { return shadows().size() == 2; }));
  EXPECT_THAT(shadows(), ElementsAre("a<b", "b<"));
  node_.Publish(ClassYaml("a", old));
  ASSERT_TRUE(
      node_.WaitUntil("one is known", [&] { return shadows().size() == 1; }));
  EXPECT_THAT(shadows(), ElementsAre("a<"));
}

}  // namespace
}  // namespace devmgr
