// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the kubelet's files in a ledger. W-36: values, not bytes,
// count here; the bytes are checkpoint/kubelet's to check.
#include "migration/kubelet_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>

#include "checkpoint/store_support.h"
#include "migration/kubelet_files.h"
#include "migration/kubelet_folder.h"
#include "migration/resource_names.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using kubelet_checkpoint::DeviceCheckpoint;
using kubelet_checkpoint::DraCheckpoint;
using state::DriverPhase;
using state::PodPhase;
using state::PodRecord;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The file that a real kubelet wrote, of the reference's example 1.
constexpr char kTegra[] =
    R"({"Data":{"PodDeviceEntries":[{"PodUID":"bf52b2cd-b611-4e79-86b1-280b283)"
    R"(185c3","ContainerName":"check","ResourceName":"nvidia.com/gpu","DeviceI)"
    R"(Ds":{"-1":["tegra"]},"AllocResp":"Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSB)"
    R"(XRlZ3Jh"}],"RegisteredDevices":{"nvidia.com/gpu":["tegra"]}},"Checksum")"
    R"(:3660592824})";

DeviceCheckpoint Devices(
    std::vector<kubelet_checkpoint::PodDevicesEntry> entries) {
  DeviceCheckpoint checkpoint;
  checkpoint.entries = std::move(entries);
  checkpoint.registered.emplace();
  return checkpoint;
}

DraCheckpoint Claims(std::vector<kubelet_checkpoint::DraClaim> claims) {
  DraCheckpoint checkpoint;
  checkpoint.claims = std::move(claims);
  return checkpoint;
}

class KubeletImportTest : public ::testing::Test {
 protected:
  KubeletImport Import() {
    const auto result = ImportKubelet(folder_.import_options());
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : KubeletImport();
  }
  KubeletImport ImportAll() {
    KubeletImportOptions options = folder_.import_options();
    options.accept_losses = true;
    const auto result = ImportKubelet(options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : KubeletImport();
  }
  state::State State() { return folder_.ReadStore().state; }

  KubeletFolder folder_;
};

// DP-107: the devices, and what their plugin had answered.
TEST_F(KubeletImportTest, APodIsHeldByItsUidAndAnsweredFromItsResponse) {
  folder_.WriteBytes(folder_.devices_file(), kTegra);
  const KubeletImport result = Import();
  EXPECT_TRUE(result.written);
  EXPECT_EQ(result.pods, 1u);
  EXPECT_EQ(result.devices, 1u);
  EXPECT_THAT(result.losses, IsEmpty());
  const PodUid uid{"bf52b2cd-b611-4e79-86b1-280b283185c3"};
  const state::State state = State();
  const PodRecord* pod = state.FindPod(uid);
  ASSERT_NE(pod, nullptr);
  EXPECT_TRUE(pod->imported);
  EXPECT_EQ(pod->name, (ObjectName{"", uid.value}));
  EXPECT_EQ(pod->phase, PodPhase::kReady);
  EXPECT_EQ(pod->boot_id, "boot-1");
  ASSERT_NE(pod->answer, nullptr);
  ASSERT_THAT(pod->answer->containers, SizeIs(1));
  const ContainerDevices& container = pod->answer->containers[0];
  EXPECT_EQ(container.name, ContainerName("check"));
  ASSERT_THAT(container.env, SizeIs(1));
  EXPECT_EQ(container.env[0].name, "NVIDIA_VISIBLE_DEVICES");
  EXPECT_EQ(container.env[0].value, "tegra");
  const PodUid* holder = state.HolderOf("nvidia.com/gpu", "tegra");
  ASSERT_NE(holder, nullptr);
  EXPECT_EQ(*holder, uid);
  EXPECT_THAT(pod->holds[0].devices[0].numa_nodes, IsEmpty());
  EXPECT_THAT(state::CheckInvariants(state, "boot-1"), IsEmpty());
}

// DP-108: a name that a plugin serves is known, its devices are not.
TEST_F(KubeletImportTest, RegisteredResourcesAreKnownWithoutDevices) {
  folder_.WriteBytes(
      folder_.devices_file(),
      R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu)"
      R"(":["GPU-0650a168-e770-3ea8-8ac3-8a1d419763e0"]}},"Checksum":395265928)"
      R"(0})");
  EXPECT_EQ(Import().pods, 0u);
  const state::State state = State();
  const state::ResourceRecord* resource = state.FindResource("nvidia.com/gpu");
  ASSERT_NE(resource, nullptr);
  EXPECT_EQ(resource->backing, state::Backing::kPlugin);
}

