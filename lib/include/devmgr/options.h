// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/export.h>
#include <devmgr/topology.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// Which pods the manager itself drives to Ready, and releases when they are
/// not wanted any more. `kNone`: none; AdmitPod, PreparePod and EndPod are
/// called for each. `kSource`: those of the source (Host::objects); a pod of
/// the ledger that a complete snapshot lacks is released. `kWanted`: those of
/// DeviceManager::WantPod; pods of the ledger stay wanted over a restart.
enum class Actuate { kNone, kSource, kWanted };
/// `manifests`, `embedder`; empty for kNone.
DEVMGR_EXPORT std::string_view ActuateName(Actuate actuate);

/// When the manager tries a failed step of a pod again.
struct RetryOptions {
  /// Delay before the first retry; doubles up to `last`, with jitter. What was
  /// missing and appears cuts it short. Both must be positive.
  std::chrono::milliseconds first{1'000};
  std::chrono::milliseconds last{60'000};
  /// This long after the objects or what pods may wait for changed, pods that
  /// are not where they should be are looked at once more, woken or not. While
  /// nothing changes there is no such look, and no timer. Must be positive.
  std::chrono::milliseconds sweep{60'000};
};

/// Which party allocates devices (docs/architecture.md, "Authority"). A pod
/// that lacks devices of plugins waits for them; below a scheduler it is
/// rejected. `kSplit`: the scheduler for pods that it has bound, this node for
/// those that it has from files (PolicyOptions::split_local); of device plugins
/// only, no claim is allocated here.
enum class Authority { kNode, kScheduler, kSplit };
/// `node`, `scheduler`, `split`.
DEVMGR_EXPORT std::string_view AuthorityName(Authority authority);

/// `kDefault` waits where waiting helps. `kStrictKubelet` rejects what lacks
/// devices, admits names that are not served, lets a name change hands at any
/// time, and keeps devices of init containers. Bugs are in neither.
enum class Profile { kDefault, kStrictKubelet };
/// `default`, `strict-kubelet`.
DEVMGR_EXPORT std::string_view ProfileName(Profile profile);

/// What happens to a ledger that is damaged. `kStrict` refuses to open and
/// changes nothing. `kLenient` keeps the damaged database aside, under a name
/// with the time, and goes on with what can be read of it: a pod of which
/// something is missing is prepared again, a claim without its pod is
/// unprepared. Both tell what they found (NodeInfo::recovery).
enum class Recovery { kStrict, kLenient };

/// What follows when a device that a pod holds turns Unhealthy: `kReport` shows
/// it in the pod's status, as the kubelet does; `kFail` also has the pod failed
/// (Host::act_on_pod) once it has been so for `unhealthy_for`. `kDrain`: pods
/// keep it. `kReplace`: a container that starts again gets another device in
/// its place, if there is one, by a recorded decision. A device that is
/// Unknown, because its plugin or driver is gone, is not Unhealthy, unless
/// HealthOptions say so.
enum class HealthPolicy { kReport, kFail, kDrain, kReplace };
/// `report`, `fail`, `drain`, `replace`.
DEVMGR_EXPORT std::string_view HealthPolicyName(HealthPolicy policy);

/// What becomes of a pod whose claim a driver was to unprepare and has not,
/// because it is not there or fails: the driver owes it (DebtInfo).
struct DebtPolicy {
  enum class Kind {
    kBlock,  ///< The pod stays Releasing until the driver has done it.
    /// The pod may go. The debt stays, and so does the claim. A claim for
    /// extended resources blocks all the same: its pod is what keeps a device
    /// plugin from giving the same devices by that name.
    kDefer,
    kForgive  ///< As kBlock; after `forgive_after` the pod goes.
  };
  Kind kind = Kind::kBlock;
  std::chrono::milliseconds forgive_after{0};  ///< Positive with kForgive.
  friend bool operator==(const DebtPolicy&, const DebtPolicy&) = default;
};

/// How DRA drivers are dealt with.
struct DraOptions {
  /// Longest wait for one call of a driver. Must be positive. A longer one
  /// delays the retry of a hung driver, a shorter one cuts off slow ones.
  std::chrono::milliseconds call_timeout{45'000};

  /// How many calls one driver may have under way. Must be positive.
  int max_calls = 64;

  /// Serves DRA drivers of Kubernetes 1.26 to 1.33, too: services `v1alpha1`
  /// to `v1alpha4`, which drivers announced as `v1alpha3.NodeService` or only
  /// by a version such as `1.0.0`. Such a driver is asked by the newest method
  /// that it knows. It also makes pods of 1.26 and 1.27 work, whose status does
  /// not name the claims that were made for them.
  bool compat = false;

  /// By driver: the service to use, whatever it announces: `v1`, `v1beta1`,
  /// and with `compat` `v1alpha4` to `v1alpha1`.
  std::map<std::string, std::string> apis;

  /// How long after the last connection to a driver is lost its slices are
  /// deleted (Host::object_sink). Must be positive.
  std::chrono::milliseconds slice_grace_period{30'000};

  /// For drivers that `debt_policies` does not name. Claims with devices that
  /// other nodes reach, too, block all the same: another node may be using them
  /// once no record of the claim is left here.
  DebtPolicy debt_policy;
  /// By driver; also for devices that other nodes reach.
  std::map<std::string, DebtPolicy> debt_policies;
};

/// How device plugins are dealt with.
struct DevicePluginOptions {
  /// Longest wait for one call of a plugin that may take its time, by default
  /// and by resource. All must be positive.
  std::chrono::milliseconds call_timeout{30'000};
  std::map<std::string, std::chrono::milliseconds> call_timeouts;

  /// How long the devices of a plugin that is gone count in the capacity, and
  /// keep their name from others. Must be positive.
  std::chrono::milliseconds grace_period{std::chrono::minutes(5)};

  /// Names to plugins the pod of a call, as request metadata:
  /// `devmgr-pod-uid`, `devmgr-pod-namespace`, `devmgr-pod-name`,
  /// `devmgr-container`.
  bool pod_identity_metadata = false;

  /// Two plugins that want different values of one variable, mount or device
  /// node in a container: true refuses the devices, false takes the plugin's
  /// whose resource comes first by name. Both are events.
  bool refuse_edit_conflicts = false;
};

struct LedgerOptions {
  Recovery recovery = Recovery::kStrict;
  /// Keeps it in memory only: nothing survives. For tests.
  bool in_memory = false;
};

/// What is decided about pods that want devices.
struct PolicyOptions {
  /// What the ledger says counts (NodeInfo::authority), which
  /// Maintenance::StartSetAuthority changes. Another value than when the ledger
  /// was open last is a hand-over, too.
  Authority authority = Authority::kNode;
  /// Under Authority::kSplit, by resource of a device plugin: how many of its
  /// devices are for pods of this node. None may be negative.
  std::map<std::string, std::int64_t> split_local;
  Profile profile = Profile::kDefault;

  /// Below a scheduler, how long a pod may wait for a device plugin before it
  /// is rejected. Must be positive.
  std::chrono::milliseconds admission_wait{std::chrono::minutes(5)};

  /// How long smaller or later pods may delay the first of those that wait for
  /// devices. Must be positive.
  std::chrono::milliseconds starvation_limit{std::chrono::minutes(5)};

  /// Judges all waiting pods once more whenever pods were judged or woken, on
  /// the side, and reports those that nothing woke and that could be admitted
  /// (MetricsSink::OnMissedWakeup). For tests: it costs as much as there are
  /// pods that wait.
  bool audit_wakeups = false;

  /// Under Authority::kNode: pods with claims that this node allocated are
  /// evicted (PodAction::Kind::kEvict) from devices with taints of effect
  /// NoExecute. False where another party does that, as the controller of a
  /// control plane. Either way such claims are reserved for no more pods.
  bool taint_eviction = true;
};

/// What follows when devices that pods hold turn Unhealthy.
struct HealthOptions {
  /// By resource of a device plugin, or by DRA driver; kReport where nothing is
  /// said. Of each one pod is failed in ten seconds at most, and none in the
  /// first minute when more than half of its held devices are Unhealthy: then
  /// the plugin or driver is the one that is sick.
  std::map<std::string, HealthPolicy> policies;
  std::chrono::milliseconds unhealthy_for{30'000};  ///< Must be positive.
  /// A device whose resource or driver has a policy of its own, be it kReport,
  /// and that was Unhealthy, is given to no pod before it has worked for so
  /// long, or an operator has it rechecked (Maintenance). Must not be negative.
  std::chrono::milliseconds healthy_for{10'000};
  /// By resource or driver: a device that is Unknown counts as Unhealthy.
  std::set<std::string> unknown_is_unhealthy;
};

/// By what it is recognised that two drivers, or a driver and a device plugin,
/// offer the same hardware under two names, so that it is given to one pod at
/// a time. A name that ends in a star stands for all that begin so.
struct HardwareOptions {
  /// False: nothing is recognised, and what is held already does not count.
  bool one_holder = true;
  /// Attributes of DRA devices with PCI addresses; without a domain they are
  /// any driver's.
  std::vector<std::string> pci_attributes = {"resource.kubernetes.io/pciBusID",
                                             "pciBusID", "pciAddress"};
  /// The same with UUIDs.
  std::vector<std::string> uuid_attributes = {"uuid", "gpuUUID", "deviceUUID"};
  /// A DRA device that has one of these is a part of a device, as one that
  /// consumes counters: parts do not exclude each other.
  std::vector<std::string> parent_attributes = {"parentUUID", "parentUuid",
                                                "parentPCIBusID"};
  /// Device nodes of the host that many containers have, whatever their
  /// devices.
  std::vector<std::string> control_nodes = {"/dev/null",
                                            "/dev/zero",
                                            "/dev/full",
                                            "/dev/random",
                                            "/dev/urandom",
                                            "/dev/tty",
                                            "/dev/ptmx",
                                            "/dev/fuse",
                                            "/dev/kvm",
                                            "/dev/net/tun",
                                            "/dev/vhost-net",
                                            "/dev/vhost-vsock",
                                            "/dev/vfio/vfio",
                                            "/dev/infiniband/rdma_cm",
                                            "/dev/kfd",
                                            "/dev/dxg",
                                            "/dev/dma_heap/*",
                                            "/dev/nvidiactl",
                                            "/dev/nvidia-uvm",
                                            "/dev/nvidia-uvm-tools",
                                            "/dev/nvidia-modeset",
                                            "/dev/nvidia-nvlink",
                                            "/dev/nvidia-nvswitchctl",
                                            "/dev/nvidia-fs*",
                                            "/dev/nvidia-caps/*",
                                            "/dev/nvidia-caps-imex-channels/*",
                                            "/dev/davinci_manager",
                                            "/dev/devmm_svm",
                                            "/dev/hisi_hdc"};
  /// Resources of device plugins and DRA drivers that give one device to
  /// several pods by intent: what they give does not count.
  std::vector<std::string> shared = {};
  friend bool operator==(const HardwareOptions&,
                         const HardwareOptions&) = default;
};

/// Options of DeviceManager::Open. Checked there, all in one pass.
struct DeviceManagerOptions {
  /// Where the ledger lives; created with mode 0700 if missing. Required,
  /// unless `ledger.in_memory` is set.
  std::filesystem::path state_dir;

  /// Where drivers announce themselves; created if missing. Empty: no driver
  /// can register.
  std::filesystem::path plugin_registry_dir;

  /// Where device plugins find the registry socket, `kubelet.sock`, and have
  /// their own. Created if missing; sockets that are left there are removed.
  /// Empty: device plugins can come by `plugin_registry_dir` only.
  std::filesystem::path device_plugin_dir;

  /// Service sockets of drivers must lie below one of these, or below
  /// `plugin_registry_dir`. Empty: any absolute path is taken.
  std::vector<std::filesystem::path> plugin_dirs;

  /// Directories that runtimes read CDI specs from; Fsck looks at them. They
  /// are followed: what is wrong there is an event `CdiSpecProblem`.
  std::vector<std::filesystem::path> cdi_spec_dirs;

  /// Only pods of this node count. Empty: every pod of the source does.
  std::string node_name;

  Actuate actuate = Actuate::kNone;
  RetryOptions retries;

  DraOptions dra;
  DevicePluginOptions device_plugins;
  LedgerOptions ledger;
  PolicyOptions policies;
  HealthOptions health;
  HardwareOptions hardware;
  TopologyOptions topology;

  /// Where the kernel shows the machine: NUMA nodes are read below it, once.
  /// Not /sys: a copy of it, for tests.
  std::filesystem::path sysfs_dir = "/sys";

  /// Upstream's gate names. A gate governs new decisions only: what pods hold
  /// stays theirs when it is turned. On: `DRAExtendedResource`;
  /// `DRAConsumableCapacity` (IDs of shares); `ResourceHealthStatus`, else
  /// PodInfo::allocated_resources is empty, OnResourceHealth is not called, and
  /// drivers are not asked; `ResourceHealthStatusMessage`, else without texts.
  /// Off: `DRAWorkloadResourceClaims` (claims of pod groups),
  /// `DRAOptionalNodeOperations` (devices that need no calls).
  std::map<std::string, bool> feature_gates;

  /// How many events are kept in memory. Must be positive.
  std::size_t max_events = 1'000;
};

}  // namespace devmgr
