// SPDX-License-Identifier: Apache-2.0
//
// get numa [NODE], and the alignment of a pod.
#include "numa.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "output.h"
#include "sections.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

/// `0-3,8`, as the kernel writes it.
std::string RangesText(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() &&
           numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    text += text.empty() ? "" : ",";
    text += last == i ? fmt::format("{}", numbers[i])
                      : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

/// `2 of 4 example.com/gpu used, 1 not healthy`.
std::string NumaDevicesText(const NumaDevicesInfo& devices) {
  std::string text = fmt::format("{} of {} {} used", devices.used,
                                 devices.devices, devices.name);
  if (devices.healthy < devices.devices) {
    text += fmt::format(", {} not healthy", devices.devices - devices.healthy);
  }
  return text;
}

std::string NumaDevicesText(const std::vector<NumaDevicesInfo>& devices) {
  std::vector<std::string> texts;
  for (const NumaDevicesInfo& one : devices)
    texts.push_back(NumaDevicesText(one));
  return Join(texts, "; ");
}

std::string DistancesText(const NumaNodeInfo& node) {
  std::vector<std::string> texts;
  for (const std::uint32_t distance : node.distances) {
    texts.push_back(fmt::format("{}", distance));
  }
  return texts.empty() ? "<unknown>" : Join(texts, " ");
}

std::string MemoryText(const NumaNodeInfo& node) {
  if (!node.memory_bytes) return "<unknown>";
  return fmt::format("{} MiB", *node.memory_bytes >> 20);
}

Json NumaItemOf(const TopologyOptions& options) {
  return Json{{"policy", TopologyPolicyName(options.policy)},
              {"scope", TopologyScopeName(options.scope)},
              {"preferClosestNumaNodes", options.prefer_closest},
              {"maxAllowableNumaNodes", options.max_numa_nodes}};
}

Json NumaItemsOf(const std::vector<NumaDevicesInfo>& devices) {
  Json items = Json::array();
  for (const NumaDevicesInfo& one : devices) {
    items.push_back(Json{{one.is_driver ? "driver" : "resource", one.name},
                         {"devices", one.devices},
                         {"used", one.used},
                         {"healthy", one.healthy}});
  }
  return items;
}

Json NumaItemOf(const NumaNodeInfo& node) {
  Json status{{"cpus", RangesText(node.cpus)}};
  if (node.memory_bytes) status["memoryBytes"] = *node.memory_bytes;
  status["distances"] = node.distances;
  status["devices"] = NumaItemsOf(node.devices);
  return Json{{"metadata", Json{{"name", fmt::format("{}", node.id)}}},
              {"status", std::move(status)}};
}

std::string PolicyText(const TopologyOptions& options) {
  std::string text(TopologyPolicyName(options.policy));
  if (options.policy == TopologyPolicy::kNone) return text;
  text +=
      fmt::format(", scope {}", std::string(TopologyScopeName(options.scope)));
  if (options.prefer_closest) text += ", closest nodes preferred";
  return text;
}

void PrintNodes(const Session& session, const NumaInfo& info) {
  std::vector<std::string> headers = {"NODE", "CPUS", "MEMORY", "DISTANCES",
                                      "DEVICES"};
  Table table = session.MakeTable(std::move(headers));
  for (const NumaNodeInfo& node : info.nodes) {
    table.Add({fmt::format("{}", node.id), RangesText(node.cpus),
               MemoryText(node), DistancesText(node),
               NumaDevicesText(node.devices)});
  }
  if (!info.nowhere.empty()) {
    table.Add({"none", "", "", "", NumaDevicesText(info.nowhere)});
  }
  table.Print(session.out());
}

/// `any`, or the nodes.
std::string HintNodesText(const TopologyHint& hint) {
  return hint.nodes ? "{" + RangesText(hint.nodes->Nodes()) + "}" : "any";
}

/// The kubelet's tables mark what is preferred with a star.
std::string HintText(const TopologyHint& hint) {
  return HintNodesText(hint) + (hint.preferred ? "*" : "");
}

std::string HintsText(const TopologyHintsInfo& list) {
  if (!list.hints) return "no opinion";
  if (list.hints->empty()) return "none: no set of nodes serves the request";
  std::vector<std::string> texts;
  for (const TopologyHint& hint : *list.hints) texts.push_back(HintText(hint));
  std::string text = Join(texts, " ");
  if (list.count > list.hints->size()) {
    text += fmt::format(" and {} more", list.count - list.hints->size());
  }
  if (list.truncated) text += " (the search ended at its limit)";
  return text;
}

Json NumaItemOf(const TopologyHint& hint) {
  Json item;
  if (hint.nodes) item["nodes"] = hint.nodes->Nodes();
  item["preferred"] = hint.preferred;
  return item;
}

Json NumaItemOf(const TopologyHintsInfo& list) {
  Json item{{"provider", list.provider}, {"resource", list.resource}};
  if (list.hints) {
    Json hints = Json::array();
    for (const TopologyHint& hint : *list.hints)
      hints.push_back(NumaItemOf(hint));
    item["hints"] = std::move(hints);
    item["hintCount"] = list.count;
  }
  item["truncated"] = list.truncated;
  item["merged"] = !list.informative;
  return item;
}

}  // namespace

