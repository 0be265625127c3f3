// SPDX-License-Identifier: Apache-2.0
#include "device/selection.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace devmgr::device {
namespace {

/// Places in one inventory: their order is that of the IDs.
using Devices = std::vector<std::size_t>;

/// Usable devices that nobody has, in natural order, `most` at most.
Devices FreeDevices(const SelectionInput& input, std::size_t most) {
  Devices free;
  input.inventory.VisitFree([&](std::size_t place) {
    const DeviceId& id = input.inventory.devices()[place].device.id;
    if (!input.held.contains(id) && !input.planned.contains(id)) {
      free.push_back(place);
    }
    return free.size() < most;
  });
  return free;
}

/// How many of them `Select` looks at: as many as it takes, where none of them
/// is better than those before it.
std::size_t MostOf(const SelectionInput& input, std::int64_t missing) {
  return input.mask == nullptr && !input.ask_preference && input.kept == nullptr
             ? static_cast<std::size_t>(missing)
             : input.inventory.devices().size();
}

/// Those that can be taken over; unlike at the kubelet only what works.
Devices ReusableDevices(const SelectionInput& input) {
  Devices reusable;
  for (const DeviceId& id : input.reusable) {
    const std::optional<std::size_t> place = input.inventory.PlaceOf(id);
    if (place.has_value() && input.inventory.devices()[*place].Usable()) {
      reusable.push_back(*place);
    }
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

Split SplitByMask(const SelectionInput& input, const Devices& devices) {
  Split split;
  if (input.mask == nullptr) return {.no_affinity = devices};
  for (const std::size_t place : devices) {
    const InventoryDevice& known = input.inventory.devices()[place];
    if (known.device.numa_nodes.empty()) {
      split.no_affinity.push_back(place);
    } else if (Touches(known, *input.mask)) {
      split.aligned.push_back(place);
    } else {
      split.unaligned.push_back(place);
    }
  }
  return split;
}

/// What has been chosen so far.
class Choice {
 public:
  explicit Choice(std::int64_t count) : count_(count) {}

  void Take(const Devices& devices) {
    for (const std::size_t place : devices) {
      if (Missing() == 0) return;
      chosen_.insert(place);
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
  bool Has(std::size_t place) const { return chosen_.contains(place); }
  const std::set<std::size_t>& devices() const { return chosen_; }

 private:
  const std::int64_t count_;
  std::set<std::size_t> chosen_;
};

/// In the order of the plugin's answer.
Devices PreferredOf(const std::vector<DeviceId>& answer, const Devices& pool,
                    const Inventory& inventory) {
  Devices preferred;
  for (const DeviceId& id : answer) {
    const std::optional<std::size_t> place = inventory.PlaceOf(id);
    if (place.has_value() &&
        std::binary_search(pool.begin(), pool.end(), *place)) {
      preferred.push_back(*place);
    }
  }
  return preferred;
}

PreferenceQuestion Ask(const SelectionInput& input, const Choice& choice,
                       const Devices& pool) {
  const InventoryDevices& devices = input.inventory.devices();
  PreferenceQuestion question;
  question.size = input.count;
  std::set<std::size_t> available = choice.devices();
  available.insert(pool.begin(), pool.end());
  for (const std::size_t place : available) {
    question.available.push_back(devices[place].device.id);
  }
  for (const std::size_t place : choice.devices()) {
    question.must_include.push_back(devices[place].device.id);
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
  const InventoryDevices& devices = input.inventory.devices();
  for (std::size_t place = 0; place < devices.size(); ++place) {
    const InventoryDevice& known = devices[place];
    const DeviceId& id = known.device.id;
    const auto held = input.held.find(id);
    const bool someones = held != input.held.end();
    const bool ours = input.planned.contains(id) ||
                      (someones && held->second.pod == input.pod);
    if (!known.listed) continue;
    ++shortage.listed;
    if (choice.Has(place)) continue;
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
  choice.Take(SplitByMask(input, ReusableDevices(input)));
  if (choice.Missing() > 0) {
    const Devices free = FreeDevices(input, MostOf(input, choice.Missing()));
    const std::int64_t allowed = std::max<std::int64_t>(
        static_cast<std::int64_t>(free.size()) -
            (input.kept != nullptr ? input.kept->count : 0),
        0);
    if (allowed < choice.Missing()) {
      selection.shortage = Explain(input, choice, allowed);
      if (input.kept != nullptr) selection.shortage->kept = *input.kept;
      return selection;
    }
    const Split split = SplitByMask(input, free);
    const bool among_aligned =
        choice.Missing() < static_cast<std::int64_t>(split.aligned.size());
    if (!among_aligned) choice.Take(split.aligned);
    if (choice.Missing() > 0 && input.ask_preference) {
      const Devices& pool = among_aligned ? split.aligned : free;
      if (input.preferred == nullptr) {
        selection.question = Ask(input, choice, pool);
      } else {
        choice.Take(PreferredOf(*input.preferred, pool, input.inventory));
      }
    }
    choice.Take(split);
  }
  for (const std::size_t place : choice.devices()) {
    const Device& device = input.inventory.devices()[place].device;
    selection.devices.push_back({device.id, device.numa_nodes});
  }
  return selection;
}

}  // namespace devmgr::device
