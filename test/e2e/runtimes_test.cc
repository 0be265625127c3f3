// SPDX-License-Identifier: Apache-2.0
//
// Runtimes that no CRI leads to: runc, whose configuration `devmgrctl inject`
// edits, and podman, which finds the names of `devmgrctl resolve` by itself.
#include <gmock/gmock.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/daemon.h"
#include "e2e/real_runtime.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json ReadJson(const fs::path& file) {
  std::ifstream stream(file);
  return json::parse(stream, nullptr, false);
}

/// A node with the pod of real_runtime.h, Ready.
class RuntimesTest : public ::testing::Test {
 protected:
  void StartNode(bool plugin_answers_with_names) {
    driver_ = node_.StartDriver();
    testing::FakeDevicePluginOptions plugin;
    plugin.resource = "example.com/tpu";
    plugin.cdi = plugin_answers_with_names;
    plugin_ = node_.StartPlugin(plugin);
    node_.Write("pod.yaml", kRuntimePod);
    daemon_ = std::make_unique<Daemon>(
        node_.root(),
        std::vector<std::string>{"--cdi-spec-dir", cdi().string()});
    ASSERT_NE(daemon_->Inspect(), nullptr);
    WaitForPod("ready");
  }
  void WaitForPod(const std::string& state) const {
    const Exit reached =
        node_.Ctl({"wait", "pod", "p", "--for=" + state, "--timeout", "30s"});
    ASSERT_EQ(reached.code, 0) << reached.err << daemon_->log();
  }
  fs::path cdi() const { return node_.root() / "cdi"; }

  NodeFolder node_;
  std::unique_ptr<testing::FakeDraDriver> driver_;
  std::unique_ptr<testing::FakeDevicePlugin> plugin_;
  std::unique_ptr<Daemon> daemon_;
};

/// A container as runc wants it: a root file system and a configuration.
class Bundle {
 public:
  explicit Bundle(const std::vector<std::string>& command) {
    problem_ = MakeRootFolder(folder_.path() / "rootfs");
    std::string output;
    if (problem_.empty() &&
        RunProgram({"runc", "spec", "--bundle", folder_.path().string()},
                   &output) != 0) {
      problem_ = "no configuration: " + output;
    }
    if (!problem_.empty()) return;
    json configured = ReadJson(config());
    configured["process"]["args"] = command;
    configured["process"]["terminal"] = false;
    std::ofstream(config()) << configured;
  }

  fs::path config() const { return folder_.path() / "config.json"; }

  /// Runs it to its end. What it says; what went wrong is added to `problem`.
  std::string Run(std::string* problem) const {
    *problem += problem_;
    if (!problem_.empty()) return "";
    std::string output;
    const int code = RunProgram(
        {"runc", "--root", (folder_.path() / "state").string(), "run",
         "--bundle", folder_.path().string(), folder_.path().filename()},
        &output);
    if (code != 0) *problem += "the container does not run: " + output;
    return output;
  }

 private:
  const TempFolder folder_;
  std::string problem_;
};

class RuncTest : public RuntimesTest {
 protected:
  void SetUp() override {
    static const std::string why_not = WhyNot();
    if (!why_not.empty()) {
      GTEST_SKIP() << "cannot run containers here: " << why_not;
    }
    StartNode(false);
  }

  static std::string WhyNot() {
    std::string problem = WhyNoContainers({"runc"});
    if (problem.empty()) Bundle({"/bin/echo", "it runs"}).Run(&problem);
    return problem;
  }

  void Inject(const std::string& container, const Bundle& bundle,
              std::vector<fs::path> cdi_dirs) const {
    std::vector<std::string> words = {"inject", "--pod", "p", "-c", container};
    words.insert(words.end(), {"--spec", bundle.config().string(), "-o",
                               bundle.config().string()});
    for (const fs::path& dir : cdi_dirs) {
      words.insert(words.end(), {"--cdi-spec-dir", dir.string()});
    }
    const Exit injected = node_.Ctl(words);
    ASSERT_EQ(injected.code, 0) << injected.err;
  }

