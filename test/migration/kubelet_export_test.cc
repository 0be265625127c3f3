// SPDX-License-Identifier: Apache-2.0
//
// What a kubelet finds after us: files that say what the ledger holds, and that
// come back as the same holdings.
#include "migration/kubelet_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "checkpoint/kubelet/dra_state_file.h"
#include "checkpoint/store_support.h"
#include "claim/imported_pod.h"
#include "migration/kubelet_folder.h"
#include "migration/kubelet_import.h"
#include "migration/resource_names.h"
#include "plugin/container_response.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using kubelet_checkpoint::DecodeDeviceCheckpoint;
using kubelet_checkpoint::DecodeDraStateFile;
using kubelet_checkpoint::DeviceCheckpoint;
using kubelet_checkpoint::DraCheckpoint;
using migration::ExportPlan;
using migration::ImportTerms;
using migration::KubeletState;
using migration::PlanExport;
using state::State;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ImportTerms TermsOfThisBoot() {
  ImportTerms terms;
  terms.boot_id = "boot-1";
  terms.devices_of_this_boot = true;
  terms.claims_of_this_boot = true;
  terms.now_ms = 1;
  return terms;
}

State Imported(const KubeletState& kubelet) {
  State state;
  const auto plan = migration::PlanImport(state, kubelet, TermsOfThisBoot());
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return state;
  state::Batch batch{1, 1, plan->decision, {}};
  EXPECT_TRUE(state::ApplyNew(state, batch).ok());
  return state;
}

/// As the files hold it.
KubeletState FilesOf(const State& state) {
  ExportPlan plan = PlanExport(state);
  const auto devices = EncodeDeviceCheckpoint(plan.devices);
  const auto claims = EncodeDraCheckpoint(plan.claims);
  EXPECT_TRUE(devices.ok()) << devices.status();
  EXPECT_TRUE(claims.ok()) << claims.status();
  KubeletState files;
  files.devices = *DecodeDeviceCheckpoint(*devices);
  files.claims = std::get<DraCheckpoint>(*DecodeDraStateFile(*claims));
  return files;
}

KubeletState SomePods() {
  KubeletState kubelet;
  kubelet.devices.emplace();
  kubelet.devices->entries = {
      {HeldEntry("pod-a", "app", kGpu, {"0", "1"}, 0),
       HeldEntry("pod-a", "init", kGpu, {"0"}, 0),
       HeldEntry("pod-b", "c", "example.com/nic", {"eth0"})}};
  kubelet.devices->registered.emplace();
  (*kubelet.devices->registered)["example.com/none"].emplace();
  kubelet.claims.emplace();
  kubelet.claims->claims = {
      {PreparedClaim("a", "claim-a", kDriver, {"pod-a", "pod-c"})}};
  return kubelet;
}

Pod ShownPod(const std::string& name, const std::string& uid) {
  Pod pod;
  pod.metadata.ns = "default";
  pod.metadata.name = name;
  pod.metadata.uid = uid;
  Container init;
  init.name = "init";
  pod.spec.init_containers.push_back(init);
  Container app;
  app.name = "app";
  pod.spec.containers.push_back(app);
  app.name = "c";
  pod.spec.containers.push_back(app);
  return pod;
}

/// The source shows all pods of the state.
void ShowAll(State& state) {
  std::vector<PodUid> uids;
  for (const auto& [uid, pod] : state.pods) uids.push_back(uid);
  for (const PodUid& uid : uids) {
    const auto decision =
        claim::RecordShown(state, ShownPod("named-" + uid.value, uid.value));
    ASSERT_TRUE(decision.ok()) << decision.status();
    state::Batch batch{state.seq + 1, 2, *decision, {}};
    ASSERT_TRUE(state::ApplyNew(state, batch).ok());
  }
}

TEST(KubeletExportTest, WhatIsExportedIsWhatWasImported) {
  const State state = Imported(SomePods());
  const ExportPlan plan = PlanExport(state);
  EXPECT_EQ(plan.pods, 3u);
  EXPECT_EQ(plan.held, 4u);
  EXPECT_THAT(plan.losses, IsEmpty());
  const auto& entries = *plan.devices.entries;
  ASSERT_THAT(entries, SizeIs(3));
  EXPECT_EQ(entries, *SomePods().devices->entries);
  EXPECT_EQ(*plan.claims.claims, *SomePods().claims->claims);
  const auto& registered = *plan.devices.registered;
  EXPECT_THAT(*registered.at(kGpu), ElementsAre("0", "1"));
  EXPECT_THAT(*registered.at("example.com/none"), IsEmpty());
  EXPECT_TRUE(registered.contains("example.com/nic"));
  EXPECT_TRUE(Imported(FilesOf(state)) == state);
}

