// SPDX-License-Identifier: Apache-2.0
//
// What a namespace uses of devices and claims, and whether its quotas allow
// more. A device counts once per key, however many objects ask for it.
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>
#include <devmgr/quota_objects.h>
#include <devmgr/status_types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace devmgr::control {

enum class QuotaRule {
  /// As Kubernetes does now: each key by itself.
  kStrict,
  /// As KEP-5004 has it: the key of a class and that of its explicit resource
  /// name show one figure, the larger one, so that devices of device plugins
  /// count against the class, too.
  kEqualised,
};

/// By key of a quota's `spec.hard`.
using QuotaUsage = std::map<std::string, std::int64_t>;

/// What is used, borrowed. Pods and claims of other namespaces, and pods that
/// have ended, do not count. Pods that wait for a quota are to be left out.
struct QuotaObjects {
  std::vector<const Pod*> pods;
  std::vector<const ResourceClaim*> claims;
};

/// Pods pay for the resource names that they wrote. Claims pay for each class
/// under its own key, its implicit name and its explicit one; the special claim
/// of a pod pays what the pod has not paid already. Of a claim that says to be
/// one, and of which the pod is not the controller, nothing is taken off.
QuotaUsage UsageOf(const std::string& ns, const QuotaObjects& objects,
                   const ObjectMap<DeviceClass>& classes, QuotaRule rule);

/// What a claim asks for, by class, at worst: `All` is the most that a claim
/// can have, of alternatives the largest of each class counts.
std::map<std::string, std::int64_t> DevicesByClass(
    const ResourceClaimSpec& spec);

/// A quota that does not allow what is wanted.
struct QuotaExcess {
  struct Figure {
    std::string key;
    std::int64_t requested = 0;
    std::int64_t used = 0;
    std::int64_t hard = 0;
  };
  ObjectName quota;
  std::vector<Figure> figures;  ///< By key; one at least.

  /// In Kubernetes' words: `exceeded quota: gpu, requested: ..., used: ...,
  /// limited: ...`.
  std::string ToString() const;
};

/// What a pod waits for that such a figure stops.
WaitingFor QuotaAwaited(const std::string& ns, const std::string& key);

/// The same for what is different in `after`: a quota is gone, or allows more;
/// a pod or a claim under it is gone or has ended; or a class lost its name.
std::set<WaitingFor> ChangedQuotas(const ObjectSnapshot& before,
                                   const ObjectSnapshot& after);

/// The same for a pod that does not pay any more.
std::set<WaitingFor> PaidNoMore(const Pod& pod);

/// The quotas of the namespace that `after` exceeds, by name; `before` is what
/// is used without that. What grows no further is not refused, be it too much.
std::vector<QuotaExcess> ExceededQuotas(const std::string& ns,
                                        const ObjectMap<ResourceQuota>& quotas,
                                        const QuotaUsage& before,
                                        const QuotaUsage& after);

}  // namespace devmgr::control
