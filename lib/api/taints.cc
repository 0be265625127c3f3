// SPDX-License-Identifier: Apache-2.0
//
// Taints of devices, the rules that lay them on devices, and what requests
// tolerate.
#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/device_parts.h"
#include "api/meta.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxTaints = 16;
constexpr std::size_t kMaxTolerations = 16;
constexpr std::size_t kMaxRuleConditions = 8;

constexpr std::string_view kEqual = "Equal";
constexpr std::string_view kExists = "Exists";

std::string DecodeEffect(const Field& field) {
  return RequiredWord(field, {"None", "NoSchedule", "NoExecute"});
}

DeviceToleration DecodeToleration(const Field& field) {
  DeviceToleration toleration;
  const Field key = field["key"];
  const Field value = field["value"];
  toleration.key = key.StringOr("");
  if (!toleration.key.empty()) key.Check(CheckQualifiedName(toleration.key));
  const Field op = field["operator"];
  toleration.op =
      IsGiven(op) ? RequiredWord(op, {kEqual, kExists}) : std::string(kEqual);
  toleration.value = value.StringOr("");
  if (toleration.op == kExists && !toleration.value.empty()) {
    value.Error("must not be given with operator Exists");
  } else {
    value.Check(CheckLabelValue(toleration.value));
  }
  if (toleration.key.empty() && toleration.op == kEqual) {
    key.Error("is required with operator Equal");
  }
  const Field effect = field["effect"];
  if (IsGiven(effect)) toleration.effect = DecodeEffect(effect);
  toleration.toleration_seconds = field["tolerationSeconds"].AsInteger();
  return toleration;
}

std::optional<std::string> DecodeSelected(
    const Field& field, std::string (*check)(std::string_view)) {
  if (!field.IsPresent()) return std::nullopt;
  return RequiredName(field, check);
}

DeviceTaintSelector DecodeTaintSelector(const Field& field) {
  DeviceTaintSelector selector;
  selector.driver = DecodeSelected(field["driver"], CheckDriverName);
  selector.pool = DecodeSelected(field["pool"], CheckPoolName);
  selector.device = DecodeSelected(field["device"], CheckLabel);
  // Without these, the rule would taint more devices than is meant.
  for (const char* gone : {"deviceClassName", "selectors"}) {
    if (field[gone].IsPresent()) {
      field[gone].Error("is no longer supported, since Kubernetes 1.35");
    }
  }
  return selector;
}

}  // namespace

DeviceTaint DecodeTaint(const Field& field) {
  DeviceTaint taint;
  taint.key = RequiredName(field["key"], CheckQualifiedName);
  taint.value = field["value"].StringOr("");
  field["value"].Check(CheckLabelValue(taint.value));
  taint.effect = DecodeEffect(field["effect"]);
  taint.time_added = DecodeTimestamp(field["timeAdded"]);
  return taint;
}

std::vector<DeviceTaint> DecodeTaints(const Field& list) {
  std::vector<DeviceTaint> taints;
  CheckCount(list, kMaxTaints);
  for (const Field& item : list.Items()) {
    if (item.RequireMap()) taints.push_back(DecodeTaint(item));
  }
  return taints;
}

std::vector<DeviceToleration> DecodeTolerations(const Field& list) {
  std::vector<DeviceToleration> tolerations;
  CheckCount(list, kMaxTolerations);
  for (const Field& item : list.Items()) {
    if (item.RequireMap()) tolerations.push_back(DecodeToleration(item));
  }
  return tolerations;
}

DeviceTaintRule DecodeDeviceTaintRule(const Field& root) {
  DeviceTaintRule rule;
  rule.metadata = DecodeMeta(root, Scope::kCluster);
  CheckMeta(root, rule.metadata);
  const Field spec = root["spec"];
  if (!spec.RequireMap()) return rule;
  const Field selector = spec["deviceSelector"];
  if (selector.IsMap()) rule.device_selector = DecodeTaintSelector(selector);
  const Field taint = spec["taint"];
  if (taint.RequireMap()) rule.taint = DecodeTaint(taint);
  // What controllers write there is of no consequence here.
  const Field status = root["status"].AsRemarks();
  if (status.IsMap()) {
    rule.conditions =
        DecodeConditions(status["conditions"], kMaxRuleConditions);
  }
  return rule;
}

}  // namespace devmgr::api