/// The names that pods have got, and the kinds of their containers, are no part
/// of the files.
TEST(KubeletExportTest, ShownPodsAreExportedAsTheyWereImported) {
  State state = Imported(SomePods());
  const KubeletState before = FilesOf(state);
  ShowAll(state);
  EXPECT_THAT(state::CheckInvariants(state, "boot-1"), IsEmpty());
  EXPECT_EQ(state.FindPod(PodUid{"pod-a"})->name,
            (ObjectName{"default", "named-pod-a"}));
  EXPECT_EQ(state.FindPod(PodUid{"pod-a"})->holds[1].kind,
            device::ContainerKind::kInit);
  const KubeletState after = FilesOf(state);
  EXPECT_EQ(after.devices, before.devices);
  EXPECT_EQ(after.claims, before.claims);
}

TEST(KubeletExportTest, ResponsesThatWereNotKeptAreWrittenAnew) {
  State state = Imported(SomePods());
  auto pod =
      std::make_shared<state::PodRecord>(*state.FindPod(PodUid{"pod-b"}));
  const std::string before = *pod->holds[0].edits.response;
  pod->holds[0].edits.response.reset();
  state.Put(std::move(pod));
  const ExportPlan plan = PlanExport(state);
  EXPECT_EQ(plan.devices.entries->back().alloc_resp, before);
}

TEST(KubeletExportTest, NothingHeldIsWrittenAsTheKubeletWritesIt) {
  const State state;
  const ExportPlan plan = PlanExport(state);
  const auto devices = EncodeDeviceCheckpoint(plan.devices);
  ASSERT_TRUE(devices.ok());
  EXPECT_EQ(*devices,
            R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},)"
            R"("Checksum":3467439661})");
  // DRA-134.
  const auto claims = EncodeDraCheckpoint(plan.claims);
  ASSERT_TRUE(claims.ok());
  EXPECT_THAT(*claims, HasSubstr("\"Checksum\":2361995144"));
}

TEST(KubeletExportTest, WhatTheFilesCannotSayIsNamed) {
  State state = Imported(SomePods());
  auto reserved = std::make_shared<state::PodRecord>();
  reserved->uid.value = "pod-x";
  reserved->name = {"default", "x"};
  reserved->phase = state::PodPhase::kAllocating;
  state::DeviceHold hold;
  hold.container = "c";
  hold.resource = kGpu;
  hold.devices = {{DeviceId("9"), {}}};
  reserved->holds.push_back(hold);
  state.Put(reserved);
  auto owed = std::make_shared<state::ClaimRecord>();
  owed->uid.value = "claim-owed";
  owed->name = {"default", "a"};
  owed->drivers[kDriver].phase = state::DriverPhase::kUnpreparing;
  state.Put(owed);
  auto holder = std::make_shared<state::ForeignHolderRecord>();
  holder->id.value = "0123456789abcdef";
  holder->devices = {{kGpu, "7"}};
  state.Put(holder);
  const ExportPlan plan = PlanExport(state);
  EXPECT_THAT(plan.losses, SizeIs(4));
  EXPECT_THAT(plan.losses, Contains(HasSubstr("pod 'default/x'")));
  EXPECT_THAT(plan.losses, Contains(HasSubstr("is to be unprepared")));
  EXPECT_THAT(plan.losses, Contains(HasSubstr("one claim by this name")));
  EXPECT_THAT(plan.losses, Contains(HasSubstr("foreign container")));
  // Of two claims of a name the kubelet takes the last one: the one in use.
  EXPECT_EQ(plan.claims.claims->back().uid, ClaimUid{"claim-a"});
  EXPECT_THAT(*plan.devices.entries, SizeIs(3));
}

class KubeletExportFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.Write(*SomePods().devices);
    folder_.Write(*SomePods().claims);
    const auto result = ImportKubelet(folder_.import_options());
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->written);
  }
  KubeletFolder folder_;
};

TEST_F(KubeletExportFilesTest, BothFilesLieAsInTheKubeletsRoot) {
  const auto result = ExportKubelet(folder_.export_options());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->written);
  EXPECT_EQ(result->claims, 1u);
  const auto bytes = checkpoint::ReadFile(folder_.out() / "device-plugins" /
                                          "kubelet_internal_checkpoint");
  const auto devices = DecodeDeviceCheckpoint(bytes);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->entries, SomePods().devices->entries);
  EXPECT_EQ(checkpoint::ReadFile(folder_.out() / "dra_manager_state"),
            checkpoint::ReadFile(folder_.claims_file()));
  const auto mode = std::filesystem::status(folder_.out() / "dra_manager_state")
                        .permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read |
                      std::filesystem::perms::owner_write);
  EXPECT_THAT(checkpoint::TreeOf(folder_.out()), SizeIs(4));
}