// DP-109: the checksum is off by one. Nothing is written, the file stays.
TEST_F(KubeletImportTest, ADamagedFileIsNamedAndCopiedWhenLossesAreAccepted) {
  std::string bytes = kTegra;
  bytes[bytes.size() - 2] = '5';
  folder_.WriteBytes(folder_.devices_file(), bytes);
  folder_.Write(Claims({PreparedClaim("a", "claim-a", kDriver, {"pod-a"})}));
  const KubeletImport refused = Import();
  EXPECT_FALSE(refused.written);
  ASSERT_THAT(refused.losses, SizeIs(1));
  EXPECT_THAT(refused.losses[0], AllOf(HasSubstr("kubelet_internal_checkpoint"),
                                       HasSubstr("checkpoint is corrupted")));
  EXPECT_FALSE(std::filesystem::exists(folder_.state()));
  const KubeletImport result = ImportAll();
  EXPECT_TRUE(result.written);
  EXPECT_EQ(result.claims, 1u);
  ASSERT_THAT(result.kept, SizeIs(1));
  EXPECT_EQ(checkpoint::ReadFile(result.kept[0]), bytes);
  EXPECT_EQ(checkpoint::ReadFile(folder_.devices_file()), bytes);
}

// DP-110: no file is no error, as long as there is the other one.
// DRA-137: a directory that is not given is an error, and so is a file without
// a name, as which the directory itself is looked at.
TEST_F(KubeletImportTest, DirectoriesHaveToBeGiven) {
  KubeletImportOptions options = folder_.import_options();
  options.kubelet_dir.clear();
  EXPECT_THAT(ImportKubelet(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("kubelet_dir is empty")));
  options = folder_.import_options();
  options.state_dir.clear();
  EXPECT_THAT(ImportKubelet(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("state_dir is empty")));
  KubeletExportOptions back = folder_.export_options();
  back.out_dir.clear();
  EXPECT_THAT(ExportKubelet(back).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("out_dir is empty")));
  EXPECT_THAT(
      migration::ReadFileIfAny(folder_.root()),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no regular file")));
  EXPECT_FALSE(std::filesystem::exists(folder_.state()));
}

TEST_F(KubeletImportTest, WithoutAnyFileThereIsNothingToImport) {
  EXPECT_TRUE(
      absl::IsNotFound(ImportKubelet(folder_.import_options()).status()));
  EXPECT_FALSE(std::filesystem::exists(folder_.state()));
  folder_.Write(Claims({PreparedClaim("a", "claim-a", kDriver, {"pod-a"})}));
  const KubeletImport result = Import();
  EXPECT_TRUE(result.written);
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("is not there")));
}

// DRA-131, DRA-139: prepared in the boot that the file's time proves.
TEST_F(KubeletImportTest, AClaimOfThisBootIsAdoptedAsPrepared) {
  folder_.Write(Claims(
      {PreparedClaim("a", "claim-a", kDriver, {"pod-a"}),
       PreparedClaim("b", "claim-b", "nic.example.com", {"pod-a", "pod-b"})}));
  const KubeletImport result = Import();
  EXPECT_EQ(result.claims, 2u);
  EXPECT_EQ(result.adopted, 2u);
  const state::State state = State();
  const state::ClaimRecord* claim = state.FindClaim(ClaimUid{"claim-a"});
  ASSERT_NE(claim, nullptr);
  const state::DriverRecord& driver = claim->drivers.at(kDriver);
  EXPECT_EQ(driver.phase, DriverPhase::kPrepared);
  EXPECT_EQ(driver.boot_id, "boot-1");
  EXPECT_THAT(driver.devices[0].cdi_device_ids,
              ElementsAre("gpu.example.com/dev=claim-a"));
  // Which container wants which claim the files do not say.
  const PodRecord* pod = state.FindPod(PodUid{"pod-a"});
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->phase, PodPhase::kPreparing);
  EXPECT_THAT(pod->needs, IsEmpty());
  EXPECT_THAT(pod->claims, SizeIs(2));
  EXPECT_THAT(state::CheckInvariants(state, "boot-1"), IsEmpty());
}

