// SPDX-License-Identifier: Apache-2.0
#include "claim/container_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/builders.h"
#include "support/status_matchers.h"

namespace devmgr::claim {
namespace {

using state::DriverPhase;
using state::PreparedDevice;
using state::Want;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

const ClaimUid kC{"u-C"};
const ClaimUid kS{"u-S"};

class ContainerAnswerTest : public testing::Test {
 protected:
  void SetUp() override {
    pod_.uid = PodUid{"u-P"};
    pod_.name = NameOf("P");
  }

  void Claim(const std::string& name, const std::string& driver,
             const std::vector<PreparedDevice>& devices) {
    state::ClaimRecord& claim = claims_[ClaimUid{"u-" + name}];
    claim.uid = ClaimUid{"u-" + name};
    claim.name = NameOf(name);
    claim.drivers[driver] = {DriverPhase::kPrepared, devices, "boot-1"};
  }

  void Container(const std::string& name, const std::vector<Want>& wants,
                 bool init = false) {
    pod_.needs.push_back({name, init, wants});
  }

  absl::StatusOr<std::shared_ptr<const PodDevices>> Answer() const {
    return AnswerFor(pod_, [&](const ClaimUid& uid) {
      const auto found = claims_.find(uid);
      return found == claims_.end() ? nullptr : &found->second;
    });
  }

  std::vector<CdiDevice> DevicesOf(const std::string& container) const {
    const auto answer = Answer();
    EXPECT_THAT(answer, IsOk());
    if (!answer.ok()) return {};
    for (const ContainerDevices& devices : (*answer)->containers) {
      if (devices.name == container) return devices.cdi_devices;
    }
    ADD_FAILURE() << "no container " << container;
    return {};
  }

  std::vector<std::string> NamesOf(const std::string& container) const {
    std::vector<std::string> names;
    for (const CdiDevice& device : DevicesOf(container)) {
      names.push_back(device.name);
    }
    return names;
  }

  /// What a container gets that wants only `request` of claim C.
  std::vector<std::string> NamesForRequest(const std::string& request) {
    pod_.needs.clear();
    Container("c", {{kC, request, ""}});
    return NamesOf("c");
  }

  void Hold(const std::string& container, const std::string& resource,
            const device::ContainerEdits& edits) {
    state::DeviceHold hold;
    hold.container = container;
    hold.resource = resource;
    hold.phase = device::ReservationPhase::kCommitted;
    hold.devices = {{"dev-0", {}}};
    hold.edits = edits;
    pod_.holds.push_back(hold);
  }

