// SPDX-License-Identifier: Apache-2.0
#include "topology/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "api/quote.h"
#include "topology/mask_order.h"
#include "topology/merge_search.h"

namespace devmgr::topology {
namespace {

using HintList = std::vector<TopologyHint>;
/// Ascending, each once.
using Masks = std::vector<NumaMask>;

bool ByNumber(NumaMask a, NumaMask b) { return a.bits() < b.bits(); }

/// The hints of one resource as the kubelet's policies take them: what no set
/// of nodes can serve could be served anywhere, and is not preferred. A
/// resource without an opinion changes nothing, and is left out.
std::vector<HintList> Normalised(const std::vector<ResourceHints>& lists) {
  std::vector<HintList> normalised;
  for (const ResourceHints& list : lists) {
    if (!list.hints) continue;
    if (list.hints->empty()) {
      normalised.push_back({{std::nullopt, false}});
    } else {
      normalised.push_back(*list.hints);
    }
  }
  return normalised;
}

void KeepSingleNodes(std::vector<HintList>& lists) {
  for (HintList& list : lists) {
    std::erase_if(list, [](const TopologyHint& hint) {
      return !hint.preferred || (hint.nodes && hint.nodes->Count() != 1);
    });
  }
}

/// As many nodes as the resource that needs most of them needs at least.
int BestCount(const std::vector<HintList>& lists) {
  int most = 0;
  for (const HintList& list : lists) {
    std::optional<int> least;
    for (const TopologyHint& hint : list) {
      if (!hint.nodes) continue;
      least =
          std::min(least.value_or(NumaMask::kMaxNodes), hint.nodes->Count());
    }
    most = std::max(most, least.value_or(0));
  }
  return most;
}

/// What combinations come to in which all hints are preferred and all masks the
/// same.
struct Agreed {
  Masks masks;
  bool anywhere = true;  ///< All hints leave the nodes open.
};

void AgreeWith(const HintList& list, Agreed& agreed) {
  Masks preferred;
  bool anywhere = false;
  for (const TopologyHint& hint : list) {
    if (!hint.preferred) continue;
    if (hint.nodes) {
      preferred.push_back(*hint.nodes);
    } else {
      anywhere = true;
    }
  }
  std::sort(preferred.begin(), preferred.end(), ByNumber);
  preferred.erase(std::unique(preferred.begin(), preferred.end()),
                  preferred.end());
  Masks merged;
  if (anywhere && agreed.anywhere) {
    std::set_union(preferred.begin(), preferred.end(), agreed.masks.begin(),
                   agreed.masks.end(), std::back_inserter(merged), ByNumber);
  } else if (anywhere) {
    merged = std::move(agreed.masks);
  } else if (agreed.anywhere) {
    merged = std::move(preferred);
  } else {
    std::set_intersection(preferred.begin(), preferred.end(),
                          agreed.masks.begin(), agreed.masks.end(),
                          std::back_inserter(merged), ByNumber);
  }
  agreed = {std::move(merged), agreed.anywhere && anywhere};
}

Agreed AgreedOf(const std::vector<HintList>& lists) {
  Agreed agreed;
  for (const HintList& list : lists) AgreeWith(list, agreed);
  return agreed;
}

/// The smallest, of these the first by `order`.
std::optional<NumaMask> BestPreferred(const std::vector<HintList>& lists,
                                      NumaMask all, const MaskOrder& order) {
  Agreed agreed = AgreedOf(lists);
  if (agreed.anywhere) agreed.masks.push_back(all);
  std::optional<NumaMask> best;
  for (const NumaMask agreed_mask : agreed.masks) {
    const NumaMask mask = agreed_mask & all;
    if (mask.empty()) continue;
    if (best && mask.Count() > best->Count()) continue;
    if (best && mask.Count() == best->Count() &&
        order.Of(mask) >= order.Of(*best)) {
      continue;
    }
    best = mask;
  }
  return best;
}

CommonMask BestOther(const std::vector<HintList>& lists, NumaMask all,
                     const MaskOrder& order, const MergeLimits& limits) {
  CommonMaskQuestion question{.lists = {},
                              .all = all,
                              .best_count = BestCount(lists),
                              .order = order,
                              .steps = limits.steps};
  for (const HintList& list : lists) {
    Masks& masks = question.lists.emplace_back();
    for (const TopologyHint& hint : list) {
      masks.push_back(hint.nodes.value_or(all));
    }
  }
  return FindCommonMask(std::move(question));
}

std::vector<std::string> TruncatedOf(const std::vector<ResourceHints>& lists) {
  std::vector<std::string> truncated;
  for (const ResourceHints& list : lists) {
    if (list.truncated) truncated.push_back(list.resource);
  }
  std::sort(truncated.begin(), truncated.end());
  return truncated;
}

// For RefusalText.

constexpr std::size_t kNamed = 8;  // Of resources.

std::string Named(const ResourceHints& list) {
  return api::Quoted(list.resource);
}

/// The first few, and how many more.
std::string Joined(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kNamed);
  std::string text = fmt::format(
      "{}",
      fmt::join(names.begin(),
                names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) {
    text += fmt::format(" and {} more", names.size() - shown);
  }
  return text;
}

bool HasPreferred(const ResourceHints& list, bool single) {
  return std::any_of(
      list.hints->begin(), list.hints->end(), [&](const TopologyHint& hint) {
        return hint.preferred &&
               (!single || !hint.nodes || hint.nodes->Count() == 1);
      });
}

std::string CutText(const std::vector<ResourceHints>& lists) {
  std::vector<std::string> cut;
  for (const ResourceHints& list : lists) {
    if (list.truncated) cut.push_back(Named(list));
  }
  if (cut.empty()) return "";
  return fmt::format(
      "; the search for hints of {} ended at its limit, so that an alignment "
      "may exist which was not found",
      Joined(cut));
}

}  // namespace

MergedHint Merge(const Options& options, const NumaMachine& machine,
                 const std::vector<ResourceHints>& lists,
                 const MergeLimits& limits) {
  if (options.policy == Policy::kNone) return {};
  const bool single = options.policy == Policy::kSingleNumaNode;
  const MaskOrder order(machine.nodes, options.prefer_closest && !single
                                           ? &machine.distances
                                           : nullptr);
  std::vector<HintList> hints = Normalised(lists);
  if (single) KeepSingleNodes(hints);
  MergedHint merged;
  if (const auto best = BestPreferred(hints, machine.nodes, order)) {
    merged.hint = {*best, true};
  } else {
    const CommonMask common = BestOther(hints, machine.nodes, order, limits);
    merged.hint = {common.best.value_or(machine.nodes), false};
    merged.proven = common.proven;
    merged.steps = common.steps;
    merged.truncated = TruncatedOf(lists);
  }
  if (single && merged.hint.nodes == machine.nodes) {
    merged.hint.nodes = std::nullopt;
  }
  merged.admitted =
      options.policy == Policy::kBestEffort || merged.hint.preferred;
  return merged;
}

std::string RefusalText(const Options& options,
                        const std::vector<ResourceHints>& lists,
                        const MergedHint& merged) {
  if (merged.admitted) return "";
  const bool single = options.policy == Policy::kSingleNumaNode;
  std::vector<std::string> impossible;
  std::vector<std::string> wide;
  std::vector<std::string> all;
  for (const ResourceHints& list : lists) {
    if (!list.hints) continue;
    all.push_back(Named(list));
    if (list.hints->empty()) {
      impossible.push_back(Named(list));
    } else if (!HasPreferred(list, single)) {
      wide.push_back(Named(list));
    }
  }
  std::string cause;
  if (!impossible.empty()) {
    cause = fmt::format("no set of NUMA nodes can serve the request for {}",
                        Joined(impossible));
  } else if (!wide.empty()) {
    cause = fmt::format(
        "no {} can serve the request for {} now",
        single ? "single NUMA node" : "set of as few NUMA nodes as possible",
        Joined(wide));
  } else {
    cause = fmt::format("no set of NUMA nodes is preferred for all of {}",
                        Joined(all));
  }
  return fmt::format("topology policy \"{}\": {}{}", PolicyName(options.policy),
                     cause, CutText(lists));
}

}  // namespace devmgr::topology