// The whole way: out, and in again.
TEST_F(KubeletExportFilesTest, ExportThenImportIsTheSameLedger) {
  ASSERT_TRUE(ExportKubelet(folder_.export_options()).ok());
  const State before = folder_.ReadStore().state;
  std::filesystem::rename(folder_.state(), folder_.root() / "old");
  KubeletImportOptions options = folder_.import_options();
  options.kubelet_dir = folder_.out();
  options.boot_time = [] { return WallTime(); };
  options.now = [] { return std::chrono::system_clock::now(); };
  const auto again = ImportKubelet(options);
  ASSERT_TRUE(again.ok()) << again.status();
  const State after = folder_.ReadStore().state;
  EXPECT_EQ(after.claims.size(), before.claims.size());
  for (const auto& [uid, claim] : before.claims) {
    EXPECT_EQ(*after.FindClaim(uid), *claim);
  }
  for (const auto& [uid, pod] : before.pods) {
    auto same = *after.FindPod(uid);
    same.first_seen_ms = pod->first_seen_ms;
    EXPECT_TRUE(same == *pod) << uid.value;
  }
}

TEST_F(KubeletExportFilesTest, ADirectoryWithSomethingInItIsLeftAlone) {
  std::filesystem::create_directory(folder_.out());
  ASSERT_TRUE(ExportKubelet(folder_.export_options()).ok());
  const auto before = checkpoint::TreeOf(folder_.root());
  EXPECT_THAT(ExportKubelet(folder_.export_options()).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is not an empty directory")));
  EXPECT_EQ(checkpoint::TreeOf(folder_.root()), before);
}

/// A writer that was killed has left its work beside the place.
TEST_F(KubeletExportFilesTest, WhatAKilledWriterLeftIsRemoved) {
  const std::filesystem::path partial = folder_.root() / "out.partial";
  folder_.WriteBytes(partial / "dra_manager_state", "half");
  ASSERT_TRUE(ExportKubelet(folder_.export_options()).ok());
  EXPECT_FALSE(std::filesystem::exists(partial));
  EXPECT_TRUE(std::filesystem::exists(folder_.out() / "dra_manager_state"));
}

/// Whenever it was killed: with a file under its temporary name, or none.
TEST_F(KubeletExportFilesTest, WhatAKilledWriterHadBegunIsRemoved) {
  const std::filesystem::path partial = folder_.root() / "out.partial";
  const std::string devices = "device-plugins/kubelet_internal_checkpoint";
  for (const std::string& name :
       {devices, devices + ".Ab3xyZ.tmp", std::string("dra_manager_state"),
        std::string("dra_manager_state.Ab3xyZ.tmp")}) {
    folder_.WriteBytes(partial / name, "half");
  }
  ASSERT_TRUE(ExportKubelet(folder_.export_options()).ok());
  EXPECT_FALSE(std::filesystem::exists(partial));
  EXPECT_THAT(checkpoint::TreeOf(folder_.out()), SizeIs(4));
  std::filesystem::remove_all(folder_.out());
  std::filesystem::create_directories(partial / "device-plugins");
  EXPECT_TRUE(ExportKubelet(folder_.export_options()).ok());
  EXPECT_FALSE(std::filesystem::exists(partial));
}

/// The name may have been a person's before.
TEST_F(KubeletExportFilesTest, AFolderOfAPersonIsNotRemoved) {
  const std::filesystem::path partial = folder_.root() / "out.partial";
  for (const char* name :
       {"notes.txt", "device-plugins/notes.txt", "dra_manager_state.bak",
        "dra_manager_state.x.tmp", "dra_manager_state/notes.txt"}) {
    folder_.WriteBytes(partial / "device-plugins/kubelet_internal_checkpoint",
                       "half");
    folder_.WriteBytes(partial / name, "kept");
    const auto before = checkpoint::TreeOf(folder_.root());
    EXPECT_THAT(ExportKubelet(folder_.export_options()).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(partial.string() + "/"),
                               HasSubstr("that no export has left"))))
        << name;
    EXPECT_EQ(checkpoint::TreeOf(folder_.root()), before) << name;
    std::filesystem::remove_all(partial);
  }
}

TEST_F(KubeletExportFilesTest, AFileInThePlaceOfTheWorkIsNotRemoved) {
  const std::filesystem::path partial = folder_.root() / "out.partial";
  folder_.WriteBytes(partial, "kept");
  EXPECT_THAT(
      ExportKubelet(folder_.export_options()).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("'" + partial.string() + "' is a file that no")));
  EXPECT_EQ(checkpoint::ReadFile(partial), "kept");
}

