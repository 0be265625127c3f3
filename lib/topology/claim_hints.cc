// SPDX-License-Identifier: Apache-2.0
#include "topology/claim_hints.h"

#include <devmgr/topology.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "topology/device_groups.h"

namespace devmgr::topology {

NumaNodes NumaNodesOf(const SliceDevice& device) {
  const DeviceAttribute* attribute = device.attributes.Find(kNumaNodeAttribute);
  if (attribute == nullptr) return {};
  NumaNodes nodes;
  if (const auto* one = std::get_if<std::int64_t>(attribute)) {
    nodes = {*one};
  } else if (const auto* several =
                 std::get_if<RareVector<std::int64_t>>(attribute)) {
    nodes = several->vector();
  }
  const auto is_none = [](std::int64_t node) {
    return node < 0 || node >= NumaMask::kMaxNodes;
  };
  if (std::any_of(nodes.begin(), nodes.end(), is_none)) return {};
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

Hints HintsOfClaim(const std::vector<ClaimDevice>& devices, std::int64_t count,
                   const NumaNodes& machine_nodes, const HintLimits& limits) {
  const auto allocated =
      std::count_if(devices.begin(), devices.end(),
                    [](const ClaimDevice& device) { return device.allocated; });
  if (allocated > 0) count = allocated;
  const bool on_a_node = std::any_of(
      devices.begin(), devices.end(),
      [](const ClaimDevice& device) { return !device.nodes.empty(); });
  if (count <= 0 || !on_a_node) return {};
  DeviceGroups groups;
  for (const ClaimDevice& device : devices) {
    DeviceGroup& group = groups.On(device.nodes);
    ++group.known;
    if (allocated > 0 ? device.allocated : device.free) ++group.free;
  }
  return GenerateHints(groups.Take(), count, machine_nodes, limits);
}

namespace {

/// The sets of `count` of these nodes, by their number. Ends when `visit`
/// returns false.
bool VisitSets(const std::vector<std::int64_t>& nodes, int count,
               const std::function<bool(NumaMask)>& visit) {
  // The highest nodes weigh most, so they are the last to change.
  const std::function<bool(std::size_t, int, NumaMask)> below =
      [&](std::size_t end, int left, NumaMask chosen) {
        if (left == 0) return visit(chosen);
        for (auto i = static_cast<std::size_t>(left) - 1; i < end; ++i) {
          const auto node = NumaMask::OfNode(static_cast<int>(nodes[i]));
          if (!below(i, left - 1, chosen | node)) return false;
        }
        return true;
      };
  return below(nodes.size(), count, NumaMask());
}

class ChoiceSearch {
 public:
  ChoiceSearch(const ClaimChoice& choice, std::size_t tries)
      : choice_(choice), tries_(tries) {}

  absl::StatusOr<Hints> Run() {
    const std::vector<std::int64_t> nodes = choice_.all.Nodes();
    if (nodes.empty()) return Hints();
    found_.hints.emplace();
    for (int size = 1; size <= choice_.all.Count(); ++size) {
      const bool is_least = !least_known_;
      VisitSets(nodes, size,
                [&](NumaMask mask) { return Look(mask, is_least); });
      if (!status_.ok()) return status_;
      if (nowhere_) return Hints();
      if (!found_.hints->empty() || found_.truncated) break;
    }
    if (found_.hints->empty() || Last() != choice_.all.Nodes()) {
      AddAll();
      if (!status_.ok()) return status_;
    }
    found_.steps = done_;
    return std::move(found_);
  }

 private:
  NumaNodes Last() const { return found_.hints->back().nodes; }

  /// False: the search is over.
  bool Look(NumaMask mask, bool is_least) {
    if (done_ >= tries_) {
      found_.truncated = true;
      return false;
    }
    const ClaimFit now = Ask(choice_.fits, mask);
    if (!status_.ok()) return false;
    if (now == ClaimFit::kNowhere) nowhere_ = true;
    if (now == ClaimFit::kOnNodes) {
      least_known_ = true;
      found_.hints->push_back({mask.Nodes(), is_least});
    }
    if (now == ClaimFit::kNone && !least_known_) {
      least_known_ = Ask(choice_.could, mask) != ClaimFit::kNone;
    }
    return status_.ok() && !nowhere_;
  }

  /// The set of all nodes comes last, unless it is there.
  void AddAll() {
    if (Ask(choice_.fits, choice_.all) == ClaimFit::kOnNodes) {
      found_.hints->push_back({choice_.all.Nodes(), false});
    }
  }

  ClaimFit Ask(const ClaimChoice::Try& question, NumaMask mask) {
    ++done_;
    const auto answer = question(mask);
    if (answer.ok()) return *answer;
    status_ = answer.status();
    return ClaimFit::kNone;
  }

  const ClaimChoice& choice_;
  const std::size_t tries_;
  Hints found_;
  std::size_t done_ = 0;
  /// A set of the sizes so far would suffice on the machine without claims.
  bool least_known_ = false;
  bool nowhere_ = false;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Hints> HintsOfChoice(const ClaimChoice& choice,
                                    std::size_t tries) {
  return ChoiceSearch(choice, tries).Run();
}

}  // namespace devmgr::topology
