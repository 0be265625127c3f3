// SPDX-License-Identifier: Apache-2.0
//
// The container runtime of a node, and its client: containerd, the shim in
// front of it, and sandboxes and containers as standard input asks for them.
//
//   runtime_of_node DEVMGRD_SOCKET CDI_FOLDER
//
// Prints `ready SOCKET` with the socket of containerd, then answers each line
// with any number of lines and `done`, or `failed` and why:
//
//   look POD UID CONTAINER     run the container to its end in a sandbox of its
//                              own, and print what it was given
//   run POD UID CONTAINER TEXT start a container with this shell text, in the
//                              pod's sandbox, which is made for its first one
//   stop POD                   stop and remove the sandbox, with what runs
//   there
//
// Ends with its input. Exit code 77 and the reason on stderr where no container
// can run.
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "common/status.h"
#include "e2e/containerd.h"
#include "e2e/cri_client.h"
#include "e2e/example_program.h"

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

class Node {
 public:
  Node(CriClient& client, std::filesystem::path logs)
      : client_(client), logs_(std::move(logs)) {}

  absl::Status Do(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    std::string pod;
    std::string uid;
    std::string container;
    words >> verb >> pod;
    if (verb == "stop") return Stop(pod);
    words >> uid >> container >> std::ws;
    std::string text;
    std::getline(words, text);
    if (verb == "look") return Look(pod, uid, container);
    if (verb == "run") return Run(pod, uid, container, text).status();
    return InvalidArgumentError("there is no '{}'", verb);
  }

 private:
  struct Pod {
    TestSandbox sandbox;
    std::string id;
  };

  absl::StatusOr<std::string> Run(const std::string& name,
                                  const std::string& uid,
                                  const std::string& container,
                                  const std::string& text) {
    auto pod = pods_.find(name);
    if (pod == pods_.end()) {
      Pod made;
      made.sandbox.name = name;
      made.sandbox.uid = uid;
      made.sandbox.log_directory = logs_ / name;
      std::filesystem::create_directories(made.sandbox.log_directory);
      DEVMGR_ASSIGN_OR_RETURN(made.id, client_.RunPodSandbox(made.sandbox));
      pod = pods_.emplace(name, std::move(made)).first;
    }
    DEVMGR_ASSIGN_OR_RETURN(
        const std::string id,
        client_.CreateContainer(pod->second.id, pod->second.sandbox,
                                Containerd::kImage,
                                {container, {"/bin/sh", "-c", text}}));
    DEVMGR_RETURN_IF_ERROR(client_.StartContainer(id));
    return id;
  }

  absl::Status Look(const std::string& pod, const std::string& uid,
                    const std::string& container) {
    DEVMGR_ASSIGN_OR_RETURN(const std::string id,
                            Run(pod, uid, container, kLook));
    DEVMGR_RETURN_IF_ERROR(client_.WaitForExit(id).status());
    const std::string output =
        CriClient::Output(pods_.at(pod).sandbox, {container, {}});
    for (const absl::string_view line :
         absl::StrSplit(output, '\n', absl::SkipEmpty())) {
      std::printf("%s: %.*s\n", container.c_str(),
                  static_cast<int>(line.size()), line.data());
    }
    return Stop(pod);
  }

  absl::Status Stop(const std::string& name) {
    const auto pod = pods_.extract(name);
    if (pod.empty()) return NotFoundError("pod '{}' has no sandbox", name);
    return client_.StopAndRemoveSandbox(pod.mapped().id);
  }

  CriClient& client_;
  const std::filesystem::path logs_;
  std::map<std::string, Pod> pods_;
};

int Main(const std::string& devmgrd, const std::string& cdi) {
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
       "--devmgrd", devmgrd, "--cdi-spec-dir", cdi});
  const auto client = CriClient::Connect(socket);
  if (client == nullptr) return Fail("no shim", shim.log());
  Node node(*client, containerd.folder() / "logs");
  std::printf("ready %s\n", containerd.socket().c_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const absl::Status status = node.Do(line);
    if (status.ok()) {
      std::printf("done\n");
    } else {
      std::printf("failed %s\n", status.ToString().c_str());
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace devmgr

int main(int argc, char** argv) {
  if (argc != 3) return devmgr::Fail("DEVMGRD_SOCKET CDI_FOLDER", "");
  return devmgr::Main(argv[1], argv[2]);
}
