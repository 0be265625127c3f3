// SPDX-License-Identifier: Apache-2.0
//
// A node changes from a kubelet to devmgrd and back, with real programs; and
// the programs are killed while they do it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/kubelet/device_checkpoint.h"
#include "checkpoint/kubelet/dra_state_file.h"
#include "checkpoint/ledger_store.h"
#include "e2e/build_dirs.h"
#include "e2e/daemon.h"
#include "migration/kubelet_folder.h"
#include "plugin/container_response.h"
#include "support/luck.h"
#include "support/read_all.h"
#include "support/test_scale.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using kubelet_checkpoint::DeviceCheckpoint;
using kubelet_checkpoint::DraCheckpoint;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kTpu[] = "example.com/tpu";

std::string PodYaml(const std::string& name) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: u-" +
         name +
         "}\nspec:\n  containers:\n  - name: c\n    resources: {limits: {" +
         kTpu + ": \"1\"}}\n";
}

/// The kubelet has written it just now.
void Touch(const fs::path& file) {
  fs::last_write_time(file, fs::file_time_type::clock::now());
}

DeviceCheckpoint TpusOf(const std::vector<std::string>& uids) {
  DeviceCheckpoint devices;
  devices.registered.emplace();
  devices.entries.emplace();
  for (std::size_t i = 0; i < uids.size(); ++i) {
    devices.entries->push_back(
        HeldEntry(uids[i], "c", kTpu, {"tpu-" + std::to_string(i)}));
  }
  return devices;
}

class ImportKubeletTest : public ::testing::Test {
 protected:
  std::vector<std::string> Flag() const {
    return {"--import-kubelet", folder_.kubelet().string()};
  }
  ::testing::AssertionResult WaitFor(const std::string& pod,
                                     const std::string& state) {
    const Exit exit =
        node_.Ctl({"wait", "pod", pod, "--for=" + state, "--timeout", "20s"});
    if (exit.code == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << exit.err << node_.Ctl({"get", "pods", "-o", "json"}).out;
  }
  /// The env of its one container.
  std::string EnvOf(const std::string& pod) {
    const Exit exit = node_.Ctl({"resolve", pod, "-o", "json"});
    EXPECT_EQ(exit.code, 0) << exit.err;
    const json answer = json::parse(exit.out, nullptr, false);
    if (answer.is_discarded()) return "";
    return answer["containers"][0]["env"][0]["value"];
  }

  NodeFolder node_;
  KubeletFolder folder_;
};

TEST_F(ImportKubeletTest, AFileThatCannotBeReadPreventsTheStart) {
  folder_.Write(TpusOf({"u-p"}));
  // Root cannot open a link that leads to itself either.
  fs::remove(folder_.devices_file());
  fs::create_symlink(folder_.devices_file(), folder_.devices_file());
  std::vector<std::string> args = Flag();
  args.insert(args.begin(), {"--root", node_.root().string()});
  const Exit exit = RunTool("devmgrd", args);
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, AllOf(HasSubstr("nothing was imported"),
                              HasSubstr(folder_.devices_file().string())));
  // Nothing was begun: with the file in order the import is done.
  fs::remove(folder_.devices_file());
  folder_.Write(TpusOf({"u-p"}));
  Touch(folder_.devices_file());
  Daemon daemon(node_.root(), Flag());
  const auto inspector = daemon.Inspect();
  ASSERT_NE(inspector, nullptr) << daemon.log();
  const auto pods = inspector->Pods();
  ASSERT_TRUE(pods.ok()) << pods.status();
  EXPECT_THAT(*pods, SizeIs(1));
}

