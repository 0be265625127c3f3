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

}  // namespace
}  // namespace devmgr::claim
