// SPDX-License-Identifier: Apache-2.0
#include "source/wanted_manifest.h"

#include <devmgr/cel.h>
#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "api/names.h"
#include "api/quote.h"

namespace devmgr::source {
namespace {

template <typename T>
constexpr std::string_view KindOf() {
  if constexpr (std::is_same_v<T, ResourceClaimTemplate>) {
    return "ResourceClaimTemplate";
  } else if constexpr (std::is_same_v<T, DeviceClass>) {
    return "DeviceClass";
  } else if constexpr (std::is_same_v<T, ResourceSlice>) {
    return "ResourceSlice";
  } else if constexpr (std::is_same_v<T, DeviceTaintRule>) {
    return "DeviceTaintRule";
  } else if constexpr (std::is_same_v<T, ResourceClass>) {
    return "ResourceClass";
  } else if constexpr (std::is_same_v<T, ResourceClassParameters>) {
    return "ResourceClassParameters";
  } else if constexpr (std::is_same_v<T, ResourceClaimParameters>) {
    return "ResourceClaimParameters";
  } else if constexpr (std::is_same_v<T, ResourceQuota>) {
    return "ResourceQuota";
  } else {
    return "Node";
  }
}

ManifestProblem Problem(const std::string& file, int line, std::string field,
                        std::string message) {
  ManifestProblem problem;
  problem.file = file;
  problem.line = line;
  problem.field = std::move(field);
  problem.message = std::move(message);
  return problem;
}

/// Takes in the objects; the first that may not come with a pod is a problem.
void TakeObjects(std::vector<DecodedObject>& objects, const std::string& file,
                 WantedManifest& manifest) {
  for (DecodedObject& decoded : objects) {
    std::visit(
        [&](auto& object) {
          using T = std::decay_t<decltype(object)>;
          if (manifest.problem.has_value()) return;
          if constexpr (std::is_same_v<T, ResourceClaim>) {
            manifest.claims.push_back(
                std::make_shared<const ResourceClaim>(std::move(object)));
          } else if constexpr (std::is_same_v<T, Pod>) {
            if (manifest.pod != nullptr) {
              manifest.problem = Problem(
                  file, decoded.line, "metadata.name",
                  fmt::format(
                      "pod {} is a second one, after {}; want each by "
                      "itself",
                      api::Quoted(object.metadata.FullName().ToString()),
                      api::Quoted(
                          manifest.pod->metadata.FullName().ToString())));
              return;
            }
            if (std::string why = ProblemOfUid(object.metadata.uid);
                !why.empty()) {
              manifest.problem =
                  Problem(file, decoded.line, "metadata.uid", std::move(why));
              return;
            }
            manifest.pod = std::make_shared<const Pod>(std::move(object));
          } else {
            manifest.problem = Problem(
                file, decoded.line, "kind",
                fmt::format("a {} does not come with a pod; put it into a "
                            "manifest of the node",
                            KindOf<T>()));
          }
        },
        decoded.object);
  }
}

auto ConsumerKey(const ResourceClaimConsumer& c) {
  return std::tie(c.api_group, c.resource, c.name, c.uid);
}

}  // namespace

WantedManifest DecodeWanted(std::string_view text, const std::string& file,
                            std::string_view node_name) {
  WantedManifest manifest;
  DecodedManifest decoded = DecodeCheckedManifest(text, file, node_name);
  if (!decoded.errors.empty()) {
    manifest.problem = decoded.errors.front();
    return manifest;
  }
  if (!decoded.malformed_pods.empty()) {
    manifest.problem = decoded.malformed_pods.front().problem;
    return manifest;
  }
  TakeObjects(decoded.objects, file, manifest);
  if (!manifest.problem.has_value() && manifest.pod == nullptr) {
    manifest.problem = Problem(file, 0, "", "has no pod");
  }
  manifest.warnings = std::move(decoded.warnings);
  return manifest;
}

std::string ProblemOfUid(std::string_view uid) {
  if (uid.empty()) return "is required: a pod is wanted by its UID";
  return api::CheckUid(uid);
}

bool IsSameClaim(const ResourceClaim& a, const ResourceClaim& b) {
  if (a.metadata.uid != b.metadata.uid) return false;
  const auto& ours = a.status.allocation;
  const auto& theirs = b.status.allocation;
  if (!ours.has_value() || !theirs.has_value()) {
    return ours.has_value() == theirs.has_value();
  }
  return ours->resource_handles == theirs->resource_handles &&
         std::equal(ours->results.begin(), ours->results.end(),
                    theirs->results.begin(), theirs->results.end(),
                    [](const auto& x, const auto& y) {
                      return std::tie(x.request, x.driver, x.pool, x.device,
                                      x.share_id) ==
                             std::tie(y.request, y.driver, y.pool, y.device,
                                      y.share_id);
                    });
}

std::shared_ptr<const ResourceClaim> WithConsumersOf(
    const std::shared_ptr<const ResourceClaim>& claim,
    const ResourceClaim& other) {
  std::shared_ptr<ResourceClaim> joined;
  for (const ResourceClaimConsumer& consumer : other.status.reserved_for) {
    const auto& known =
        (joined != nullptr ? *joined : *claim).status.reserved_for;
    if (std::any_of(known.begin(), known.end(), [&](const auto& one) {
          return ConsumerKey(one) == ConsumerKey(consumer);
        })) {
      continue;
    }
    if (joined == nullptr) joined = std::make_shared<ResourceClaim>(*claim);
    joined->status.reserved_for.push_back(consumer);
  }
  if (joined == nullptr) return claim;
  return joined;
}

}  // namespace devmgr::source
