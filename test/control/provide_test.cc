// SPDX-License-Identifier: Apache-2.0
#include "control/provide.h"

#include <devmgr/manifests.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/status.h"
#include "control/local_objects.h"
#include "state/record_builders.h"

namespace devmgr::control {
namespace {

using state::LocalClaimRecord;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kGpuClass[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
    "gpu}\nspec: {extendedResourceName: example.com/gpu, selectors: [{cel: "
    "{expression: 'device.driver == \"d.example.com\"'}}]}\n---\n";
constexpr char kOwnTemplate[] =
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: "
    "{name: t}\nspec: {spec: {devices: {requests: [{name: r, exactly: "
    "{deviceClassName: gpu}}]}}}\n---\n";

std::string SliceOf(int devices) {
  std::string text =
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: "
      "s}\nspec:\n  driver: d.example.com\n  nodeName: n1\n  pool: {name: n1, "
      "generation: 1, resourceSliceCount: 1}\n  devices: [";
  for (int i = 0; i < devices; ++i) text += fmt::format("{{name: g{}}}, ", i);
  return text + "]\n---\n";
}

std::string ClaimOf(const std::string& name, const std::string& more = "") {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}, uid: u-{0}{1}}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
      "{{deviceClassName: gpu}}}}]}}}}\n---\n",
      name, more);
}

std::string PodOf(const std::string& name, const std::string& claims,
                  const std::string& limits = "") {
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, uid: u-{0}}}\nspec:\n"
      "  resourceClaims: [{1}]\n"
      "  containers: [{{name: c, resources: {{limits: {{{2}}}}}}}]\n---\n",
      name, claims, limits);
}

class ProvideTest : public ::testing::Test {
 protected:
  void Add(const std::string& yaml) {
    const DecodedManifest decoded = DecodeManifest(yaml, "test", "n1");
    ASSERT_THAT(decoded.errors, IsEmpty()) << decoded.errors.front().ToString();
    for (const DecodedObject& item : decoded.objects) {
      std::visit([&](const auto& object) { AddOne(object); }, item.object);
    }
  }
  void AddOne(const Pod& pod) { Put(pod, &source_.pods); }
  void AddOne(const ResourceClaim& claim) { Put(claim, &source_.claims); }
  void AddOne(const ResourceClaimTemplate& item) {
    Put(item, &source_.claim_templates);
  }
  void AddOne(const DeviceClass& item) { Put(item, &source_.device_classes); }
  void AddOne(const ResourceSlice& item) {
    Put(item, &source_.resource_slices);
  }
  void AddOne(const ResourceQuota& item) { Put(item, &source_.quotas); }
  template <typename T>
  void AddOne(const T&) {
    FAIL();
  }
  template <typename T>
  static void Put(const T& object, ObjectMap<T>* objects) {
    objects->insert_or_assign(object.metadata.FullName(),
                              std::make_shared<const T>(object));
  }

  ObjectSnapshot Shown() {
    ObjectSnapshot shown = source_;
    local_.Show(state_, &shown);
    return shown;
  }
  absl::StatusOr<Provision> Provide(const std::string& pod) {
    const ObjectSnapshot shown = Shown();
    const ProvideInput input{
        state_,
        shown,
        "n1",
        [&](const ResourceName& name) { return name == "example.com/gpu"; },
        [&](const std::string&) { return registered_; },
        true,
        1'000,
        [&] { return ++random_; },
        &hardware_,
        nullptr,
        std::nullopt,
        nullptr,
        QuotaRule::kStrict,
        admits_,
        none_held_};
    return provider_.Provide(*shown.pods.at(ObjectName{"default", pod}), input);
  }
  /// What it waits or is rejected for.
  std::string WhyNot(const std::string& pod) {
    const auto provision = Provide(pod);
    if (!provision.ok()) return MessageOf(provision.status());
    EXPECT_NE(provision->verdict.kind, Verdict::Kind::kAdmit);
    EXPECT_THAT(provision->changes, IsEmpty());
    return provision->verdict.reason + ": " + provision->verdict.message;
  }
  /// Commits what the pod is provided with; the devices of these claims.
  std::vector<std::string> Commit(const std::string& pod) {
    std::vector<std::string> devices;
    const auto provision = Provide(pod);
    EXPECT_TRUE(provision.ok()) << provision.status();
    if (!provision.ok()) return devices;
    EXPECT_EQ(provision->verdict.kind, Verdict::Kind::kAdmit)
        << provision->verdict.message;
    for (const state::Change& change : provision->changes) {
      const auto& record = std::get<state::PutLocalClaim>(change).claim;
      for (const auto& result : record->object->status.allocation->results) {
        devices.push_back(result.device);
      }
      state_.Put(record);
    }
    if (!provision->changes.empty()) {
      state_.Put(std::make_shared<const state::PodRecord>(
          state::MakePod(PodUid{"u-" + pod}, pod, state::PodPhase::kWaiting)));
    }
    return devices;
  }
  /// It has its claims and is on its way.
  void Settle(const std::string& pod) {
    state_.Put(std::make_shared<const state::PodRecord>(
        state::MakePod(PodUid{"u-" + pod}, pod, state::PodPhase::kPreparing)));
  }

