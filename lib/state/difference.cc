// SPDX-License-Identifier: Apache-2.0
#include <devmgr/status_types.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/enum_names.h"

namespace devmgr {
namespace {

/// Names and values, in the order to show them.
using Fields = std::vector<std::pair<std::string, std::string>>;
/// By name and UID.
using Objects = std::map<std::pair<ObjectName, std::string>, Fields>;

template <typename Texts>
std::string Joined(const Texts& texts) {
  return fmt::format("{}", fmt::join(texts, ", "));
}

Fields FieldsOf(const PodInfo& pod) {
  return {{"state", std::string(PodStateName(pod.state))},
          {"reason", pod.reason},
          {"message", pod.message},
          {"containers", Joined(pod.containers)},
          {"claims", Joined(pod.claims)}};
}

Fields FieldsOf(const ClaimInfo& claim) {
  Fields fields = {{"state", std::string(claim.state.name())},
                   {"pods", Joined(claim.pods)}};
  for (const ClaimDriverInfo& driver : claim.drivers) {
    fields.emplace_back(driver.driver + "/state", driver.state.name());
    fields.emplace_back(driver.driver + "/devices", Joined(driver.devices));
    fields.emplace_back(driver.driver + "/cdiDevices",
                        Joined(driver.cdi_devices));
  }
  return fields;
}

Fields FieldsOf(const ForeignHolderInfo& info) {
  const ForeignHolder& holder = info.holder;
  Fields fields = {{"container", holder.container}, {"freed", info.freed}};
  for (const HeldResource& resource : holder.resources) {
    fields.emplace_back(resource.name, Joined(resource.devices));
  }
  fields.emplace_back("cdiDevices", Joined(holder.cdi_devices));
  return fields;
}

Objects ObjectsOf(const std::vector<ForeignHolderInfo>& infos) {
  Objects objects;
  for (const ForeignHolderInfo& info : infos) {
    objects[{info.holder.pod, info.holder.container_id}] = FieldsOf(info);
  }
  return objects;
}

template <typename Info>
Objects ObjectsOf(const std::vector<Info>& infos) {
  Objects objects;
  for (const Info& info : infos) {
    objects[{info.name, info.uid.value}] = FieldsOf(info);
  }
  return objects;
}

std::string ValueOf(const Fields& fields, const std::string& name) {
  for (const auto& [field, value] : fields) {
    if (field == name) return value;
  }
  return "";
}

/// Fields with two values; one that is not there counts as empty.
std::vector<LedgerChange::Field> Compared(const Fields& before,
                                          const Fields& after) {
  std::vector<LedgerChange::Field> changed;
  for (const auto& [name, value] : after) {
    const std::string old = ValueOf(before, name);
    if (old != value) changed.push_back({name, old, value});
  }
  for (const auto& [name, value] : before) {
    const auto stays = [&, &field = name](const auto& other) {
      return other.first == field;
    };
    if (value.empty() || std::any_of(after.begin(), after.end(), stays)) {
      continue;
    }
    changed.push_back({name, value, ""});
  }
  return changed;
}

void Compare(const std::string& kind, const Objects& before,
             const Objects& after, std::vector<LedgerChange>* changes) {
  Objects all = before;
  all.insert(after.begin(), after.end());
  for (const auto& [key, unused] : all) {
    const auto old = before.find(key);
    const auto now = after.find(key);
    LedgerChange change;
    change.object_kind = kind;
    change.name = key.first;
    change.uid = key.second;
    change.fields = Compared(old == before.end() ? Fields() : old->second,
                             now == after.end() ? Fields() : now->second);
    if (old == before.end()) {
      change.kind = LedgerChange::Kind::kAdded;
    } else if (now == after.end()) {
      change.kind = LedgerChange::Kind::kRemoved;
    } else if (change.fields.empty()) {
      continue;
    }
    changes->push_back(std::move(change));
  }
}

}  // namespace

std::string_view LedgerChangeKindName(LedgerChange::Kind kind) {
  using enum LedgerChange::Kind;
  static constexpr auto kNames = EnumTable<LedgerChange::Kind>({
      {kAdded, "Added"},
      {kRemoved, "Removed"},
      {kChanged, "Changed"},
  });
  return kNames.Of(kind, "Unknown");
}

std::vector<LedgerChange> DifferenceOf(const LedgerView& before,
                                       const LedgerView& after) {
  std::vector<LedgerChange> changes;
  Compare("Pod", ObjectsOf(before.pods), ObjectsOf(after.pods), &changes);
  Compare("Claim", ObjectsOf(before.claims), ObjectsOf(after.claims), &changes);
  Compare("ForeignHolder", ObjectsOf(before.holders), ObjectsOf(after.holders),
          &changes);
  return changes;
}

}  // namespace devmgr
