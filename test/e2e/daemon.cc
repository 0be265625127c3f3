// SPDX-License-Identifier: Apache-2.0
#include "e2e/daemon.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "e2e/build_dirs.h"
#include "support/mailbox.h"
#include "support/read_all.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;

pid_t Spawn(const std::string& tool, const std::vector<std::string>& args,
            const fs::path& out, const fs::path& err) {
  const std::string program =
      std::string(DEVMGR_TOOLS_DIR) + "/" + tool + "/" + tool;
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;
  ::dup2(::open(out.c_str(), kFlags, 0600), STDOUT_FILENO);
  ::dup2(::open(err.c_str(), kFlags, 0600), STDERR_FILENO);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

int WaitForExit(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool HasEnded(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info,
                  WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid;
}

}  // namespace

Exit RunTool(const std::string& tool, const std::vector<std::string>& args) {
  const TempFolder folder;
  const pid_t pid =
      Spawn(tool, args, folder.path() / "out", folder.path() / "err");
  Exit result;
  result.code = WaitForExit(pid);
  result.out = ReadAll(folder.path() / "out");
  result.err = ReadAll(folder.path() / "err");
  return result;
}

Daemon::Daemon(fs::path root, std::vector<std::string> flags)
    : root_(std::move(root)), log_(root_ / "devmgrd.log") {
  flags.insert(flags.begin(), {"--root", root_.string()});
  // What the machine has in /etc/cdi is not the test's.
  const bool has_dirs =
      std::find(flags.begin(), flags.end(), "--cdi-spec-dir") != flags.end();
  if (!has_dirs) {
    flags.insert(flags.end(), {"--cdi-spec-dir", (root_ / "cdi").string()});
  }
  pid_ = Spawn("devmgrd", flags, log_, log_);
}

Daemon::~Daemon() { Kill(); }

void Daemon::Kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  Wait();
}

int Daemon::Terminate(std::chrono::milliseconds* took) {
  if (pid_ < 0) return -1;
  const auto begin = std::chrono::steady_clock::now();
  ::kill(pid_, SIGTERM);
  const int code = Wait();
  *took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  return code;
}

int Daemon::Wait() {
  const int code = WaitForExit(pid_);
  pid_ = -1;
  return code;
}

std::string Daemon::log() const { return ReadAll(log_); }

std::unique_ptr<Inspector> Daemon::Inspect() const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    auto inspector = Inspector::Connect(root_ / "devmgr.sock",
                                        std::chrono::milliseconds(5'000));
    if (inspector.ok()) return *std::move(inspector);
    if (HasEnded(pid_)) return nullptr;
    // Nothing to wait on: the socket is what tells that it is there.
    ::poll(nullptr, 0, 2);
  }
  ADD_FAILURE() << "devmgrd does not answer:\n" << log();
  return nullptr;
}

DriverInstance::DriverInstance(const fs::path& root, std::string instance)
    : log_(root / ("driver-" + instance + ".log")) {
  pid_ = Spawn("fake-dra-driver",
               {"--name", "gpu.example.com", "--root", root.string(),
                "--instance", std::move(instance)},
               log_, log_);
}

DriverInstance::~DriverInstance() { Kill(); }

void DriverInstance::Kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  WaitForExit(std::exchange(pid_, -1));
}

int DriverInstance::Terminate() {
  if (pid_ < 0) return -1;
  ::kill(pid_, SIGTERM);
  return WaitForExit(std::exchange(pid_, -1));
}

std::string DriverInstance::log() const { return ReadAll(log_); }

int DriverInstance::CallsFor(const std::string& method,
                             const std::string& claim) const {
  int count = 0;
  std::istringstream lines(log());
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object() || event.value("event", "") != "call" ||
        event.value("method", "") != method) {
      continue;
    }
    for (const auto& each : event["claims"]) {
      count += each.value("name", "") == claim ? 1 : 0;
    }
  }
  return count;
}

NodeFolder::NodeFolder() { fs::create_directories(root() / "manifests"); }

void NodeFolder::Write(const std::string& file, const std::string& yaml) {
  const fs::path target = root() / "manifests" / file;
  const fs::path temporary = root() / "manifests" / ("." + file);
  std::ofstream(temporary) << yaml;
  fs::rename(temporary, target);
}

void NodeFolder::Remove(const std::string& file) {
  fs::remove(root() / "manifests" / file);
}

std::unique_ptr<testing::FakeDraDriver> NodeFolder::StartDriver(
    testing::FakeDraDriverOptions options) {
  if (options.name.empty()) options.name = "gpu.example.com";
  options.root = root();
  auto driver = testing::FakeDraDriver::Start(std::move(options));
  if (!driver.ok()) {
    ADD_FAILURE() << driver.status();
    return nullptr;
  }
  return *std::move(driver);
}

std::unique_ptr<testing::FakeDevicePlugin> NodeFolder::StartPlugin(
    testing::FakeDevicePluginOptions options) {
  options.root = root();
  auto plugin = testing::FakeDevicePlugin::Start(std::move(options));
  if (!plugin.ok()) {
    ADD_FAILURE() << plugin.status();
    return nullptr;
  }
  return *std::move(plugin);
}

std::size_t NodeFolder::cdi_files() const {
  std::size_t count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root() / "cdi", error)) {
    count += entry.is_regular_file() ? 1 : 0;
  }
  return count;
}

Exit NodeFolder::Ctl(std::vector<std::string> args) const {
  args.insert(args.begin(), {"--endpoint", (root() / "devmgr.sock").string()});
  return RunTool("devmgrctl", args);
}

std::string ClaimManifest(const std::string& name, const std::string& uid,
                          const std::vector<std::string>& devices,
                          const std::vector<std::string>& pod_uids) {
  std::stringstream text;
  text << "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
       << "metadata: {name: " << name << ", uid: " << uid << "}\n"
       << "spec: {devices: {requests: [";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    text << "{name: r" << i << ", exactly: {deviceClassName: c}}, ";
  }
  text << "]}}\nstatus:\n  allocation: {devices: {results: [";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    text << "{request: r" << i << ", driver: gpu.example.com, pool: pool-0, "
         << "device: " << devices[i] << "}, ";
  }
  text << "]}}\n  reservedFor: [";
  for (const std::string& pod : pod_uids) {
    text << "{resource: pods, name: p, uid: " << pod << "}, ";
  }
  text << "]\n---\n";
  return text.str();
}

std::string PodManifest(const std::string& name, const std::string& uid,
                        const std::string& claim, int tpus) {
  std::string limits;
  if (tpus > 0) limits = "example.com/tpu: \"" + std::to_string(tpus) + "\"";
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
         ", uid: " + uid +
         "}\nspec:\n  containers: [{name: c, resources: {claims: [{name: "
         "x}], limits: {" +
         limits +
         "}}}]\n  resourceClaims: [{name: x, resourceClaimName: " + claim +
         "}]\n---\n";
}

std::string TreeOf(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    files[entry.path().string()] =
        entry.is_regular_file() ? ReadAll(entry.path()) : "";
  }
  std::string text;
  for (const auto& [name, content] : files) {
    text += fmt::format("{}\n{}\n", name, content);
  }
  return text;
}

}  // namespace devmgr