TEST_F(KubeletImportTest, AClaimOfAnEarlierBootIsPreparedAgain) {
  folder_.Write(Devices({HeldEntry("pod-a", "c", kGpu, {"0"})}));
  folder_.Write(Claims({PreparedClaim("b", "claim-b", kDriver, {"pod-b"})}));
  KubeletFolder::SetBackBeforeBoot(folder_.devices_file());
  KubeletFolder::SetBackBeforeBoot(folder_.claims_file());
  const KubeletImport result = Import();
  EXPECT_EQ(result.adopted, 0u);
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("this boot began at"),
                                        HasSubstr("prepare its claims again")));
  const state::State state = State();
  EXPECT_NE(state.FindClaim(ClaimUid{"claim-b"})->drivers.at(kDriver).boot_id,
            "boot-1");
  EXPECT_NE(state.FindPod(PodUid{"pod-a"})->boot_id, "boot-1");
  EXPECT_THAT(state::CheckInvariants(state, "boot-1"), IsEmpty());
}

/// Proves nothing: the clock was set back.
TEST_F(KubeletImportTest, AFileFromTheFutureIsOfNoKnownBoot) {
  folder_.Write(Claims({PreparedClaim("b", "claim-b", kDriver, {"pod-b"})}));
  KubeletImportOptions options = folder_.import_options();
  options.now = [boot = options.boot_time] { return boot(); };
  const auto result = ImportKubelet(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->adopted, 0u);
}

TEST_F(KubeletImportTest, ADriverThatHasNotPreparedIsStillToPrepare) {
  auto claim = PreparedClaim("a", "claim-a", kDriver, {"pod-a"});
  (*claim.drivers)["nic.example.com"] = {};
  (*claim.drivers)["quiet.example.com"].skip_node_operations = {"*"};
  folder_.Write(Claims({claim}));
  EXPECT_EQ(Import().adopted, 0u);
  const state::State state = State();
  const auto& drivers = state.FindClaim(ClaimUid{"claim-a"})->drivers;
  EXPECT_EQ(drivers.at(kDriver).phase, DriverPhase::kPrepared);
  EXPECT_EQ(drivers.at("nic.example.com").phase, DriverPhase::kPreparing);
  EXPECT_EQ(drivers.at("quiet.example.com").phase, DriverPhase::kPrepared);
  EXPECT_TRUE(drivers.at("quiet.example.com").skipped.unprepare);
}

/// A kubelet keeps what it could not unprepare.
TEST_F(KubeletImportTest, AClaimWithoutPodsIsOwed) {
  folder_.Write(Claims({PreparedClaim("a", "claim-a", kDriver, {})}));
  EXPECT_THAT(Import().losses, IsEmpty());
  const state::State state = State();
  const auto& driver =
      state.FindClaim(ClaimUid{"claim-a"})->drivers.at(kDriver);
  EXPECT_EQ(driver.phase, DriverPhase::kUnpreparing);
  EXPECT_TRUE(driver.debt.has_value());
  EXPECT_THAT(state::CheckInvariants(state, "boot-1"), IsEmpty());
}

TEST_F(KubeletImportTest, WhatCannotBeHeldIsNamedBeforeAnythingIsWritten) {
  auto empty = HeldEntry("pod-a", "c", kGpu, {"0"});
  empty.device_ids->clear();
  auto garbled = HeldEntry("pod-b", "c", kGpu, {"1"});
  garbled.alloc_resp = "\x0a\xff";
  auto odd = HeldEntry("pod-c", "c", kGpu, {"2"});
  odd.alloc_resp = ResponseWithEnv("A=B", "");
  const DeviceCheckpoint devices = Devices(
      {HeldEntry("", "c", kGpu, {"3"}), HeldEntry("../x", "c", kGpu, {"4"}),
       HeldEntry("pod-d", "", kGpu, {"5"}), empty, garbled, odd,
       HeldEntry("pod-e", "c", kGpu, {"6", "7"}),
       HeldEntry("pod-f", "c", kGpu, {"7", "8"}),
       HeldEntry("pod-g", "c", kGpu, {"8"})});
  folder_.Write(devices);
  auto nameless = PreparedClaim("", "claim-a", kDriver, {"pod-e"});
  folder_.Write(Claims({nameless, PreparedClaim("b", "", kDriver, {"pod-e"}),
                        PreparedClaim("c", "claim-c", "", {"pod-e"}),
                        PreparedClaim("d", "claim-d", kDriver, {""})}));
  const KubeletImport named = Import();
  EXPECT_FALSE(named.written);
  EXPECT_THAT(named.losses, SizeIs(11));
  EXPECT_FALSE(std::filesystem::exists(folder_.state()));
  const KubeletImport result = ImportAll();
  EXPECT_TRUE(result.written);
  const state::State state = State();
  EXPECT_THAT(state.pods, SizeIs(2));
  // A device of an entry that is left out is nobody's.
  EXPECT_EQ(*state.HolderOf(kGpu, "7"), PodUid{"pod-e"});
  EXPECT_EQ(*state.HolderOf(kGpu, "8"), PodUid{"pod-g"});
  EXPECT_THAT(state.claims, IsEmpty());
  EXPECT_THAT(state::CheckInvariants(state, "boot-1"), IsEmpty());
}

