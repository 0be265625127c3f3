// SPDX-License-Identifier: Apache-2.0
//
// Upstream's pkg/apis/core/validation for the fields of a pod that are kept.
#include <fmt/core.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "api/names.h"
#include "api/pod.h"
#include "api/quantity.h"
#include "api/quote.h"

namespace devmgr::api {
namespace {

using PodProblems = std::vector<PodProblem>;

void Check(PodProblems& problems, std::string field, std::string problem) {
  if (!problem.empty()) {
    problems.push_back({std::move(field), std::move(problem)});
  }
}

bool IsNative(std::string_view resource) {
  return resource.find('/') == std::string_view::npos ||
         resource.find("kubernetes.io/") != std::string_view::npos;
}

/// Whether requests may be below limits. Devices and huge pages cannot be
/// promised twice.
bool MayOvercommit(std::string_view resource) {
  return IsNative(resource) && !CanBeDraExtendedResource(resource) &&
         !resource.starts_with("hugepages-");
}

std::string CheckResourceName(std::string_view name) {
  if (std::string problem = CheckQualifiedName(name); !problem.empty()) {
    return problem;
  }
  if (name.find('/') == std::string_view::npos) {
    if (name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
        name.starts_with("hugepages-")) {
      return "";
    }
    return fmt::format(
        "{} is not a standard resource of containers, and has no domain to be "
        "an extended resource",
        Quoted(name));
  }
  if (IsNative(name) || IsExtendedResourceName(name)) return "";
  return fmt::format(
      "{} is not an extended resource name (a domain outside kubernetes.io, "
      "not beginning with 'requests.', then '/' and a name)",
      Quoted(name));
}

void CheckQuantities(PodProblems& problems, const std::string& path,
                     const std::map<std::string, Quantity>& quantities) {
  for (const auto& [name, quantity] : quantities) {
    const std::string field = fmt::format("{}[{}]", path, name);
    Check(problems, field, CheckResourceName(name));
    if (IsNegative(quantity)) {
      Check(problems, field,
            fmt::format("{} is negative", Quoted(quantity.text)));
    }
    if (CanBeDraExtendedResource(name) && !quantity.IsInteger()) {
      Check(problems, field,
            fmt::format("{} is not an integer, which extended resources are",
                        Quoted(quantity.text)));
    }
  }
}

void CheckRequestsAgainstLimits(PodProblems& problems, const std::string& path,
                                const ResourceRequirements& resources) {
  for (const auto& [name, request] : resources.requests) {
    const std::string field = fmt::format("{}.requests[{}]", path, name);
    const auto limit = resources.limits.find(name);
    if (limit == resources.limits.end()) {
      if (MayOvercommit(name)) continue;
      Check(problems, field,
            fmt::format("{} is requested without a limit; it must have one of "
                        "the same amount",
                        Quoted(name)));
    } else if (!MayOvercommit(name) && !(request == limit->second)) {
      Check(problems, field,
            fmt::format("{} must be equal to the limit {}",
                        Quoted(request.text), Quoted(limit->second.text)));
    } else if (Compare(request, limit->second) > 0) {
      Check(problems, field,
            fmt::format("{} is more than the limit {}", Quoted(request.text),
                        Quoted(limit->second.text)));
    }
  }
}

/// The rules that a node without an API server must check itself: references
/// name claims of the pod, once, and not both as a whole and by request.
void CheckClaimReferences(PodProblems& problems, const std::string& path,
                          const std::vector<ContainerClaimReference>& claims,
                          const std::set<std::string_view>& pod_claims) {
  std::map<std::string_view, std::set<std::string_view>> seen;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const ContainerClaimReference& claim = claims[i];
    const std::string field = fmt::format("{}.claims[{}]", path, i);
    if (claim.name.empty()) {
      Check(problems, field + ".name", "is required");
      continue;
    }
    if (!pod_claims.contains(claim.name)) {
      Check(problems, field + ".name",
            fmt::format("{} is not the name of an entry of spec.resourceClaims",
                        Quoted(claim.name)));
    }
    if (!claim.request.empty()) {
      Check(problems, field + ".request", CheckLabel(claim.request));
    }
    std::set<std::string_view>& requests = seen[claim.name];
    const bool mixes_whole =
        !requests.empty() && requests.contains("") != claim.request.empty();
    if (!requests.insert(claim.request).second) {
      Check(problems, field,
            fmt::format("claim {}{} is listed twice", Quoted(claim.name),
                        claim.request.empty()
                            ? ""
                            : " with request " + Quoted(claim.request)));
    } else if (mixes_whole) {
      Check(problems, field,
            fmt::format("claim {} is used as a whole and by request; only one "
                        "of the two is allowed",
                        Quoted(claim.name)));
    }
  }
}

void CheckPodClaims(PodProblems& problems, const PodSpec& spec,
                    std::set<std::string_view>& names) {
  for (std::size_t i = 0; i < spec.resource_claims.size(); ++i) {
    const PodResourceClaim& claim = spec.resource_claims[i];
    const std::string field = fmt::format("spec.resourceClaims[{}]", i);
    Check(problems, field + ".name", CheckLabel(claim.name));
    if (!names.insert(claim.name).second) {
      Check(problems, field + ".name",
            fmt::format("{} is the name of another entry too",
                        Quoted(claim.name)));
    }
    if (claim.resource_claim_name && claim.resource_claim_template_name) {
      Check(problems, field,
            "resourceClaimName and resourceClaimTemplateName exclude each "
            "other");
    }
    if (claim.resource_claim_name) {
      Check(problems, field + ".resourceClaimName",
            CheckSubdomain(*claim.resource_claim_name));
    }
    if (claim.resource_claim_template_name) {
      Check(problems, field + ".resourceClaimTemplateName",
            CheckSubdomain(*claim.resource_claim_template_name));
    }
  }
}

void CheckContainers(PodProblems& problems, std::string_view list,
                     const std::vector<Container>& containers,
                     const std::set<std::string_view>& pod_claims,
                     std::map<std::string_view, const Container*>& by_name) {
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Container& container = containers[i];
    const std::string field = fmt::format("spec.{}[{}]", list, i);
    Check(problems, field + ".name", CheckLabel(container.name));
    if (!by_name.try_emplace(container.name, &container).second) {
      Check(problems, field + ".name",
            fmt::format("{} is the name of another container too",
                        Quoted(container.name)));
    }
    const std::string resources = field + ".resources";
    CheckQuantities(problems, resources + ".limits",
                    container.resources.limits);
    // What was copied from the limits has been judged there.
    std::map<std::string, Quantity> requests = container.resources.requests;
    for (const auto& [name, limit] : container.resources.limits) {
      const auto found = requests.find(name);
      if (found != requests.end() && found->second == limit) {
        requests.erase(found);
      }
    }
    CheckQuantities(problems, resources + ".requests", requests);
    CheckRequestsAgainstLimits(problems, resources, container.resources);
    CheckClaimReferences(problems, resources, container.resources.claims,
                         pod_claims);
  }
}

