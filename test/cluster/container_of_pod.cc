// SPDX-License-Identifier: Apache-2.0
//
// A CRI client for one pod: containerd, the shim in front of it, a sandbox, and
// a container that prints what it was given.
//
//   container_of_pod DEVMGRD_SOCKET CDI_FOLDER POD POD_UID CONTAINER...
//
// Prints `CONTAINER: line` for each line of each container. Exit code 77 and
// the reason on stderr where no container can run.
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/containerd.h"
#include "e2e/cri_client.h"

namespace devmgr {
namespace {

constexpr int kCannotRun = 77;
constexpr char kLook[] = R"sh(
env | grep ^GPU= | sort
for node in /dev/gpu-*; do
  [ ! -c "$node" ] || stat -c 'node %n %t:%T' "$node"
done
)sh";

int Fail(const std::string& what, const std::string& log) {
  std::fprintf(stderr, "%s\n%s\n", what.c_str(), log.c_str());
  return 1;
}

/// Runs the container to its end and prints what it said.
absl::Status Look(CriClient& client, const std::string& sandbox_id,
                  const TestSandbox& sandbox, const std::string& name) {
  const TestContainer container = {name, {"/bin/sh", "-c", kLook}};
  const auto id = client.CreateContainer(sandbox_id, sandbox,
                                         Containerd::kImage, container);
  if (!id.ok()) return id.status();
  if (const auto started = client.StartContainer(*id); !started.ok()) {
    return started;
  }
  const auto code = client.WaitForExit(*id);
  if (!code.ok()) return code.status();
  const std::string output = CriClient::Output(sandbox, container);
  for (const absl::string_view line :
       absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    std::printf("%s: %.*s\n", name.c_str(), static_cast<int>(line.size()),
                line.data());
  }
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& words) {
  if (words.size() < 6) return Fail("too few arguments", "");
  if (!Containerd::WhyNot().empty()) {
    std::fprintf(stderr, "%s\n", Containerd::WhyNot().c_str());
    return kCannotRun;
  }
  Containerd containerd;
  if (const std::string wrong = containerd.MakeReady(); !wrong.empty()) {
    return Fail(wrong, containerd.log());
  }
  const auto socket = containerd.folder() / "shim.sock";
  const ShimProgram shim(
      containerd.folder() / "shim.log",
      {"--listen", socket.string(), "--runtime", containerd.socket().string(),
       "--devmgrd", words[1], "--cdi-spec-dir", words[2]});
  const auto client = CriClient::Connect(socket);
  if (client == nullptr) return Fail("no shim", shim.log());
  TestSandbox sandbox = {words[3], words[4]};
  sandbox.log_directory = containerd.folder() / "logs";
  std::filesystem::create_directories(sandbox.log_directory);
  const auto id = client->RunPodSandbox(sandbox);
  if (!id.ok()) return Fail(id.status().ToString(), shim.log());
  int code = 0;
  for (std::size_t i = 5; i < words.size() && code == 0; ++i) {
    const absl::Status looked = Look(*client, *id, sandbox, words[i]);
    if (!looked.ok()) code = Fail(looked.ToString(), shim.log());
  }
  const absl::Status stopped = client->StopAndRemoveSandbox(*id);
  if (!stopped.ok()) code = Fail(stopped.ToString(), containerd.log());
  return code;
}

}  // namespace
}  // namespace devmgr

int main(int argc, char** argv) {
  return devmgr::Main(std::vector<std::string>(argv, argv + argc));
}