/// Neither the link nor what it leads to.
TEST_F(KubeletExportFilesTest, ALinkInThePlaceOfTheWorkIsNotFollowed) {
  const std::filesystem::path partial = folder_.root() / "out.partial";
  const std::filesystem::path other = folder_.root() / "other";
  folder_.WriteBytes(other / "dra_manager_state", "kept");
  std::filesystem::create_directory_symlink(other, partial);
  EXPECT_THAT(
      ExportKubelet(folder_.export_options()).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("'" + partial.string() + "' is a symbolic link")));
  EXPECT_TRUE(std::filesystem::is_symlink(partial));
  EXPECT_EQ(checkpoint::ReadFile(other / "dra_manager_state"), "kept");
  // The same below it.
  std::filesystem::remove(partial);
  std::filesystem::create_directory(partial);
  std::filesystem::create_directory_symlink(other, partial / "device-plugins");
  EXPECT_EQ(ExportKubelet(folder_.export_options()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::is_symlink(partial / "device-plugins"));
}

TEST_F(KubeletExportFilesTest, ADryRunWritesNothing) {
  const auto before = checkpoint::TreeOf(folder_.root());
  KubeletExportOptions options = folder_.export_options();
  options.dry_run = true;
  const auto result = ExportKubelet(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->written);
  EXPECT_EQ(result->pods, 3u);
  EXPECT_EQ(checkpoint::TreeOf(folder_.root()), before);
}

/// What a kubelet may have written: some of it odd, none of it lost.
KubeletState RandomFiles(Luck& luck) {
  KubeletState kubelet;
  kubelet.devices.emplace();
  kubelet.devices->registered.emplace();
  std::vector<kubelet_checkpoint::PodDevicesEntry> entries;
  int next_device = 0;
  const int pods = luck.Below(8);
  for (int pod = 0; pod < pods; ++pod) {
    const int containers = luck.Below(4);
    for (int container = 0; container < containers; ++container) {
      std::vector<std::string> ids;
      const int devices = 1 + luck.Below(4);
      for (int i = 0; i < devices; ++i) {
        ids.push_back("d" + std::to_string(next_device++));
      }
      auto entry = HeldEntry(
          "pod-" + std::to_string(pod), "c" + std::to_string(container),
          luck.Chance(50) ? kGpu : "example.com/nic", ids, luck.Below(4) - 1);
      if (luck.Chance(30)) {
        (*entry.device_ids)[10] = {{DeviceId(luck.Pick(ids))}};
      }
      if (luck.Chance(20)) entry.alloc_resp = "";
      entries.push_back(std::move(entry));
    }
  }
  if (!entries.empty()) kubelet.devices->entries = std::move(entries);
  kubelet.claims.emplace();
  kubelet.claims->claims.emplace();
  const int claims = luck.Below(6);
  for (int i = 0; i < claims; ++i) {
    std::vector<std::string> users;
    const int count = luck.Below(3);
    for (int user = 0; user < count; ++user) {
      users.push_back("pod-" + std::to_string(luck.Below(10)));
    }
    auto claim =
        PreparedClaim("claim-" + std::to_string(i),
                      "claim-uid-" + std::to_string(i), kDriver, users);
    auto& drivers = *claim.drivers;
    if (luck.Chance(30)) drivers["other.example.com"] = {};
    if (luck.Chance(30)) drivers[kDriver].skip_node_operations = {"*"};
    if (luck.Chance(30)) {
      drivers[kDriver].devices->front().share_id = "share-1";
    }
    kubelet.claims->claims->push_back(std::move(claim));
  }
  return kubelet;
}

// Export then import is the identity, on the ledger and on the files.
TEST(KubeletExportPropertyTest, ExportThenImportIsTheIdentity) {
  int held = 0;
  const bool all = LiveEach({.seed = 7, .lives = 300}, [&](Luck& luck) {
    const State state = Imported(RandomFiles(luck));
    const KubeletState files = FilesOf(state);
    const State again = Imported(files);
    ASSERT_TRUE(again == state);
    ASSERT_EQ(FilesOf(again).devices, files.devices);
    ASSERT_EQ(FilesOf(again).claims, files.claims);
    State shown = state;
    ShowAll(shown);
    ASSERT_THAT(state::CheckInvariants(shown, "boot-1"), IsEmpty());
    ASSERT_EQ(FilesOf(shown).devices, files.devices);
    ASSERT_EQ(FilesOf(shown).claims, files.claims);
    held += static_cast<int>(state.pods.size());
  });
  if (all) {
    EXPECT_GT(held, 300);
  }
}

}  // namespace
}  // namespace devmgr