  static std::string OutputOf(const Bundle& bundle) {
    std::string problem;
    std::string output = bundle.Run(&problem);
    EXPECT_EQ(problem, "");
    return output;
  }
};

TEST_F(RuncTest, AContainerGetsWhatIsInjected) {
  const Bundle bundle(LookingCommand());
  EXPECT_THAT(OutputOf(bundle), HasNoDevices());
  ASSERT_NO_FATAL_FAILURE(Inject("c", bundle, {cdi()}));
  EXPECT_THAT(OutputOf(bundle), HasAllDevices());

  const Bundle plain(LookingCommand());
  ASSERT_NO_FATAL_FAILURE(Inject("plain", plain, {cdi()}));
  EXPECT_THAT(OutputOf(plain), HasNoDevices());
}

// A rule with empty access would keep runc from starting it.
TEST_F(RuncTest, ANodeMayBeThereWithoutAccess) {
  const fs::path override = node_.root() / "cdi-override";
  fs::create_directories(override);
  // Numbers that no container may use by default; whether the kernel has a
  // driver for them is another matter, which opening tells, too.
  std::ofstream(override / "override.json") << R"({
    "cdiVersion": "0.5.0", "kind": "gpu.example.com/claim", "devices": [{
    "name": "own-uid-gpu-0-0", "containerEdits": {"deviceNodes": [
    {"path": "/dev/closed", "type": "c", "major": 10, "minor": 229,
     "permissions": "none"},
    {"path": "/dev/open", "type": "c", "major": 10, "minor": 237,
     "permissions": "r"}]}}]})";
  const Bundle bundle(
      {"/bin/sh", "-c",
       "for name in open closed; do stat -c \"$name %t:%T\" /dev/$name; "
       "(: </dev/$name) 2>&1 | sed \"s/^/$name: /\"; done"});
  ASSERT_NO_FATAL_FAILURE(Inject("c", bundle, {cdi(), override}));
  EXPECT_THAT(
      OutputOf(bundle),
      AllOf(HasSubstr("open a:ed"), HasSubstr("closed a:e5"),
            ::testing::ContainsRegex("closed: .*Operation not permitted"),
            Not(::testing::ContainsRegex("open: .*Operation not permitted"))));
}

/// podman of a test: it neither uses nor changes what the machine's has.
class Podman {
 public:
  explicit Podman(fs::path cdi) : cdi_(std::move(cdi)) {}

  static std::string WhyNot() {
    std::string problem = WhyNoContainers({"podman", "runc", "unshare"});
    if (!problem.empty()) return problem;
    const TempFolder cdi;
    std::string output;
    const int code =
        Podman(cdi.path()).Run({}, {"/bin/echo", "it runs"}, &output);
    if (code == 0 && output == "it runs\n") return "";
    return "a container of podman does not run: " + output;
  }

  /// `podman run` with these CDI names; its exit code.
  int Run(const std::vector<std::string>& names,
          const std::vector<std::string>& command, std::string* output) const {
    // podman 4.3 looks for CDI specs in /etc/cdi and /var/run/cdi; nothing
    // tells it other places. It has its locks in /dev/shm, whatever its --root
    // is. Hence the mounts, in a namespace of their own, which takes podman's
    // processes and mounts with it, too. The limits that it sets by default may
    // be higher than this process's.
    static constexpr char kScript[] = R"sh(
set -e
folder=$1 cdi=$2
shift 2
mount -t tmpfs tmpfs /var/run
mount -t tmpfs tmpfs /dev/shm
mkdir /var/run/cdi
mount --bind "$cdi" /var/run/cdi
code=0
CONTAINERS_CONF=/dev/null podman --root "$folder/root" \
  --runroot "$folder/runroot" --tmpdir "$folder/tmp" --storage-driver vfs \
  --runtime runc --cgroup-manager cgroupfs --events-backend none \
  run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
  --cgroups no-conmon --cgroup-parent "/${folder##*/}" "$@" || code=$?
# Cgroups are the machine's. There is one or many, depending on its version.
rmdir "/sys/fs/cgroup/${folder##*/}" /sys/fs/cgroup/*/"${folder##*/}" \
  2>/dev/null || true
exit $code
)sh";
    const TempFolder folder;
    *output = MakeRootFolder(folder.path() / "rootfs");
    if (!output->empty()) return -1;
    std::vector<std::string> words = {
        "unshare",      "--mount", "--pid", "--fork", "--kill-child",
        "--mount-proc", "sh",      "-c",    kScript,  "sh"};
    words.insert(words.end(), {folder.path().string(), cdi_.string()});
    for (const std::string& name : names) {
      words.insert(words.end(), {"--device", name});
    }
    words.insert(words.end(),
                 {"--rootfs", (folder.path() / "rootfs").string()});
    words.insert(words.end(), command.begin(), command.end());
    return RunProgram(words, output);
  }

 private:
  const fs::path cdi_;
};

