// SPDX-License-Identifier: Apache-2.0
#include "allocator/likeness.h"

#include <type_traits>
#include <unordered_map>
#include <utility>

namespace devmgr::allocator {
namespace {

/// Values one after the other as bytes; each list after its length, so that
/// texts are equal only when all values are.
class Description {
 public:
  template <typename T>
  void Add(T value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T> ||
                  std::is_same_v<T, Amount>);
    text.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void AddText(const std::string& value) {
    Add(value.size());
    text += value;
  }

  std::string text;
};

}  // namespace

void Likeness::Compute() {
  std::unordered_map<std::string, std::uint32_t> known;
  for (DeviceNumber device = 0; device < inventory_.devices().size();
       ++device) {
    const auto next = static_cast<std::uint32_t>(known.size());
    numbers_.push_back(known.emplace(Describe(device), next).first->second);
  }
}

std::string Likeness::Describe(DeviceNumber device) {
  const Device& candidate = inventory_.devices()[device];
  Description description;
  bool is_unique = eligibility_.Held(device) != nullptr;
  for (RequestNumber i = 0; i < requests_.requests.size() && !is_unique; ++i) {
    const auto verdict = eligibility_.Of(i, device);
    is_unique = verdict == Eligibility::Verdict::kError;
    description.Add(verdict);
    if (verdict != Eligibility::Verdict::kYes) continue;
    const Request& request = requests_.requests[i];
    for (const auto& each : request.constraints) {
      const auto& values = attributes_.Of(each.attribute, device).values;
      description.Add(values.size());
      for (const std::uint32_t value : values) description.Add(value);
    }
    const auto& charges = eligibility_.Charges(i, device);
    description.Add(candidate.is_shareable ? charges.size() : 0);
    if (!candidate.is_shareable) continue;
    for (std::size_t c = 0; c < charges.size(); ++c) {
      description.Add(charges[c]);
      description.Add(candidate.capacity[c].value);
    }
  }
  if (is_unique) {
    description.text = "unique";
    description.Add(device);
    return std::move(description.text);
  }
  description.Add(candidate.is_shareable);
  description.Add(candidate.counters.size());
  for (const CounterUse& use : candidate.counters) {
    description.Add(use.counter);
    description.Add(use.amount);
  }
  description.Add(candidate.groups.size());
  for (const GroupUse& use : candidate.groups) {
    description.Add(use.set);
    description.Add(use.groups.size());
    for (const std::string& group : use.groups) description.AddText(group);
  }
  if (!candidate.counters.empty() || !candidate.groups.empty()) {
    description.Add(candidate.pool);
  }
  return std::move(description.text);
}

}  // namespace devmgr::allocator
