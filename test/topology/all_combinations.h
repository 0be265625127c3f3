// SPDX-License-Identifier: Apache-2.0
//
// The merge as upstream words it: every combination of hints, one after the
// other, each compared with the best so far. Written for being compared with
// its rules, row by row, and slow.
#pragma once

#include <devmgr/topology.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "topology/merge.h"

namespace devmgr::topology {

class AllCombinations {
 public:
  using Lists = std::vector<std::vector<TopologyHint>>;

  AllCombinations(const Options& options, const NumaMachine& machine)
      : options_(options), machine_(machine) {}

  TopologyHint Merge(const std::vector<ResourceHints>& resources) {
    lists_.clear();
    for (const ResourceHints& one : resources) lists_.push_back(ListOf(one));
    best_count_ = BestCountOf(lists_);
    best_.reset();
    std::vector<TopologyHint> chosen;
    Visit(chosen);
    TopologyHint best = best_.value_or(TopologyHint{machine_.nodes, false});
    if (IsSingle() && best.nodes == machine_.nodes) best.nodes = std::nullopt;
    return best;
  }

  static int BestCountOf(const Lists& lists) {
    int most = 0;
    for (const auto& list : lists) {
      std::optional<int> least;
      for (const TopologyHint& hint : list) {
        if (!hint.nodes) continue;
        const int count = hint.nodes->Count();
        if (!least || count < *least) least = count;
      }
      most = std::max(most, least.value_or(0));
    }
    return most;
  }

  /// Neither is preferred.
  TopologyHint Choose(TopologyHint current, TopologyHint next,
                      int best_count) const {
    const int now = current.nodes->Count();
    const int then = next.nodes->Count();
    if (now > best_count) return Better(current, next);
    if (now == best_count) {
      return then == best_count ? Better(current, next) : current;
    }
    if (then > best_count) return current;
    if (then == best_count) return next;
    if (then != now) return then > now ? next : current;
    return Better(current, next);
  }

 private:
  bool IsSingle() const { return options_.policy == Policy::kSingleNumaNode; }

  std::vector<TopologyHint> ListOf(const ResourceHints& resource) const {
    std::vector<TopologyHint> list;
    if (!resource.hints) {
      list = {{std::nullopt, true}};
    } else if (resource.hints->empty()) {
      list = {{std::nullopt, false}};
    } else {
      list = *resource.hints;
    }
    if (!IsSingle()) return list;
    std::erase_if(list, [](const TopologyHint& hint) {
      const bool single = !hint.nodes || hint.nodes->Count() == 1;
      return !(hint.preferred && single);
    });
    return list;
  }

  void Visit(std::vector<TopologyHint>& chosen) {
    if (chosen.size() == lists_.size()) {
      Take(chosen);
      return;
    }
    for (const TopologyHint& hint : lists_[chosen.size()]) {
      chosen.push_back(hint);
      Visit(chosen);
      chosen.pop_back();
    }
  }

  void Take(const std::vector<TopologyHint>& chosen) {
    NumaMask mask = machine_.nodes;
    bool preferred = true;
    std::optional<NumaMask> first;
    for (const TopologyHint& hint : chosen) {
      preferred = preferred && hint.preferred;
      if (!hint.nodes) continue;
      if (!first) first = hint.nodes;
      preferred = preferred && *hint.nodes == *first;
      mask = mask & *hint.nodes;
    }
    if (mask.empty()) return;
    const TopologyHint next = {mask, preferred};
    if (!best_) {
      best_ = next;
    } else if (best_->preferred != preferred) {
      if (preferred) best_ = next;
    } else if (preferred) {
      best_ = Better(*best_, next);
    } else {
      best_ = Choose(*best_, next, best_count_);
    }
  }

  double Average(NumaMask mask) const {
    double sum = 0;
    double pairs = 0;
    for (const auto a : mask.Nodes()) {
      for (const auto b : mask.Nodes()) {
        sum += machine_.distances.Of(static_cast<int>(a), static_cast<int>(b));
        ++pairs;
      }
    }
    return sum / pairs;
  }

  TopologyHint Better(TopologyHint current, TopologyHint next) const {
    const NumaMask a = *current.nodes;
    const NumaMask b = *next.nodes;
    if (a == b) return current;
    if (a.Count() != b.Count()) return a.Count() < b.Count() ? current : next;
    if (options_.prefer_closest && !IsSingle() && Average(a) != Average(b)) {
      return Average(a) < Average(b) ? current : next;
    }
    return a.bits() < b.bits() ? current : next;
  }

  const Options options_;
  const NumaMachine& machine_;
  Lists lists_;
  int best_count_ = 0;
  std::optional<TopologyHint> best_;
};

}  // namespace devmgr::topology