TEST_F(ImportKubeletTest, ANodeGoesToDevmgrdAndBackWithItsPods) {
  folder_.Write(TpusOf({"u-p"}));
  Touch(folder_.devices_file());
  testing::FakeDevicePluginOptions options;
  options.resource = kTpu;
  options.devices = 2;
  const auto plugin = node_.StartPlugin(options);
  auto daemon = std::make_unique<Daemon>(node_.root(), Flag());
  // Before the source shows it, it is known by its UID.
  const auto inspector = daemon->Inspect();
  ASSERT_NE(inspector, nullptr) << daemon->log();
  const auto pods = inspector->Pods();
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_THAT(*pods, SizeIs(1));
  EXPECT_EQ((*pods)[0].uid, PodUid{"u-p"});
  EXPECT_EQ((*pods)[0].state, PodState::kReady);
  node_.Write("p.yaml", PodYaml("p"));
  ASSERT_TRUE(WaitFor("p", "ready")) << daemon->log();
  EXPECT_EQ(EnvOf("p"), "tpu-0");
  node_.Write("q.yaml", PodYaml("q"));
  ASSERT_TRUE(WaitFor("q", "ready")) << daemon->log();
  EXPECT_EQ(EnvOf("q"), "tpu-1");
  const auto calls = plugin->Calls();
  EXPECT_EQ(
      std::count_if(calls.begin(), calls.end(),
                    [](const auto& call) { return call.method == "allocate"; }),
      1);
  // A second start says that it was done, and goes on.
  std::chrono::milliseconds took;
  EXPECT_EQ(daemon->Terminate(&took), 0);
  daemon = std::make_unique<Daemon>(node_.root(), Flag());
  ASSERT_TRUE(WaitFor("p", "ready")) << daemon->log();
  EXPECT_THAT(daemon->log(), HasSubstr("were imported into this ledger at"));
  EXPECT_EQ(daemon->Terminate(&took), 0);
  // And back.
  const Exit exit =
      RunTool("devmgrctl", {"--state-dir", (node_.root() / "state").string(),
                            "export", "kubelet", folder_.out().string()});
  ASSERT_EQ(exit.code, 0) << exit.err;
  const auto exported = kubelet_checkpoint::DecodeDeviceCheckpoint(ReadAll(
      folder_.out() / "device-plugins" / "kubelet_internal_checkpoint"));
  ASSERT_TRUE(exported.ok()) << exported.status();
  ASSERT_THAT(*exported->entries, SizeIs(2));
  EXPECT_EQ((*exported->entries)[0], TpusOf({"u-p"}).entries->front());
  const auto edits =
      plugin::DecodeContainerResponse(*(*exported->entries)[1].alloc_resp);
  ASSERT_TRUE(edits.ok()) << edits.status();
  EXPECT_EQ(edits->env[0].value, "tpu-1");
  const Exit verified =
      RunTool("devmgrctl", {"verify", "kubelet", folder_.out().string()});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
}

// Bad input prevents no start.
TEST_F(ImportKubeletTest, ADamagedFileIsNamedAndTheDaemonStarts) {
  folder_.WriteBytes(folder_.devices_file(), "{");
  folder_.Write(DraCheckpoint());
  Daemon daemon(node_.root(), Flag());
  ASSERT_NE(daemon.Inspect(), nullptr) << daemon.log();
  EXPECT_THAT(daemon.log(), HasSubstr("left out: all of '"));
  EXPECT_THAT(daemon.log(), HasSubstr("a copy of the damaged file is"));
}

TEST_F(ImportKubeletTest, WithoutFilesTheDaemonStartsAsUsual) {
  Daemon daemon(node_.root(), Flag());
  ASSERT_NE(daemon.Inspect(), nullptr) << daemon.log();
  EXPECT_THAT(daemon.log(), HasSubstr("nothing was imported"));
}

// What programs read that look for the kubelet's file is what could be imported
// again.
TEST_F(ImportKubeletTest, TheMirrorIsAsAKubeletsFile) {
  const fs::path mirror = folder_.devices_file();
  testing::FakeDevicePluginOptions options;
  options.resource = kTpu;
  options.devices = 2;
  const auto plugin = node_.StartPlugin(options);
  Daemon daemon(node_.root(), {"--mirror-kubelet-checkpoint", mirror.string()});
  node_.Write("p.yaml", PodYaml("p"));
  ASSERT_TRUE(WaitFor("p", "ready")) << daemon.log();
  std::chrono::milliseconds took;
  ASSERT_EQ(daemon.Terminate(&took), 0) << daemon.log();
  const auto file = kubelet_checkpoint::DecodeDeviceCheckpoint(ReadAll(mirror));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(*file->entries, SizeIs(1));
  EXPECT_EQ((*file->entries)[0].pod, PodUid{"u-p"});
  EXPECT_THAT(*file->registered->at(kTpu), SizeIs(2));
  const Exit exit =
      RunTool("devmgrctl", {"--state-dir", folder_.state().string(), "import",
                            "kubelet", folder_.kubelet().string()});
  EXPECT_EQ(exit.code, 0) << exit.err;
  EXPECT_THAT(folder_.ReadStore().state.pods, SizeIs(1));
  EXPECT_EQ(RunTool("devmgrd", {"--root", node_.root().string(),
                                "--mirror-kubelet-checkpoint", "relative"})
                .code,
            2);
}

