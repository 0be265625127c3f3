// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/codec.h"

#include <devmgr/ledger/v1/ledger.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/full_ledger.h"
#include "checkpoint/keys.h"
#include "checkpoint/store_support.h"
#include "common/status.h"
#include "state/record_builders.h"
#include "support/random_lives.h"

namespace devmgr::checkpoint {
namespace {

using ::testing::HasSubstr;

namespace pb = ::devmgr::ledger::v1;

template <typename Decoded>
void ExpectDataLoss(const Decoded& decoded, const std::string& message) {
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(MessageOf(decoded.status()), message);
}

TEST(CodecTest, KeepsEveryFieldOfEveryRecord) {
  const state::State state = Project(FullLedger());
  for (const auto& [uid, pod] : state.pods) {
    const auto decoded = DecodePod(EncodePod(*pod), "key");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(**decoded == *pod) << uid.value;
  }
  for (const auto& [uid, claim] : state.claims) {
    const auto decoded = DecodeClaim(EncodeClaim(*claim), "key");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(**decoded == *claim) << uid.value;
  }
  for (const auto& [key, identity] : state.identities) {
    const auto decoded = DecodeIdentity(EncodeIdentity(*identity), "key");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(**decoded == *identity);
  }
  for (const auto& [name, resource] : state.resources) {
    const auto decoded = DecodeResource(EncodeResource(*resource), "key");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(**decoded == *resource);
  }
  ASSERT_FALSE(state.healths.empty());
  for (const auto& [key, health] : state.healths) {
    const auto decoded = DecodeHealth(EncodeHealth(*health), "key");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(**decoded == *health);
  }
  ASSERT_FALSE(state.sources.empty());
  for (const auto& [key, source] : state.sources) {
    const auto decoded = DecodeSource(EncodeSource(*source), "key");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(**decoded == *source);
  }
  ASSERT_FALSE(state.foreign_holders.empty());
  for (const auto& [id, holder] : state.foreign_holders) {
    const auto decoded = DecodeHolder(EncodeHolder(*holder), "key");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(**decoded == *holder);
  }
}

/// A batch of a newer version: a kind of decision and a change that are not
/// known, and a change that is.
pb::Batch NewerBatch(bool ignorable) {
  pb::Batch batch;
  batch.set_seq(7);
  batch.set_kind(200);
  batch.set_kind_may_be_unknown(true);
  for (auto* changes : {batch.mutable_changes(), batch.mutable_undo()}) {
    changes->Add()->set_erase_pod("uid");
    changes->Add()->set_may_be_ignored(ignorable);
  }
  return batch;
}

TEST(CodecTest, LeavesOutWhatANewerVersionLetsItIgnore) {
  const auto batch = DecodeBatch(NewerBatch(true).SerializeAsString(), "h/7");
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->decision.kind, state::DecisionKind::kOther);
  EXPECT_EQ(batch->decision.changes.size(), 1);
  EXPECT_EQ(batch->undo.size(), 1);
}

TEST(CodecTest, RefusesWhatANewerVersionDoesNotLetItIgnore) {
  ExpectDataLoss(DecodeBatch(NewerBatch(false).SerializeAsString(), "h/7"),
                 "record 'h/7': unknown change");
  pb::Batch batch = NewerBatch(true);
  batch.set_kind_may_be_unknown(false);
  ExpectDataLoss(DecodeBatch(batch.SerializeAsString(), "h/7"),
                 "record 'h/7': unknown kind of decision 200");
}

TEST(CodecTest, KeepsInWhichBootAHolderWasFound) {
  state::ForeignHolderRecord holder = state::MakeHolder("c1", {"0"});
  holder.boot_id = state::kBoot;
  EXPECT_EQ(**DecodeHolder(EncodeHolder(holder), "key"), holder);
}

/// A version that knew nothing of them would give their devices to others.
TEST(CodecTest, ForeignHoldersMayNotBeIgnored) {
  EXPECT_FALSE(MayBeIgnored(HolderKey({"c1"})));
  for (const state::Change& change :
       {Put(state::MakeHolder("c1", {"0"})),
        state::Change(state::EraseHolder{{"c1"}})}) {
    pb::Batch batch;
    ASSERT_TRUE(batch.ParseFromString(EncodeBatch(
        MakeBatch(1, state::DecisionKind::kHolderFound, {change}))));
    EXPECT_FALSE(batch.kind_may_be_unknown());
    EXPECT_FALSE(batch.changes(0).may_be_ignored());
  }
}

device::Hardware Card(bool part = false) {
  device::Hardware hardware;
  hardware.Add(device::PciIdentity("0000:3b:00.0"));
  hardware.part = part;
  return hardware;
}

TEST(CodecTest, KeepsClaimsOfThisNode) {
  const state::LocalClaimRecord claim = state::MakeLocalClaim("c1");
  EXPECT_EQ(**DecodeLocalClaim(EncodeLocalClaim(claim), "key"), claim);
  state::LocalClaimRecord of_template = claim;
  of_template.origin = state::ClaimOrigin::kTemplate;
  of_template.pod_claim = "gpu";
  of_template.mappings.clear();
  EXPECT_EQ(**DecodeLocalClaim(EncodeLocalClaim(of_template), "key"),
            of_template);
  state::LocalClaimRecord of_hardware = claim;
  of_hardware.hardware = {{{"d", "pool", "gpu-0"}, Card(/*part=*/true)}};
  EXPECT_EQ(**DecodeLocalClaim(EncodeLocalClaim(of_hardware), "key"),
            of_hardware);
}

TEST(CodecTest, KeepsWhichHardwareIsHeld) {
  state::ClaimRecord claim;
  claim.uid.value = "c1";
  state::DriverRecord& driver = claim.drivers["d"];
  driver.phase = state::DriverPhase::kPrepared;
  driver.allocated = {{"pool", "gpu-0", false, Card()}};
  driver.devices = {{{"r"}, "pool", "gpu-0", {"v/c=0"}, "", Card()}};
  EXPECT_EQ(**DecodeClaim(EncodeClaim(claim), "key"), claim);
  state::PodRecord pod;
  pod.uid.value = "p1";
  pod.holds.resize(1);
  pod.holds[0].hardware = Card();
  EXPECT_EQ(**DecodePod(EncodePod(pod), "key"), pod);
  state::ForeignHolderRecord holder;
  holder.id.value = "0123";
  holder.hardware = Card(/*part=*/true);
  EXPECT_EQ(**DecodeHolder(EncodeHolder(holder), "key"), holder);
}

TEST(CodecTest, NamesTheRecordOfABadClaimOfThisNode) {
  pb::LocalClaimRecord record;
  ASSERT_TRUE(
      record.ParseFromString(EncodeLocalClaim(state::MakeLocalClaim("c1"))));
  const auto error = [&] {
    const auto decoded =
        DecodeLocalClaim(record.SerializeAsString(), "l/c1").status();
    EXPECT_EQ(decoded.code(), absl::StatusCode::kDataLoss);
    return std::string(decoded.message());
  };
  record.set_uid("c2");
  EXPECT_EQ(error(), "record 'l/c1' holds the claim with UID 'c1'");
  record.set_uid("c1");
  record.mutable_counters(0)->mutable_counters(0)->set_amount("much");
  EXPECT_THAT(error(), testing::HasSubstr("counter 'slices'"));
  record.set_object("{}");
  EXPECT_THAT(error(), testing::HasSubstr("l/c1"));
  record.set_object(R"({"apiVersion":"v1","kind":"List","items":[]})");
  EXPECT_EQ(error(), "record 'l/c1' does not hold one ResourceClaim");
}

/// A version that knew nothing of them would have claims without allocation.
TEST(CodecTest, ClaimsOfThisNodeMayNotBeIgnored) {
  EXPECT_FALSE(MayBeIgnored(LocalClaimKey({"c1"})));
  for (const state::Change& change :
       {Put(state::MakeLocalClaim("c1")),
        state::Change(state::EraseLocalClaim{{"c1"}})}) {
    pb::Batch batch;
    ASSERT_TRUE(batch.ParseFromString(EncodeBatch(
        MakeBatch(1, state::DecisionKind::kClaimsAllocated, {change}))));
    EXPECT_FALSE(batch.kind_may_be_unknown());
    EXPECT_FALSE(batch.changes(0).may_be_ignored());
  }
}

TEST(CodecTest, KeepsWhichPartyAllocates) {
  state::AuthorityRecord authority{state::Party::kScheduler, 7,
                                   state::Party::kSplit, "so"};
  EXPECT_EQ(**DecodeAuthority(EncodeAuthority(authority), "a/"), authority);
  authority.to = state::Party::kNode;
  authority.to_since_ms = 9;
  EXPECT_EQ(**DecodeAuthority(EncodeAuthority(authority), "a/"), authority);
  pb::AuthorityRecord strange;
  strange.set_party(4);
  ExpectDataLoss(DecodeAuthority(strange.SerializeAsString(), "a/"),
                 "record 'a/': unknown authority 4");
  EXPECT_EQ(KindOf(AuthorityKeyOf()), KeyKind::kAuthority);
}

/// A version that knew nothing of it would go by its configuration.
TEST(CodecTest, WhichPartyAllocatesMayNotBeIgnored) {
  EXPECT_FALSE(MayBeIgnored(AuthorityKeyOf()));
  for (const state::Change& change : {Put(state::AuthorityRecord{}),
                                      state::Change(state::EraseAuthority{})}) {
    const std::string bytes =
        EncodeBatch(MakeBatch(1, state::DecisionKind::kAuthority, {change}));
    pb::Batch batch;
    ASSERT_TRUE(batch.ParseFromString(bytes));
    EXPECT_FALSE(batch.kind_may_be_unknown());
    EXPECT_FALSE(batch.changes(0).may_be_ignored());
    const auto decoded = DecodeBatch(bytes, "h/1");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->decision.kind, state::DecisionKind::kAuthority);
    EXPECT_EQ(decoded->decision.changes.size(), 1);
  }
}

