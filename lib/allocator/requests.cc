// SPDX-License-Identifier: Apache-2.0
#include "allocator/requests.h"

#include <devmgr/cel.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "common/status.h"

namespace devmgr::allocator {
namespace {

class Reader {
 public:
  Reader(std::span<const DeviceClass* const> classes, const Features& features,
         SelectorTable& selectors, AttributeTable& attributes,
         Requests& requests)
      : features_(features),
        selectors_(selectors),
        attributes_(attributes),
        requests_(requests),
        classes_(classes) {}

  absl::Status Read(const ResourceClaim& source) {
    Claim& claim = requests_.claims.emplace_back();
    claim.claim = &source;
    for (const DeviceConstraint& constraint : source.spec.constraints) {
      if (constraint.match_attribute.empty() &&
          constraint.distinct_attribute.empty()) {
        return InvalidArgumentError(
            "claim {}, constraint #{}: empty constraint (unsupported "
            "constraint type?)",
            claim.Text(), claim.constraints.size());
      }
      claim.constraints.emplace_back(constraint, attributes_);
    }
    for (const DeviceRequest& request : source.spec.requests) {
      DEVMGR_RETURN_IF_ERROR(ReadMain(request));
    }
    return CheckDerivedCost(source);
  }

 private:
  absl::Status ReadMain(const DeviceRequest& source) {
    Claim& claim = requests_.claims.back();
    MainRequest& main = claim.requests.emplace_back();
    main.first = static_cast<RequestNumber>(requests_.requests.size());
    main.has_alternatives = !source.first_available.empty();
    if (main.has_alternatives) {
      if (!features_.prioritized_list) {
        return OffError(source.name, "has subrequests", "DRAPrioritizedList");
      }
      main.count = static_cast<std::uint32_t>(source.first_available.size());
      for (const DeviceSubRequest& each : source.first_available) {
        DEVMGR_RETURN_IF_ERROR(
            ReadOne(source, each, source.name + '/' + each.name));
      }
      return absl::OkStatus();
    }
    if (!source.exactly) {
      return InvalidArgumentError(
          "claim {}, request {}: neither exactly nor firstAvailable "
          "(unsupported request type?)",
          claim.Text(), source.name);
    }
    if (source.says_admin_access && !features_.admin_access) {
      return OffError(source.name, "admin access is requested",
                      "DRAAdminAccess");
    }
    return ReadOne(source, *source.exactly, source.name);
  }

  absl::Status ReadOne(const DeviceRequest& main, const DeviceSubRequest& spec,
                       const std::string& name) {
    const Claim& claim = requests_.claims.back();
    Request request;
    request.claim = static_cast<std::uint32_t>(requests_.claims.size() - 1);
    request.main_name = main.name;
    request.name = name;
    request.spec = &spec;
    request.has_admin_access =
        main.admin_access && main.first_available.empty();
    DEVMGR_RETURN_IF_ERROR(CheckFeatures(spec, name));
    DEVMGR_RETURN_IF_ERROR(ReadSelectors(request));
    DEVMGR_RETURN_IF_ERROR(ReadClass(request));
    DEVMGR_RETURN_IF_ERROR(ReadCount(request));
    for (std::uint32_t i = 0; i < claim.constraints.size(); ++i) {
      if (claim.constraints[i].AppliesTo(main.name, name)) {
        request.constraints.push_back(
            {i, AttributeOf(claim.constraints[i], spec)});
      }
    }
    requests_.requests.push_back(std::move(request));
    return absl::OkStatus();
  }

  absl::Status CheckFeatures(const DeviceSubRequest& spec,
                             const std::string& name) const {
    if (!spec.capacity_requests.empty() && !features_.consumable_capacity) {
      return OffError(name, "has capacity requests", "DRAConsumableCapacity");
    }
    if (!spec.derived_attributes.empty() && !features_.derived_attributes) {
      return OffError(name, "has derived attributes", "DRADerivedAttributes");
    }
    return absl::OkStatus();
  }

  /// Upstream adds the estimates of all derived attributes of a claim, also of
  /// alternatives that exclude each other.
  absl::Status CheckDerivedCost(const ResourceClaim& source) {
    std::uint64_t total = 0;
    const auto add = [&](const DeviceSubRequest& spec) {
      for (const DerivedAttribute& derived : spec.derived_attributes) {
        const std::uint64_t cost = selectors_.MaxCost(selectors_.Add(
            derived.expression, SelectorTable::Kind::kDerivedAttribute));
        const std::uint64_t left =
            std::numeric_limits<std::uint64_t>::max() - total;
        total += std::min(cost, left);
      }
    };
    for (const DeviceRequest& request : source.spec.requests) {
      if (request.exactly) add(*request.exactly);
      for (const DeviceSubRequest& each : request.first_available) add(each);
    }
    if (total <= kCelCostLimit) return absl::OkStatus();
    return InvalidArgumentError(
        "claim {}: the CEL expressions of its derived attributes may cost {} "
        "in all, at most {} are allowed",
        requests_.claims.back().Text(), total, kCelCostLimit);
  }

