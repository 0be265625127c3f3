// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the Node or the Pod that a server answers with. The patch that
// follows, applied as a server applies it, makes the object say what is wanted,
// and nothing else another: the next one has nothing to change.
#include <string>
#include <string_view>

#include "apistore/patch.h"
#include "apistore/strategic_merge.h"
#include "fuzz/fuzz.h"
#include "source/api/node_status.h"
#include "source/api/pod_status_patch.h"

namespace {

using devmgr::apistore::Json;
using devmgr::fuzz::Require;

devmgr::NodeDeviceStatus NodeStatusOf(unsigned bits) {
  devmgr::NodeDeviceStatus status;
  auto& gpu = status.resources[devmgr::ResourceName("v.com/gpu")];
  if ((bits & 1U) != 0) gpu = {8, 7};
  status.resources[devmgr::ResourceName("v.com/gone")] = std::nullopt;
  if ((bits & 2U) != 0) {
    status.declared_features = {"DRANodeAllocatableResources"};
  }
  return status;
}

devmgr::ReportedPodStatus PodStatusOf(unsigned bits) {
  devmgr::ReportedPodStatus status;
  status.phase = (bits & 1U) != 0 ? "Running" : "Failed";
  if ((bits & 2U) != 0) status.reason = "Evicted";
  status.start_time = devmgr::WallTime(std::chrono::seconds(90));
  status.observed_generation = (bits & 4U) != 0 ? 3 : 0;
  devmgr::Condition ready;
  ready.type = "Ready";
  ready.status = (bits & 1U) != 0 ? "True" : "False";
  ready.last_transition_time = "1970-01-01T00:01:30Z";
  status.conditions = {ready};
  devmgr::ReportedContainerStatus container;
  container.name = "c";
  container.state.kind = devmgr::ReportedContainerState::Kind::kRunning;
  if ((bits & 8U) != 0) status.containers = {container};
  if ((bits & 16U) != 0) status.pod_ips = {"10.0.0.2", "fd00::2"};
  return status;
}

/// The object with the patch; null when a server would refuse either.
Json Patched(const char* kind, const Json& object, const std::string& patch) {
  const auto parsed = devmgr::apistore::ParseForeignJson(patch);
  Require(parsed.ok(), "a patch is JSON");
  Json patched = object;
  if (!devmgr::apistore::StrategicMerge(kind, patched, *parsed).ok()) return {};
  Json before = object;
  Json after = patched;
  before.erase("status");
  after.erase("status");
  Require(before == after, "a patch changes the status only");
  return patched;
}

void CheckNode(const Json& object, unsigned bits) {
  using namespace devmgr::apiserver;
  const auto node = ParseNodeStatus(object.dump());
  if (!node.has_value()) return;
  const WantedFields wanted = FieldsOf(NodeStatusOf(bits));
  const WantedFields changes = ChangesOf(*node, wanted);
  if (changes.empty()) return;
  const Json patched = Patched("Node", object, NodeStatusPatch(*node, changes));
  if (patched.is_null()) return;
  const auto after = ParseNodeStatus(patched.dump());
  Require(after.has_value() && after->uid == node->uid, "it is the same node");
  Require(ChangesOf(*after, wanted).empty(), "a node says what is wanted");
}

void CheckPod(const Json& object, unsigned bits) {
  using namespace devmgr::apiserver;
  const auto pod = ParsePodStatus(object.dump());
  if (!pod.has_value()) return;
  const devmgr::ReportedPodStatus wanted = PodStatusOf(bits);
  const std::string patch = PodStatusPatch(*pod, wanted);
  if (patch.empty()) return;
  const Json patched = Patched("Pod", object, patch);
  if (patched.is_null()) return;
  const auto after = ParsePodStatus(patched.dump());
  Require(after.has_value() && after->uid == pod->uid, "it is the same pod");
  Require(after->is_deleted == pod->is_deleted, "a patch deletes nothing");
  Require(PodStatusPatch(*after, wanted).empty(), "a pod says what is wanted");
}

}  // namespace

/// The first byte says what is wanted.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  // As it came: whatever it is, it is read or it is not.
  (void)devmgr::apiserver::ParseNodeStatus(text);
  (void)devmgr::apiserver::ParsePodStatus(text);
  const auto object = devmgr::apistore::ParseForeignJson(text);
  if (!object.ok() || !object->is_object()) return 0;
  // A server has a UID as a text.
  const auto metadata = object->find("metadata");
  if (metadata == object->end() || !metadata->is_object()) return 0;
  const auto uid = metadata->find("uid");
  if (uid == metadata->end() || !uid->is_string()) return 0;
  CheckNode(*object, data[0]);
  CheckPod(*object, data[0]);
  return 0;
}