TEST(CodecTest, KeepsWhosePartOfTheDevicesAPodHas) {
  state::PodRecord pod =
      state::MakePod(state::kPodA, "a", state::PodPhase::kAdmitted);
  pod.local = true;
  EXPECT_EQ(**DecodePod(EncodePod(pod), "p/a"), pod);
}

/// They say what happened, and change nothing.
TEST(CodecTest, WhatClientsWantMayBeIgnored) {
  for (const auto kind :
       {state::DecisionKind::kWanted, state::DecisionKind::kUnwanted,
        state::DecisionKind::kSlicesDeleted, state::DecisionKind::kRecheck}) {
    const std::string bytes = EncodeBatch(MakeBatch(1, kind, {}));
    pb::Batch batch;
    ASSERT_TRUE(batch.ParseFromString(bytes));
    EXPECT_TRUE(batch.kind_may_be_unknown());
    const auto decoded = DecodeBatch(bytes, "h/1");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->decision.kind, kind);
  }
}

/// A version that does not know of it would admit the pod again.
TEST(CodecTest, ThatAPodHasToLeaveMayNotBeIgnored) {
  state::PodRecord pod =
      state::MakePod(state::kPodA, "a", state::PodPhase::kReady);
  pod.eviction = {"DeletionByDeviceTaintManager", "d1 is broken", 7};
  const auto decoded = DecodePod(EncodePod(pod), "key");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(**decoded == pod);
  for (const auto kind :
       {state::DecisionKind::kEvict, state::DecisionKind::kEvicted}) {
    const std::string bytes = EncodeBatch(MakeBatch(1, kind, {Put(pod)}));
    pb::Batch batch;
    ASSERT_TRUE(batch.ParseFromString(bytes));
    EXPECT_FALSE(batch.kind_may_be_unknown());
    EXPECT_EQ(DecodeBatch(bytes, "h/1")->decision.kind, kind);
  }
}

