// SPDX-License-Identifier: Apache-2.0
//
// podresources list|allocatable|get: what a pod-resources endpoint tells,
// devmgrd's or a kubelet's.
#include <devmgr/pod_resources_client.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "output.h"
#include "raw_options.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

const Names<PodResourcesVerb>& PodResourcesVerbNames() {
  static const Names<PodResourcesVerb> names = {
      {"list", PodResourcesVerb::kList},
      {"allocatable", PodResourcesVerb::kAllocatable},
      {"get", PodResourcesVerb::kGet}};
  return names;
}

/// Node 0 is a node like any other.
std::string NodesText(const std::vector<std::int64_t>& nodes) {
  return fmt::format("{}", fmt::join(nodes, ","));
}

std::vector<Json> DevicesAsJson(const std::vector<ResourceDevices>& resources) {
  std::vector<Json> items;
  for (const ResourceDevices& resource : resources) {
    for (const ResourceDevice& device : resource.devices) {
      Json item = {{"resource", resource.resource.value},
                   {"id", device.id.value}};
      if (!device.numa_nodes.empty()) item["numaNodes"] = device.numa_nodes;
      items.push_back(std::move(item));
    }
  }
  return items;
}

Json ClaimAsJson(const HeldClaim& claim) {
  Json devices = Json::array();
  for (const ClaimDevice& device : claim.devices) {
    Json item = {{"driver", device.driver},
                 {"pool", device.pool},
                 {"device", device.device}};
    if (!device.share_id.empty()) item["shareID"] = device.share_id;
    item["cdiDevices"] = device.cdi_devices;
    devices.push_back(std::move(item));
  }
  return {{"namespace", claim.name.ns},
          {"name", claim.name.name},
          {"devices", std::move(devices)}};
}

/// Only where the server tells of any.
void PutCpusAndMemory(const std::vector<std::int64_t>& cpus,
                      const std::vector<ListedMemory>& memory, Json& to) {
  if (!cpus.empty()) to["cpuIDs"] = cpus;
  for (const ListedMemory& entry : memory) {
    Json item = {{"type", entry.type}, {"bytes", entry.bytes}};
    if (!entry.numa_nodes.empty()) item["numaNodes"] = entry.numa_nodes;
    to["memory"].push_back(std::move(item));
  }
}

Json PodAsJson(const ListedPod& pod) {
  Json item = {{"namespace", pod.name.ns}, {"name", pod.name.name}};
  PutCpusAndMemory(pod.cpu_ids, pod.memory, item);
  Json containers = Json::array();
  for (const ListedContainer& container : pod.containers) {
    const ContainerResources& resources = container.resources;
    Json one = {{"name", resources.name.value},
                {"devices", DevicesAsJson(resources.devices)}};
    Json claims = Json::array();
    for (const HeldClaim& claim : resources.claims) {
      claims.push_back(ClaimAsJson(claim));
    }
    one["claims"] = std::move(claims);
    PutCpusAndMemory(container.cpu_ids, container.memory, one);
    containers.push_back(std::move(one));
  }
  item["containers"] = std::move(containers);
  return item;
}

/// Of a container, or of the node.
struct Line {
  std::string resource;
  std::string device;
  std::string numa_nodes;
  std::string cdi_devices;
};

void AddDevices(const std::vector<ResourceDevices>& resources,
                std::vector<Line>* lines) {
  for (const ResourceDevices& resource : resources) {
    for (const ResourceDevice& device : resource.devices) {
      lines->push_back(
          {resource.resource, device.id, NodesText(device.numa_nodes), ""});
    }
  }
}

void AddCpusAndMemory(const std::vector<std::int64_t>& cpus,
                      const std::vector<ListedMemory>& memory,
                      std::vector<Line>* lines) {
  if (!cpus.empty()) {
    lines->push_back({"cpu", fmt::format("{}", fmt::join(cpus, ",")), "", ""});
  }
  for (const ListedMemory& entry : memory) {
    lines->push_back({entry.type, fmt::format("{} bytes", entry.bytes),
                      NodesText(entry.numa_nodes), ""});
  }
}

std::vector<Line> LinesOf(const ListedContainer& container) {
  std::vector<Line> lines;
  AddDevices(container.resources.devices, &lines);
  for (const HeldClaim& claim : container.resources.claims) {
    const std::string name = "claim/" + claim.name.name;
    if (claim.devices.empty()) lines.push_back({name, "", "", ""});
    for (const ClaimDevice& device : claim.devices) {
      std::string text =
          fmt::format("{}/{}/{}", device.driver, device.pool, device.device);
      if (!device.share_id.empty()) text += "/" + device.share_id;
      lines.push_back(
          {name, std::move(text), "", Join(device.cdi_devices, ",")});
    }
  }
  AddCpusAndMemory(container.cpu_ids, container.memory, &lines);
  return lines;
}

void AddRows(const Session& session, const ListedPod& pod,
             const std::string& container, std::vector<Line> lines,
             Table* table) {
  // A container without anything is listed as well.
  if (lines.empty()) lines.emplace_back();
  for (const Line& line : lines) {
    std::vector<Cell> row = {pod.name.ns,   pod.name.name, container,
                             line.resource, line.device,   line.numa_nodes};
    if (session.wide()) row.emplace_back(line.cdi_devices);
    table->Add(std::move(row));
  }
}

