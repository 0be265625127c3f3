// SPDX-License-Identifier: Apache-2.0
//
// From values to the messages of the pod-resources API, as bytes. Pure.
#pragma once

#include <devmgr/pod_resources.h>
#include <devmgr/status_types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace devmgr::podresources {

/// An answer to List with this pod alone. Several joined are the answer with
/// all of them. A device is there once for each of its NUMA nodes, and once
/// without any when it has none.
std::string EncodedPod(const PodResources& pod);
/// The same of v1alpha1, as the kubelet answers there: app containers only, and
/// their devices of plugins.
std::string EncodedOldPod(const PodResources& pod);

/// An answer to Get: it happens to look like that to List.
inline std::string EncodedGet(const PodResources& pod) {
  return EncodedPod(pod);
}

/// An answer to GetAllocatableResources.
std::string EncodedAllocatable(const std::vector<ResourceDevices>& resources);

/// The answer to List, kept: a pod is encoded when it was not there before.
/// Thread-bound.
class EncodedList {
 public:
  using Encode = std::string (*)(const PodResources&);
  explicit EncodedList(Encode encode) : encode_(encode) {}

  /// The answer with these pods.
  std::shared_ptr<const std::string> Of(
      const std::shared_ptr<const PodResourcesList>& list);
  void Clear();

 private:
  void Join();

  const Encode encode_;
  std::shared_ptr<const PodResourcesList> list_;  ///< Null: nothing is kept.
  std::vector<std::string> pods_;                 ///< As in `list_`.
  std::shared_ptr<const std::string> whole_;
};

}  // namespace devmgr::podresources
