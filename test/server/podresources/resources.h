// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/pod_resources.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace devmgr::podresources {

inline constexpr char kGpu[] = "example.com/gpu";

/// A pod of namespace `default` with a container `main` that has these devices
/// of kGpu.
inline std::shared_ptr<PodResources> PodWith(
    const std::string& name, std::vector<ResourceDevice> devices = {}) {
  auto pod = std::make_shared<PodResources>();
  pod->name = {"default", name};
  pod->uid = {"uid-" + name};
  ContainerResources& main = pod->containers.emplace_back();
  main.name = "main";
  if (!devices.empty()) main.devices = {{kGpu, std::move(devices)}};
  return pod;
}

/// In the order of their names.
inline std::shared_ptr<const PodResourcesList> ListOf(
    std::initializer_list<std::shared_ptr<const PodResources>> pods) {
  auto list = std::make_shared<PodResourcesList>();
  list->pods = pods;
  return list;
}

}  // namespace devmgr::podresources
