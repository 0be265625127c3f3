// SPDX-License-Identifier: Apache-2.0
//
// Objects with the boring part filled in. Everything is in namespace `ns`; the
// UID of pod `P` is `u-P`, that of claim `C` is `u-C`.
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>
// An enumerator there has the name `kDriver`, too: it has to come first.
#include <devmgr/status_types.h>

#include <optional>
#include <string>
#include <vector>

#include "state/records.h"

namespace devmgr {

inline constexpr char kNamespace[] = "ns";
inline constexpr char kDriver[] = "d.example.com";
inline constexpr char kOtherDriver[] = "e.example.com";

inline ObjectName NameOf(const std::string& name) { return {kNamespace, name}; }

/// A pod. `Uses` and `Requests` concern the container added last.
class PodBuilder {
 public:
  explicit PodBuilder(const std::string& name = "P");

  PodBuilder& Uid(const std::string& uid);
  PodBuilder& Deleted();

  /// An entry of `spec.resourceClaims` that names the claim object.
  PodBuilder& Claim(const std::string& pod_claim, const std::string& claim);
  /// One that names a template; the status says nothing of it.
  PodBuilder& Template(const std::string& pod_claim);
  /// One that names neither.
  PodBuilder& EmptyClaim(const std::string& pod_claim);
  /// An entry of `status.resourceClaimStatuses`.
  PodBuilder& Made(const std::string& pod_claim,
                   std::optional<std::string> claim);

  PodBuilder& Container(const std::string& name);
  PodBuilder& InitContainer(const std::string& name);
  PodBuilder& Uses(const std::string& pod_claim,
                   const std::string& request = "");
  PodBuilder& Requests(const std::string& resource, int quantity = 1);

  /// `status.extendedResourceClaimStatus`.
  PodBuilder& SpecialClaim(const std::string& claim);
  PodBuilder& Maps(const std::string& container, const std::string& resource,
                   const std::string& request);

  operator Pod() const { return pod_; }

 private:
  Pod pod_;
  std::vector<devmgr::Container>* containers_ = nullptr;
};

/// A claim, allocated without any device and reserved for nobody yet.
class ClaimBuilder {
 public:
  explicit ClaimBuilder(const std::string& name = "C");

  ClaimBuilder& Uid(const std::string& uid);
  ClaimBuilder& From(const std::string& driver,
                     const std::string& device = "dev-1",
                     const std::string& request = "r");
  ClaimBuilder& NotAllocated();
  ClaimBuilder& AdminAccess();  ///< Of all devices so far.
  ClaimBuilder& For(const std::string& pod_uid, const std::string& pod = "P");
  /// Controller owner.
  ClaimBuilder& OwnedBy(const OwnerReference& owner);

  operator ResourceClaim() const { return claim_; }

 private:
  ResourceClaim claim_;
};

/// Claim `name`, allocated from kDriver and reserved for pod `P`.
ClaimBuilder ClaimForP(const std::string& name = "C");

OwnerReference Owner(const std::string& uid, const std::string& name = "P");

ObjectSnapshot SnapshotOf(const std::vector<ResourceClaim>& claims,
                          const std::vector<Pod>& pods = {});

/// As a driver answers it: pool `pool-1`.
state::PreparedDevice Prepared(const std::string& device,
                               std::vector<std::string> cdi_device_ids,
                               std::vector<std::string> requests = {"r"});

}  // namespace devmgr
