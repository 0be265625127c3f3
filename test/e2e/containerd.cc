// SPDX-License-Identifier: Apache-2.0
#include "e2e/containerd.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "e2e/build_dirs.h"
#include "e2e/real_runtime.h"
#include "support/mailbox.h"
#include "support/read_all.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;

/// The image as `docker save` writes it. Returns what went wrong.
std::string MakeImage(const fs::path& folder) {
  static constexpr char kScript[] = R"sh(
set -e
cd "$1/image"
tar -C rootfs --owner=0 --group=0 -cf layer.tar .
layer=$(sha256sum layer.tar | cut -d' ' -f1)
printf '{"architecture":"%s","os":"linux","config":{"Env":["PATH=/bin"],"Cmd":["/bin/sleep","1000000"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
  "$3" "$layer" >config.json
printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' \
  "$2" >manifest.json
tar -cf ../image.tar manifest.json config.json layer.tar
rm -r ../image
)sh";
  std::string problem = MakeRootFolder(folder / "image" / "rootfs");
  if (!problem.empty()) return problem;
#if defined(__aarch64__)
  const std::string machine = "arm64";
#else
  const std::string machine = "amd64";
#endif
  std::string output;
  const int code = RunProgram(
      {"sh", "-c", kScript, "sh", folder.string(), Containerd::kImage, machine},
      &output);
  return code == 0 ? "" : "no image: " + output;
}

void WriteConfig(const fs::path& folder) {
  std::ofstream(folder / "config.toml") << fmt::format(
      R"(version = 2
root = "{0}/root"
state = "{0}/state"
[grpc]
  address = "{0}/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{0}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{1}"
  disable_tcp_service = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{0}/cni/bin"
    conf_dir = "{0}/cni/net.d"
)",
      folder.string(), Containerd::kImage);
}

pid_t ParentOf(const fs::path& process) {
  // `pid (name) state parent ...`, where the name may have anything.
  const std::string stat = ReadAll(process / "stat");
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > stat.size()) return 0;
  return static_cast<pid_t>(std::atol(stat.c_str() + name_end + 4));
}

/// Processes whose command line names the folder, and what they have started:
/// the processes of containers name nothing.
std::set<pid_t> ProcessesOf(const fs::path& folder) {
  std::set<pid_t> found;
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (pid == ::getpid()) continue;
    children.emplace(ParentOf(entry.path()), pid);
    const std::string words = ReadAll(entry.path() / "cmdline");
    if (words.find(folder.string() + "/") != std::string::npos) {
      found.insert(pid);
    }
  }
  std::vector<pid_t> todo(found.begin(), found.end());
  while (!todo.empty()) {
    const auto [begin, end] = children.equal_range(todo.back());
    todo.pop_back();
    for (auto child = begin; child != end; ++child) {
      if (found.insert(child->second).second) todo.push_back(child->second);
    }
  }
  return found;
}

void UnmountBelow(const fs::path& folder) {
  std::vector<std::string> mounts;
  std::ifstream table("/proc/self/mounts");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string device, place;
    words >> device >> place;
    if (place.starts_with(folder.string() + "/")) mounts.push_back(place);
  }
  // The innermost first.
  std::reverse(mounts.begin(), mounts.end());
  for (const std::string& place : mounts) {
    if (::umount2(place.c_str(), MNT_DETACH) != 0) {
      ADD_FAILURE() << "cannot unmount " << place;
    }
  }
}

}  // namespace

/// One container that runs to its end tells it all.
struct ContainerdTrial {
  ContainerdTrial() {
    why = WhyNoContainers({"containerd", "ctr", "runc"});
    if (!why.empty()) return;
    Containerd containerd;
    why = containerd.TryToRun();
  }
  std::string why;
};

const std::string& Containerd::WhyNot() {
  static const ContainerdTrial trial;
  return trial.why;
}

Containerd::Containerd() {
  WriteConfig(folder());
  if (const std::string problem = MakeImage(folder()); !problem.empty()) {
    ADD_FAILURE() << problem;
  }
  Restart();
}

Containerd::~Containerd() {
  Kill();
  // The processes that hold containers, then what ran in them.
  for (int round = 0; round < 50; ++round) {
    const auto processes = ProcessesOf(folder());
    for (const pid_t pid : processes) ::kill(pid, SIGKILL);
    if (processes.empty()) break;
    ::poll(nullptr, 0, 20);
  }
  UnmountBelow(folder());
}

void Containerd::Kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void Containerd::Restart() {
  Kill();
  pid_ = SpawnProgram(
      {"containerd", "--config", (folder() / "config.toml").string()},
      folder() / "log");
}

std::string Containerd::log() const { return ReadAll(folder() / "log"); }

int Containerd::Ctl(std::vector<std::string> words, std::string* output) const {
  words.insert(words.begin(), {"ctr", "--address", socket().string(),
                               "--namespace", "k8s.io"});
  return RunProgram(words, output);
}

std::string Containerd::MakeReady() {
  std::string output;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (Ctl({"version"}, &output) != 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      return "containerd does not answer: " + log();
    }
    ::poll(nullptr, 0, 50);
  }
  if (Ctl({"images", "import", "--snapshotter", "native",
           (folder() / "image.tar").string()},
          &output) != 0) {
    return "the image cannot be imported: " + output;
  }
  return "";
}

std::string Containerd::TryToRun() {
  if (std::string problem = MakeReady(); !problem.empty()) return problem;
  std::string output;
  const int code = Ctl({"run", "--rm", "--snapshotter", "native", "--net-host",
                        kImage, "trial", "/bin/echo", "it runs"},
                       &output);
  if (code == 0 && output == "it runs\n") return "";
  return "a container does not run: " + output;
}

}  // namespace devmgr
