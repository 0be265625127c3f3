// SPDX-License-Identifier: Apache-2.0
#include "claim/object_uid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "claim/claim_names.h"

namespace devmgr::claim {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class ObjectIdentityTest : public testing::Test {
 protected:
  ObjectIdentityTest() { snapshot_.complete = true; }

  void Add(const std::string& name, const std::string& uid = "") {
    Pod pod;
    pod.metadata.ns = "default";
    pod.metadata.name = name;
    pod.metadata.uid = uid;
    pod.spec.containers = {{"c", {}, ""}};
    const ObjectName full_name = pod.metadata.FullName();
    snapshot_.pods.insert_or_assign(
        full_name, std::make_shared<const Pod>(std::move(pod)));
  }
  state::Decision Decide() const {
    return DecideIdentities(state_, snapshot_, "files", 1'000);
  }
  /// Puts what was decided into the state.
  void Apply() {
    for (const state::Change& change : Decide().changes) {
      if (const auto* put = std::get_if<state::PutIdentity>(&change)) {
        state_.Put(put->identity);
      } else if (const auto* gone =
                     std::get_if<state::EraseIdentity>(&change)) {
        state_.Erase(state::IdentityKey(gone->kind, gone->name));
      }
    }
    ++state_.seq;
  }
  std::string UidOf(const std::string& name) const {
    const auto* identity = state_.FindIdentity(kPodKind, {"default", name});
    return identity != nullptr ? identity->uid : "";
  }

  state::State state_;
  ObjectSnapshot snapshot_;
};

TEST_F(ObjectIdentityTest, AnObjectWithoutUidGetsOneForGood) {
  Add("a");
  Add("from-a-server", "u-1");
  EXPECT_THAT(Decide().changes, SizeIs(1));
  Apply();
  const std::string uid = UidOf("a");
  EXPECT_THAT(uid, SizeIs(36));
  EXPECT_EQ(UidOf("from-a-server"), "");
  EXPECT_THAT(Decide().changes, IsEmpty());
}

TEST_F(ObjectIdentityTest, AnotherIncarnationIsAnotherObject) {
  Add("a");
  Apply();
  const std::string first = UidOf("a");
  snapshot_.pods.clear();
  Apply();
  EXPECT_EQ(UidOf("a"), "");
  Add("a");
  Apply();
  EXPECT_NE(UidOf("a"), first);
}

TEST_F(ObjectIdentityTest, WhatIsMissingInAnIncompleteSnapshotStays) {
  Add("a");
  Apply();
  snapshot_.pods.clear();
  snapshot_.complete = false;
  EXPECT_THAT(Decide().changes, IsEmpty());
}

TEST_F(ObjectIdentityTest, WhatIsMissingOfAKindThatIsReadInPartStays) {
  auto claim = std::make_shared<ResourceClaim>();
  claim->metadata.name = "c";
  snapshot_.claims.insert_or_assign({"", "c"}, claim);
  Add("a");
  Apply();
  snapshot_.pods.clear();
  snapshot_.claims.clear();
  snapshot_.partial_kinds = {ObjectKind::kResourceClaim};
  Apply();
  EXPECT_EQ(UidOf("a"), "");
  EXPECT_NE(state_.FindIdentity(kClaimKind, {"", "c"}), nullptr);
  snapshot_.partial_kinds.clear();
  Apply();
  EXPECT_EQ(state_.FindIdentity(kClaimKind, {"", "c"}), nullptr);
}

TEST_F(ObjectIdentityTest, ARejectedPodWhoseFileIsMendedIsANewOne) {
  Add("a");
  Apply();
  const std::string uid = UidOf("a");
  auto rejected = std::make_shared<state::PodRecord>();
  rejected->uid = {uid};
  rejected->name = {"default", "a"};
  rejected->phase = state::PodPhase::kRejected;
  rejected->reason = "Other";
  state_.Put(std::shared_ptr<const state::PodRecord>(rejected));
  EXPECT_THAT(Decide().changes, IsEmpty());
  auto invalid = std::make_shared<state::PodRecord>(*rejected);
  invalid->reason = kInvalidPod;
  state_.Put(std::shared_ptr<const state::PodRecord>(invalid));
  EXPECT_THAT(Decide().changes, SizeIs(1));
  Apply();
  EXPECT_NE(UidOf("a"), uid);
}

TEST_F(ObjectIdentityTest, AUidIsDerivedFromAllThatTellsObjectsApart) {
  const ObjectName name{"default", "a"};
  const std::string uid = DeriveUid("files", kPodKind, name, 7);
  EXPECT_EQ(uid, DeriveUid("files", kPodKind, name, 7));
  EXPECT_NE(uid, DeriveUid("other", kPodKind, name, 7));
  EXPECT_NE(uid, DeriveUid("files", kClaimKind, name, 7));
  EXPECT_NE(uid, DeriveUid("files", kPodKind, {"default", "b"}, 7));
  EXPECT_NE(uid, DeriveUid("files", kPodKind, name, 8));
}

// A class of an API server has a time of creation. Its UID is of no use here,
// and one from a file that brings it still has no time.
TEST_F(ObjectIdentityTest, AClassNeedsATimeOfCreation) {
  ObjectMeta metadata;
  metadata.uid = "u-1";
  EXPECT_TRUE(NeedsIdentity(kClassKind, metadata));
  EXPECT_FALSE(NeedsIdentity(kClaimKind, metadata));
  metadata.creation_timestamp = "2026-01-02T03:04:05Z";
  EXPECT_FALSE(NeedsIdentity(kClassKind, metadata));
  auto item = std::make_shared<DeviceClass>();
  item->metadata.name = "gpu";
  item->metadata.uid = "u-1";
  snapshot_.device_classes.insert_or_assign({"", "gpu"}, item);
  Apply();
  const auto* identity = state_.FindIdentity(kClassKind, {"", "gpu"});
  ASSERT_NE(identity, nullptr);
  EXPECT_EQ(identity->uid, "u-1") << "its own is kept";
  EXPECT_EQ(identity->first_seen_ms, 1'000);
  snapshot_.device_classes.clear();
  snapshot_.partial_kinds = {ObjectKind::kDeviceClass};
  EXPECT_THAT(Decide().changes, IsEmpty());
  snapshot_.partial_kinds.clear();
  EXPECT_THAT(Decide().changes, SizeIs(1));
}

TEST_F(ObjectIdentityTest, APodThatBreaksARuleHasAnIdentityToo) {
  auto malformed = std::make_shared<MalformedPod>();
  malformed->pod.metadata.ns = "default";
  malformed->pod.metadata.name = "bad";
  snapshot_.malformed_pods.insert_or_assign({"default", "bad"}, malformed);
  Apply();
  EXPECT_THAT(UidOf("bad"), SizeIs(36));
}

// It is rejected again when its file is still what it was.
TEST_F(ObjectIdentityTest, ARejectedPodThatIsNotMendedKeepsItsIdentity) {
  Add("a");
  Apply();
  auto rejected = std::make_shared<state::PodRecord>();
  rejected->uid = {UidOf("a")};
  rejected->name = {"default", "a"};
  rejected->phase = state::PodPhase::kRejected;
  rejected->reason = kInvalidPod;
  state_.Put(std::shared_ptr<const state::PodRecord>(rejected));
  // A claim without a source.
  auto invalid = std::make_shared<Pod>(*snapshot_.pods.at({"default", "a"}));
  invalid->spec.resource_claims.push_back({"c", std::nullopt, std::nullopt});
  snapshot_.pods.insert_or_assign({"default", "a"}, invalid);
  EXPECT_THAT(Decide().changes, IsEmpty());
  // It became malformed: it is none of the pods.
  auto malformed = std::make_shared<MalformedPod>();
  malformed->pod = *invalid;
  snapshot_.pods.clear();
  snapshot_.malformed_pods.insert_or_assign({"default", "a"}, malformed);
  EXPECT_THAT(Decide().changes, IsEmpty());
}

/// MayNeedIdentities by what has changed since `before`.
class IdentityChangeTest : public ObjectIdentityTest {
 protected:
  IdentityChangeTest() {
    Add("a");
    Apply();
    Settle();
  }
  /// What there is now has been decided about.
  void Settle() {
    before_ = snapshot_;
    known_ = state_.identities;
  }
  bool MayNeed() const {
    return MayNeedIdentities(before_, known_, snapshot_, state_);
  }

  ObjectSnapshot before_;
  Identities known_;
};

TEST_F(IdentityChangeTest, NothingIsLookedAtWhereNothingHasChanged) {
  EXPECT_FALSE(MayNeed());
  Add("from-a-server", "u-1");
  EXPECT_FALSE(MayNeed()) << "it needs none";
  auto slice = std::make_shared<ResourceSlice>();
  snapshot_.resource_slices.insert_or_assign({"", "s"}, slice);
  EXPECT_FALSE(MayNeed());
}

TEST_F(IdentityChangeTest, AnObjectThatComesOrGoesIsLookedAt) {
  Add("b");
  EXPECT_TRUE(MayNeed());
  Apply();
  EXPECT_TRUE(MayNeed()) << "the ledger has changed since";
  Settle();
  EXPECT_FALSE(MayNeed());
  snapshot_.pods.erase({"default", "b"});
  EXPECT_TRUE(MayNeed()) << "its identity is to be erased";
}

TEST_F(IdentityChangeTest, EachKindIsLookedAt) {
  const auto expect_seen = [&](const char* kind) {
    EXPECT_TRUE(MayNeed()) << kind;
    Apply();
    Settle();
    EXPECT_FALSE(MayNeed()) << kind;
  };
  auto claim = std::make_shared<ResourceClaim>();
  claim->metadata.name = "c";
  snapshot_.claims.insert_or_assign({"", "c"}, claim);
  expect_seen("claim");
  auto item = std::make_shared<DeviceClass>();
  item->metadata.name = "gpu";
  snapshot_.device_classes.insert_or_assign({"", "gpu"}, item);
  expect_seen("class");
  auto malformed = std::make_shared<MalformedPod>();
  malformed->pod.metadata.name = "bad";
  snapshot_.malformed_pods.insert_or_assign({"", "bad"}, malformed);
  expect_seen("malformed pod");
}

// Only then is an object that is missing gone.
TEST_F(IdentityChangeTest, AKindThatBecomesCompleteIsLookedAt) {
  for (const ObjectKind kind : {ObjectKind::kPod, ObjectKind::kResourceClaim,
                                ObjectKind::kDeviceClass}) {
    snapshot_.partial_kinds = {kind};
    EXPECT_FALSE(MayNeed()) << "it is complete no more";
    Settle();
    snapshot_.partial_kinds.clear();
    EXPECT_TRUE(MayNeed());
    Settle();
  }
}

}  // namespace
}  // namespace devmgr::claim
