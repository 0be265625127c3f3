// SPDX-License-Identifier: Apache-2.0
#include "api/pod.h"

namespace devmgr::api {
namespace {

void DefaultRequests(std::vector<Container>& containers) {
  for (Container& container : containers) {
    for (const auto& [name, limit] : container.resources.limits) {
      container.resources.requests.try_emplace(name, limit);
    }
  }
}

}  // namespace

void DefaultPod(Pod& pod) {
  if (pod.metadata.ns.empty()) pod.metadata.ns = "default";
  DefaultRequests(pod.spec.init_containers);
  DefaultRequests(pod.spec.containers);
}

bool IsFromApiServer(const Pod& pod) {
  const auto source = pod.metadata.annotations.find(kConfigSource);
  return source != pod.metadata.annotations.end() &&
         source->second == kFromApiServer;
}

}  // namespace devmgr::api