void PrintPods(const Session& session, const std::vector<ListedPod>& pods) {
  if (session.options().format == Format::kName) {
    for (const ListedPod& pod : pods) {
      session.out() << "pod/" << Clean(pod.name.ToString()) << "\n";
    }
    return;
  }
  std::vector<std::string> headers = {"NAMESPACE", "POD",    "CONTAINER",
                                      "RESOURCE",  "DEVICE", "NUMA NODES"};
  if (session.wide()) headers.emplace_back("CDI DEVICES");
  Table table = session.MakeTable(std::move(headers));
  for (const ListedPod& pod : pods) {
    std::vector<Line> own;
    AddCpusAndMemory(pod.cpu_ids, pod.memory, &own);
    if (!own.empty() || pod.containers.empty()) {
      AddRows(session, pod, "", std::move(own), &table);
    }
    for (const ListedContainer& container : pod.containers) {
      AddRows(session, pod, container.resources.name, LinesOf(container),
              &table);
    }
  }
  session.Print(table);
}

absl::Status ListPods(const Session& session, PodResourcesClient& client) {
  auto pods = client.List();
  if (!pods.ok()) return pods.status();
  const std::string& ns = session.options().ns;
  if (!ns.empty()) {
    std::erase_if(*pods,
                  [&](const ListedPod& pod) { return pod.name.ns != ns; });
  }
  if (!session.is_document()) {
    PrintPods(session, *pods);
    return absl::OkStatus();
  }
  std::vector<Json> items;
  for (const ListedPod& pod : *pods) items.push_back(PodAsJson(pod));
  PrintDocument(session.out(), ListOf("PodResourcesList", std::move(items)),
                session.options().format);
  return absl::OkStatus();
}

absl::Status GetPod(const Session& session, PodResourcesClient& client) {
  const auto pod = client.Get(session.options().name);
  if (!pod.ok()) return pod.status();
  if (session.is_document()) {
    PrintDocument(session.out(), DocumentOf("PodResources", PodAsJson(*pod)),
                  session.options().format);
  } else {
    PrintPods(session, {*pod});
  }
  return absl::OkStatus();
}

absl::Status ShowAllocatable(const Session& session,
                             PodResourcesClient& client) {
  const auto resources = client.Allocatable();
  if (!resources.ok()) return resources.status();
  if (session.is_document()) {
    Json item = {{"devices", DevicesAsJson(resources->devices)}};
    PutCpusAndMemory(resources->cpu_ids, resources->memory, item);
    PrintDocument(session.out(), DocumentOf("AllocatableResources", item),
                  session.options().format);
    return absl::OkStatus();
  }
  std::vector<Line> lines;
  AddDevices(resources->devices, &lines);
  AddCpusAndMemory(resources->cpu_ids, resources->memory, &lines);
  if (session.options().format == Format::kName) {
    for (const Line& line : lines) {
      session.out() << Clean(line.resource) << "/" << Clean(line.device)
                    << "\n";
    }
    return absl::OkStatus();
  }
  Table table = session.MakeTable({"RESOURCE", "DEVICE", "NUMA NODES"});
  for (const Line& line : lines) {
    table.Add({line.resource, line.device, line.numa_nodes});
  }
  session.Print(table);
  return absl::OkStatus();
}

}  // namespace

void AddPodResources(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* command = AddVerb(
      app, verbs, Verb::kPodResources, "podresources",
      "Ask a pod-resources socket, of devmgrd or a kubelet, what pods have");
  command->require_subcommand(1);
  command
      ->add_option("--socket", raw.pod_resources_socket,
                   "Socket to ask; of devmgrd --root DIR: "
                   "DIR/pod-resources/kubelet.sock")
      ->capture_default_str()
      ->check(NotEmpty);
  command->add_subcommand("list", "List the active pods with what they have");
  command->add_subcommand("allocatable",
                          "List the devices that work, given to a pod or not");
  command->add_subcommand("get", "Show what one pod has")
      ->add_option("POD", raw.name, "[NAMESPACE/]NAME")
      ->required();
}

PodResourcesVerb PodResourcesVerbOf(const CLI::App& verb) {
  const std::string& given = verb.get_subcommands().front()->get_name();
  PodResourcesVerb found = PodResourcesVerb::kList;
  for (const auto& [name, value] : PodResourcesVerbNames()) {
    if (name == given) found = value;
  }
  return found;
}

absl::Status PodResourcesOfSocket(const Session& session) {
  const Options& options = session.options();
  if (absl::Status status = session.CheckOnline("podresources"); !status.ok()) {
    return status;
  }
  const auto client = session.environment().connect_pod_resources(
      options.pod_resources_socket, CallTimeout(options));
  if (!client.ok()) return client.status();
  switch (options.pod_resources_verb) {
    case PodResourcesVerb::kList:
      return ListPods(session, **client);
    case PodResourcesVerb::kAllocatable:
      return ShowAllocatable(session, **client);
    case PodResourcesVerb::kGet:
      return GetPod(session, **client);
  }
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
