// SPDX-License-Identifier: Apache-2.0
#include "topology/hints.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace devmgr::topology {
namespace {

/// Bit i is the i-th of the nodes searched.
using Mask = std::uint64_t;
constexpr std::size_t kMaxNodes = 64;

constexpr Mask Bit(std::size_t i) { return Mask{1} << i; }

/// A group as the search sees it.
struct MaskGroup {
  Mask nodes = 0;
  std::int64_t known = 0;
  std::int64_t available = 0;  ///< Free or reusable.
  bool must_touch = false;     ///< Has reusable devices.
};

/// For each suffix of the nodes, the most devices that j more nodes could add.
/// A device on several nodes counts for each, so this is an upper bound.
class Bound {
 public:
  Bound(std::size_t nodes, const std::vector<MaskGroup>& groups,
        std::int64_t MaskGroup::*count)
      : most_(nodes + 1) {
    std::vector<std::int64_t> per_node(nodes);
    for (const MaskGroup& group : groups) {
      for (std::size_t i = 0; i < nodes; ++i) {
        if ((group.nodes & Bit(i)) != 0) per_node[i] += group.*count;
      }
    }
    for (std::size_t from = 0; from <= nodes; ++from) {
      std::vector<std::int64_t> counts(
          per_node.begin() + static_cast<std::ptrdiff_t>(from), per_node.end());
      std::sort(counts.begin(), counts.end(), std::greater<>());
      most_[from] = {0};
      for (const std::int64_t added : counts) {
        most_[from].push_back(most_[from].back() + added);
      }
    }
  }

  /// Empty when there are not so many nodes.
  std::optional<std::int64_t> Most(std::size_t from, std::size_t more) const {
    if (more >= most_[from].size()) return std::nullopt;
    return most_[from][more];
  }

 private:
  std::vector<std::vector<std::int64_t>> most_;
};

class Search {
 public:
  Search(const std::vector<DeviceGroup>& groups, std::int64_t count,
         NumaNodes nodes, const HintLimits& limits)
      : count_(count),
        limits_(limits),
        nodes_(std::move(nodes)),
        groups_(ToMasks(groups)),
        known_bound_(nodes_.size(), groups_, &MaskGroup::known),
        available_bound_(nodes_.size(), groups_, &MaskGroup::available) {}

  /// `all_sizes`: do not stop at the smallest that serves.
  void Run(bool all_sizes) {
    for (std::size_t size = 1; size <= nodes_.size() && !truncated_; ++size) {
      size_ = size;
      Descend(0, 0, 0);
      if (!all_sizes && !found_.empty()) break;
    }
  }

  bool truncated() const { return truncated_; }
  std::uint64_t steps() const { return steps_; }
  /// Of the smallest set that would serve on an empty machine; 0: not known.
  std::size_t minimum() const { return minimum_; }

  std::vector<Hint> TakeHints() const {
    std::vector<Hint> hints;
    for (const Mask mask : found_) {
      Hint hint;
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if ((mask & Bit(i)) != 0) hint.nodes.push_back(nodes_[i]);
      }
      hint.preferred = hint.nodes.size() == minimum_;
      hints.push_back(std::move(hint));
    }
    return hints;
  }

 private:
  struct Counts {
    std::int64_t known = 0;
    std::int64_t available = 0;
    bool touches_all_musts = true;
  };

  std::vector<MaskGroup> ToMasks(const std::vector<DeviceGroup>& groups) const {
    std::vector<MaskGroup> masks;
    for (const DeviceGroup& group : groups) {
      const std::int64_t available = group.free + group.reusable;
      MaskGroup mask{.known = std::max(group.known, available),
                     .available = available,
                     .must_touch = group.reusable > 0};
      for (const std::int64_t node : group.nodes) {
        const auto found = std::lower_bound(nodes_.begin(), nodes_.end(), node);
        if (found == nodes_.end() || *found != node) continue;
        mask.nodes |= Bit(static_cast<std::size_t>(found - nodes_.begin()));
      }
      if (mask.nodes != 0) masks.push_back(mask);
    }
    return masks;
  }