/// As in the maps of the kubelet.
TEST_F(KubeletImportTest, OfTwoEntriesForOneThingTheLaterCounts) {
  folder_.Write(Devices({HeldEntry("pod-a", "c", kGpu, {"0"}),
                         HeldEntry("pod-a", "c", kGpu, {"1"})}));
  folder_.Write(Claims({PreparedClaim("a", "claim-1", kDriver, {"pod-a"}),
                        PreparedClaim("a", "claim-2", kDriver, {"pod-a"})}));
  EXPECT_THAT(ImportAll().losses,
              ElementsAre(HasSubstr("entry 0"), HasSubstr("entry 0")));
  const state::State state = State();
  EXPECT_EQ(state.HolderOf(kGpu, "0"), nullptr);
  EXPECT_NE(state.HolderOf(kGpu, "1"), nullptr);
  EXPECT_EQ(state.FindClaim(ClaimUid{"claim-1"}), nullptr);
  EXPECT_NE(state.FindClaim(ClaimUid{"claim-2"}), nullptr);
}

/// Init containers and app containers of a pod share devices.
TEST_F(KubeletImportTest, ContainersOfAPodMayShareADevice) {
  auto app = HeldEntry("pod-a", "app", kGpu, {"0"}, 0);
  (*app.device_ids)[1] = {{DeviceId("0"), DeviceId("1")}};
  folder_.Write(Devices({HeldEntry("pod-a", "init", kGpu, {"0"}, 0), app}));
  EXPECT_THAT(Import().losses, IsEmpty());
  const state::State state = State();
  const PodRecord* pod = state.FindPod(PodUid{"pod-a"});
  ASSERT_THAT(pod->holds, SizeIs(2));
  EXPECT_THAT(pod->holds[1].devices[0].numa_nodes, ElementsAre(0, 1));
  EXPECT_THAT(pod->holds[1].devices[1].numa_nodes, ElementsAre(1));
}

TEST_F(KubeletImportTest, ADryRunWritesNothing) {
  folder_.WriteBytes(folder_.devices_file(), kTegra);
  const auto before = checkpoint::TreeOf(folder_.root());
  KubeletImportOptions options = folder_.import_options();
  options.dry_run = true;
  const auto result = ImportKubelet(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->pods, 1u);
  EXPECT_FALSE(result->written);
  EXPECT_EQ(checkpoint::TreeOf(folder_.root()), before);
}

TEST_F(KubeletImportTest, FilesAreImportedOnce) {
  folder_.WriteBytes(folder_.devices_file(), kTegra);
  EXPECT_TRUE(Import().written);
  EXPECT_THAT(ImportKubelet(folder_.import_options()).status(),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("at 2027-01-15T08:00:00Z")));
  // Also when all of it has been released since.
  {
    const auto store = checkpoint::MustOpen(folder_.state());
    state::State state = *store->Load();
    state::Batch batch;
    batch.seq = state.seq + 1;
    batch.decision.kind = state::DecisionKind::kRelease;
    for (const auto& [uid, pod] : state.pods) {
      batch.decision.changes.push_back(state::ErasePod{uid});
    }
    ASSERT_TRUE(state::ApplyNew(state, batch).ok());
    ASSERT_TRUE(store->Append({&batch, 1}).ok());
  }
  EXPECT_TRUE(
      absl::IsAlreadyExists(ImportKubelet(folder_.import_options()).status()));
}

TEST_F(KubeletImportTest, OnlyALedgerThatHoldsNothingIsImportedInto) {
  folder_.WriteBytes(folder_.devices_file(), kTegra);
  {
    const auto store = checkpoint::MustOpen(folder_.state());
    const state::Batch batch = checkpoint::WorkloadBatch(1);
    ASSERT_TRUE(store->Append({&batch, 1}).ok());
  }
  EXPECT_THAT(ImportKubelet(folder_.import_options()).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("only into a ledger that holds nothing")));
}

