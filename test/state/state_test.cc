// SPDX-License-Identifier: Apache-2.0
#include "state/state.h"

#include <devmgr/status_types.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <utility>

#include "common/status.h"
#include "state/decision.h"
#include "state/record_builders.h"

namespace devmgr::state {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

State PreparedState() {
  State state;
  for (const Batch& batch : PreparedPodBatches()) {
    EXPECT_TRUE(Apply(state, batch).ok());
  }
  return state;
}

void ExpectRefusedUnchanged(State state, const Batch& batch,
                            const std::string& message) {
  const State before = state;
  const absl::Status status = Apply(state, batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(MessageOf(status), HasSubstr(message));
  EXPECT_TRUE(state == before);
  EXPECT_EQ(state.pod_names, before.pod_names);
  EXPECT_EQ(state.claim_names, before.claim_names);
}

TEST(StateTest, FollowsThePodsLifeFromIdentityToRelease) {
  State state;
  for (const auto& batches : {PreparedPodBatches(), ReleasedPodBatches()}) {
    for (const Batch& batch : batches) {
      ASSERT_TRUE(Apply(state, batch).ok());
      EXPECT_EQ(state.seq, batch.seq);
      EXPECT_THAT(CheckInvariants(state, kBoot), IsEmpty())
          << "after batch " << batch.seq;
    }
  }
  State empty;
  empty.seq = 7;
  EXPECT_TRUE(state == empty);
  EXPECT_THAT(state.pod_names, IsEmpty());
  EXPECT_THAT(state.claim_names, IsEmpty());
}

TEST(StateTest, FindsRecordsByUidAndByKind) {
  const State state = PreparedState();
  ASSERT_NE(state.FindPod(kPodA), nullptr);
  EXPECT_EQ(state.FindPod(kPodA)->phase, PodPhase::kReady);
  EXPECT_EQ(state.FindPod(kPodB), nullptr);
  ASSERT_NE(state.FindClaim(kGpu), nullptr);
  EXPECT_EQ(state.FindClaim(ClaimUid{"pod-a"}), nullptr);
  ASSERT_NE(state.FindIdentity("Pod", {"default", "a"}), nullptr);
  EXPECT_EQ(state.FindIdentity("ResourceClaim", {"default", "a"}), nullptr);
}

TEST(StateTest, ComparesContentsNotAddresses) {
  EXPECT_TRUE(PreparedState() == PreparedState());
  State other = PreparedState();
  PodRecord pod = *other.FindPod(kPodA);
  auto answer = std::make_shared<PodDevices>(*pod.answer);
  answer->containers[0].env = {{"A", "1"}};
  pod.answer = answer;
  other.Put(std::make_shared<const PodRecord>(pod));
  EXPECT_FALSE(other == PreparedState());
  pod.answer = nullptr;
  other.Put(std::make_shared<const PodRecord>(pod));
  EXPECT_FALSE(other == PreparedState());
}

TEST(StateTest, SharesRecordsThatABatchLeavesAlone) {
  State state = PreparedState();
  const State before = state;
  ASSERT_TRUE(
      Apply(state, MakeBatch(5, DecisionKind::kSeen,
                             {Put(MakePod(kPodB, "b", PodPhase::kWaiting))}))
          .ok());
  EXPECT_EQ(state.FindPod(kPodA), before.FindPod(kPodA));
  EXPECT_EQ(state.FindClaim(kGpu), before.FindClaim(kGpu));
  EXPECT_EQ(before.FindPod(kPodB), nullptr);
}

TEST(StateTest, ListsPodsOfOneNameInTheOrderTheyWereSeen) {
  State state;
  PodRecord newer = MakePod(kPodA, "x", PodPhase::kWaiting);
  newer.first_seen_seq = 9;
  PodRecord older = MakePod(kPodB, "x", PodPhase::kReleasing);
  older.first_seen_seq = 3;
  state.Put(std::make_shared<const PodRecord>(newer));
  state.Put(std::make_shared<const PodRecord>(older));
  EXPECT_THAT(state.PodsNamed({"default", "x"}), ElementsAre(kPodB, kPodA));
  EXPECT_THAT(state.PodsNamed({"default", "y"}), IsEmpty());
  EXPECT_TRUE(state.Erase(kPodB));
  EXPECT_FALSE(state.Erase(kPodB));
  EXPECT_THAT(state.PodsNamed({"default", "x"}), ElementsAre(kPodA));
}

TEST(StateTest, FindsARecordUnderItsNewNameOnly) {
  State state;
  ClaimRecord claim = MakeClaim(DriverPhase::kPreparing, {});
  state.Put(std::make_shared<const ClaimRecord>(claim));
  claim.name.name = "other";
  state.Put(std::make_shared<const ClaimRecord>(claim));
  EXPECT_THAT(state.ClaimsNamed({"default", "gpu"}), IsEmpty());
  EXPECT_THAT(state.ClaimsNamed({"default", "other"}), ElementsAre(kGpu));
}

// Each kind of record, put and erased as it must not be.
TEST(StateTest, RefusesRecordsThatCannotBe) {
  const auto health = [](const std::string& driver, const std::string& pool) {
    return PutHealth{std::make_shared<const HealthRecord>(
        HealthRecord{.driver = driver, .pool = pool, .device = "gpu-0"})};
  };
  const std::pair<Change, const char*> cases[] = {
      {PutResource{}, "a resource record is missing"},
      {PutResource{std::make_shared<const ResourceRecord>()}, "has no name"},
      {PutHealth{}, "a health record is missing"},
      {health("", "pool"), "the health of 'gpu-0' has no driver"},
      {health(std::string("d\0", 2), "pool"), "a NUL in a name"},
      {health("d", std::string("p\0", 2)), "a NUL in a name"},
      {ErasePod{PodUid{"u-none"}}, "pod with uid 'u-none' is not known"},
      {EraseClaim{ClaimUid{"u-none"}}, "claim with uid 'u-none' is not known"},
      {EraseIdentity{"Pod", {"default", "none"}}, "Pod"},
      {EraseResource{"example.com/none"}, "'example.com/none' is not known"},
      {EraseHealth{{"d", "pool", "none"}}, "the health of 'none'"},
      {PutSource{}, "a source record is missing"},
      {Put(SourceRecord{}), "a source has no name"},
      {EraseSource{{"none"}}, "source 'none' is not known"},
      {PutHolder{}, "a record of a foreign holder is missing"},
      {Put(MakeHolder("", {"0"})),
       "a foreign holder of pod 'default/stray' has no container ID"},
      {EraseHolder{{"none"}}, "foreign holder 'none' is not known"},
      {PutAuthority{}, "the record of the authority is missing"},
      {EraseAuthority{}, "there is no record of the authority"},
  };
  for (const auto& [change, message] : cases) {
    SCOPED_TRACE(message);
    State state = PreparedState();
    Batch batch;
    batch.seq = state.seq + 1;
    // What came before it is taken back.
    batch.decision.changes = {Put(MakePod(kPodB, "b", PodPhase::kWaiting)),
                              change};
    ExpectRefusedUnchanged(std::move(state), batch, message);
  }
}

TEST(StateTest, ResourcesHealthAndSourcesComeAndGo) {
  State state;
  Batch batch;
  batch.seq = 1;
  const HealthRecord health{.driver = "d", .pool = "p", .device = "gpu-0"};
  batch.decision.changes = {
      PutResource{std::make_shared<const ResourceRecord>(
          ResourceRecord{.name = "example.com/gpu"})},
      PutHealth{std::make_shared<const HealthRecord>(health)},
      Put(SourceRecord{"directory /m", "marker", 7})};
  ASSERT_TRUE(ApplyNew(state, batch).ok());
  EXPECT_NE(state.FindResource("example.com/gpu"), nullptr);
  EXPECT_EQ(*state.FindHealth(health.Key()), health);
  EXPECT_EQ(state.FindSource({"directory /m"})->marker, "marker");
  ASSERT_TRUE(Revert(state, batch).ok());
  EXPECT_EQ(state.FindResource("example.com/gpu"), nullptr);
  EXPECT_EQ(state.FindHealth(health.Key()), nullptr);
  EXPECT_EQ(state.FindSource({"directory /m"}), nullptr);
}

TEST(StateTest, ForeignHoldersComeAndGo) {
  State state;
  ForeignHolderRecord first = MakeHolder("first", {"0", "1"});
  Batch batch = MakeBatch(1, DecisionKind::kHolderFound,
                          {Put(first), Put(MakeHolder("second", {"1"}))});
  ASSERT_TRUE(ApplyNew(state, batch).ok());
  const auto holder = [&](const std::string& device, const PodUid& pod = {}) {
    const auto* found = state.ForeignHolderOf("example.com/tpu", device, pod);
    return found == nullptr ? "" : found->id.value;
  };
  EXPECT_EQ(holder("0"), "first");
  EXPECT_EQ(holder("1"), "first");
  EXPECT_EQ(holder("2"), "");
  EXPECT_EQ(state.ForeignHolderOf("example.com/other", "0"), nullptr);
  // Its own pod may have them.
  EXPECT_EQ(holder("0", PodUid{"pod-stray"}), "");
  EXPECT_EQ(holder("0", kPodA), "first");

  // The record of one that an operator freed stays, and holds nothing.
  first.freed = "it hangs";
  Batch freed = MakeBatch(2, DecisionKind::kHolderFreed, {Put(first)});
  ASSERT_TRUE(ApplyNew(state, freed).ok());
  EXPECT_EQ(holder("0"), "");
  EXPECT_EQ(holder("1"), "second");
  EXPECT_EQ(state.FindHolder({"first"})->freed, "it hangs");

  ASSERT_TRUE(Revert(state, freed).ok());
  EXPECT_EQ(holder("0"), "first");
  ASSERT_TRUE(Revert(state, batch).ok());
  EXPECT_TRUE(state.foreign_holders.empty());
  EXPECT_TRUE(state.foreign_devices.empty());
}

TEST(StateTest, ClaimsOfThisNodeComeChangeAndGo) {
  State state;
  Batch made =
      MakeBatch(1, DecisionKind::kClaimsAllocated,
                {Put(MakeLocalClaim("c1")), Put(MakeLocalClaim("c2"))});
  ASSERT_TRUE(ApplyNew(state, made).ok());
  LocalClaimRecord changed = MakeLocalClaim("c1");
  auto object = std::make_shared<ResourceClaim>(*changed.object);
  object->status.reserved_for.clear();
  changed.object = object;
  Batch released =
      MakeBatch(2, DecisionKind::kClaimsReleased,
                {Put(changed), EraseLocalClaim{LocalClaimUid{"c2"}}});
  ASSERT_TRUE(ApplyNew(state, released).ok());
  EXPECT_EQ(*state.FindLocalClaim({"c1"}), changed);
  EXPECT_EQ(state.FindLocalClaim({"c2"}), nullptr);
  EXPECT_NE(changed, MakeLocalClaim("c1"));

  ASSERT_TRUE(Revert(state, released).ok());
  EXPECT_EQ(*state.FindLocalClaim({"c1"}), MakeLocalClaim("c1"));
  EXPECT_EQ(*state.FindLocalClaim({"c2"}), MakeLocalClaim("c2"));
  ASSERT_TRUE(Revert(state, made).ok());
  EXPECT_TRUE(state.local_claims.empty());
}

TEST(StateTest, AClaimOfThisNodeHasOneUid) {
  State state;
  LocalClaimRecord claim = MakeLocalClaim("c1");
  claim.uid.value = "c2";
  Batch batch = MakeBatch(1, DecisionKind::kClaimsAllocated, {Put(claim)});
  EXPECT_EQ(ApplyNew(state, batch).message(),
            "batch 1: claim 'default/a-extended-resources-c1' that this node "
            "allocates has UID 'c2', and its object 'c1'");
  claim.object = nullptr;
  batch = MakeBatch(1, DecisionKind::kClaimsAllocated, {Put(claim)});
  EXPECT_EQ(ApplyNew(state, batch).code(), absl::StatusCode::kDataLoss);
  batch = MakeBatch(1, DecisionKind::kClaimsReleased,
                    {EraseLocalClaim{LocalClaimUid{"c1"}}});
  EXPECT_EQ(ApplyNew(state, batch).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(state.local_claims.empty());
}

TEST(StateTest, AForeignHolderIsNamedAsCrictlDoes) {
  ForeignHolderRecord holder = MakeHolder("0123456789abcdef", {});
  EXPECT_EQ(HolderText(holder),
            "foreign container 0123456789abc (pod default/stray)");
  holder.pod = {};
  EXPECT_EQ(HolderText(holder), "foreign container 0123456789abc");
}

TEST(StateTest, EachKindOfDecisionHasItsName) {
  std::set<std::string_view> names;
  for (int kind = 1; kind <= 26; ++kind) {
    names.insert(DecisionKindName(PublicOf(static_cast<DecisionKind>(kind))));
  }
  EXPECT_EQ(names.size(), 26u);
  EXPECT_EQ(names.count(""), 0u);
  EXPECT_EQ(names.count("Other"), 0u);
  EXPECT_EQ(DecisionKindName(PublicOf(DecisionKind::kWanted)), "Wanted");
  EXPECT_EQ(DecisionKindName(PublicOf(DecisionKind::kOther)), "Other");
}

// What a repair does may lie outside the ledger; that it was done is a record.
TEST(StateTest, OnlyARepairIsWorthWritingWithoutChanges) {
  Decision decision;
  EXPECT_FALSE(IsWorthWriting(decision));
  decision.kind = DecisionKind::kRepair;
  EXPECT_TRUE(IsWorthWriting(decision));
  decision.kind = DecisionKind::kSeen;
  decision.changes = {Put(MakePod(kPodB, "b", PodPhase::kWaiting))};
  EXPECT_TRUE(IsWorthWriting(decision));
}

TEST(StateTest, RefusesABatchOutOfOrder) {
  ExpectRefusedUnchanged(PreparedState(), MakeBatch(4, DecisionKind::kSeen, {}),
                         "batch 4 does not follow batch 4");
  ExpectRefusedUnchanged(PreparedState(), MakeBatch(6, DecisionKind::kSeen, {}),
                         "batch 6 does not follow batch 4");
}

/// Everything that goes before the bad change has to be taken back.
TEST(StateTest, TakesBackAllChangesOfABadBatch) {
  const std::vector<std::pair<Change, std::string>> bad = {
      {ErasePod{PodUid{"nobody"}}, "pod with uid 'nobody' is not known"},
      {ErasePod{kPodA}, "pod with uid 'pod-a' is not known"},
      {EraseClaim{ClaimUid{"none"}}, "claim with uid 'none' is not known"},
      {EraseIdentity{"Pod", {"x", "y"}}, "'Pod' 'x/y' is not known"},
      {PutPod{nullptr}, "pod record is missing"},
      {PutClaim{nullptr}, "claim record is missing"},
      {PutIdentity{nullptr}, "identity record is missing"},
      {Put(MakePod(PodUid{}, "z", PodPhase::kWaiting)),
       "pod 'default/z' has no uid"},
      {Put(ClaimRecord{}), "has no uid"},
      {Put(IdentityRecord{std::string("a\0b", 3), {"n", "m"}, "u", 0}), "NUL"},
  };
  PodRecord renamed = MakePod(kPodA, "renamed", PodPhase::kWaiting);
  for (const auto& [change, message] : bad) {
    ExpectRefusedUnchanged(
        PreparedState(),
        MakeBatch(
            5, DecisionKind::kRelease,
            {Put(renamed), Put(MakePod(kPodB, "b", PodPhase::kWaiting)),
             Put(MakeClaim(DriverPhase::kUnpreparing, {})), EraseClaim{kGpu},
             ErasePod{kPodA}, Put(MakeIdentity("b", "pod-b")),
             EraseIdentity{"Pod", {"default", "a"}}, change}),
        message);
  }
}

TEST(StateTest, MayEraseWhatTheSameBatchPut) {
  State state = PreparedState();
  const State before = state;
  ASSERT_TRUE(
      Apply(state, MakeBatch(5, DecisionKind::kSeen,
                             {Put(MakePod(kPodB, "b", PodPhase::kWaiting)),
                              ErasePod{kPodB}}))
          .ok());
  EXPECT_EQ(state.pods.size(), before.pods.size());
  EXPECT_EQ(state.seq, 5u);
}

TEST(StateTest, NamesEveryEnumerator) {
  EXPECT_EQ(PodPhaseName(PodPhase::kReleasing), "Releasing");
  EXPECT_EQ(DriverPhaseName(DriverPhase::kUnpreparing), "Unpreparing");
  EXPECT_EQ(DecisionKindName(PublicOf(DecisionKind::kUnprepareResult)),
            "UnprepareResult");
  for (int i = 1; i <= 5; ++i) {
    EXPECT_NE(PodPhaseName(static_cast<PodPhase>(i)), "") << i;
  }
  for (int i = 1; i <= 3; ++i) {
    EXPECT_NE(DriverPhaseName(static_cast<DriverPhase>(i)), "") << i;
  }
  for (int i = 1; i <= 10; ++i) {
    EXPECT_NE(DecisionKindName(PublicOf(static_cast<DecisionKind>(i))), "")
        << i;
  }
}

}  // namespace
}  // namespace devmgr::state