class PodmanTest : public RuntimesTest {
 protected:
  void SetUp() override {
    static const std::string why_not = Podman::WhyNot();
    if (!why_not.empty()) {
      GTEST_SKIP() << "cannot run containers here: " << why_not;
    }
    StartNode(true);
  }

  /// Names of the CDI devices of container `c`.
  std::vector<std::string> Names() const {
    const Exit resolved = node_.Ctl({"resolve", "p", "-c", "c", "-o", "json"});
    EXPECT_EQ(resolved.code, 0) << resolved.err;
    const json pod = json::parse(resolved.out, nullptr, false);
    std::vector<std::string> names;
    for (const json& device : pod["containers"][0]["cdiDevices"]) {
      names.push_back(device["name"]);
    }
    return names;
  }

  /// What spec files say of this device: variables, and nodes as
  /// LookingCommand tells them.
  std::vector<std::string> LinesFor(const std::string& name) const {
    std::vector<std::string> lines;
    for (const auto& entry : fs::directory_iterator(cdi())) {
      const json spec = ReadJson(entry.path());
      for (const json& device : spec["devices"]) {
        const std::string defined = spec["kind"].get<std::string>() + "=" +
                                    device["name"].get<std::string>();
        if (defined != name) continue;
        const json& edits = device["containerEdits"];
        for (const json& variable : edits.value("env", json::array())) {
          lines.push_back(variable);
        }
        for (const json& node : edits.value("deviceNodes", json::array())) {
          // All of the plugin's are /dev/null outside.
          lines.push_back("node " + node["path"].get<std::string>() + " 1:3");
        }
      }
    }
    return lines;
  }

  int Run(const std::vector<std::string>& names, std::string* output) const {
    return Podman(cdi()).Run(names, LookingCommand(), output);
  }
};

TEST_F(PodmanTest, AContainerGetsWhatItsNamesStandFor) {
  const std::vector<std::string> names = Names();
  ASSERT_EQ(names.size(), 3U);
  std::string output;
  ASSERT_EQ(Run(names, &output), 0) << output;
  for (const std::string& name : names) {
    const std::vector<std::string> lines = LinesFor(name);
    EXPECT_FALSE(lines.empty()) << name;
    for (const std::string& line : lines) {
      EXPECT_THAT("\n" + output, HasSubstr("\n" + line + "\n")) << name;
    }
  }
  EXPECT_THAT(output, HasSubstr("node /dev/tpu-"));
  EXPECT_THAT(output, HasSubstr("mounted"));

  ASSERT_EQ(Run({}, &output), 0) << output;
  EXPECT_THAT(output, HasNoDevices());
}

TEST_F(PodmanTest, NamesOfAPodThatIsGoneStandForNothing) {
  std::vector<std::string> names = Names();
  // A plugin's names are there for as long as the plugin is.
  std::erase_if(names, [](const std::string& name) {
    return name.starts_with("example.com/tpu=");
  });
  ASSERT_EQ(names.size(), 2U);
  node_.Remove("pod.yaml");
  ASSERT_NO_FATAL_FAILURE(WaitForPod("released"));
  std::string output;
  EXPECT_NE(Run(names, &output), 0);
  EXPECT_THAT(output, AllOf(HasSubstr("unresolvable"), HasSubstr(names[0]),
                            HasSubstr(names[1])));
}

}  // namespace
}  // namespace devmgr
