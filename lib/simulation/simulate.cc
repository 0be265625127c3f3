// SPDX-License-Identifier: Apache-2.0
#include "simulation/simulate.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "common/status.h"
#include "simulation/simulated_node.h"
#include "simulation/trial.h"

namespace devmgr::simulation {
namespace {

constexpr std::size_t kMostPods = 10'000;
/// Leaves room for the number of a copy in a name of an object.
constexpr std::size_t kMostOfName = 240;

absl::Status CheckRequest(const SimulationRequest& request) {
  if (request.count_fits && request.pods.size() != 1) {
    return InvalidArgumentError(
        "copies of one pod can be counted, {} pods were given",
        request.pods.size());
  }
  if (request.pods.size() > kMostPods) {
    return InvalidArgumentError("{} pods, at most {} are tried at once",
                                request.pods.size(), kMostPods);
  }
  if (request.deadline.count() <= 0) {
    return InvalidArgumentError("deadline of {} ms: must be positive",
                                request.deadline.count());
  }
  if (request.steps == 0) {
    return InvalidArgumentError("steps: must be positive");
  }
  return absl::OkStatus();
}

/// What refused a copy, of all that did.
std::string EndOf(const SimulatedPod& refused) {
  std::string most;
  std::size_t devices = 0;
  for (const RefusedRequest& request : refused.refusals) {
    for (const auto& [reason, count] : request.counts) {
      // But for these there would be room for one more.
      if (reason == "taken-in-this-run") return reason;
      if (reason == "none" || count <= devices) continue;
      most = reason;
      devices = count;
    }
  }
  return most.empty() ? refused.verdict.reason : most;
}

Pod CopyOf(const Pod& pod, std::uint64_t number) {
  Pod copy = pod;
  copy.metadata.name =
      fmt::format("{}-{}", pod.metadata.name.substr(0, kMostOfName), number);
  copy.metadata.uid.clear();
  copy.status = {};
  return copy;
}

absl::Status CountFits(const Pod& pod, Trials& trials, SimulatedNode& node,
                       Simulation* simulation) {
  simulation->fit.emplace();
  for (std::uint64_t i = 1; i <= kMostCopies; ++i) {
    auto tried = trials.Try(CopyOf(pod, i), node);
    if (!tried.ok()) return tried.status();
    const bool fits = tried->verdict.kind == Verdict::Kind::kAdmit;
    if (!fits) simulation->fit->ended_by = EndOf(*tried);
    if (i == 1 || !fits) simulation->pods.push_back(*std::move(tried));
    if (!fits) break;
    ++simulation->fit->copies;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Simulation> Simulate(const NodeMoment& moment,
                                    const SimulationRequest& request) {
  DEVMGR_RETURN_IF_ERROR(CheckRequest(request));
  DEVMGR_ASSIGN_OR_RETURN(SimulatedNode node,
                          SimulatedNode::Make(moment, request));
  Simulation simulation;
  simulation.sequence = moment.state.seq;
  simulation.base = request.view.base;
  simulation.node_name = node.name();
  Trials trials(moment, request.steps, request.stop.get());
  if (request.count_fits) {
    DEVMGR_RETURN_IF_ERROR(
        CountFits(request.pods.front(), trials, node, &simulation));
  } else {
    for (const Pod& pod : request.pods) {
      std::optional<SimulatedNode> own;
      if (request.independent) own.emplace(node);
      auto tried = trials.Try(pod, own.has_value() ? *own : node);
      if (!tried.ok()) return tried.status();
      simulation.pods.push_back(*std::move(tried));
    }
  }
  simulation.interrupted = trials.interrupted();
  node.HoldElsewhere(node.state());
  simulation.figures = trials.Figures(node);
  return simulation;
}

}  // namespace devmgr::simulation
