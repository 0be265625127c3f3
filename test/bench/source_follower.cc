// SPDX-License-Identifier: Apache-2.0
//
// The pods of a node at an API server, by WatchApiServer: the other side of
// informer_go, with the same output. For test/bench/compare_informer.
#include <devmgr/api_server.h>
#include <fmt/core.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "support/temp_folder.h"

namespace {

using devmgr::ObjectSnapshot;

void Say(const std::string& what) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  fmt::print("{} {}\n", what, now.count());
  std::fflush(stdout);
}

/// The pod whose changes are timed has this label.
std::string MarkOf(const ObjectSnapshot& snapshot) {
  const auto pod = snapshot.pods.find({"default", "event"});
  if (pod == snapshot.pods.end()) return "";
  const auto label = pod->second->metadata.labels.find("n");
  return label == pod->second->metadata.labels.end() ? "" : label->second;
}

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_ARENA_MAX, 1);  // As devmgrd does.
  std::string url;
  bool all = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--url") == 0 && i + 1 < argc) url = argv[++i];
    if (std::strcmp(argv[i], "--all") == 0) all = true;
  }
  const devmgr::TempFolder folder;
  devmgr::ApiServerOptions options;
  options.kubeconfig = folder.path() / "kubeconfig";
  options.node_name = "n1";
  options.watch_claims = options.watch_device_classes =
      options.watch_resource_slices = all;
  std::ofstream(options.kubeconfig)
      << "current-context: c\n"
         "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
         "clusters: [{name: k, cluster: {server: '"
      << url << "'}}]\nusers: [{name: u, user: {}}]\n";
  auto source = devmgr::WatchApiServer(options);
  if (!source.ok()) {
    fmt::print(stderr, "{}\n", std::string(source.status().message()));
    return 1;
  }
  std::string mark;
  bool is_synced = false;
  // On one thread of the source's.
  (*source)->Subscribe([&] {
    const auto snapshot = (*source)->Snapshot();
    if (snapshot->complete && !is_synced) {
      is_synced = true;
      Say(fmt::format("synced {}", snapshot->pods.size()));
    }
    const std::string now = MarkOf(*snapshot);
    if (now == mark || now.empty()) return;
    mark = now;
    Say("pod " + now);
  });
  // Until standard input ends.
  char byte = 0;
  const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
  (*source)->Unsubscribe();
  return got < 0 ? 1 : 0;
}
