// SPDX-License-Identifier: Apache-2.0
#include "claim/held_claims.h"

#include "claim/claim_fixture.h"
#include "claim/resource_names.h"

namespace devmgr::claim {
namespace {

using state::PreparedDevice;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

PreparedDevice Device(const std::string& name, const std::string& request,
                      const std::string& cdi, const std::string& share = "") {
  return {{request}, "pool-1", name, {cdi}, share};
}

class HeldClaimsTest : public ClaimTest {
 protected:
  ContainerClaims Held(const std::string& container) const {
    return HeldClaimsOf(state(), *state().FindPod(PodUid{"u-P"}), container);
  }
};

// DRA-128
TEST_F(HeldClaimsTest, HaveEachDeviceWithItsOwnNamesOnly) {
  objects_ = SnapshotOf({ClaimForP("C")});
  const Pod pod = PodBuilder().Claim("pc", "C").Container("c").Uses("pc");
  ASSERT_EQ(Prepare(pod).kind, Kind::kAdmit);
  EXPECT_THAT(Held("c").claims,
              ElementsAre(HeldClaim{NameOf("C"), ClaimUid{"u-C"}, {}}));
  const std::map<ClaimUid, std::vector<PreparedDevice>> prepared = {
      {ClaimUid{"u-C"},
       {Device("dev-1", "r", "v.com/c=1"),
        Device("dev-2", "r", "v.com/c=2", "share")}}};
  Answers(kDriver, prepared);
  const ContainerClaims held = Held("c");
  ASSERT_THAT(held.claims, SizeIs(1));
  EXPECT_THAT(
      held.claims[0].devices,
      ElementsAre(
          ClaimDevice{kDriver, "pool-1", "dev-1", "", {"v.com/c=1"}},
          ClaimDevice{kDriver, "pool-1", "dev-2", "share", {"v.com/c=2"}}));
  EXPECT_THAT(held.missing, IsEmpty());
  EXPECT_THAT(Held("other").claims, IsEmpty());
}

TEST_F(HeldClaimsTest, HaveOnlyDevicesOfTheRequestsThatTheContainerNames) {
  objects_ = SnapshotOf({ClaimForP("C")});
  const Pod pod = PodBuilder()
                      .Claim("pc", "C")
                      .Container("one")
                      .Uses("pc", "r1")
                      .Container("both")
                      .Uses("pc", "r1")
                      .Uses("pc", "r2");
  ASSERT_EQ(Prepare(pod).kind, Kind::kAdmit);
  const std::map<ClaimUid, std::vector<PreparedDevice>> prepared = {
      {ClaimUid{"u-C"},
       {Device("dev-1", "r1", "v.com/c=1"),
        Device("dev-2", "r2", "v.com/c=2")}}};
  Answers(kDriver, prepared);
  ASSERT_THAT(Held("one").claims, SizeIs(1));
  EXPECT_THAT(Held("one").claims[0].devices, SizeIs(1));
  EXPECT_EQ(Held("one").claims[0].devices[0].device, "dev-1");
  ASSERT_THAT(Held("both").claims, SizeIs(1)) << "once each";
  EXPECT_THAT(Held("both").claims[0].devices, SizeIs(2));
}

// DRA-128: also of the special claim, which comes last.
TEST_F(HeldClaimsTest, HaveTheClaimForExtendedResources) {
  objects_ = SnapshotOf({ClaimForP("C"), ClaimForP("S")});
  const Pod pod = PodBuilder()
                      .Claim("pc", "C")
                      .Container("c")
                      .Uses("pc")
                      .Requests(kGpu)
                      .Container("d")
                      .SpecialClaim("S")
                      .Maps("c", kGpu, "r");
  ASSERT_EQ(Prepare(pod).kind, Kind::kAdmit);
  Answers(kDriver, std::set<std::string>{"u-C", "u-S"});
  const ContainerClaims held = Held("c");
  ASSERT_THAT(held.claims, SizeIs(2));
  EXPECT_EQ(held.claims[0].name, NameOf("C"));
  EXPECT_EQ(held.claims[1].name, NameOf("S"));
  EXPECT_THAT(Held("d").claims, IsEmpty());
}

// DRA-127
TEST_F(HeldClaimsTest, OfAPodThatHoldsNoneSayWhichAreMissing) {
  const Pod pod = PodBuilder()
                      .Claim("pc", "C")
                      .Claim("unused", "D")
                      .EmptyClaim("empty")
                      .Template("made")
                      .Template("none")
                      .Made("none", std::nullopt)
                      .Container("c")
                      .Uses("pc")
                      .Uses("empty")
                      .Uses("made")
                      .Uses("none")
                      .Requests(kGpu)
                      .SpecialClaim("S")
                      .Maps("c", kGpu, "r");
  const ContainerClaims held = MissingClaimsOf(pod, "c", objects_, options_);
  EXPECT_THAT(held.claims, IsEmpty());
  EXPECT_THAT(held.missing,
              ElementsAre("unable to get information for ResourceClaim C",
                          HasSubstr("none of the supported fields are set"),
                          HasSubstr("ResourceClaim not created yet"),
                          "unable to get information for ResourceClaim S"));
  EXPECT_THAT(MissingClaimsOf(pod, "other", objects_, options_).missing,
              IsEmpty());
  options_.extended_resources = false;
  EXPECT_THAT(MissingClaimsOf(pod, "c", objects_, options_).missing, SizeIs(3));
}

// DRA-127: a claim whose record is gone hides no other.
TEST_F(HeldClaimsTest, OfARecordThatIsGoneOnlyThatClaimIsMissing) {
  state::PodRecord pod;
  pod.uid = PodUid{"u-P"};
  pod.needs = {
      {"c", false, {{ClaimUid{"u-gone"}, "", ""}, {ClaimUid{"u-C"}, "", ""}}}};
  state::State state;
  auto claim = std::make_shared<state::ClaimRecord>();
  claim->uid = ClaimUid{"u-C"};
  claim->name = NameOf("C");
  state.Put(std::shared_ptr<const state::ClaimRecord>(claim));
  const ContainerClaims held = HeldClaimsOf(state, pod, "c");
  ASSERT_THAT(held.claims, SizeIs(1));
  EXPECT_EQ(held.claims[0].name, NameOf("C"));
  EXPECT_THAT(
      held.missing,
      ElementsAre("unable to get information for ResourceClaim u-gone"));
}

}  // namespace
}  // namespace devmgr::claim
