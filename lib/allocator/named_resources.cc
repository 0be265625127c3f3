// SPDX-License-Identifier: Apache-2.0
#include "allocator/named_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"

namespace devmgr::allocator {
namespace {

constexpr std::string_view kGroup = "resource.k8s.io";

/// `kind.group namespace/name`.
std::string Text(const ParametersReference& reference, std::string_view ns) {
  return fmt::format("{}{}{} {}/{}", reference.kind,
                     reference.api_group.empty() ? "" : ".",
                     reference.api_group, ns, reference.name);
}

bool IsGeneratedFrom(const std::optional<ParametersReference>& from,
                     const ParametersReference& reference) {
  return from && from->api_group == reference.api_group &&
         from->kind == reference.kind && from->name == reference.name;
}

/// Class parameters say the namespace of what they were generated from; those
/// of claims are in it.
std::string_view SourceNamespace(const ResourceClassParameters& parameters) {
  return parameters.generated_from->ns;
}
std::string_view SourceNamespace(const ResourceClaimParameters& parameters) {
  return parameters.metadata.ns;
}

/// The object of `kind` that `reference` names, or the one that was generated
/// from it.
template <typename Parameters>
absl::StatusOr<const Parameters*> LookUp(const ParametersReference& reference,
                                         std::string_view kind,
                                         std::string_view ns,
                                         std::span<const Parameters> objects) {
  const bool is_direct =
      reference.api_group == kGroup && reference.kind == kind;
  std::vector<const Parameters*> found;
  for (const Parameters& each : objects) {
    const bool is_it =
        is_direct
            ? each.metadata.ns == ns && each.metadata.name == reference.name
            : IsGeneratedFrom(each.generated_from, reference) &&
                  SourceNamespace(each) == ns;
    if (is_it) found.push_back(&each);
  }
  if (found.size() == 1) return found.front();
  if (found.empty() && is_direct) {
    return UnavailableError("{} {}/{} is missing", kind, ns, reference.name);
  }
  if (found.empty()) {
    return UnavailableError(
        "generated parameters for {} are missing; the driver's controller "
        "writes them",
        Text(reference, ns));
  }
  std::set<std::string> names;
  for (const Parameters* each : found) names.insert(each->metadata.name);
  return InvalidArgumentError(
      "there are several generated parameters for {}: {}", Text(reference, ns),
      fmt::join(names, ", "));
}

/// Makes the claim, once all is looked up. Without parameters of the class
/// there are no filters; those of the claim are always there.
class Maker {
 public:
  Maker(const ResourceClaim& claim, const ResourceClass& resource_class,
        const ResourceClassParameters* filters)
      : class_parameters_(filters) {
    made_.claim.metadata = claim.metadata;
    made_.claim.status = claim.status;
    made_.device_class.metadata = resource_class.metadata;
    made_.device_class.metadata.name =
        "ResourceClass " + resource_class.metadata.name;
    made_.driver = resource_class.driver;
    if (filters == nullptr) return;
    for (const auto& [driver, parameters] : filters->vendor_parameters) {
      if (!HasParameters(parameters)) continue;
      made_.device_class.config.push_back({driver, parameters});
      made_.handles[driver].vendor_class_parameters = parameters;
    }
  }

  NamedResourceClaim Make(const ResourceClaimParameters& parameters) {
    made_.is_shareable = parameters.is_shareable;
    const auto& entries = parameters.driver_requests;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      // Of several entries for one driver the first one has its parameters.
      if (drivers_.insert(entries[i].driver).second) {
        AddConfig(RequestsOf(entries[i].driver, entries), entries[i].driver,
                  entries[i].vendor_parameters);
        made_.handles[entries[i].driver].vendor_claim_parameters =
            Parameters(entries[i].vendor_parameters);
      }
      for (std::size_t j = 0; j < entries[i].requests.size(); ++j) {
        const std::string name = RequestName(i, j);
        AddRequest(name, entries[i].driver, entries[i].requests[j]);
        AddConfig({name}, entries[i].driver,
                  entries[i].requests[j].vendor_parameters);
        made_.vendor_parameters[name] =
            Parameters(entries[i].requests[j].vendor_parameters);
      }
    }
    return std::move(made_);
  }

 private:
  using Entries = std::vector<ResourceClaimParameters::DriverRequests>;

  static std::string RequestName(std::size_t entry, std::size_t request) {
    return fmt::format("r-{}-{}", entry, request);
  }

