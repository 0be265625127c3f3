// SPDX-License-Identifier: Apache-2.0
#include "endpoint/device_status_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "api/device_claim.h"
#include "api/field.h"
#include "api/parser.h"
#include "api/problems.h"
#include "apistore/object_meta.h"
#include "endpoint/slice_rules.h"

namespace devmgr::endpoint {
namespace {

using apistore::Cause;
using apistore::Json;

/// Null: there is none.
const Json* EntriesOf(const Json* claim) {
  static const Json::json_pointer kDevices("/status/devices");
  if (claim == nullptr || !claim->contains(kDevices)) return nullptr;
  const Json& entries = claim->at(kDevices);
  return entries.is_array() ? &entries : nullptr;
}

bool IsAmong(const Json* entries, const Json& entry) {
  return entries != nullptr &&
         std::find(entries->begin(), entries->end(), entry) != entries->end();
}

void CheckEntry(const Json& entry, const std::string& path,
                std::vector<Cause>& causes) {
  const api::ParsedText parsed =
      api::ParseText(apistore::Dump(entry), /*json_only=*/true);
  if (!parsed.error.empty() || parsed.documents.empty()) {
    causes.push_back({"FieldValueInvalid", parsed.error, path});
    return;
  }
  api::Problems problems("");
  api::CheckDeviceStatus(api::Field(*parsed.documents[0], path, problems));
  for (ManifestProblem& problem : problems.TakeErrors()) {
    causes.push_back({"FieldValueInvalid", std::move(problem.message),
                      std::move(problem.field)});
  }
}

}  // namespace

void DropUnknownStatusFields(Json& claim) {
  const Json* entries = EntriesOf(&claim);
  if (entries == nullptr) return;
  Json alone = {{"apiVersion", "resource.k8s.io/v1"},
                {"kind", "ResourceClaim"},
                {"status", {{"devices", *entries}}}};
  if (DropUnknownFields(alone).empty()) return;
  claim["status"]["devices"] = std::move(alone["status"]["devices"]);
}

std::vector<Cause> CheckDeviceStatusRules(const Json& claim, const Json* old) {
  std::vector<Cause> causes;
  const Json* entries = EntriesOf(&claim);
  if (entries == nullptr) return causes;
  const Json* before = EntriesOf(old);
  for (std::size_t i = 0; i < entries->size(); ++i) {
    if (IsAmong(before, (*entries)[i])) continue;
    CheckEntry((*entries)[i], fmt::format("status.devices[{}]", i), causes);
  }
  return causes;
}

}  // namespace devmgr::endpoint
