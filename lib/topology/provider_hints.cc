// SPDX-License-Identifier: Apache-2.0
#include "topology/provider_hints.h"

#include <fmt/format.h>

#include <utility>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::topology {
namespace {

absl::Status CheckHints(const std::vector<TopologyHint>& hints,
                        NumaMask machine) {
  if (hints.size() > kMaxHintsOfProvider) {
    return ResourceExhaustedError("{} hints, and {} are taken at most",
                                  hints.size(), kMaxHintsOfProvider);
  }
  for (const TopologyHint& hint : hints) {
    if (!hint.nodes) continue;
    if (hint.nodes->empty()) {
      return InvalidArgumentError(
          "a hint has no NUMA nodes: any node is a hint without a mask");
    }
    if (!machine.ContainsAll(*hint.nodes)) {
      return InvalidArgumentError(
          "a hint names the NUMA nodes {}, and the machine has {}",
          fmt::join(hint.nodes->Nodes(), ","), fmt::join(machine.Nodes(), ","));
    }
  }
  return absl::OkStatus();
}

}  // namespace

ResourceHints ToResourceHints(std::string provider, std::string resource,
                              const Hints& hints) {
  ResourceHints list{.provider = std::move(provider),
                     .resource = std::move(resource),
                     .hints = {},
                     .truncated = hints.truncated};
  if (!hints.hints) return list;
  list.hints.emplace();
  for (const Hint& hint : *hints.hints) {
    if (const auto mask = NumaMask::OfNodes(hint.nodes)) {
      list.hints->push_back({*mask, hint.preferred});
    } else {
      list.truncated = true;
    }
  }
  return list;
}

absl::StatusOr<std::vector<ResourceHints>> HintsOfProvider(
    const TopologyHintProvider& provider, const TopologyRequest& request,
    NumaMask machine) {
  auto answer = provider.HintsOf(request);
  if (!answer.ok()) {
    return WithContext(answer.status(), "topology hint provider {}",
                       api::Quoted(provider.name()));
  }
  std::vector<ResourceHints> lists;
  for (auto& [resource, hints] : *answer) {
    if (hints) {
      DEVMGR_RETURN_IF_ERROR(WithContext(
          CheckHints(*hints, machine), "topology hint provider {}, resource {}",
          api::Quoted(provider.name()), api::Quoted(resource)));
    }
    lists.push_back({std::string(provider.name()), resource, std::move(hints)});
  }
  return lists;
}

}  // namespace devmgr::topology
