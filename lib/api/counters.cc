// SPDX-License-Identifier: Apache-2.0
//
// Counters that the devices of a pool share, and what devices take of them.
#include <fmt/core.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/device_parts.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxSets = 8;
constexpr std::size_t kMaxConsumedSets = 2;
constexpr std::size_t kMaxCounters = 32;
constexpr std::size_t kMaxGroups = 2;

/// Counters by name; there must be one at least.
SortedMap<Quantity> DecodeCounters(const Field& map, TextPool& texts) {
  SortedMap<Quantity> counters;
  const auto members = map.Members();
  if (members.size() > kMaxCounters) {
    map.Error(fmt::format("has {} entries, at most {} are allowed",
                          members.size(), kMaxCounters));
  }
  if (members.empty() &&
      (!map.IsPresent() || map.value()->kind == Value::Kind::kMap)) {
    map.Error("is required, with one counter at least");
  }
  counters.reserve(members.size());
  for (const auto& [name, counter] : members) {
    counter.Check(CheckLabel(name));
    if (!counter.RequireMap()) continue;
    if (auto value = RequiredAmount(counter["value"])) {
      value->text = texts.Get(value->text);
      counters.emplace(texts.Get(name), *std::move(value));
    }
  }
  return counters;
}

}  // namespace

std::vector<CounterSet> DecodeCounterSets(const Field& list) {
  std::vector<CounterSet> sets;
  CheckCount(list, kMaxSets);
  TextPool texts;
  std::set<std::string> names;
  for (const Field& item : list.Items()) {
    if (!item.RequireMap()) continue;
    CounterSet set;
    set.name = RequiredName(item["name"], CheckLabel);
    if (!set.name.empty() && !names.insert(set.name).second) {
      item["name"].Error(fmt::format("{} is the name of another counter set",
                                     Quoted(set.name)));
    }
    set.counters = DecodeCounters(item["counters"], texts);
    sets.push_back(std::move(set));
  }
  return sets;
}

RareVector<DeviceCounterConsumption> DecodeConsumption(const Field& list,
                                                       TextPool& texts) {
  std::vector<DeviceCounterConsumption> consumption;
  CheckCount(list, kMaxConsumedSets);
  std::set<std::string> names;
  for (const Field& item : list.Items()) {
    if (!item.RequireMap()) continue;
    DeviceCounterConsumption consumed;
    const std::string name = RequiredName(item["counterSet"], CheckLabel);
    if (!name.empty() && !names.insert(name).second) {
      item["counterSet"].Error(
          fmt::format("the device consumes from {} already", Quoted(name)));
    }
    consumed.counter_set = texts.Get(name);
    consumed.counters = DecodeCounters(item["counters"], texts);
    for (const std::string& group :
         DecodeNames(item["compatibilityGroups"], kMaxGroups, CheckLabel)) {
      consumed.compatibility_groups.push_back(texts.Get(group));
    }
    consumption.push_back(std::move(consumed));
  }
  return consumption;
}

}  // namespace devmgr::api
