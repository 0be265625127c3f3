// SPDX-License-Identifier: Apache-2.0
//
// The order of requests and mappings is that of the scheduler's plugin for
// dynamic resources (extendeddynamicresources.go), so that what reads one reads
// the other.
#include "control/special_claim.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "api/names.h"
#include "api/quote.h"
#include "claim/device_class.h"
#include "common/status.h"
#include "control/saturated_sum.h"

namespace devmgr::control {
namespace {

/// A container at its place among all: init containers come first.
struct Place {
  const Container* container = nullptr;
  std::size_t index = 0;
  /// Ends before the next one starts, which may use the same devices then.
  bool ends_early = false;
};

std::vector<Place> PlacesOf(const Pod& pod) {
  std::vector<Place> places;
  for (const Container& container : pod.spec.init_containers) {
    places.push_back(
        {&container, places.size(), container.restart_policy != "Always"});
  }
  for (const Container& container : pod.spec.containers) {
    places.push_back({&container, places.size(), false});
  }
  return places;
}

/// What the container requests of a resource; 0: nothing that counts.
std::int64_t Wanted(const Place& place, const std::string& resource) {
  const auto& requests = place.container->resources.requests;
  const auto found = requests.find(resource);
  if (found == requests.end() || !found->second.IsInteger()) return 0;
  return std::max<std::int64_t>(found->second.whole, 0);
}

/// By the container's place and the resource's among all that it requests, CPU
/// and memory included.
std::string RequestName(const Place& place, const std::string& resource) {
  const auto& requests = place.container->resources.requests;
  return fmt::format("container-{}-request-{}", place.index,
                     std::distance(requests.begin(), requests.find(resource)));
}

DeviceRequest MakeRequest(std::string name, const std::string& device_class,
                          std::int64_t count) {
  DeviceRequest request;
  request.name = name;
  DeviceSubRequest& exactly = request.exactly.emplace();
  exactly.name = std::move(name);
  exactly.device_class_name = device_class;
  exactly.allocation_mode = "ExactCount";
  exactly.count = count;
  return request;
}

/// Requests and mappings of one resource.
class ResourceRequests {
 public:
  ResourceRequests(std::string resource, std::string device_class)
      : resource_(std::move(resource)),
        device_class_(std::move(device_class)) {}

  void Ask(const std::vector<Place>& places) {
    for (const Place& place : places) {
      if (!place.ends_early) AskForLongLived(place);
    }
    for (const Place& place : places) {
      if (place.ends_early) AskForShortLived(place);
    }
  }

  void AddTo(SpecialClaim& special) {
    auto& requests = special.claim.spec.requests;
    for (Request& request : requests_) {
      requests.push_back(
          MakeRequest(std::move(request.name), device_class_, request.count));
    }
    if (excess_.has_value()) {
      for (const std::size_t at : excess_mappings_) {
        mappings_[at].request_name = excess_->name;
      }
      requests.push_back(
          MakeRequest(excess_->name, device_class_, excess_->count));
    }
    std::move(mappings_.begin(), mappings_.end(),
              std::back_inserter(special.mappings));
  }

  std::int64_t devices() const {
    std::int64_t devices = excess_.has_value() ? excess_->count : 0;
    for (const Request& request : requests_) {
      devices = SaturatedSum(devices, request.count);
    }
    return devices;
  }

 private:
  struct Request {
    std::size_t place = 0;
    std::string name;
    std::int64_t count = 0;
  };

  void AskForLongLived(const Place& place) {
    const std::int64_t count = Wanted(place, resource_);
    if (count == 0) return;
    requests_.push_back({place.index, RequestName(place, resource_), count});
    Map(place, requests_.back().name);
  }

  /// It uses what containers get that start later. Of what is lacking then
  /// there is one request for all of these containers, as large as the largest
  /// needs it.
  void AskForShortLived(const Place& place) {
    std::int64_t lacking = Wanted(place, resource_);
    for (const Request& later : requests_) {
      if (lacking <= 0) return;
      if (later.place < place.index) continue;
      Map(place, later.name);
      lacking -= later.count;
    }
    if (lacking <= 0) return;
    if (!excess_.has_value() || excess_->count < lacking) {
      excess_ = {place.index, RequestName(place, resource_), lacking};
    }
    excess_mappings_.push_back(mappings_.size());
    Map(place, "");
  }

  void Map(const Place& place, const std::string& request) {
    mappings_.push_back({place.container->name, resource_, request});
  }

  std::string resource_;
  std::string device_class_;
  std::vector<Request> requests_;  ///< Of containers that run on.
  std::optional<Request> excess_;  ///< Of those that end early.
  std::vector<ContainerExtendedResourceRequest> mappings_;
  std::vector<std::size_t> excess_mappings_;  ///< To be named after `excess_`.
};

std::set<std::string> ResourcesByClaim(
    const std::vector<Place>& places,
    const std::function<bool(const ResourceName&)>& served_by_class) {
  std::set<std::string> names;
  for (const Place& place : places) {
    for (const auto& [resource, quantity] :
         place.container->resources.requests) {
      if (Wanted(place, resource) > 0 && !names.contains(resource) &&
          api::CanBeDraExtendedResource(resource) &&
          served_by_class(resource)) {
        names.insert(resource);
      }
    }
  }
  return names;
}

ResourceClaim ClaimOf(const Pod& pod) {
  ResourceClaim claim;
  claim.metadata.name = kWorkingClaimName;
  claim.metadata.ns = pod.metadata.ns;
  claim.metadata.annotations[kExtendedResourceClaimAnnotation] = "true";
  claim.metadata.owner_references.push_back(
      {"v1", "Pod", pod.metadata.name, pod.metadata.uid, true});
  return claim;
}

}  // namespace

absl::StatusOr<std::optional<SpecialClaim>> BuildSpecialClaim(
    const Pod& pod, const ObjectMap<DeviceClass>& classes,
    const std::function<bool(const ResourceName&)>& served_by_class) {
  const std::vector<Place> places = PlacesOf(pod);
  const auto resources = ResourcesByClaim(places, served_by_class);
  if (resources.empty()) return std::nullopt;

  const claim::ResourceClasses by_resource(classes);
  SpecialClaim special{ClaimOf(pod), {}};
  std::int64_t devices = 0;
  for (const std::string& resource : resources) {
    const DeviceClass* item = by_resource.Find(resource);
    if (item == nullptr) {
      return NotFoundError("extended resource {}: {}", api::Quoted(resource),
                           by_resource.WhyNone(resource));
    }
    ResourceRequests requests(resource, item->metadata.name);
    requests.Ask(places);
    devices = SaturatedSum(devices, requests.devices());
    requests.AddTo(special);
  }
  if (devices > kMaxDevicesPerClaim) {
    return InvalidArgumentError(
        "pod {}: its extended resources need {} devices by claim, at most {} "
        "fit into one ResourceClaim",
        api::Quoted(pod.metadata.FullName().ToString()), devices,
        kMaxDevicesPerClaim);
  }
  auto& requests = special.claim.spec.requests;
  std::sort(requests.begin(), requests.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return special;
}

bool IsAsWanted(const ResourceClaim& special, const SpecialClaim& wanted) {
  return special.spec == wanted.claim.spec;
}

}  // namespace devmgr::control