  state::PodRecord pod_;
  std::map<ClaimUid, state::ClaimRecord> claims_;
};

// DRA-113
TEST_F(ContainerAnswerTest, AWholeClaimGivesAllIdsOfAllItsDrivers) {
  Claim("C", kOtherDriver, {Prepared("dev-1", {"e/x=1"}, {"r2"})});
  Claim("C", kDriver,
        {Prepared("dev-2", {"d/x=2", "d/x=1"}, {"r1"}),
         Prepared("dev-1", {"d/x=0"}, {"r3"})});
  EXPECT_THAT(NamesForRequest(""),
              ElementsAre("d/x=2", "d/x=1", "d/x=0", "e/x=1"));
}

// DRA-114
TEST_F(ContainerAnswerTest, ARequestGivesItsOwnIdsOnly) {
  Claim("C", kDriver,
        {Prepared("dev-1", {"d/x=1"}, {"r1"}),
         Prepared("dev-2", {"d/x=2"}, {"r2"}),
         Prepared("dev-3", {"d/x=3"}, {"r2", "r1"})});
  EXPECT_THAT(NamesForRequest("r1"), ElementsAre("d/x=1", "d/x=3"));
}

TEST_F(ContainerAnswerTest, ARequestGivesItsOwnIdsAndThoseOfNone) {  // BO-111
  Claim(
      "C", kDriver,
      {Prepared("dev-1", {"d/x=1"}, {"a"}), Prepared("dev-2", {"d/x=2"}, {"b"}),
       Prepared("dev-3", {"d/x=3"}, {})});
  EXPECT_THAT(NamesForRequest("a"), ElementsAre("d/x=1", "d/x=3"));
}

TEST_F(ContainerAnswerTest, ARequestThatNoDeviceServesGivesNothing) {
  Claim("C", kDriver, {Prepared("dev-1", {"d/x=1"}, {"r1"})});
  EXPECT_THAT(NamesForRequest("r"), IsEmpty());
  EXPECT_THAT(NamesForRequest("r11"), IsEmpty());
}

// DRA-115
TEST_F(ContainerAnswerTest, ADeviceWithoutRequestNamesServesAllRequests) {
  Claim("C", kDriver, {Prepared("dev-1", {"d/x=1"}, {})});
  EXPECT_THAT(NamesForRequest("any"), ElementsAre("d/x=1"));
}

// DRA-116
TEST_F(ContainerAnswerTest, AContainerWithoutWantsGetsNothing) {
  Claim("C", kDriver, {Prepared("dev-1", {"d/x=1"})});
  Container("c", {{kC, "", ""}});
  Container("idle", {});
  EXPECT_THAT(NamesOf("idle"), IsEmpty());
  EXPECT_THAT(NamesOf("c"), ElementsAre("d/x=1"));
}

// DRA-117, BO-114
TEST_F(ContainerAnswerTest, AClaimWithoutRecordIsAnInternalError) {
  Container("c", {{kC, "", ""}});
  EXPECT_THAT(Answer(),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("internal error: unable to get claim info for "
                                 "ResourceClaim u-C in namespace ns")));
}

// DRA-118
TEST_F(ContainerAnswerTest, InitContainersAreAnsweredFirstAndMarked) {
  Claim("C", kDriver, {Prepared("dev-1", {"d/x=1"})});
  Container("i", {{kC, "", ""}}, true);
  Container("c", {});
  const auto answer = Answer();
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ((*answer)->uid, PodUid{"u-P"});
  EXPECT_EQ((*answer)->name, NameOf("P"));
  ASSERT_EQ((*answer)->containers.size(), 2u);
  EXPECT_EQ((*answer)->containers[0].name, "i");
  EXPECT_TRUE((*answer)->containers[0].init);
  EXPECT_FALSE((*answer)->containers[1].init);
  EXPECT_THAT(NamesOf("i"), ElementsAre("d/x=1"));
}

// DRA-119, improved: base names are compared on both sides.
TEST_F(ContainerAnswerTest, AlternativesMatchByBaseName) {
  Claim("C", kDriver,
        {Prepared("dev-1", {"d/x=1"}, {"r"}),
         Prepared("dev-2", {"d/x=2"}, {"r/a"}),
         Prepared("dev-3", {"d/x=3"}, {"other/a"})});
  EXPECT_THAT(NamesForRequest("r"), ElementsAre("d/x=1", "d/x=2"));
  EXPECT_THAT(NamesForRequest("r/a"), ElementsAre("d/x=1", "d/x=2"));
  EXPECT_THAT(NamesForRequest("r/b"), ElementsAre("d/x=1", "d/x=2"));
}

// DRA-120
TEST_F(ContainerAnswerTest, EachContainerGetsTheDeviceOfItsMapping) {
  Claim("S", kDriver,
        {Prepared("dev-1", {"d/x=1"}, {"req-0"}),
         Prepared("dev-2", {"d/x=2"}, {"req-1"})});
  Container("c1", {{kS, "req-0", "example.com/gpu"}});
  Container("c2", {{kS, "req-1", "example.com/gpu"}});
  EXPECT_THAT(DevicesOf("c1"),
              ElementsAre(CdiDevice{"d/x=1",
                                    {"S", "req-0", kDriver, "pool-1", "dev-1",
                                     "example.com/gpu"}}));
  EXPECT_THAT(NamesOf("c2"), ElementsAre("d/x=2"));
}

// DRA-121
TEST_F(ContainerAnswerTest, AnImplicitResourceNameIsToldAsTheOrigin) {
  const std::string implicit = "deviceclass.resource.kubernetes.io/gpu";
  Claim("S", kDriver, {Prepared("dev-1", {"d/x=1"}, {"req-0"})});
  Container("c", {{kS, "req-0", implicit}});
  ASSERT_EQ(DevicesOf("c").size(), 1u);
  EXPECT_EQ(DevicesOf("c")[0].origin.resource, implicit);
}

// DRA-122, DRA-123
TEST_F(ContainerAnswerTest, SeveralRequestsOfAClaimAddUp) {
  Claim("S", kDriver,
        {Prepared("dev-1", {"d/x=1"}, {"req-0"}),
         Prepared("dev-2", {"d/x=2"}, {"req-1"}),
         Prepared("dev-3", {"d/x=3"}, {"req-2"})});
  Container("c", {{kS, "req-1", "example.com/nic"},
                  {kS, "req-0", "example.com/gpu"}});
  const auto devices = DevicesOf("c");
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "d/x=1");
  EXPECT_EQ(devices[0].origin.resource, "example.com/gpu");
  EXPECT_EQ(devices[1].name, "d/x=2");
  EXPECT_EQ(devices[1].origin.resource, "example.com/nic");
}