  Counts CountsOf(Mask mask) {
    Counts counts;
    for (const MaskGroup& group : groups_) {
      if ((group.nodes & mask) != 0) {
        counts.known += group.known;
        counts.available += group.available;
      } else if (group.must_touch) {
        counts.touches_all_musts = false;
      }
    }
    steps_ += groups_.size();
    if (steps_ > limits_.steps) truncated_ = true;
    return counts;
  }

  /// Can `more` nodes from `from` on make this enough? While the minimum is
  /// sought, for an empty machine; then with what there is.
  bool Hopeful(const Counts& counts, std::size_t from, std::size_t more) const {
    const bool seeking = minimum_ == 0;
    const auto most = seeking ? known_bound_.Most(from, more)
                              : available_bound_.Most(from, more);
    return most.has_value() &&
           (seeking ? counts.known : counts.available) + *most >= count_;
  }

  /// Tries all sets of `size_` nodes that begin with `mask`, which has `chosen`
  /// nodes, and go on with nodes from `from`.
  void Descend(Mask mask, std::size_t chosen, std::size_t from) {
    const Counts counts = CountsOf(mask);
    if (truncated_) return;
    if (chosen == size_) {
      if (minimum_ == 0 && counts.known >= count_) minimum_ = size_;
      if (counts.available < count_ || !counts.touches_all_musts) return;
      if (found_.size() == limits_.hints) {
        truncated_ = true;
        return;
      }
      found_.push_back(mask);
      return;
    }
    if (!Hopeful(counts, from, size_ - chosen)) return;
    for (std::size_t i = from; i < nodes_.size() && !truncated_; ++i) {
      Descend(mask | Bit(i), chosen + 1, i + 1);
    }
  }

  const std::int64_t count_;
  const HintLimits limits_;
  const NumaNodes nodes_;
  const std::vector<MaskGroup> groups_;
  const Bound known_bound_;
  const Bound available_bound_;
  std::size_t size_ = 0;
  std::size_t minimum_ = 0;
  std::vector<Mask> found_;
  std::uint64_t steps_ = 0;
  bool truncated_ = false;
};

/// Those of the machine's nodes that carry devices, whether they are free or
/// not: since 1.36 the kubelet names no others.
NumaNodes CarryingNodes(const std::vector<DeviceGroup>& groups,
                        const NumaNodes& machine_nodes) {
  NumaNodes all;
  for (const DeviceGroup& group : groups) {
    if (group.known + group.free + group.reusable == 0) continue;
    all.insert(all.end(), group.nodes.begin(), group.nodes.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  NumaNodes carrying;
  std::set_intersection(all.begin(), all.end(), machine_nodes.begin(),
                        machine_nodes.end(), std::back_inserter(carrying));
  return carrying;
}

std::int64_t AvailableOn(const std::vector<DeviceGroup>& groups,
                         const NumaNodes& nodes) {
  std::int64_t available = 0;
  for (const DeviceGroup& group : groups) {
    const bool touches = std::any_of(
        group.nodes.begin(), group.nodes.end(), [&](std::int64_t node) {
          return std::binary_search(nodes.begin(), nodes.end(), node);
        });
    if (touches) available += group.free + group.reusable;
  }
  return available;
}

/// Where not every set is tried, the set of all nodes with devices is a hint
/// all the same.
void AddAllNodes(const NumaNodes& nodes, std::size_t minimum,
                 std::vector<Hint>& hints) {
  if (!hints.empty() && hints.back().nodes == nodes) return;
  hints.push_back({nodes, nodes.size() == minimum});
}

}  // namespace

Hints GenerateHints(const std::vector<DeviceGroup>& groups, std::int64_t count,
                    const NumaNodes& machine_nodes, const HintLimits& limits) {
  Hints result;
  result.hints.emplace();
  const NumaNodes nodes = CarryingNodes(groups, machine_nodes);
  if (AvailableOn(groups, nodes) < count || nodes.empty()) return result;
  const bool small = nodes.size() <= kFewNodes;
  std::size_t minimum = 0;
  if (nodes.size() <= kMaxNodes) {
    Search search(groups, count, nodes, limits);
    search.Run(small);
    result.hints = search.TakeHints();
    result.truncated = search.truncated();
    result.steps = search.steps();
    minimum = search.minimum();
  } else {
    result.truncated = true;
  }
  if (!small || result.truncated) AddAllNodes(nodes, minimum, *result.hints);
  return result;
}

}  // namespace devmgr::topology
