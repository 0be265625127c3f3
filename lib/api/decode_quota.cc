// SPDX-License-Identifier: Apache-2.0
#include "api/meta.h"
#include "api/names.h"
#include "api/quantity.h"
#include "api/quota.h"
#include "api/quote.h"

namespace devmgr::api {
namespace {

constexpr std::string_view kClassQuotaSuffix =
    ".deviceclass.resource.k8s.io/devices";
constexpr std::string_view kRequests = "requests.";

}  // namespace

std::string ClassQuota(std::string_view device_class) {
  std::string key(device_class);
  key += kClassQuotaSuffix;
  return key;
}

std::string ResourceQuotaKey(std::string_view resource) {
  std::string key(kRequests);
  key += resource;
  return key;
}

bool IsDeviceQuota(std::string_view key) {
  if (key == kClaimCountQuota) return true;
  if (key.ends_with(kClassQuotaSuffix)) {
    return CheckSubdomain(key.substr(0, key.size() - kClassQuotaSuffix.size()))
        .empty();
  }
  return key.starts_with(kRequests) &&
         CanBeDraExtendedResource(key.substr(kRequests.size()));
}

ResourceQuota DecodeResourceQuota(const Field& root) {
  ResourceQuota quota;
  quota.metadata = DecodeMeta(root, Scope::kNamespace);
  CheckMeta(root, quota.metadata);
  const Field spec = root["spec"];
  if (!spec.IsMap()) return quota;
  for (const char* scope : {"scopes", "scopeSelector"}) {
    if (!spec[scope].IsPresent()) continue;
    spec[scope].Warn(
        "a quota with scopes limits some pods only, and no claims; it limits "
        "nothing on this node");
    return quota;
  }
  for (const auto& [key, member] : spec["hard"].Members()) {
    if (!IsDeviceQuota(key)) continue;
    const std::optional<Quantity> hard = member.AsQuantity();
    if (!hard.has_value()) continue;
    if (IsNegative(*hard) || !hard->IsInteger()) {
      member.Error("is " + Quoted(QuantityText(*hard)) +
                   ", must be a whole number from 0 on");
    }
    quota.hard[key] = *hard;
  }
  return quota;
}

}  // namespace devmgr::api
