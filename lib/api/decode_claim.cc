// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/device_claim.h"
#include "api/meta.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxSelectors = 32;
constexpr std::size_t kMaxExpressionBytes = 10 * 1024;
constexpr std::size_t kMaxConsumers = 256;

ResourceClaimStatus DecodeClaimStatus(const Field& field,
                                      ResourceVersion version) {
  ResourceClaimStatus status;
  if (!field.IsMap()) return status;
  if (const Field allocation = field["allocation"]; allocation.IsMap()) {
    status.allocation = HasResourceHandles(version)
                            ? DecodeResourceHandles(field)
                            : DecodeAllocation(allocation);
  }
  if (HasResourceHandles(version)) {
    status.driver = field["driverName"].StringOr("");
  }
  status.devices = DecodeDeviceStatus(field["devices"], status.allocation);
  const Field consumers = field["reservedFor"];
  CheckCount(consumers, kMaxConsumers);
  std::set<std::string> uids;
  for (const Field& item : consumers.Items()) {
    if (!item.RequireMap()) continue;
    ResourceClaimConsumer consumer;
    consumer.api_group = item["apiGroup"].StringOr("");
    consumer.resource = RequiredName(item["resource"], nullptr);
    consumer.name = RequiredName(item["name"], nullptr);
    consumer.uid = RequiredName(item["uid"], nullptr);
    if (!consumer.uid.empty() && !uids.insert(consumer.uid).second) {
      item["uid"].Error(fmt::format("{} is the uid of another consumer",
                                    Quoted(consumer.uid)));
    }
    status.reserved_for.push_back(std::move(consumer));
  }
  return status;
}

}  // namespace

std::string DecodeExpression(const Field& field, ExpressionKind kind) {
  std::string text = RequiredName(field, nullptr);
  if (text.size() > kMaxExpressionBytes) {
    field.Error(fmt::format("has {} bytes, at most {} are allowed", text.size(),
                            kMaxExpressionBytes));
  } else if (!text.empty()) {
    field.CheckExpression(text, kind);
  }
  return text;
}

std::vector<std::string> DecodeSelectors(const Field& selectors) {
  std::vector<std::string> expressions;
  CheckCount(selectors, kMaxSelectors);
  for (const Field& item : selectors.Items()) {
    if (!item.RequireMap()) continue;
    const Field cel = item["cel"];
    if (!cel.RequireMap()) continue;
    expressions.push_back(
        DecodeExpression(cel["expression"], ExpressionKind::kSelector));
  }
  return expressions;
}

void CheckCount(const Field& list, std::size_t limit) {
  if (!list.IsPresent() || list.value()->items.size() <= limit) return;
  list.Error(fmt::format("has {} entries, at most {} are allowed",
                         list.value()->items.size(), limit));
}

std::string RequiredName(const Field& field,
                         std::string (*check)(std::string_view)) {
  std::string text = field.StringOr("");
  if (text.empty()) {
    // A value of another type has been reported already.
    if (!field.IsPresent() || field.IsString()) field.Error("is required");
  } else if (check != nullptr) {
    field.Check(check(text));
  }
  return text;
}

ResourceClaim DecodeResourceClaim(const Field& root, ResourceVersion version) {
  ResourceClaim claim;
  claim.metadata = DecodeMeta(root, Scope::kNamespace);
  CheckMeta(root, claim.metadata);
  claim.status = DecodeClaimStatus(root["status"], version);
  claim.spec = DecodeClaimSpec(root["spec"], version,
                               claim.status.allocation.has_value());
  return claim;
}

ResourceClaimTemplate DecodeResourceClaimTemplate(const Field& root,
                                                  ResourceVersion version) {
  ResourceClaimTemplate claim_template;
  claim_template.metadata = DecodeMeta(root, Scope::kNamespace);
  CheckMeta(root, claim_template.metadata);
  const Field spec = root["spec"];
  if (spec.RequireMap()) {
    const Field metadata = spec["metadata"].AsRemarks();
    claim_template.claim_labels = metadata["labels"].StringMap();
    claim_template.claim_annotations = metadata["annotations"].StringMap();
    claim_template.spec = DecodeClaimSpec(spec["spec"], version, false);
  }
  return claim_template;
}

}  // namespace devmgr::api