// BO-112
TEST_F(ContainerAnswerTest, SeveralRequestsOfAResourceAddUp) {
  Claim("S", kDriver,
        {Prepared("dev-1", {"d/x=1"}, {"req-0"}),
         Prepared("dev-2", {"d/x=2"}, {"req-1"}),
         Prepared("dev-3", {"d/x=3"}, {"req-2"})});
  Container("c1",
            {{kS, "req-0", "example.com/r1"}, {kS, "req-1", "example.com/r1"}});
  Container("c2", {{kS, "req-2", "example.com/r1"}});
  EXPECT_THAT(NamesOf("c1"), ElementsAre("d/x=1", "d/x=2"));
  EXPECT_THAT(NamesOf("c2"), ElementsAre("d/x=3"));
}

// DRA-124, DRA-125, BO-113: a mapping that adds no want adds no device.
TEST_F(ContainerAnswerTest, WithoutAWantTheSpecialClaimGivesNothing) {
  Claim("S", kDriver, {Prepared("dev-1", {"d/x=1"}, {"req-0"})});
  Container("c", {});
  EXPECT_THAT(NamesOf("c"), IsEmpty());
}

// DRA-126
TEST_F(ContainerAnswerTest, ClaimsAddUpInTheOrderOfTheWants) {
  Claim("S", kDriver, {Prepared("dev-1", {"d/x=s"}, {"req-0"})});
  Claim("C", kDriver, {Prepared("dev-2", {"d/x=c"}, {"r"})});
  Claim("A", kDriver, {Prepared("dev-3", {"d/x=a"}, {"r"})});
  Container("c", {{kC, "r", ""},
                  {ClaimUid{"u-A"}, "", ""},
                  {kS, "req-0", "example.com/gpu"}});
  EXPECT_THAT(NamesOf("c"), ElementsAre("d/x=c", "d/x=a", "d/x=s"));
  EXPECT_EQ(DevicesOf("c")[0].origin,
            (DeviceOrigin{"C", "r", kDriver, "pool-1", "dev-2", ""}));
}

// DRA-129
TEST_F(ContainerAnswerTest, TwoContainersSeeOnlyTheirOwnRequests) {
  Claim("C", kDriver,
        {Prepared("dev-1", {"d/x=1"}, {"r1"}),
         Prepared("dev-2", {"d/x=2"}, {"r2"})});
  Container("a", {{kC, "r1", ""}});
  Container("b", {{kC, "r2", ""}});
  EXPECT_THAT(NamesOf("a"), ElementsAre("d/x=1"));
  EXPECT_THAT(NamesOf("b"), ElementsAre("d/x=2"));
}

