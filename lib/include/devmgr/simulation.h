// SPDX-License-Identifier: Apache-2.0
//
// What a node would decide about pods, without deciding it: for operators,
// autoscalers, deschedulers and tests (DeviceManager::Simulate).
#pragma once

#include <devmgr/allocate.h>
#include <devmgr/export.h>
#include <devmgr/objects.h>
#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// Which node pods are tried on.
enum class SimulationBase {
  kPresent,  ///< This node as it is.
  /// Another node like this one, with a name of its own. What this node alone
  /// reaches is there once more, free and named after the other node: devices
  /// of plugins, pools of slices with its name. What several nodes reach is
  /// there once, and keeps its holders.
  kLikeNode,
  /// A node that has nothing but what the request brings. Classes, claim
  /// templates and taint rules are those of the source, too.
  kEmpty,
};
/// `present`, `like-node`, `empty`.
DEVMGR_EXPORT std::string_view SimulationBaseName(SimulationBase base);

/// Devices of a device plugin: `count` healthy ones, named `0`, `1` and so on.
struct SimulatedPlugin {
  ResourceName resource;
  std::int64_t count = 0;
  /// How many of them are on which NUMA node; the others are on none.
  std::map<std::int64_t, std::int64_t> by_numa_node;
};

/// A node, and what is different about it.
struct SimulationView {
  SimulationBase base = SimulationBase::kPresent;
  /// These are gone: their devices are free, and so are claims that they alone
  /// have reserved. What drivers owe stays held.
  std::vector<ObjectName> minus;
  /// Required but for kPresent, which has the name that it has.
  std::string node_name;
  std::map<std::string, std::string> node_labels;  ///< Added.
  /// Added, or in place of those of the same name. Their drivers count as
  /// registered.
  std::vector<ResourceSlice> slices;
  /// In place of what the plugin of that resource has.
  std::vector<SimulatedPlugin> plugins;
};

struct SimulationRequest {
  /// They need not exist. One without a UID is the pod that the source has
  /// under its name, if there is one. Which node a pod names is not looked at:
  /// the question is whether it fits.
  std::vector<Pod> pods;
  // What the pods refer to and is not there. A claim that is there counts as it
  // is there; others replace those of the same name.
  std::vector<ResourceClaim> claims;
  std::vector<ResourceClaimTemplate> claim_templates;
  std::vector<DeviceClass> device_classes;
  SimulationView view;
  /// Each pod by itself. Otherwise each on top of those before it.
  bool independent = false;
  /// How many copies of the one pod fit, one on top of the other.
  bool count_fits = false;
  /// As AllocationLimits::steps, of all pods together.
  std::uint64_t steps = 1'000'000;
  std::chrono::milliseconds deadline{10'000};  ///< Must be positive.
  /// Ends the simulation once it is true; the deadline sets it, too. May be
  /// null.
  std::shared_ptr<std::atomic<bool>> stop;
};

/// Devices of plugins that a container would have.
struct SimulatedContainer {
  ContainerName container;
  std::map<ResourceName, std::vector<DeviceId>> devices;
};

struct SimulatedPod {
  ObjectName pod;
  /// Waits with kInterruptedReason: it was not judged to the end.
  Verdict verdict;
  /// With their allocations, without IDs of shares. Only with kAdmit.
  std::vector<ResourceClaim> claims;
  std::vector<SimulatedContainer> containers;  ///< Only with kAdmit.
  /// Why it does not get its devices: by request of a claim; by resource of a
  /// plugin, where the request is `container/resource`, the driver of a device
  /// is the resource, and there are no claim and no pool; by quota, where the
  /// request is the key and there are no devices. The reasons are those of
  /// `devmgrctl allocate` and `unhealthy`, `name-owner`, `quota`, `numa`. Of
  /// `busy` the detail is the holder, as `pod default/a`, and as what it has
  /// the device where that is by another name; `taken-in-this-run` has been
  /// given to a pod of this simulation.
  std::vector<RefusedRequest> refusals;
  /// What the node cannot know, such as what a plugin would prefer.
  std::vector<std::string> notes;
  std::uint64_t steps = 0;  ///< Of the search for devices.
};

/// What is free and what is held once the pods have what they would get.
struct SimulatedFigures {
  struct Devices {
    std::string name;  ///< Of the driver or the resource.
    std::int64_t free = 0;
    std::int64_t held = 0;
  };
  struct Counter {
    std::string driver;
    std::string pool;
    std::string counter_set;
    std::string counter;
    std::string total;  ///< Quantities.
    std::string left;
  };
  std::vector<Devices> drivers;    ///< Of pools that can be had, by name.
  std::vector<Devices> resources;  ///< Healthy devices of plugins, by name.
  std::vector<Counter> counters;
};

struct SimulatedFit {
  std::uint64_t copies = 0;
  /// What refused the next one, in the words of SimulatedPod::refusals, or the
  /// reason of its verdict. Empty: the most that is counted was reached.
  std::string ended_by;
};

struct Simulation {
  std::uint64_t sequence = 0;  ///< Of the ledger.
  SimulationBase base = SimulationBase::kPresent;
  std::string node_name;
  bool interrupted = false;  ///< Steps or time were spent, or it was stopped.
  /// In the order of the request. With `count_fits` the first copy and the one
  /// that does not fit.
  std::vector<SimulatedPod> pods;
  SimulatedFigures figures;  ///< With `independent` those before any pod.
  std::optional<SimulatedFit> fit;

  DEVMGR_EXPORT bool AllAdmitted() const;
};

/// How many simulations ended, by the worst of their verdicts.
struct SimulationCounts {
  std::uint64_t admit = 0;
  std::uint64_t wait = 0;
  std::uint64_t reject = 0;
  std::uint64_t interrupted = 0;
};

/// Reason of a pod that was not judged to the end.
inline constexpr std::string_view kInterruptedReason = "SimulationInterrupted";
/// Of SimulatedFit: more copies are not tried.
inline constexpr std::uint64_t kMostCopies = 10'000;
/// How many simulations of a manager may run at once.
inline constexpr int kMostSimulations = 4;

/// `admit`, `wait`, `reject`.
DEVMGR_EXPORT std::string_view VerdictName(Verdict::Kind kind);

/// As a JSON document, as `devmgrctl simulate -o json` prints it
/// (docs/operating.md).
DEVMGR_EXPORT std::string EncodeSimulation(const Simulation& simulation);

}  // namespace devmgr