absl::Status GetNuma(const Session& session, Inspector& inspector) {
  auto info = inspector.Numa();
  if (!info.ok()) return info.status();
  const std::string& name = session.options().name.name;
  if (!name.empty()) {
    std::erase_if(info->nodes, [&](const NumaNodeInfo& node) {
      return fmt::format("{}", node.id) != name;
    });
    if (info->nodes.empty()) {
      return MakeError(absl::StatusCode::kNotFound,
                       fmt::format("NUMA node '{}' is not known", name));
    }
    info->nowhere.clear();
  }
  for (const std::string& problem : info->problems) session.Note(problem);
  if (session.is_document()) {
    Json items = Json::array();
    for (const NumaNodeInfo& node : info->nodes)
      items.push_back(NumaItemOf(node));
    Json body{{"topology", NumaItemOf(info->options)},
              {"synthetic", info->synthetic},
              {"devicesOnNoNode", NumaItemsOf(info->nowhere)},
              {"problems", info->problems}};
    body["items"] = std::move(items);
    PrintDocument(session.out(), DocumentOf("NumaNodeList", body),
                  session.options().format);
    return absl::OkStatus();
  }
  if (session.options().format == Format::kName) {
    for (const NumaNodeInfo& node : info->nodes) {
      session.out() << "numa/" << node.id << "\n";
    }
    return absl::OkStatus();
  }
  if (info->nodes.empty()) {
    session.Note("the NUMA nodes of the machine are not known");
    return absl::OkStatus();
  }
  if (info->synthetic) {
    session.Note("the kernel has no NUMA nodes: one stands for the machine");
  }
  session.Note("topology policy " + PolicyText(info->options));
  PrintNodes(session, *info);
  return absl::OkStatus();
}

Json ItemOf(const PodAlignmentInfo& alignment) {
  Json item{{"topology", NumaItemOf(alignment.options)},
            {"admitted", alignment.admitted}};
  if (!alignment.message.empty()) item["message"] = alignment.message;
  Json containers = Json::array();
  for (const ContainerAlignmentInfo& one : alignment.containers) {
    Json lists = Json::array();
    for (const TopologyHintsInfo& list : one.resources) {
      lists.push_back(NumaItemOf(list));
    }
    containers.push_back(Json{{"name", one.container.value},
                              {"resources", std::move(lists)},
                              {"merged", NumaItemOf(one.merged)},
                              {"admitted", one.admitted},
                              {"proven", one.proven}});
  }
  item["containers"] = std::move(containers);
  return item;
}

void PrintAlignment(const Session& session, const PodAlignmentInfo& alignment) {
  session.out() << "\n"
                << Painted("NUMA alignment", Tone::kTitle, session.color())
                << "\n";
  Fields fields(session.color());
  fields.Add("Policy", PolicyText(alignment.options));
  fields.Add("Result", {alignment.admitted ? "admitted" : "refused",
                        alignment.admitted ? Tone::kGood : Tone::kBad});
  if (!alignment.message.empty()) fields.Add("Why", alignment.message);
  fields.Print(session.out());
  Table table = session.MakeTable({"CONTAINER", "RESOURCE", "BY", "HINTS"});
  for (const ContainerAlignmentInfo& one : alignment.containers) {
    for (const TopologyHintsInfo& list : one.resources) {
      table.Add({one.container.value, list.resource,
                 list.provider + (list.informative ? " (only shown)" : ""),
                 HintsText(list)});
    }
    std::string merged = HintText(one.merged);
    if (!one.proven) merged += " (the best that was found)";
    table.Add({one.container.value,
               "",
               "merged",
               {std::move(merged), one.admitted ? Tone::kGood : Tone::kBad}});
  }
  PrintSection(session, std::move(table));
}

}  // namespace devmgr::ctl