// Upstream lists an ID twice that serves two requests of a container.
TEST_F(ContainerAnswerTest, EachIdIsListedOncePerContainer) {
  Claim("C", kDriver,
        {Prepared("dev-1", {"d/x=1", "d/x=1"}, {"r1", "r2"}),
         Prepared("dev-2", {"d/x=1", "d/x=2"}, {"r1"})});
  Claim("S", kDriver, {Prepared("dev-3", {"d/x=2", "d/x=3"}, {"req-0"})});
  Container("a", {{kC, "r1", ""}, {kC, "r2", ""}, {kS, "req-0", "x.y/z"}});
  Container("b", {{kC, "", ""}});
  EXPECT_THAT(NamesOf("a"), ElementsAre("d/x=1", "d/x=2", "d/x=3"));
  EXPECT_THAT(NamesOf("b"), ElementsAre("d/x=1", "d/x=2"));
}

TEST_F(ContainerAnswerTest, ADeviceWithoutIdsContributesNothing) {
  Claim("C", kDriver, {Prepared("dev-1", {}), Prepared("dev-2", {"d/x=2"})});
  EXPECT_THAT(NamesForRequest(""), ElementsAre("d/x=2"));
}

TEST_F(ContainerAnswerTest, TheOriginNamesTheBaseOfTheFirstRequestThatMatched) {
  Claim("C", kDriver,
        {Prepared("dev-1", {"d/x=1"}, {"r2/a", "r1"}),
         Prepared("dev-2", {"d/x=2"}, {})});
  Container("named", {{kC, "r1", ""}, {kC, "r2", ""}});
  Container("whole", {{kC, "", ""}});
  EXPECT_EQ(DevicesOf("named")[0].origin.request, "r1");
  EXPECT_EQ(DevicesOf("whole")[0].origin.request, "r2");
  EXPECT_EQ(DevicesOf("whole")[1].origin.request, "");
}

TEST_F(ContainerAnswerTest, PluginsComeAfterClaimsAndEachIdOnce) {
  Claim("C", "gpu.example.com",
        {{{"r"}, "pool", "gpu-0", {"example.com/gpu=0"}, ""}});
  Container("c", {{kC, "r", ""}});
  device::ContainerEdits edits;
  edits.cdi_devices = {"example.com/gpu=0", "a.example.com/nic=1"};
  Hold("c", "example.com/nic", edits);
  EXPECT_THAT(NamesOf("c"),
              ElementsAre("example.com/gpu=0", "a.example.com/nic=1"));
  EXPECT_EQ(DevicesOf("c").front().origin.claim, "C");
  EXPECT_EQ(DevicesOf("c").back().origin.resource, "example.com/nic");
  EXPECT_EQ(DevicesOf("c").back().origin.claim, "");
}

TEST_F(ContainerAnswerTest, AContainerGetsWhatItsOwnPluginsAnswered) {
  Container("c", {});
  Container("d", {});
  device::ContainerEdits edits;
  edits.env = {{"A", "1"}};
  edits.mounts = {{"/in", "/out", true}};
  edits.devices = {{"/dev/x", "/dev/x0", "rw"}};
  edits.annotations = {{"k", "v"}};
  Hold("c", "example.com/b", edits);
  device::ContainerEdits more;
  more.env = {{"A", "2"}, {"B", "3"}};
  Hold("c", "example.com/a", more);
  const auto answer = Answer();
  ASSERT_THAT(answer, IsOk());
  const ContainerDevices& c = (*answer)->containers.front();
  // Of two values the resource whose name comes first has its way.
  const std::string a = "example.com/a";
  const std::string b = "example.com/b";
  EXPECT_THAT(c.env,
              ElementsAre(NamedValue{"A", "2", a}, NamedValue{"B", "3", a}));
  EXPECT_THAT(c.mounts, ElementsAre(DeviceMount{"/in", "/out", true, b}));
  EXPECT_THAT(c.devices, ElementsAre(DeviceNode{"/dev/x", "/dev/x0", "rw", b}));
  EXPECT_THAT(c.annotations, ElementsAre(NamedValue{"k", "v", b}));
  EXPECT_THAT(c.resources, ElementsAre(Field(&HeldResource::name, a),
                                       Field(&HeldResource::name, b)));
  ContainerDevices nothing;
  nothing.name = "d";
  EXPECT_EQ((*answer)->containers.back(), nothing);
}

}  // namespace
}  // namespace devmgr::claim