/// A version that does not know of it would never name the pod.
TEST(CodecTest, ThatAPodWasImportedMayNotBeIgnored) {
  state::PodRecord pod =
      state::MakePod(state::kPodA, "a", state::PodPhase::kReady);
  pod.imported = true;
  pod.holds = {state::MakeHold({"0"}), state::MakeHold({"1"}),
               state::MakeHold({"2"})};
  pod.holds[0].edits.response = std::string("\x0a\0\xff", 3);
  pod.holds[1].edits.response = "";  // Not the same as none.
  const auto decoded = DecodePod(EncodePod(pod), "key");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(**decoded == pod);
  EXPECT_FALSE((*decoded)->holds[2].edits.response.has_value());
  for (const auto kind :
       {state::DecisionKind::kImported, state::DecisionKind::kShown}) {
    const std::string bytes = EncodeBatch(MakeBatch(1, kind, {Put(pod)}));
    pb::Batch batch;
    ASSERT_TRUE(batch.ParseFromString(bytes));
    EXPECT_FALSE(batch.kind_may_be_unknown());
    EXPECT_EQ(DecodeBatch(bytes, "h/1")->decision.kind, kind);
  }
}

TEST(CodecTest, KeepsWhatAPodWasAlignedTo) {
  state::PodRecord pod =
      state::MakePod(state::kPodA, "a", state::PodPhase::kReady);
  PodAlignmentInfo alignment;
  alignment.options = {.policy = TopologyPolicy::kRestricted,
                       .scope = TopologyScope::kPod,
                       .prefer_closest = true,
                       .max_numa_nodes = 64};
  ContainerAlignmentInfo& one = alignment.containers.emplace_back();
  one.container = "c";
  one.merged = {NumaMask(std::uint64_t{1} << 63), true};
  one.proven = false;
  TopologyHintsInfo list{.provider = "device", .resource = "example.com/gpu"};
  one.resources.push_back(list);  // No opinion.
  list.hints.emplace();           // No possible set of nodes.
  one.resources.push_back(list);
  list.hints = {{NumaMask(3), true}, {std::nullopt, false}};
  list.count = 70;
  list.truncated = true;
  list.informative = true;
  one.resources.push_back(list);
  pod.alignment = std::make_shared<const PodAlignmentInfo>(alignment);
  const auto decoded = DecodePod(EncodePod(pod), "key");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ASSERT_NE((*decoded)->alignment, nullptr);
  EXPECT_TRUE(*(*decoded)->alignment == alignment);
  EXPECT_TRUE(**decoded == pod);
  state::PodRecord without = pod;
  without.alignment = nullptr;
  EXPECT_FALSE(without == pod);

  pb::PodRecord record;
  ASSERT_TRUE(record.ParseFromString(EncodePod(pod)));
  record.mutable_alignment()->set_policy(4);
  EXPECT_TRUE(
      absl::IsDataLoss(DecodePod(record.SerializeAsString(), "key").status()));
}