/// devmgrctl, killed after that time, or not at all; whether it had ended.
bool RunAndKill(const std::vector<std::string>& args,
                std::chrono::microseconds after) {
  const std::string program =
      std::string(DEVMGR_TOOLS_DIR) + "/devmgrctl/devmgrctl";
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::usleep(static_cast<useconds_t>(after.count()));
  ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// kill -9 leaves nothing or all, whenever it comes.
class KilledMigrationTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kPods = 200;

  void SetUp() override {
    std::vector<std::string> uids;
    DraCheckpoint claims;
    claims.claims.emplace();
    for (std::size_t i = 0; i < kPods; ++i) {
      uids.push_back("u-" + std::to_string(i));
      claims.claims->push_back(PreparedClaim("c" + std::to_string(i),
                                             "claim-" + std::to_string(i),
                                             "gpu.example.com", {uids[i]}));
    }
    folder_.Write(TpusOf(uids));
    folder_.Write(claims);
  }
  std::vector<std::string> Import() const {
    return {"--state-dir", folder_.state().string(), "import", "kubelet",
            folder_.kubelet().string()};
  }
  std::vector<std::string> Export() const {
    return {"--state-dir", folder_.state().string(), "export", "kubelet",
            folder_.out().string()};
  }
  /// How long it takes when it is not killed.
  static std::chrono::microseconds TimeOf(
      const std::vector<std::string>& args) {
    const auto began = std::chrono::steady_clock::now();
    const Exit exit = RunTool("devmgrctl", args);
    EXPECT_EQ(exit.code, 0) << exit.err;
    return std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - began);
  }
  static int Kills() { return 10 * TestScale(); }

  KubeletFolder folder_;
  Luck luck_{11};
};

TEST_F(KilledMigrationTest, AnImportThatIsKilledLeavesNothingOrAll) {
  const auto whole = TimeOf(Import());
  int nothing = 0;
  for (int i = 0; i < Kills(); ++i) {
    fs::remove_all(folder_.state());
    const bool ended = RunAndKill(Import(), whole * luck_.Below(120) / 100);
    const auto contents = checkpoint::ReadStoppedStore(folder_.state());
    if (absl::IsNotFound(contents.status())) {
      ++nothing;
      ASSERT_FALSE(ended);
    } else {
      ASSERT_TRUE(contents.ok()) << contents.status();
      const std::size_t pods = contents->state.pods.size();
      ASSERT_TRUE(pods == 0 || pods == kPods) << pods;
      ASSERT_EQ(contents->state.claims.size(), pods);
      ASSERT_EQ(contents->state.sources.size(), pods == 0 ? 0u : 1u);
      ASSERT_TRUE(!ended || pods == kPods);
      if (pods == kPods) continue;
      ++nothing;
    }
    const Exit again = RunTool("devmgrctl", Import());
    ASSERT_EQ(again.code, 0) << again.err;
    ASSERT_THAT(checkpoint::ReadStoppedStore(folder_.state())->state.pods,
                SizeIs(kPods));
  }
  EXPECT_GT(nothing, 0);
}

TEST_F(KilledMigrationTest, AnExportThatIsKilledLeavesNothingOrAll) {
  TimeOf(Import());
  const auto whole = TimeOf(Export());
  const auto before = TreeOf(folder_.state());
  int nothing = 0;
  for (int i = 0; i < Kills(); ++i) {
    fs::remove_all(folder_.out());
    const bool ended = RunAndKill(Export(), whole * luck_.Below(120) / 100);
    if (!fs::exists(folder_.out())) {
      ++nothing;
      ASSERT_FALSE(ended);
      const Exit again = RunTool("devmgrctl", Export());
      ASSERT_EQ(again.code, 0) << again.err;
    }
    const auto devices = kubelet_checkpoint::DecodeDeviceCheckpoint(ReadAll(
        folder_.out() / "device-plugins" / "kubelet_internal_checkpoint"));
    ASSERT_TRUE(devices.ok()) << devices.status();
    ASSERT_THAT(*devices->entries, SizeIs(kPods));
    ASSERT_TRUE(kubelet_checkpoint::DecodeDraStateFile(
                    ReadAll(folder_.out() / "dra_manager_state"))
                    .ok());
    ASSERT_FALSE(fs::exists(folder_.root() / "out.partial"));
  }
  EXPECT_GT(nothing, 0);
  EXPECT_EQ(TreeOf(folder_.state()), before);
}

}  // namespace
}  // namespace devmgr