  static std::vector<std::string> RequestsOf(const std::string& driver,
                                             const Entries& entries) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].driver != driver) continue;
      for (std::size_t j = 0; j < entries[i].requests.size(); ++j) {
        names.push_back(RequestName(i, j));
      }
    }
    return names;
  }

  static bool HasParameters(std::string_view parameters) {
    return !parameters.empty() && parameters != "null";
  }

  static std::string Parameters(const std::string& parameters) {
    return HasParameters(parameters) ? parameters : "";
  }

  void AddConfig(std::vector<std::string> requests, const std::string& driver,
                 const std::string& parameters) {
    if (requests.empty() || !HasParameters(parameters)) return;
    made_.claim.spec.config.push_back(
        {std::move(requests), {driver, parameters}});
  }

  void AddRequest(const std::string& name, const std::string& driver,
                  const ResourceClaimParameters::Request& asked) {
    DeviceRequest& request = made_.claim.spec.requests.emplace_back();
    request.name = name;
    DeviceSubRequest& exactly = request.exactly.emplace();
    exactly.name = name;
    exactly.device_class_name = made_.device_class.metadata.name;
    exactly.allocation_mode = "ExactCount";
    exactly.count = 1;
    exactly.named_driver = driver;
    if (const std::string* filter = FilterOf(driver)) {
      exactly.selectors.push_back(*filter);
    }
    exactly.selectors.push_back(asked.selector);
  }

  /// The first one of the driver. Null when it has none.
  const std::string* FilterOf(const std::string& driver) const {
    if (class_parameters_ == nullptr) return nullptr;
    for (const auto& filter : class_parameters_->filters) {
      if (filter.driver == driver) return &filter.selector;
    }
    return nullptr;
  }

  const ResourceClassParameters* class_parameters_;
  std::set<std::string> drivers_;
  NamedResourceClaim made_;
};

absl::StatusOr<const ResourceClass*> FindClass(
    const std::string& name, std::span<const ResourceClass> classes) {
  const auto found = std::find_if(
      classes.begin(), classes.end(),
      [&](const auto& each) { return each.metadata.name == name; });
  if (found == classes.end()) {
    return UnavailableError("ResourceClass {} is missing", name);
  }
  if (!found->has_structured_parameters) {
    return FailedPreconditionError(
        "ResourceClass {} has no structured parameters: the controller of "
        "driver {} allocates its claims",
        name, found->driver);
  }
  return &*found;
}

/// One device of the class's driver, whichever it is.
ResourceClaimParameters AnyDevice(const ResourceClass& resource_class) {
  ResourceClaimParameters parameters;
  parameters.is_shareable = true;
  parameters.driver_requests.push_back(
      {resource_class.driver, "", {{"", "true"}}});
  return parameters;
}

}  // namespace

absl::StatusOr<NamedResourceClaim> MakeNamedResourceClaim(
    const ResourceClaim& claim, const OldClaimSpec& spec,
    const NamedResourceObjects& objects) {
  DEVMGR_ASSIGN_OR_RETURN(const ResourceClass* found,
                          FindClass(spec.class_name, objects.classes));
  const ResourceClassParameters* filters = nullptr;
  if (found->parameters) {
    DEVMGR_ASSIGN_OR_RETURN(
        filters, LookUp(*found->parameters, "ResourceClassParameters",
                        found->parameters->ns, objects.class_parameters));
  }
  Maker maker(claim, *found, filters);
  // Only a class says in which namespace its parameters are.
  const auto& reference =
      spec.parameters ? spec.parameters : found->default_claim_parameters;
  if (!reference) return maker.Make(AnyDevice(*found));
  const bool has_namespace = !spec.parameters && !reference->ns.empty();
  DEVMGR_ASSIGN_OR_RETURN(
      const ResourceClaimParameters* asked,
      LookUp(*reference, "ResourceClaimParameters",
             has_namespace ? reference->ns : claim.metadata.ns,
             objects.claim_parameters));
  return maker.Make(*asked);
}

void AddOldForm(const NamedResourceClaim& made, std::string_view node,
                AllocationResult& allocation) {
  allocation.shareable = made.is_shareable;
  NodeSelectorTerm term;
  term.match_expressions.push_back(
      {"kubernetes.io/hostname", "In", {std::string(node)}});
  allocation.node_selector.emplace().terms = {std::move(term)};
  for (const DeviceRequestAllocationResult& result : allocation.results) {
    ResourceHandle& handle = allocation.resource_handles[result.driver];
    if (!handle.structured) {
      const auto parameters = made.handles.find(result.driver);
      handle.structured = parameters == made.handles.end()
                              ? StructuredResourceHandle()
                              : parameters->second;
      handle.structured->node_name = node;
    }
    handle.structured->results.push_back(
        {made.vendor_parameters.at(result.request), result.device});
  }
  // As an API server's claim without handles is read.
  if (allocation.results.empty()) allocation.resource_handles[made.driver];
}

}  // namespace devmgr::allocator