TEST(CodecTest, KeepsHowAPodNamesAClaim) {
  state::PodRecord pod =
      state::MakePod(state::kPodA, "a", state::PodPhase::kPreparing);
  pod.needs.back().wants.front().pod_claim = "first";
  const auto decoded = DecodePod(EncodePod(pod), "key");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(**decoded == pod);
}

TEST(CodecTest, KeepsWhenTheLeaseOfAHealthBegan) {
  const state::HealthRecord health{.driver = "d.example.com",
                                   .pool = "pool",
                                   .device = "gpu-0",
                                   .health = device::Health::kHealthy,
                                   .lease_ms = 1,
                                   .since_ms = 2,
                                   .boot_id = "boot-1",
                                   .told_ms = 3};
  const auto decoded = DecodeHealth(EncodeHealth(health), "key");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(**decoded == health);
}

// DRA-158: what the kubelet crashes on.
TEST(CodecTest, RefusesAHealthThatIsNone) {
  pb::HealthRecord health;
  health.set_driver("d.example.com");
  for (const std::uint32_t number : {0u, 4u, 99u}) {
    health.set_health(number);
    ExpectDataLoss(DecodeHealth(health.SerializeAsString(), "d/x"),
                   "record 'd/x': unknown health " + std::to_string(number));
  }
  ExpectDataLoss(DecodeHealth("null", "d/x"),
                 "record 'd/x': its 4 bytes cannot be decoded");
}

TEST(CodecTest, KeepsHandles) {
  state::ClaimRecord claim;
  claim.uid.value = "u";
  claim.drivers["a"].handle.data = std::string("h\0\xff", 3);
  claim.drivers["b"].handle.structured = StructuredResourceHandle{
      "{\"a\":1}", "[]", "node", {{"{}", "gpu-0"}, {"", "gpu-1"}}};
  claim.drivers["c"].handle.structured.emplace();
  const auto decoded = DecodeClaim(EncodeClaim(claim), "key");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(**decoded == claim);
}

