// SPDX-License-Identifier: Apache-2.0
//
// Which devices the claims in files would get on a node. No daemon is asked,
// and nothing is changed.
#include <devmgr/allocate.h>
#include <devmgr/manifests.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "commands.h"
#include "exit_code.h"
#include "manifest_files.h"
#include "output.h"
#include "refusals.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

/// The claim that a pod would get from the template, under the template's name.
ResourceClaim ClaimOf(const ResourceClaimTemplate& source) {
  ResourceClaim claim;
  claim.metadata.ns = source.metadata.ns;
  claim.metadata.name = source.metadata.name;
  claim.metadata.labels = source.claim_labels;
  claim.metadata.annotations = source.claim_annotations;
  claim.spec = source.spec;
  return claim;
}

/// Takes objects out of files.
class Collector {
 public:
  explicit Collector(const Options& options) : options_(options) {
    input_.node.metadata.name = options.node;
  }

  /// InvalidArgument when two files have one object.
  absl::Status Add(DecodedManifest manifest, const std::string& path) {
    for (DecodedObject& each : manifest.objects) {
      const std::string name = NameOf(each.object);
      const auto [first, is_new] = files_.emplace(name, path);
      if (!is_new) {
        return MakeError(absl::StatusCode::kInvalidArgument,
                         fmt::format("{} is in '{}' and in '{}'", name,
                                     first->second, path));
      }
      std::visit([&](auto& object) { Take(std::move(object)); }, each.object);
    }
    return absl::OkStatus();
  }

  AllocationInput Finish() && {
    for (const auto& [key, value] : options_.node_labels) {
      input_.node.metadata.labels[key] = value;
    }
    input_.feature_gates = options_.feature_gates;
    return std::move(input_);
  }

 private:
  static std::string NameOf(const Object& object) {
    constexpr const char* kKinds[] = {"Pod",
                                      "ResourceClaim",
                                      "ResourceClaimTemplate",
                                      "DeviceClass",
                                      "ResourceSlice",
                                      "Node",
                                      "DeviceTaintRule",
                                      "ResourceClass",
                                      "ResourceClassParameters",
                                      "ResourceClaimParameters",
                                      "ResourceQuota"};
    static_assert(std::variant_size_v<Object> == std::size(kKinds));
    return std::visit(
        [&](const auto& one) {
          return fmt::format("{} {}", kKinds[object.index()],
                             one.metadata.FullName().ToString());
        },
        object);
  }

  void Take(ResourceClaim claim) { input_.claims.push_back(std::move(claim)); }
  void Take(const ResourceClaimTemplate& source) {
    input_.claims.push_back(ClaimOf(source));
  }
  void Take(DeviceClass item) { input_.classes.push_back(std::move(item)); }
  void Take(ResourceSlice slice) { input_.slices.push_back(std::move(slice)); }
  void Take(DeviceTaintRule rule) {
    input_.taint_rules.push_back(std::move(rule));
  }
  void Take(ResourceClass item) {
    input_.resource_classes.push_back(std::move(item));
  }
  void Take(ResourceClassParameters item) {
    input_.resource_class_parameters.push_back(std::move(item));
  }
  void Take(ResourceClaimParameters item) {
    input_.resource_claim_parameters.push_back(std::move(item));
  }
  void Take(Node node) {
    if (node.metadata.name == options_.node) input_.node = std::move(node);
  }
  void Take(const ResourceQuota& /*quota*/) {}  // Devices alone are looked at.
  void Take(const Pod& /*pod*/) {}  // Its claims are objects of their own.

  const Options& options_;
  AllocationInput input_;
  std::map<std::string, std::string> files_;  ///< By object.
};

absl::Status Refuse(const Session& session, const AllocatedClaims& result) {
  for (const RefusedRequest& request : result.refusals) {
    PrintRefusals(session, request);
  }
  const std::string why =
      result.message.empty() ? "too few devices" : result.message;
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      fmt::format("the claims cannot be allocated on node '{}' ({}): {}",
                  session.options().node, AllocationOutcomeName(result.outcome),
                  why));
}

void PrintClaims(const Session& session,
                 const std::vector<ResourceClaim>& claims) {
  const Options& options = session.options();
  if (session.is_document()) {
    Json list = {{"apiVersion", "v1"}, {"kind", "List"}};
    list["items"] = Json::array();
    for (const ResourceClaim& claim : claims) {
      list["items"].push_back(Json::parse(EncodeResourceClaim(claim)));
    }
    PrintDocument(session.out(), list, options.format);
    return;
  }
  if (options.format == Format::kName) {
    for (const ResourceClaim& claim : claims) {
      session.out() << claim.metadata.FullName().ToString() << "\n";
    }
    return;
  }
  std::vector<std::string> headers = {"CLAIM", "REQUEST", "DEVICE"};
  if (session.wide()) headers.insert(headers.end(), {"ADMIN", "SHARE"});
  Table table = session.MakeTable(headers);
  for (const ResourceClaim& claim : claims) {
    for (const DeviceRequestAllocationResult& device :
         claim.status.allocation->results) {
      std::vector<Cell> row = {
          claim.metadata.FullName().ToString(), device.request,
          fmt::format("{}/{}/{}", device.driver, device.pool, device.device)};
      if (session.wide()) {
        row.emplace_back(device.admin_access ? "true" : "false");
        row.emplace_back(std::string(device.share_id));
      }
      table.Add(std::move(row));
    }
  }
  session.Print(table);
}

}  // namespace

absl::Status Allocate(const Session& session) {
  Collector collector(session.options());
  for (const std::string& path : session.options().files) {
    auto manifest = ReadManifest(session, path);
    if (!manifest.ok()) return AsTrouble(manifest.status());
    const absl::Status status = collector.Add(*std::move(manifest), path);
    if (!status.ok()) return AsTrouble(status);
  }
  const AllocatedClaims result = AllocateClaims(std::move(collector).Finish());
  if (result.outcome != AllocationOutcome::kSolved) {
    return Refuse(session, result);
  }
  PrintClaims(session, result.claims);
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