  state::State state_;
  ObjectSnapshot source_;
  LocalObjects local_;
  ClaimProvider provider_{{}, 10'000};
  claim::PublishedHardware hardware_{HardwareOptions(), "n1"};
  bool registered_ = true;
  std::uint64_t random_ = 0;
  decltype(ProvideInput::admits) admits_;
  bool none_held_ = false;
};

TEST_F(ProvideTest, AllKindsOfClaimsTogether) {
  Add(std::string(kGpuClass) + kOwnTemplate + SliceOf(4) + ClaimOf("c") +
      PodOf("p",
            "{name: a, resourceClaimName: c}, {name: b, "
            "resourceClaimTemplateName: t}, {name: again, resourceClaimName: "
            "c}",
            "example.com/gpu: 2"));
  EXPECT_THAT(Commit("p"), UnorderedElementsAre("g0", "g1", "g2", "g3"));
  EXPECT_THAT(state_.local_claims, SizeIs(3));
  const Pod pod =
      WithLocalStatus(*source_.pods.at(ObjectName{"default", "p"}), state_);
  EXPECT_THAT(pod.status.resource_claim_statuses, SizeIs(1));
  EXPECT_TRUE(pod.status.extended_resource_claim_status.has_value());
  const LocalClaimRecord& record = *state_.local_claims.at({"u-c"});
  EXPECT_EQ(record.object->status.allocation->allocation_timestamp,
            "1970-01-01T00:00:01Z");
  EXPECT_THAT(record.object->metadata.finalizers,
              ElementsAre("resource.kubernetes.io/delete-protection"));
  // Once is enough.
  EXPECT_THAT(Commit("p"), IsEmpty());
  Settle("p");
  EXPECT_THAT(Commit("p"), IsEmpty());
}

/// A container of two, of which each uses its own claim and both use one.
constexpr char kTwoContainers[] =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
    "  resourceClaims: [{name: x, resourceClaimName: x}, {name: v, "
    "resourceClaimTemplateName: t}, {name: z, resourceClaimName: z}]\n"
    "  containers: [{name: a, resources: {claims: [{name: x}, {name: z}]}}, "
    "{name: b, resources: {claims: [{name: v}, {name: z, request: r}]}}]\n"
    "---\n";

TEST_F(ProvideTest, ContainersAdmitTheDevicesOfTheRequestsThatTheyUse) {
  Add(std::string(kGpuClass) + kOwnTemplate + SliceOf(4) + ClaimOf("x") +
      ClaimOf("z") + kTwoContainers);
  admits_ = [](const ContainerName& container, const ResourceSlice&,
               const SliceDevice& device) {
    return container == "a" ? device.name >= "g2" : device.name != "g2";
  };
  // x is used by a alone, v by b, z by both, which leaves it g3.
  EXPECT_THAT(Commit("p"), ElementsAre("g2", "g0", "g3"));
}

TEST_F(ProvideTest, WhatNoContainerAdmitsIsNotAllocated) {
  Add(std::string(kGpuClass) + SliceOf(2) +
      PodOf("p", "", "example.com/gpu: 1"));
  admits_ = [](const ContainerName& container, const ResourceSlice&,
               const SliceDevice& device) {
    return container == "c" && device.name == "g1";
  };
  EXPECT_THAT(Commit("p"), ElementsAre("g1"));
  Add(PodOf("q", "", "example.com/gpu: 1"));
  EXPECT_THAT(WhyNot("q"), HasSubstr("CannotAllocateClaims"));
}

TEST_F(ProvideTest, AsIfNothingWereHeldAllDevicesAreThere) {
  Add(std::string(kGpuClass) + SliceOf(1) +
      PodOf("p", "", "example.com/gpu: 1") +
      PodOf("q", "", "example.com/gpu: 1"));
  EXPECT_THAT(Commit("p"), ElementsAre("g0"));
  EXPECT_THAT(WhyNot("q"), HasSubstr("1 busy"));
  none_held_ = true;
  const auto provision = Provide("q");
  ASSERT_TRUE(provision.ok());
  EXPECT_EQ(provision->verdict.kind, Verdict::Kind::kAdmit);
}

TEST_F(ProvideTest, AL088AClaimThatIsAllocatedIsReservedOnly) {
  Add(std::string(kGpuClass) + SliceOf(1) + ClaimOf("c") +
      PodOf("p", "{name: a, resourceClaimName: c}") +
      PodOf("q", "{name: a, resourceClaimName: c}"));
  EXPECT_THAT(Commit("p"), ElementsAre("g0"));
  EXPECT_THAT(Commit("q"), ElementsAre("g0"));
  EXPECT_THAT(state_.local_claims.at({"u-c"})->object->status.reserved_for,
              SizeIs(2));
}

/// The manifest of a claim is replaced while its pod is there.
TEST_F(ProvideTest, AClaimWhoseNameAnotherOneHasKeepsItsDevice) {
  Add(std::string(kGpuClass) + SliceOf(2) + ClaimOf("c") +
      PodOf("p", "{name: a, resourceClaimName: c}") +
      PodOf("q", "", "example.com/gpu: 1") +
      PodOf("r", "", "example.com/gpu: 1"));
  EXPECT_THAT(Commit("p"), ElementsAre("g0"));
  Add(ClaimOf("c", "-new"));
  EXPECT_THAT(Commit("q"), ElementsAre("g1"));
  EXPECT_THAT(WhyNot("r"), HasSubstr("2 busy"));
}

TEST_F(ProvideTest, SaysWhichPodsHoldTheDevices) {
  std::string objects = std::string(kGpuClass) + SliceOf(7);
  for (int i = 0; i < 7; ++i) {
    objects += ClaimOf(fmt::format("c{}", i)) +
               PodOf(fmt::format("p{}", i),
                     fmt::format("{{name: a, resourceClaimName: c{}}}", i));
  }
  Add(objects + ClaimOf("last") +
      PodOf("late", "{name: a, resourceClaimName: last}"));
  for (int i = 0; i < 7; ++i) {
    ASSERT_THAT(Commit(fmt::format("p{}", i)), SizeIs(1));
  }
  EXPECT_THAT(WhyNot("late"),
              HasSubstr("claim default/last, request r: 1 device wanted, 0 "
                        "found; refused: 7 busy (held by pod default/p0, pod "
                        "default/p1, pod default/p2, pod default/p3, pod "
                        "default/p4, 2 more)"));
  const auto provision = Provide("late");
  EXPECT_THAT(provision->verdict.waiting_for,
              UnorderedElementsAre(
                  WaitingFor{WaitingFor::Kind::kClaim, "default/last"},
                  WaitingFor{WaitingFor::Kind::kDevices, "d.example.com"},
                  WaitingFor{WaitingFor::Kind::kFreeDevices, "d.example.com"},
                  WaitingFor{WaitingFor::Kind::kDeviceClass, "gpu"}));
}

TEST_F(ProvideTest, ADriverThatIsNotRegisteredGivesNothing) {
  Add(std::string(kGpuClass) + SliceOf(1) +
      PodOf("p", "", "example.com/gpu: 1"));
  registered_ = false;
  EXPECT_THAT(WhyNot("p"), HasSubstr("DRA driver d.example.com has published "
                                     "devices and is not registered"));
  registered_ = true;
  EXPECT_THAT(Commit("p"), ElementsAre("g0"));
}

TEST_F(ProvideTest, WhatOthersMakeIsWaitedFor) {
  Add(std::string(kGpuClass) + SliceOf(2) + ClaimOf("c") +
      PodOf("missing",
            "{name: a, resourceClaimName: c}, {name: b, resourceClaimName: "
            "none}") +
      PodOf("untemplated", "{name: a, resourceClaimTemplateName: none}") +
      ClaimOf("going", ", deletionTimestamp: '2026-01-01T00:00:00Z'") +
      PodOf("late", "{name: a, resourceClaimName: going}"));
  EXPECT_THAT(Commit("missing"), IsEmpty());
  EXPECT_EQ(WhyNot("untemplated"),
            "ClaimTemplateNotFound: pod claim \"a\": ResourceClaimTemplate "
            "default/none not found");
  EXPECT_EQ(WhyNot("late"),
            "ClaimCannotBeReserved: claim default/going is being deleted");
}

TEST_F(ProvideTest, AL080bTooManyDevicesAreNeverHad) {
  Add(std::string(kGpuClass) + SliceOf(40) +
      PodOf("p", "", "example.com/gpu: 33"));
  EXPECT_THAT(WhyNot("p"), HasSubstr("TooManyExtendedResources: "));
}

TEST_F(ProvideTest, AL086QuotasHoldBack) {
  Add(std::string(kGpuClass) + SliceOf(4) +
      "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: "
      "{count/resourceclaims.resource.k8s.io: 1}}\n---\n" +
      PodOf("a", "", "example.com/gpu: 1") +
      PodOf("b", "", "example.com/gpu: 1"));
  EXPECT_THAT(Commit("a"), SizeIs(1));
  Settle("a");
  EXPECT_THAT(WhyNot("b"), HasSubstr("ExceededQuota: exceeded quota: q"));
  source_.quotas.clear();
  EXPECT_THAT(Commit("b"), SizeIs(1));
}

TEST_F(ProvideTest, ASearchThatIsGivenUpIsTriedAgain) {
  Add(std::string(kGpuClass) + SliceOf(4) +
      PodOf("p", "", "example.com/gpu: 4"));
  const ObjectSnapshot shown = Shown();
  ClaimProvider hurried({}, 1);
  const auto provision = hurried.Provide(
      *shown.pods.at(ObjectName{"default", "p"}),
      {state_, shown, "n1", [](const ResourceName&) { return true; },
       [](const std::string&) { return true; }, true, 0,
       [&] { return ++random_; }});
  EXPECT_EQ(provision.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(provision.status()), HasSubstr("was given up after"));
}

// A device plugin gave the first card to a pod, by another name.
TEST_F(ProvideTest, ADeviceThatIsHeldElsewhereIsBusy) {
  Add(std::string(kGpuClass) +
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: "
      "s}\nspec:\n  driver: d.example.com\n  nodeName: n1\n  pool: {name: n1, "
      "generation: 1, resourceSliceCount: 1}\n  devices:\n"
      "  - {name: g0, attributes: {resource.kubernetes.io/pciBusID: {string: "
      "'0000:3B:00.0'}}}\n"
      "  - {name: g1, attributes: {resource.kubernetes.io/pciBusID: {string: "
      "'0000:3c:00.0'}}}\n---\n" +
      PodOf("a", "", "example.com/gpu: 1") +
      PodOf("b", "", "example.com/gpu: 1"));
  state::PodRecord holder =
      state::MakePod(PodUid{"u-plugin"}, "plugin", state::PodPhase::kAdmitted);
  state::DeviceHold& hold = holder.holds.emplace_back();
  hold.resource = "vendor.com/card";
  hold.devices.push_back({"0", {}});
  hold.phase = device::ReservationPhase::kCommitted;
  hold.hardware.Add(device::PciIdentity("3b:00.0"));
  state_.Put(std::make_shared<const state::PodRecord>(holder));
  EXPECT_THAT(Commit("a"), ElementsAre("g1"));
  ASSERT_THAT(state_.local_claims, SizeIs(1));
  const LocalClaimRecord& claim = *state_.local_claims.begin()->second;
  ASSERT_THAT(claim.hardware, SizeIs(1));
  EXPECT_EQ(claim.hardware.front().hardware.identities.front().text,
            "pci:0000:3c:00.0");
  Settle("a");
  const std::string why = WhyNot("b");
  EXPECT_THAT(why, HasSubstr("DeviceHeldElsewhere: "));
  EXPECT_THAT(why, HasSubstr("plugin, as PCI address 0000:3b:00.0 of "
                             "vendor.com/card"));
  const auto waiting = Provide("b")->verdict.waiting_for;
  EXPECT_THAT(waiting, ::testing::Contains(WaitingFor{WaitingFor::Kind::kPod,
                                                      holder.name.ToString()}));
  state_.Erase(holder.uid);
  EXPECT_THAT(Commit("b"), ElementsAre("g0"));
}

TEST_F(ProvideTest, WithoutSlicesAnotherPartyMayAllocate) {
  Add(std::string(kGpuClass) + ClaimOf("c") +
      PodOf("p", "{name: a, resourceClaimName: c}", "example.com/gpu: 1"));
  EXPECT_THAT(Commit("p"), IsEmpty());
}

}  // namespace
}  // namespace devmgr::control