TEST(CodecTest, KeepsHowFarSpecsWereBroughtBack) {
  state::ClaimRecord claim;
  claim.uid.value = "u";
  for (const auto recovery :
       {state::SpecRecovery::kNone, state::SpecRecovery::kAskedAgain,
        state::SpecRecovery::kUnprepareFirst, state::SpecRecovery::kRenewed}) {
    claim.drivers["a"].spec_recovery = recovery;
    const auto decoded = DecodeClaim(EncodeClaim(claim), "key");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(**decoded == claim);
  }
}

TEST(CodecTest, KeepsEveryKindOfChange) {
  state::State state;
  for (const state::Batch& batch : FullLedger()) {
    const auto decoded = DecodeBatch(EncodeBatch(batch), "key");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->seq, batch.seq);
    EXPECT_EQ(decoded->time_ms, batch.time_ms);
    EXPECT_EQ(decoded->decision.kind, batch.decision.kind);
    EXPECT_EQ(decoded->decision.pods, batch.decision.pods);
    EXPECT_EQ(decoded->decision.claims, batch.decision.claims);
    EXPECT_EQ(decoded->decision.message, batch.decision.message);
    ASSERT_TRUE(state::Apply(state, *decoded).ok());
  }
  EXPECT_TRUE(state == Project(FullLedger()));
}

TEST(CodecTest, KeepsWhatTakesABatchBack) {
  const std::vector<state::Batch> batches = FullLedger();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (!state::CanRevert(batches[i])) continue;
    const auto decoded = DecodeBatch(EncodeBatch(batches[i]), "key");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    state::State state = Project({batches.data(), i + 1});
    ASSERT_TRUE(state::Revert(state, *decoded).ok());
    EXPECT_TRUE(state == Project({batches.data(), i})) << "batch " << i + 1;
  }
}

TEST(CodecTest, RefusesAnUndoOfSomethingElse) {
  pb::Batch batch;
  batch.set_seq(1);
  batch.set_kind(1);
  batch.add_undo()->set_erase_pod("a");
  ExpectDataLoss(DecodeBatch(batch.SerializeAsString(), "h/1"),
                 "record 'h/1': 0 changes, but 1 to take them back");
  batch.clear_undo();
  batch.add_changes()->set_erase_pod("a");
  batch.add_undo();
  ExpectDataLoss(DecodeBatch(batch.SerializeAsString(), "h/1"),
                 "record 'h/1': unknown change");
}

TEST(CodecTest, KeepsTextThatIsNotUtf8) {
  state::PodRecord pod =
      state::MakePod(state::kPodA, "a", state::PodPhase::kRejected);
  pod.message = std::string("\xff\xfe\0x", 4);
  const auto decoded = DecodePod(EncodePod(pod), "key");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ((*decoded)->message, pod.message);
}

TEST(CodecTest, AnEmptyAnswerIsNotAMissingOne) {
  state::PodRecord pod =
      state::MakePod(state::kPodA, "a", state::PodPhase::kReady);
  pod.answer = std::make_shared<PodDevices>();
  EXPECT_NE((*DecodePod(EncodePod(pod), "key"))->answer, nullptr);
  pod.answer = nullptr;
  EXPECT_EQ((*DecodePod(EncodePod(pod), "key"))->answer, nullptr);
}

TEST(CodecTest, KeepsWhatInitContainersGaveBack) {
  state::PodRecord pod =
      state::MakePod(state::kPodA, "a", state::PodPhase::kReady);
  state::DeviceHold& hold = pod.holds.emplace_back();
  hold.container = "init";
  hold.kind = device::ContainerKind::kInit;
  hold.resource = "example.com/tpu";
  hold.phase = device::ReservationPhase::kReleased;
  hold.devices = {{"0", {1}}};
  PodDevices answer;
  answer.containers.emplace_back().devices_released = true;
  pod.answer = std::make_shared<PodDevices>(answer);
  EXPECT_TRUE(**DecodePod(EncodePod(pod), "key") == pod);
}

