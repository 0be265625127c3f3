// SPDX-License-Identifier: Apache-2.0
//
// `spec.devices` of claims: requests, constraints and configuration.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/device_claim.h"
#include "api/device_parts.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/structured_parameters.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxRequests = 32;
constexpr std::size_t kMaxAlternatives = 8;
constexpr std::size_t kMaxDerived = 32;

constexpr std::string_view kExactCount = "ExactCount";
constexpr std::string_view kAll = "All";

/// What v1alpha3 and v1beta1 write into the request and later versions under
/// `exactly`.
constexpr std::string_view kExactFields[] = {
    "deviceClassName", "selectors",   "allocationMode", "count",
    "adminAccess",     "tolerations", "capacity",       "derivedAttributes",
};

bool HasExactFields(const Field& request) {
  return std::any_of(
      std::begin(kExactFields), std::end(kExactFields),
      [&](std::string_view name) { return request[name].IsPresent(); });
}

/// Mode and count with their defaults: exactly one device.
void DecodeModeAndCount(const Field& field, DeviceSubRequest& request) {
  const Field mode = field["allocationMode"];
  request.allocation_mode = mode.StringOr(kExactCount);
  if (request.allocation_mode.empty()) request.allocation_mode = kExactCount;
  const Field count = field["count"];
  if (request.allocation_mode == kAll) {
    if (count.AsInteger().value_or(0) != 0) {
      count.Error("must not be given with allocationMode All");
    }
    return;
  }
  if (request.allocation_mode != kExactCount) {
    mode.Error(fmt::format("{} is unknown; 'ExactCount' and 'All' are known",
                           Quoted(request.allocation_mode)));
  }
  request.count =
      count.AsInteger(1, std::numeric_limits<std::int64_t>::max()).value_or(1);
}

SortedMap<Quantity> DecodeCapacityRequests(const Field& capacity) {
  SortedMap<Quantity> requests;
  if (!capacity.IsMap()) return requests;
  for (const auto& [name, amount] : capacity["requests"].Members()) {
    amount.Check(CheckDeviceKey(name));
    if (auto quantity = RequiredAmount(amount)) {
      requests.emplace(name, *std::move(quantity));
    }
  }
  return requests;
}

