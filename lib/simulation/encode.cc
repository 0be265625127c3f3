// SPDX-License-Identifier: Apache-2.0
//
// What devmgr/simulation.h shows: names, and a simulation as a document.
#include <devmgr/manifests.h>
#include <devmgr/simulation.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "common/enum_names.h"

namespace devmgr {
namespace {

using Json = nlohmann::ordered_json;

Json DevicesOf(const std::vector<SimulatedFigures::Devices>& all) {
  Json list = Json::array();
  for (const auto& each : all) {
    list.push_back(
        {{"name", each.name}, {"free", each.free}, {"held", each.held}});
  }
  return list;
}

Json FiguresOf(const SimulatedFigures& figures) {
  Json counters = Json::array();
  for (const auto& each : figures.counters) {
    counters.push_back({{"driver", each.driver},
                        {"pool", each.pool},
                        {"counterSet", each.counter_set},
                        {"counter", each.counter},
                        {"total", each.total},
                        {"left", each.left}});
  }
  return {{"drivers", DevicesOf(figures.drivers)},
          {"resources", DevicesOf(figures.resources)},
          {"counters", std::move(counters)}};
}

Json RefusalOf(const RefusedRequest& refused) {
  Json shown = {{"claim", refused.claim},
                {"request", refused.request},
                {"wanted", refused.wanted},
                {"found", refused.found}};
  shown["devices"] = Json::array();
  for (const RefusedDevice& device : refused.devices) {
    shown["devices"].push_back({{"driver", device.driver},
                                {"pool", device.pool},
                                {"device", device.device},
                                {"reason", device.reason},
                                {"detail", device.detail}});
  }
  shown["counts"] = Json::object();
  for (const auto& [reason, count] : refused.counts) {
    shown["counts"][reason] = count;
  }
  return shown;
}

Json ContainerOf(const SimulatedContainer& container) {
  Json devices = Json::object();
  for (const auto& [resource, ids] : container.devices) {
    Json& list = devices[resource.value] = Json::array();
    for (const DeviceId& id : ids) list.push_back(id.value);
  }
  return {{"name", container.container.value}, {"devices", std::move(devices)}};
}

Json PodOf(const SimulatedPod& pod) {
  Json shown = {{"namespace", pod.pod.ns},
                {"name", pod.pod.name},
                {"verdict", std::string(VerdictName(pod.verdict.kind))},
                {"reason", pod.verdict.reason},
                {"message", pod.verdict.message}};
  shown["waitsOn"] = Json::array();
  for (const WaitingFor& what : pod.verdict.waiting_for) {
    shown["waitsOn"].push_back(
        {{"kind", std::string(WaitingForKindName(what.kind))},
         {"name", what.name}});
  }
  shown["claims"] = Json::array();
  for (const ResourceClaim& claim : pod.claims) {
    shown["claims"].push_back(Json::parse(EncodeResourceClaim(claim)));
  }
  shown["containers"] = Json::array();
  for (const SimulatedContainer& container : pod.containers) {
    shown["containers"].push_back(ContainerOf(container));
  }
  shown["refusals"] = Json::array();
  for (const RefusedRequest& refused : pod.refusals) {
    shown["refusals"].push_back(RefusalOf(refused));
  }
  shown["notes"] = pod.notes;
  shown["steps"] = pod.steps;
  return shown;
}

}  // namespace

std::string_view SimulationBaseName(SimulationBase base) {
  static constexpr auto kNames = EnumTable<SimulationBase>({
      {SimulationBase::kPresent, "present"},
      {SimulationBase::kLikeNode, "like-node"},
      {SimulationBase::kEmpty, "empty"},
  });
  return kNames.Of(base);
}

std::string_view VerdictName(Verdict::Kind kind) {
  static constexpr auto kNames = EnumTable<Verdict::Kind>({
      {Verdict::Kind::kAdmit, "admit"},
      {Verdict::Kind::kWait, "wait"},
      {Verdict::Kind::kReject, "reject"},
  });
  return kNames.Of(kind);
}

bool Simulation::AllAdmitted() const {
  return std::all_of(pods.begin(), pods.end(), [](const SimulatedPod& pod) {
    return pod.verdict.kind == Verdict::Kind::kAdmit;
  });
}

std::string EncodeSimulation(const Simulation& simulation) {
  Json shown = {{"sequence", simulation.sequence},
                {"view",
                 {{"base", std::string(SimulationBaseName(simulation.base))},
                  {"node", simulation.node_name}}},
                {"interrupted", simulation.interrupted}};
  shown["pods"] = Json::array();
  for (const SimulatedPod& pod : simulation.pods) {
    shown["pods"].push_back(PodOf(pod));
  }
  shown["figures"] = FiguresOf(simulation.figures);
  if (simulation.fit.has_value()) {
    shown["fit"] = {{"copies", simulation.fit->copies},
                    {"endedBy", simulation.fit->ended_by}};
  }
  // What is not UTF-8 is replaced.
  return shown.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace devmgr