TEST(CodecTest, RefusesUnknownEnumerators) {
  for (const std::uint32_t value : {0u, 8u, 257u, 4'294'967'295u}) {
    pb::PodRecord pod;
    pod.set_phase(value);
    ExpectDataLoss(DecodePod(pod.SerializeAsString(), "p/1"),
                   fmt::format("record 'p/1': unknown pod phase {}", value));
  }
  for (const std::uint32_t value : {0u, 4u, 258u}) {
    pb::ClaimRecord claim;
    claim.add_drivers()->set_phase(value);
    ExpectDataLoss(DecodeClaim(claim.SerializeAsString(), "c/1"),
                   fmt::format("record 'c/1': unknown driver phase {}", value));
  }
  {
    pb::ClaimRecord claim;
    claim.add_drivers()->set_phase(1);
    claim.mutable_drivers(0)->set_spec_recovery(4);
    ExpectDataLoss(DecodeClaim(claim.SerializeAsString(), "c/1"),
                   "record 'c/1': unknown spec recovery 4");
  }
  for (const std::uint32_t value : {0u, 4u}) {
    pb::PodRecord pod;
    pod.set_phase(1);
    pod.add_holds()->set_kind(value);
    ExpectDataLoss(
        DecodePod(pod.SerializeAsString(), "p/1"),
        fmt::format("record 'p/1': unknown container kind {}", value));
  }
  for (const std::uint32_t value : {0u, 4u}) {
    pb::PodRecord pod;
    pod.set_phase(1);
    pb::DeviceHold* hold = pod.add_holds();
    hold->set_kind(3);
    hold->set_phase(value);
    ExpectDataLoss(DecodePod(pod.SerializeAsString(), "p/1"),
                   fmt::format("record 'p/1': unknown hold phase {}", value));
  }
  for (const std::uint32_t value : {0u, 3u}) {
    pb::ResourceRecord resource;
    resource.set_backing(value);
    ExpectDataLoss(DecodeResource(resource.SerializeAsString(), "r/1"),
                   fmt::format("record 'r/1': unknown backing {}", value));
  }
  for (const std::uint32_t value : {0u, 35u, 255u}) {
    pb::Batch batch;
    batch.set_kind(value);
    ExpectDataLoss(
        DecodeBatch(batch.SerializeAsString(), "h/1"),
        fmt::format("record 'h/1': unknown kind of decision {}", value));
  }
}

TEST(CodecTest, RefusesUnknownChanges) {
  pb::Batch batch;
  batch.set_kind(1);
  batch.add_changes();
  ExpectDataLoss(DecodeBatch(batch.SerializeAsString(), "h/1"),
                 "record 'h/1': unknown change");
}

TEST(CodecTest, RefusesADriverThatStandsThereTwice) {
  pb::ClaimRecord claim;
  for (int i = 0; i < 2; ++i) {
    claim.add_drivers()->set_phase(1);
    claim.mutable_drivers(i)->set_name("d");
  }
  ExpectDataLoss(DecodeClaim(claim.SerializeAsString(), "c/1"),
                 "record 'c/1': driver 'd' stands there twice");
}

TEST(CodecTest, RefusesBytesThatAreNoMessage) {
  ExpectDataLoss(DecodePod("\xff\xff\xff", "p/1"),
                 "record 'p/1': its 3 bytes cannot be decoded");
  ExpectDataLoss(DecodeClaim("\x0a\x7f", "c/1"),
                 "record 'c/1': its 2 bytes cannot be decoded");
  ExpectDataLoss(DecodeIdentity("\x0a", "i/1"),
                 "record 'i/1': its 1 bytes cannot be decoded");
}

/// What is decoded at all must be a record that encodes again; nothing crashes.
TEST(CodecTest, SurvivesFlippedBytes) {
  const std::vector<state::Batch> batches = FullLedger();
  LiveEach({1, 2'000}, [&](Luck& luck) {
    std::string bytes = EncodeBatch(luck.Pick(batches));
    for (std::size_t flips = luck.Below(4) + 1; flips > 0; --flips) {
      bytes[luck.Below(bytes.size())] = static_cast<char>(luck());
    }
    const auto decoded = DecodeBatch(bytes, "h/1");
    if (decoded.ok()) {
      EXPECT_TRUE(DecodeBatch(EncodeBatch(*decoded), "h/1").ok());
    } else {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss);
    }
  });
}

}  // namespace
}  // namespace devmgr::checkpoint
