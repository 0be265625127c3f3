// SPDX-License-Identifier: Apache-2.0
#include "device/selection.h"

#include <algorithm>
#include <utility>

namespace devmgr::device {
namespace {

/// Places in one inventory, so their order is that of the IDs.
using Devices = std::vector<const InventoryDevice*>;

/// Usable devices that nobody has, in natural order, `most` at most.
Devices FreeDevices(const SelectionInput& input, std::size_t most) {
  Devices free;
  input.inventory.VisitFree([&](const InventoryDevice& known) {
    const std::string& id = known.device.id;
    if (!input.held.contains(id) && !input.planned.contains(id)) {
      free.push_back(&known);
    }
    return free.size() < most;
  });
  return free;
}

/// How many of them `Select` looks at: as many as it takes, where none of them
/// is better than those before it.
std::size_t MostOf(const SelectionInput& input, std::int64_t missing) {
  return input.mask == nullptr && !input.ask_preference
             ? static_cast<std::size_t>(missing)
             : input.inventory.devices().size();
}

/// Those that can be taken over; unlike at the kubelet only what works.
Devices ReusableDevices(const SelectionInput& input) {
  Devices reusable;
  for (const std::string& id : input.reusable) {
    const InventoryDevice* known = input.inventory.Find(id);
    if (known != nullptr && known->Usable()) reusable.push_back(known);
  }
  return reusable;
}

bool Touches(const InventoryDevice& known,
             const std::vector<std::int64_t>& mask) {
  const auto& nodes = known.device.numa_nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](std::int64_t node) {
    return std::binary_search(mask.begin(), mask.end(), node);
  });
}

/// Devices by how well they fit the mask, best first.
struct Split {
  Devices aligned;
  Devices unaligned;
  Devices no_affinity;
};

Split SplitByMask(const Devices& devices,
                  const std::vector<std::int64_t>* mask) {
  Split split;
  if (mask == nullptr) return {.no_affinity = devices};
  for (const InventoryDevice* known : devices) {
    if (known->device.numa_nodes.empty()) {
      split.no_affinity.push_back(known);
    } else if (Touches(*known, *mask)) {
      split.aligned.push_back(known);
    } else {
      split.unaligned.push_back(known);
    }
  }
  return split;
}

/// What has been chosen so far.
class Choice {
 public:
  explicit Choice(std::int64_t count) : count_(count) {}

  void Take(const Devices& devices) {
    for (const InventoryDevice* known : devices) {
      if (Missing() == 0) return;
      chosen_.insert(known);
    }
  }

  void Take(const Split& split) {
    Take(split.aligned);
    Take(split.unaligned);
    Take(split.no_affinity);
  }

  std::int64_t Missing() const {
    return count_ - static_cast<std::int64_t>(chosen_.size());
  }
  bool Has(const InventoryDevice* known) const {
    return chosen_.contains(known);
  }
  const std::set<const InventoryDevice*>& devices() const { return chosen_; }

 private:
  const std::int64_t count_;
  std::set<const InventoryDevice*> chosen_;
};

/// In the order of the plugin's answer.
Devices PreferredOf(const std::vector<std::string>& answer, const Devices& pool,
                    const Inventory& inventory) {
  Devices preferred;
  for (const std::string& id : answer) {
    const InventoryDevice* known = inventory.Find(id);
    if (std::binary_search(pool.begin(), pool.end(), known)) {
      preferred.push_back(known);
    }
  }
  return preferred;
}

PreferenceQuestion Ask(const Choice& choice, const Devices& pool,
                       std::int64_t size) {
  PreferenceQuestion question;
  question.size = size;
  std::set<const InventoryDevice*> available = choice.devices();
  available.insert(pool.begin(), pool.end());
  for (const InventoryDevice* known : available) {
    question.available.push_back(known->device.id);
  }
  for (const InventoryDevice* known : choice.devices()) {
    question.must_include.push_back(known->device.id);
  }
  return question;
}

/// There are too few free ones: what would have to change?
Shortage Explain(const SelectionInput& input, const Choice& choice,
                 std::int64_t free) {
  Shortage shortage{.state = input.inventory.state(),
                    .requested = choice.Missing(),
                    .available = free,
                    .none_healthy = input.inventory.figures().allocatable == 0,
                    .taken_over = input.count - choice.Missing()};
  std::int64_t existing = 0;
  std::int64_t healthy = 0;
  std::set<PodUid> holders;
  for (const InventoryDevice& known : input.inventory.devices()) {
    const std::string& id = known.device.id;
    const auto held = input.held.find(id);
    const bool someones = held != input.held.end();
    const bool ours = input.planned.contains(id) ||
                      (someones && held->second.pod == input.pod);
    if (!known.listed) continue;
    ++shortage.listed;
    if (choice.Has(&known)) continue;
    if (ours && !input.reusable.contains(id)) {
      ++shortage.ours;
      continue;
    }
    ++existing;
    if (!known.Usable()) {
      if (shortage.devices.size() < Shortage::kMaxNames) {
        shortage.devices.push_back(id);
      }
      continue;
    }
    ++healthy;
    if (someones && holders.size() < Shortage::kMaxNames) {
      holders.insert(held->second.pod);
    }
  }
  shortage.holders.assign(holders.begin(), holders.end());
  shortage.kind = existing < shortage.requested ? Shortage::Kind::kTooFewExist
                  : healthy < shortage.requested
                      ? Shortage::Kind::kTooFewHealthy
                      : Shortage::Kind::kTooFewFree;
  return shortage;
}

}  // namespace

Selection Select(const SelectionInput& input) {
  Selection selection;
  Choice choice(input.count);
  choice.Take(SplitByMask(ReusableDevices(input), input.mask));
  if (choice.Missing() > 0) {
    const Devices free = FreeDevices(input, MostOf(input, choice.Missing()));
    if (static_cast<std::int64_t>(free.size()) < choice.Missing()) {
      selection.shortage =
          Explain(input, choice, static_cast<std::int64_t>(free.size()));
      return selection;
    }
    const Split split = SplitByMask(free, input.mask);
    const bool among_aligned =
        choice.Missing() < static_cast<std::int64_t>(split.aligned.size());
    if (!among_aligned) choice.Take(split.aligned);
    if (choice.Missing() > 0 && input.ask_preference) {
      const Devices& pool = among_aligned ? split.aligned : free;
      if (input.preferred == nullptr) {
        selection.question = Ask(choice, pool, input.count);
      } else {
        choice.Take(PreferredOf(*input.preferred, pool, input.inventory));
      }
    }
    choice.Take(split);
  }
  for (const InventoryDevice* known : choice.devices()) {
    selection.devices.push_back({known->device.id, known->device.numa_nodes});
  }
  return selection;
}

}  // namespace devmgr::device