  absl::Status ReadSelectors(Request& request) {
    for (const std::string& text : request.spec->selectors) {
      if (text.empty()) {
        return InvalidArgumentError(
            "claim {}, request {}, selector #{}: CEL expression empty "
            "(unsupported selector type?)",
            requests_.claims.back().Text(), request.name,
            request.selectors.size());
      }
      request.selectors.push_back(
          selectors_.Add(text, request.spec->named_driver.empty()
                                   ? SelectorTable::Kind::kDevice
                                   : SelectorTable::Kind::kOldDevice));
    }
    return absl::OkStatus();
  }

  absl::Status ReadClass(Request& request) {
    const std::string& name = request.spec->device_class_name;
    if (name.empty()) {
      return InvalidArgumentError(
          "claim {}, request {}: missing device class name (unsupported "
          "request type?)",
          requests_.claims.back().Text(), request.name);
    }
    const auto found = std::find_if(
        classes_.begin(), classes_.end(),
        [&](const DeviceClass* each) { return each->metadata.name == name; });
    if (found == classes_.end()) {
      return InvalidArgumentError(
          "claim {}, request {}: device class '{}' is missing",
          requests_.claims.back().Text(), request.name, name);
    }
    request.device_class = *found;
    ReadDriver(request);
    for (const std::string& text : request.device_class->selectors) {
      request.class_selectors.push_back(selectors_.Add(text));
    }
    return absl::OkStatus();
  }

  /// What is derived takes the place of what a device publishes.
  std::size_t AttributeOf(const Constraint& constraint,
                          const DeviceSubRequest& spec) {
    for (const DerivedAttribute& derived : spec.derived_attributes) {
      if (derived.name != constraint.attribute_name()) continue;
      return attributes_.AddDerived(derived.expression, selectors_);
    }
    return constraint.attribute();
  }

  void ReadDriver(Request& request) {
    const std::string& driver = request.spec->named_driver;
    if (driver.empty()) return;
    request.class_selectors.push_back(selectors_.AddDriver(driver));
    requests_.claims.back().most_devices = kMostNamedResources;
  }

  absl::Status ReadCount(Request& request) const {
    const std::string& mode = request.spec->allocation_mode;
    request.wants_all = mode == "All";
    if (!request.wants_all && mode != "ExactCount") {
      return InvalidArgumentError(
          "claim {}, request {}: unsupported count mode '{}'",
          requests_.claims.back().Text(), request.name, mode);
    }
    if (request.wants_all) return absl::OkStatus();
    if (request.spec->count < 1) {
      return InvalidArgumentError(
          "claim {}, request {}: {} devices are wanted, which is less than 1",
          requests_.claims.back().Text(), request.name, request.spec->count);
    }
    request.wanted = request.spec->count;
    return absl::OkStatus();
  }

  absl::Status OffError(std::string_view request, std::string_view what,
                        std::string_view gate) const {
    return InvalidArgumentError(
        "claim {}, request {}: {}, but the feature {} is disabled",
        requests_.claims.back().Text(), request, what, gate);
  }

  const Features& features_;
  SelectorTable& selectors_;
  AttributeTable& attributes_;
  Requests& requests_;
  std::span<const DeviceClass* const> classes_;
};

}  // namespace

std::string Claim::Text() const {
  const ObjectMeta& metadata = claim->metadata;
  return metadata.ns.empty() ? metadata.name
                             : metadata.ns + '/' + metadata.name;
}

absl::Status ReadRequests(std::span<const ResourceClaim* const> claims,
                          std::span<const DeviceClass* const> classes,
                          const Features& features, SelectorTable& selectors,
                          AttributeTable& attributes, Requests& requests) {
  Reader reader(classes, features, selectors, attributes, requests);
  for (const ResourceClaim* claim : claims) {
    DEVMGR_RETURN_IF_ERROR(reader.Read(*claim));
  }
  return absl::OkStatus();
}

absl::Status CheckCounts(const Requests& requests) {
  for (const Claim& claim : requests.claims) {
    std::int64_t total = 0;
    for (const MainRequest& main : claim.requests) {
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (std::uint32_t i = 0; i < main.count; ++i) {
        least = std::min(least, requests.requests[main.first + i].wanted);
      }
      if (least > claim.most_devices - total) {
        return InvalidArgumentError(
            "claim {}, request {}: adding {} devices exceeds the claim limit "
            "of {}, with {} already accounted for",
            claim.Text(), requests.requests[main.first].main_name, least,
            claim.most_devices, total);
      }
      total += least;
    }
  }
  return absl::OkStatus();
}

}  // namespace devmgr::allocator
