// SPDX-License-Identifier: Apache-2.0
//
// Merges hints for topology/topology_test.py: cases come in, one a line, in the
// form of topology/main.go, and what ours makes of each goes out. With an
// argument, each merge is run for so many milliseconds, and what one took goes
// out, too.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "topology/alignment.h"
#include "topology/merge.h"

namespace devmgr::topology {
namespace {

using nlohmann::json;

TopologyHint HintOf(const json& hint) {
  TopologyHint read{.preferred = hint["preferred"].get<bool>()};
  if (!hint["nodes"].is_null()) {
    read.nodes = NumaMask(hint["nodes"].get<std::uint64_t>());
  }
  return read;
}

json JsonOf(const TopologyHint& hint) {
  return {{"nodes", hint.nodes ? json(hint.nodes->bits()) : json()},
          {"preferred", hint.preferred}};
}

std::vector<ResourceHints> ListsOf(const json& request) {
  std::vector<ResourceHints> lists;
  if (request.is_null()) return lists;
  for (const json& list : request) {
    ResourceHints& read = lists.emplace_back();
    read.provider = std::to_string(list["provider"].get<int>());
    read.resource = list["resource"].get<std::string>();
    if (list["hints"].is_null()) continue;
    read.hints.emplace();
    for (const json& hint : list["hints"]) {
      read.hints->push_back(HintOf(hint));
    }
  }
  return lists;
}

NumaMachine MachineOf(const json& world) {
  NumaMachine machine;
  const auto nodes = world["nodes"].get<std::vector<int>>();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    machine.nodes = machine.nodes | NumaMask::OfNode(nodes[i]);
    for (std::size_t j = 0; j < nodes.size(); ++j) {
      machine.distances.Set(nodes[i], nodes[j],
                            world["distances"][i][j].get<std::uint32_t>());
    }
  }
  return machine;
}

/// A case as it was read.
struct Case {
  Options options;
  NumaMachine machine;
  std::vector<ContainerName> containers;
  std::vector<std::vector<ResourceHints>> requests;
};

Case CaseOf(const json& world) {
  Case read;
  const auto options = ParseOptions(
      world["policy"].get<std::string>(), world["scope"].get<std::string>(),
      {{"prefer-closest-numa-nodes", world["closest"].get<bool>() ? "1" : "0"},
       {"max-allowable-numa-nodes", "64"}});
  if (!options.ok()) std::exit(1);
  read.options = *options;
  read.machine = MachineOf(world);
  for (const json& name : world["containers"]) {
    read.containers.emplace_back(name.get<std::string>());
  }
  for (const json& request : world["requests"]) {
    read.requests.push_back(ListsOf(request));
  }
  return read;
}

json AnswerOf(const Case& read) {
  json answer = {{"merged", json::array()}, {"affinity", json::object()}};
  bool proven = true;
  for (const auto& lists : read.requests) {
    const auto merged = Merge(read.options, read.machine, lists);
    proven = proven && merged.proven;
    answer["merged"].push_back(
        {{"hint", JsonOf(merged.hint)}, {"admitted", merged.admitted}});
  }
  const auto pod =
      AlignPod(read.options, read.machine, read.containers,
               [&](const ContainerName& container, const auto& before) {
                 return read.requests[container.empty() ? 0 : before.size()];
               });
  answer["proven"] = proven;
  answer["admitted"] = pod.admitted;
  answer["reason"] = pod.admitted ? "" : kAffinityReason;
  answer["message"] = pod.admitted ? "" : kAffinityText;
  if (pod.admitted) {
    for (const AlignedContainer& aligned : pod.containers) {
      answer["affinity"][aligned.container.value] = JsonOf(aligned.merged.hint);
    }
  }
  return answer;
}

/// Nanoseconds of one merge, the best of five rounds.
double TimeOf(const Case& read, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const auto begin = Clock::now();
    double runs = 0;
    std::uint64_t kept = 0;
    std::chrono::duration<double, std::nano> taken{0};
    do {
      kept += Merge(read.options, read.machine, read.requests[0]).admitted;
      ++runs;
      taken = Clock::now() - begin;
    } while (taken < patience / 5);
    if (kept == 0) std::exit(1);
    if (round == 0 || taken.count() / runs < best) best = taken.count() / runs;
  }
  return best;
}

}  // namespace
}  // namespace devmgr::topology

int main(int argc, char** argv) {
  const std::chrono::milliseconds patience(argc > 1 ? std::atoi(argv[1]) : 0);
  for (std::string line; std::getline(std::cin, line);) {
    const auto read = devmgr::topology::CaseOf(nlohmann::json::parse(line));
    nlohmann::json answer = devmgr::topology::AnswerOf(read);
    if (patience.count() > 0) {
      answer["nanoseconds"] = devmgr::topology::TimeOf(read, patience);
    }
    std::cout << answer.dump() << "\n";
  }
}