void CheckClaimStatuses(PodProblems& problems, const PodStatus& status,
                        const std::set<std::string_view>& pod_claims) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < status.resource_claim_statuses.size(); ++i) {
    const PodResourceClaimStatus& claim = status.resource_claim_statuses[i];
    const std::string field =
        fmt::format("status.resourceClaimStatuses[{}]", i);
    if (!pod_claims.contains(claim.name)) {
      Check(problems, field + ".name",
            fmt::format("{} is not the name of an entry of spec.resourceClaims",
                        Quoted(claim.name)));
    }
    if (!seen.insert(claim.name).second) {
      Check(problems, field + ".name",
            fmt::format("{} is the name of another entry too",
                        Quoted(claim.name)));
    }
    if (claim.resource_claim_name) {
      Check(problems, field + ".resourceClaimName",
            CheckSubdomain(*claim.resource_claim_name));
    }
  }
}

void CheckMapping(
    PodProblems& problems, const std::string& field,
    const ContainerExtendedResourceRequest& mapping,
    const std::map<std::string_view, const Container*>& containers) {
  const auto container = containers.find(mapping.container_name);
  if (container == containers.end()) {
    Check(problems, field + ".containerName",
          fmt::format("{} is neither a container nor an init container",
                      Quoted(mapping.container_name)));
  } else if (!container->second->resources.requests.contains(
                 mapping.resource_name)) {
    Check(problems, field + ".resourceName",
          fmt::format("{} is not among the requests of container {}",
                      Quoted(mapping.resource_name),
                      Quoted(mapping.container_name)));
  }
  Check(problems, field + ".requestName", CheckLabel(mapping.request_name));
}

void CheckExtendedClaimStatus(
    PodProblems& problems, const PodExtendedResourceClaimStatus& status,
    const std::map<std::string_view, const Container*>& containers) {
  const std::string path = "status.extendedResourceClaimStatus";
  Check(problems, path + ".resourceClaimName",
        CheckSubdomain(status.resource_claim_name));
  if (status.request_mappings.empty()) {
    Check(problems, path + ".requestMappings",
          "at least one mapping is required");
  }
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>>
      seen;
  for (std::size_t i = 0; i < status.request_mappings.size(); ++i) {
    const ContainerExtendedResourceRequest& mapping =
        status.request_mappings[i];
    const std::string field = fmt::format("{}.requestMappings[{}]", path, i);
    CheckMapping(problems, field, mapping, containers);
    if (!seen.emplace(mapping.container_name, mapping.resource_name,
                      mapping.request_name)
             .second) {
      Check(problems, field, "the same mapping is listed twice");
    }
  }
}

}  // namespace

std::vector<PodProblem> ValidatePod(const Pod& pod) {
  PodProblems problems;
  Check(problems, "metadata.name", CheckSubdomain(pod.metadata.name));
  Check(problems, "metadata.namespace", CheckLabel(pod.metadata.ns));
  std::set<std::string_view> claims;
  CheckPodClaims(problems, pod.spec, claims);
  if (pod.spec.containers.empty()) {
    Check(problems, "spec.containers", "at least one container is required");
  }
  std::map<std::string_view, const Container*> containers;
  CheckContainers(problems, "initContainers", pod.spec.init_containers, claims,
                  containers);
  CheckContainers(problems, "containers", pod.spec.containers, claims,
                  containers);
  CheckClaimStatuses(problems, pod.status, claims);
  if (pod.status.extended_resource_claim_status) {
    CheckExtendedClaimStatus(
        problems, *pod.status.extended_resource_claim_status, containers);
  }
  return problems;
}

PodProblem Summary(const std::vector<PodProblem>& broken) {
  constexpr std::size_t kEnough = 2'000;
  PodProblem all = broken.front();
  for (std::size_t i = 1; i < broken.size() && all.message.size() < kEnough;
       ++i) {
    all.message += fmt::format("; {}: {}", broken[i].field, broken[i].message);
  }
  return all;
}

}  // namespace devmgr::api