TEST_F(KubeletImportTest, ALedgerThatIsHeldIsLeftAlone) {
  folder_.WriteBytes(folder_.devices_file(), kTegra);
  const auto store = checkpoint::MustOpen(folder_.state());
  EXPECT_EQ(ImportKubelet(folder_.import_options()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(KubeletImportTest, TheHistorySaysWhatWasImported) {
  folder_.WriteBytes(folder_.devices_file(), kTegra);
  Import();
  const auto history = folder_.ReadStore().history;
  ASSERT_THAT(history, SizeIs(1));
  EXPECT_EQ(history[0].decision.kind, state::DecisionKind::kImported);
  EXPECT_THAT(history[0].decision.message,
              HasSubstr("1 pod with 1 device and 0 claims"));
}

// DRA-140, DP-113: cut at every byte, a file is damaged or it is whole; what is
// imported beside it does not depend on it.
TEST_F(KubeletImportTest, AFileCutAtAnyByteIsALossAndNothingElse) {
  folder_.Write(Claims({PreparedClaim("a", "claim-a", kDriver, {"pod-a"})}));
  KubeletImportOptions options = folder_.import_options();
  options.dry_run = true;
  const std::string whole = kTegra;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    folder_.WriteBytes(folder_.devices_file(), whole.substr(0, size));
    const auto result = ImportKubelet(options);
    ASSERT_TRUE(result.ok()) << size << ": " << result.status();
    ASSERT_THAT(result->losses, SizeIs(1)) << size;
    ASSERT_EQ(result->claims, 1u);
  }
  const std::string claims = checkpoint::ReadFile(folder_.claims_file());
  folder_.WriteBytes(folder_.devices_file(), whole);
  for (std::size_t size = 0; size < claims.size(); ++size) {
    folder_.WriteBytes(folder_.claims_file(), claims.substr(0, size));
    const auto result = ImportKubelet(options);
    ASSERT_TRUE(result.ok()) << size << ": " << result.status();
    ASSERT_THAT(result->losses, SizeIs(1)) << size;
    ASSERT_EQ(result->devices, 1u);
  }
}

TEST_F(KubeletImportTest, WhatIsNoFileIsALoss) {
  std::filesystem::create_directories(folder_.devices_file());
  folder_.Write(Claims({}));
  EXPECT_THAT(Import().losses, ElementsAre(HasSubstr("no regular file")));
}

// Kubelets 1.27 to 1.31, whose layouts no later kubelet reads.
TEST_F(KubeletImportTest, OldLayoutsAreImportedWithoutProof) {
  folder_.WriteBytes(
      folder_.claims_file(),
      R"({"version":"v1","entries":[{"DriverName":"test-driver.cdi.k8s.io","Cl)"
      R"(assName":"class-name","ClaimUID":"067798be-454e-4be4-9047-1aa06aea63f)"
      R"(7","ClaimName":"example","Namespace":"default","PodUIDs":{"139cdb46-f)"
      R"(989-4f17-9561-ca10cfb509a6":{}},"CDIDevices":{"test-driver.cdi.k8s.io)"
      R"(":["example.com/example=cdi-example"]}}],"checksum":1})");
  const KubeletImport result = Import();
  EXPECT_EQ(result.claims, 1u);
  EXPECT_THAT(result.notes, ::testing::Contains(HasSubstr("not proven")));
}

/// The goal is a second, of a release build. Time of the processor counts, and
/// a build without optimisation or with sanitizers gets more.
TEST_F(KubeletImportTest, AThousandPodsAreImportedQuickly) {
  std::vector<kubelet_checkpoint::PodDevicesEntry> entries;
  std::vector<kubelet_checkpoint::DraClaim> claims;
  for (int pod = 0; pod < 1'000; ++pod) {
    const std::string uid = "pod-" + std::to_string(pod);
    for (int container = 0; container < 4; ++container) {
      std::vector<std::string> ids;
      for (int device = 0; device < 8; ++device) {
        ids.push_back(std::to_string((pod * 4 + container) * 8 + device));
      }
      entries.push_back(
          HeldEntry(uid, "c" + std::to_string(container), kGpu, ids, pod % 2));
    }
    claims.push_back(PreparedClaim(uid, "claim-" + uid, kDriver, {uid}));
  }
  folder_.Write(Devices(std::move(entries)));
  folder_.Write(Claims(std::move(claims)));
  const std::clock_t began = std::clock();
  EXPECT_EQ(Import().devices, 32'000u);
  const auto took = static_cast<double>(std::clock() - began);
  const double seconds = took / CLOCKS_PER_SEC;
  RecordProperty("milliseconds", static_cast<int>(seconds * 1'000));
  std::printf("1,000 pods, 4,000 entries, 1,000 claims: %.2f s\n", seconds);
  EXPECT_LT(seconds, 20);
}

}  // namespace
}  // namespace devmgr
