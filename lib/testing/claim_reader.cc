// SPDX-License-Identifier: Apache-2.0
#include "testing/claim_reader.h"

#include <memory>
#include <utility>
#include <variant>

#include "common/status.h"
#include "source/api/limits.h"
#include "source/api/object_store.h"
#include "testing/claim_manifests.h"

namespace devmgr::testing {
namespace {

struct Reading {
  DriverApi& api;
  std::vector<ClaimReference> claims;
  std::function<void(ClaimsRead)> done;
  ClaimsRead read;
};

absl::StatusOr<ResourceClaim> ClaimOf(const std::string& body,
                                      const ClaimReference& wanted) {
  const apiserver::StoredObject stored = apiserver::DecodeStored(
      apiserver::ResourceCollection("v1", "ResourceClaim"), body);
  const auto* claim = stored.object == nullptr
                          ? nullptr
                          : std::get_if<ResourceClaim>(stored.object.get());
  if (claim == nullptr) {
    return FailedPreconditionError("the server's answer is no claim: {}",
                                   stored.problem);
  }
  DEVMGR_RETURN_IF_ERROR(CheckAllocated(*claim, wanted.name, wanted.uid));
  return *claim;
}

void ReadNext(const std::shared_ptr<Reading>& reading) {
  if (reading->claims.empty()) {
    return reading->done(std::move(reading->read));
  }
  const ClaimReference wanted = std::move(reading->claims.front());
  reading->claims.erase(reading->claims.begin());
  apiserver::ApiRequest request;
  request.target = apiserver::ClaimPath("v1", wanted.name.ns, wanted.name.name);
  request.max_bytes = apiserver::kMaxEventBytes;
  reading->api.Send(request, [reading, wanted](const auto& body) {
    reading->read.emplace(wanted.uid,
                          body.ok() ? ClaimOf(*body, wanted) : body.status());
    ReadNext(reading);
  });
}

}  // namespace

void ReadClaims(DriverApi& api, const std::vector<ClaimReference>& claims,
                std::function<void(ClaimsRead)> done) {
  ReadNext(
      std::make_shared<Reading>(Reading{api, claims, std::move(done), {}}));
}

}  // namespace devmgr::testing
