// SPDX-License-Identifier: Apache-2.0
#include <devmgr/feature_gates.h>
#include <devmgr/options.h>
#include <devmgr/topology.h>

#include "devmgrd/config.h"

namespace devmgrd {
namespace {

devmgr::HealthPolicy HealthPolicyOf(const std::string& policy) {
  if (policy == "fail") return devmgr::HealthPolicy::kFail;
  if (policy == "replace") return devmgr::HealthPolicy::kReplace;
  return policy == "drain" ? devmgr::HealthPolicy::kDrain
                           : devmgr::HealthPolicy::kReport;
}

devmgr::Authority AuthorityOf(const std::string& authority) {
  if (authority == "split") return devmgr::Authority::kSplit;
  return authority == "scheduler" ? devmgr::Authority::kScheduler
                                  : devmgr::Authority::kNode;
}

}  // namespace

devmgr::DeviceManagerOptions OptionsOf(const Config& config) {
  devmgr::DeviceManagerOptions options;
  options.state_dir = config.state_dir;
  options.plugin_registry_dir = config.plugin_registry_dir;
  options.device_plugin_dir = config.device_plugin_dir;
  if (!config.root.empty()) options.plugin_dirs = {config.root};
  options.cdi_spec_dirs = config.cdi_spec_dirs;
  options.node_name = config.node_name;
  options.actuate = config.actuate == "source" ? devmgr::Actuate::kSource
                                               : devmgr::Actuate::kWanted;
  options.policies.authority = AuthorityOf(config.authority);
  options.policies.split_local = config.split_local;
  options.policies.profile = config.profile == "strict-kubelet"
                                 ? devmgr::Profile::kStrictKubelet
                                 : devmgr::Profile::kDefault;
  options.ledger.recovery = config.recovery == "lenient"
                                ? devmgr::Recovery::kLenient
                                : devmgr::Recovery::kStrict;
  options.feature_gates = config.feature_gates;
  options.dra.compat = config.dra_compat;
  options.dra.apis = config.dra_apis;
  options.device_plugins.call_timeout = config.plugin_call_timeout;
  options.device_plugins.grace_period = config.plugin_grace_period;
  options.policies.admission_wait = config.admission_wait;
  options.policies.starvation_limit = config.starvation_limit;
  options.policies.audit_wakeups = config.admission_audit;
  options.device_plugins.pod_identity_metadata = config.pod_identity_metadata;
  for (const auto& [resource, policy] : config.health_policy) {
    options.health.policies[resource] = HealthPolicyOf(policy);
  }
  options.health.healthy_for = config.healthy_for;
  options.health.unknown_is_unhealthy = {config.unknown_is_unhealthy.begin(),
                                         config.unknown_is_unhealthy.end()};
  // A control plane has a controller for that.
  options.policies.taint_eviction = !HasApiServer(config);
  for (const auto& [driver, policy] : config.debt_policy) {
    if (driver == "*") {
      options.dra.debt_policy = policy;
    } else {
      options.dra.debt_policies[driver] = policy;
    }
  }
  options.health.unhealthy_for = config.unhealthy_for;
  options.hardware = config.hardware;
  // It is checked.
  if (const auto topology = devmgr::ParseTopologyOptions(
          config.topology.policy, config.topology.scope,
          config.topology.options);
      topology.ok()) {
    options.topology = *topology;
  }
  options.sysfs_dir = config.topology.sysfs_dir;
  options.device_plugins.refuse_edit_conflicts = config.refuse_edit_conflicts;
  return options;
}

}  // namespace devmgrd
