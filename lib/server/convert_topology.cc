// SPDX-License-Identifier: Apache-2.0
//
// NUMA nodes and alignment.
#include <devmgr/topology.h>

#include <string>
#include <string_view>

#include "api/names.h"
#include "server/convert.h"
#include "server/convert_values.h"

namespace devmgr::server {
namespace {

TopologyPolicy TopologyPolicyOf(std::string_view name) {
  for (const TopologyPolicy policy :
       {TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted,
        TopologyPolicy::kSingleNumaNode}) {
    if (TopologyPolicyName(policy) == name) return policy;
  }
  return TopologyPolicy::kNone;
}

void Put(const TopologyOptions& options, pb::TopologyOptions* to) {
  to->set_policy(std::string(TopologyPolicyName(options.policy)));
  to->set_scope(std::string(TopologyScopeName(options.scope)));
  to->set_prefer_closest(options.prefer_closest);
  to->set_max_numa_nodes(options.max_numa_nodes);
}

TopologyOptions Get(const pb::TopologyOptions& options) {
  return {TopologyPolicyOf(options.policy()),
          options.scope() == TopologyScopeName(TopologyScope::kPod)
              ? TopologyScope::kPod
              : TopologyScope::kContainer,
          options.prefer_closest(), options.max_numa_nodes()};
}

void Put(const NumaDevicesInfo& devices, pb::NumaDevices* to) {
  to->set_name(ValidUtf8(devices.name));
  to->set_is_driver(devices.is_driver);
  to->set_devices(devices.devices);
  to->set_used(devices.used);
  to->set_healthy(devices.healthy);
}

NumaDevicesInfo Get(const pb::NumaDevices& devices) {
  return {devices.name(), devices.is_driver(), devices.devices(),
          devices.used(), devices.healthy()};
}

void Put(const TopologyHint& hint, pb::TopologyHint* to) {
  if (hint.nodes) to->set_nodes(hint.nodes->bits());
  to->set_preferred(hint.preferred);
}

TopologyHint Get(const pb::TopologyHint& hint) {
  TopologyHint to{{}, hint.preferred()};
  if (hint.has_nodes()) to.nodes = NumaMask(hint.nodes());
  return to;
}

void Put(const TopologyHintsInfo& info, pb::TopologyHints* to) {
  to->set_provider(ValidUtf8(info.provider));
  to->set_resource(ValidUtf8(info.resource));
  to->set_has_hints(info.hints.has_value());
  if (info.hints) {
    for (const TopologyHint& hint : *info.hints) Put(hint, to->add_hints());
  }
  to->set_count(info.count);
  to->set_truncated(info.truncated);
  to->set_informative(info.informative);
}

TopologyHintsInfo Get(const pb::TopologyHints& info) {
  TopologyHintsInfo to{info.provider(), info.resource(),  {},
                       info.count(),    info.truncated(), info.informative()};
  if (!info.has_hints()) return to;
  to.hints.emplace();
  for (const auto& hint : info.hints()) to.hints->push_back(Get(hint));
  return to;
}

}  // namespace

pb::NumaInfo ToProto(const NumaInfo& info) {
  pb::NumaInfo message;
  Put(info.options, message.mutable_options());
  for (const NumaNodeInfo& node : info.nodes) {
    pb::NumaNode* to = message.add_nodes();
    to->set_id(node.id);
    to->mutable_cpus()->Add(node.cpus.begin(), node.cpus.end());
    if (node.memory_bytes) to->set_memory_bytes(*node.memory_bytes);
    to->mutable_distances()->Add(node.distances.begin(), node.distances.end());
    for (const auto& devices : node.devices) Put(devices, to->add_devices());
  }
  for (const auto& devices : info.nowhere) Put(devices, message.add_nowhere());
  message.set_synthetic(info.synthetic);
  for (const std::string& problem : info.problems) {
    message.add_problems(ValidUtf8(problem));
  }
  return message;
}

NumaInfo FromProto(const pb::NumaInfo& info) {
  NumaInfo to;
  to.options = Get(info.options());
  for (const pb::NumaNode& node : info.nodes()) {
    NumaNodeInfo& shown = to.nodes.emplace_back();
    shown.id = node.id();
    shown.cpus.assign(node.cpus().begin(), node.cpus().end());
    if (node.has_memory_bytes()) shown.memory_bytes = node.memory_bytes();
    shown.distances.assign(node.distances().begin(), node.distances().end());
    for (const auto& devices : node.devices()) {
      shown.devices.push_back(Get(devices));
    }
  }
  for (const auto& devices : info.nowhere()) to.nowhere.push_back(Get(devices));
  to.synthetic = info.synthetic();
  to.problems.assign(info.problems().begin(), info.problems().end());
  return to;
}

pb::PodAlignment ToProto(const PodAlignmentInfo& info) {
  pb::PodAlignment message;
  Put(info.options, message.mutable_options());
  message.set_admitted(info.admitted);
  message.set_message(ValidUtf8(info.message));
  for (const ContainerAlignmentInfo& container : info.containers) {
    pb::ContainerAlignment* to = message.add_containers();
    to->set_container(ValidUtf8(container.container.value));
    for (const auto& list : container.resources) Put(list, to->add_resources());
    Put(container.merged, to->mutable_merged());
    to->set_admitted(container.admitted);
    to->set_proven(container.proven);
  }
  return message;
}

PodAlignmentInfo FromProto(const pb::PodAlignment& info) {
  PodAlignmentInfo to;
  to.options = Get(info.options());
  to.admitted = info.admitted();
  to.message = info.message();
  for (const pb::ContainerAlignment& container : info.containers()) {
    ContainerAlignmentInfo& shown = to.containers.emplace_back();
    shown.container = container.container();
    for (const auto& list : container.resources()) {
      shown.resources.push_back(Get(list));
    }
    shown.merged = Get(container.merged());
    shown.admitted = container.admitted();
    shown.proven = container.proven();
  }
  return to;
}

}  // namespace devmgr::server