std::vector<DerivedAttribute> DecodeDerived(const Field& list) {
  std::vector<DerivedAttribute> attributes;
  CheckCount(list, kMaxDerived);
  std::set<std::string> names;
  for (const Field& item : list.Items()) {
    if (!item.RequireMap()) continue;
    DerivedAttribute attribute{
        RequiredName(item["name"], CheckFullDeviceKey),
        DecodeExpression(item["expression"],
                         ExpressionKind::kDerivedAttribute)};
    if (!attribute.name.empty() && !names.insert(attribute.name).second) {
      item["name"].Error(fmt::format("{} is the name of another attribute",
                                     Quoted(attribute.name)));
    }
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

/// Decodes the requests of one claim.
class RequestDecoder {
 public:
  RequestDecoder(ResourceVersion version, bool is_allocated)
      : is_flat_(HasFlatRequests(version)), is_allocated_(is_allocated) {}

  DeviceRequest Decode(const Field& field) const;
  /// The place as it matters to a scheduler only: what is wrong there is a
  /// remark once the devices have been allocated.
  Field ForSchedulers(const Field& field) const {
    return is_allocated_ ? field.AsRemarks() : field;
  }
  /// What stands at `exactly`.
  Field Exactly(const Field& field) const {
    return is_flat_ ? field : field["exactly"];
  }

 private:
  DeviceSubRequest DecodeSubRequest(const Field& field) const;
  void DecodeAlternatives(const Field& list, DeviceRequest& request) const;
  void ReportEmpty(const Field& field) const;

  bool is_flat_;
  bool is_allocated_;
};

/// The part that plain requests and alternatives share.
DeviceSubRequest RequestDecoder::DecodeSubRequest(const Field& field) const {
  DeviceSubRequest request;
  request.device_class_name =
      RequiredName(field["deviceClassName"], CheckSubdomain);
  DecodeModeAndCount(field, request);
  const Field extra = ForSchedulers(field);
  request.selectors = DecodeSelectors(extra["selectors"]);
  request.tolerations = DecodeTolerations(extra["tolerations"]);
  request.capacity_requests = DecodeCapacityRequests(extra["capacity"]);
  request.derived_attributes = DecodeDerived(extra["derivedAttributes"]);
  return request;
}

void RequestDecoder::DecodeAlternatives(const Field& list,
                                        DeviceRequest& request) const {
  CheckCount(list, kMaxAlternatives);
  std::set<std::string> names;
  for (const Field& item : list.Items()) {
    if (!item.RequireMap()) continue;
    DeviceSubRequest alternative = DecodeSubRequest(item);
    alternative.name = RequiredName(item["name"], CheckLabel);
    if (!alternative.name.empty() && !names.insert(alternative.name).second) {
      item["name"].Error(fmt::format("{} is the name of another alternative",
                                     Quoted(alternative.name)));
    }
    const Field admin_access = ForSchedulers(item)["adminAccess"];
    if (admin_access.IsPresent()) {
      admin_access.Error("is not known in alternatives");
    }
    request.first_available.push_back(std::move(alternative));
  }
}

void RequestDecoder::ReportEmpty(const Field& field) const {
  const bool other_shape =
      is_flat_ ? field["exactly"].IsPresent() : HasExactFields(field);
  field.Error(fmt::format(
      "asks for nothing: {} is required{}",
      is_flat_ ? "deviceClassName" : "'exactly' or 'firstAvailable'",
      !other_shape ? ""
      : is_flat_   ? " ('exactly' is not known in v1beta1)"
                   : " (deviceClassName and the like stand under 'exactly' "
                     "since v1beta2)"));
}

DeviceRequest RequestDecoder::Decode(const Field& field) const {
  DeviceRequest request;
  request.name = RequiredName(field["name"], CheckLabel);
  const Field alternatives = field["firstAvailable"];
  const bool has_alternatives =
      alternatives.IsPresent() &&
      !(alternatives.value()->kind == Value::Kind::kList &&
        alternatives.value()->items.empty());
  const bool is_exact =
      is_flat_ ? HasExactFields(field) : field["exactly"].IsPresent();
  if (is_exact && has_alternatives) {
    field.Error(
        "asks for exact devices and for 'firstAvailable' alternatives; only "
        "one of the two is allowed");
  } else if (has_alternatives) {
    DecodeAlternatives(alternatives, request);
  } else if (!is_exact) {
    ReportEmpty(field);
  } else if (const Field exactly = Exactly(field); exactly.IsMap()) {
    request.exactly = DecodeSubRequest(exactly);
    request.exactly->name = request.name;
    request.admin_access = exactly["adminAccess"].BoolOr(false);
    request.says_admin_access = exactly["adminAccess"].IsPresent();
  }
  return request;
}

RequestNames NamesOf(const std::vector<DeviceRequest>& requests) {
  RequestNames names;
  for (const DeviceRequest& request : requests) {
    names.insert(request.name);
    for (const DeviceSubRequest& alternative : request.first_available) {
      names.insert(request.name + "/" + alternative.name);
    }
  }
  return names;
}

/// Whether a constraint for the request, which is `request` or
/// `request/alternative`, asks for the attribute.
bool IsConstrained(const std::vector<DeviceConstraint>& constraints,
                   std::string_view request, std::string_view attribute) {
  return std::any_of(
      constraints.begin(), constraints.end(), [&](const DeviceConstraint& c) {
        const bool is_meant =
            c.requests.empty() ||
            std::any_of(c.requests.begin(), c.requests.end(),
                        [&](const std::string& name) {
                          return name == request ||
                                 name == BaseRequestName(request);
                        });
        return is_meant && (c.match_attribute == attribute ||
                            c.distinct_attribute == attribute);
      });
}

/// Attributes are derived for constraints alone.
void CheckDerivedAreUsed(const Field& list, const DeviceSubRequest& request,
                         const std::string& name,
                         const std::vector<DeviceConstraint>& constraints) {
  for (const Field& item : ItemsAgain(list)) {
    const Field attribute = item["name"];
    if (!attribute.IsString()) continue;
    const std::string text = attribute.StringOr("");
    const bool is_known = std::any_of(
        request.derived_attributes.begin(), request.derived_attributes.end(),
        [&](const DerivedAttribute& known) { return known.name == text; });
    if (!is_known || text.empty() || IsConstrained(constraints, name, text)) {
      continue;
    }
    attribute.Error(fmt::format(
        "no matchAttribute or distinctAttribute of a constraint for request {} "
        "is {}",
        Quoted(name), Quoted(text)));
  }
}

void CheckDerivedAreUsed(const RequestDecoder& decoder, const Field& item,
                         const DeviceRequest& request,
                         const std::vector<DeviceConstraint>& constraints) {
  const Field field = decoder.ForSchedulers(item);
  if (request.exactly.has_value()) {
    CheckDerivedAreUsed(decoder.Exactly(field)["derivedAttributes"],
                        *request.exactly, request.name, constraints);
  }
  std::size_t next = 0;
  for (const Field& alternative : ItemsAgain(field["firstAvailable"])) {
    if (next == request.first_available.size()) break;
    const Field list = alternative["derivedAttributes"];
    if (!alternative.IsPresent()) continue;
    const DeviceSubRequest& decoded = request.first_available[next++];
    CheckDerivedAreUsed(list, decoded, request.name + "/" + decoded.name,
                        constraints);
  }
}

}  // namespace

ResourceClaimSpec DecodeClaimSpec(const Field& field, ResourceVersion version,
                                  bool is_allocated) {
  ResourceClaimSpec spec;
  if (HasResourceHandles(version)) {
    const Field old = is_allocated ? field.AsRemarks() : field;
    if (old.IsMap() || !is_allocated) spec.old = DecodeOldClaimSpec(old);
    return spec;
  }
  if (!field.IsMap()) return spec;
  if (version == ResourceVersion::kV1Alpha3) {
    spec.controller = field["controller"].AsRemarks().StringOr("");
  }
  const Field devices = field["devices"];
  if (!devices.IsMap()) return spec;
  const RequestDecoder decoder(version, is_allocated);
  const Field requests = devices["requests"];
  CheckCount(requests, kMaxRequests);
  std::set<std::string> names;
  std::vector<Field> places;
  for (const Field& item : requests.Items()) {
    if (!item.RequireMap()) continue;
    DeviceRequest request = decoder.Decode(item);
    if (!request.name.empty() && !names.insert(request.name).second) {
      item["name"].Error(fmt::format("{} is the name of another request",
                                     Quoted(request.name)));
    }
    spec.requests.push_back(std::move(request));
    places.push_back(item);
  }
  const RequestNames known = NamesOf(spec.requests);
  const Field extra = decoder.ForSchedulers(devices);
  spec.constraints = DecodeConstraints(extra["constraints"], known);
  spec.config = DecodeClaimConfig(extra["config"], known);
  for (std::size_t i = 0; i < places.size(); ++i) {
    CheckDerivedAreUsed(decoder, places[i], spec.requests[i], spec.constraints);
  }
  return spec;
}

}  // namespace devmgr::api
