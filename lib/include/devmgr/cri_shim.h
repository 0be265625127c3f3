// SPDX-License-Identifier: Apache-2.0
//
// A CRI shim: between any CRI client and a container runtime, it gives each
// container its devices when the client creates it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/cdi.h>
#include <devmgr/cri.h>
#include <devmgr/device_manager.h>
#include <devmgr/export.h>
#include <devmgr/host.h>
#include <devmgr/runtime_source.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// How a runtime takes CDI device names.
enum class RuntimeCdi { kNone, kAnnotations, kField, kFieldAndAnnotations };

/// `none`, `annotations`, `field`, `both`.
DEVMGR_EXPORT std::string_view RuntimeCdiName(RuntimeCdi cdi);

/// What becomes of a container whose pod the source of devices does not know.
enum class UnknownSandbox {
  kWait,    ///< It is waited for, then kPass.
  kPass,    ///< Created without devices; an event says so.
  kRefuse,  ///< The caller gets FailedPrecondition.
};

/// A mount and a device node replace nothing of the request; names and
/// variables are merged in the kubelet's order (docs/cri-shim.md).
struct CriShimOptions {
  /// By which a daemon that goes by what named shims report knows it
  /// (ReportedRuntimeSource): at most kMaxShimName letters, digits, `-`, `_`
  /// and `.`. May be empty.
  std::string name;

  /// Between which sockets. `intercept`, `interceptor` and `refuse_unreadable`
  /// are set by the shim.
  CriProxyOptions proxy;

  // Where devices come from: one of these two, or neither. Without, only the
  // names that the client sends are dealt with, as below a kubelet.
  DeviceManager* manager = nullptr;  ///< Borrowed: must outlive the shim.
  std::filesystem::path devmgrd;     ///< Its inspection socket.

  /// With `manager`, which must have Actuate::kWanted: RunPodSandbox is held
  /// until its pod is Ready, and the pod is released when it is over. False:
  /// pods are prepared and released elsewhere.
  bool actuate = false;
  /// Gets what the runtime runs as long as the shim lives; for the manager's
  /// Host::runtime. Borrowed: must outlive the shim. Null: no source is fed.
  ShimRuntimeSource* runtime_source = nullptr;

  /// With `actuate`, where pods come from. True: the manager's source.
  /// RunPodSandbox wants the pod it has; a pod is over when its last sandbox is
  /// gone and the source calls it Succeeded or Failed, or, being complete,
  /// lacks it. False: from calls of DeviceManager::WantPod, before or soon
  /// after RunPodSandbox; a pod is over when its last sandbox is removed, and
  /// one that never ran keeps its place until DeviceManager::UnwantPod.
  bool pods_from_source = true;

  UnknownSandbox unknown_sandbox = UnknownSandbox::kWait;
  std::chrono::milliseconds unknown_sandbox_wait{2'000};

  /// RunPodSandbox (and RestorePod) gets the CDI names of all containers of its
  /// pod as an annotation of the sandbox, kSandboxDevicesAnnotation, so that a
  /// runtime whose sandbox is a virtual machine knows the devices before it
  /// boots. It is answered as CreateContainer is while the pod has no answer.
  /// Needs `manager` or `devmgrd`.
  bool sandbox_devices = false;

  /// How often the runtime is asked what it runs while containers hold devices
  /// that their pods were not given: the end of one that was made past the shim
  /// is not seen otherwise. Must be positive.
  std::chrono::milliseconds foreign_holder_interval{10'000};

  /// Longest wait for plugins before a container starts, and for an answer of
  /// `devmgrd`. Must be positive.
  std::chrono::milliseconds call_timeout{30'000};

  /// Says how the runtime takes names; otherwise it is asked.
  std::optional<RuntimeCdi> runtime_cdi;
  /// Where names are looked up for a runtime without CDI.
  std::vector<std::filesystem::path> cdi_spec_dirs = {"/etc/cdi",
                                                      "/var/run/cdi"};
  /// Policies for what a runtime without CDI cannot express. `pod`, `container`
  /// and `runtime` are filled in by the shim.
  CriTarget fallback;

  /// Requests that cannot be read are refused; otherwise they pass as they came
  /// and are counted.
  bool strict = false;

  /// What happened that an operator should know; on a thread of the shim's,
  /// must not block. It is reported to the source of devices, too, with the
  /// counters: see DeviceManager::ReportRuntime.
  std::function<void(const EventInfo&)> on_event;
  /// Default: nothing is logged. With `manager` events are not logged here: its
  /// observers hear of them.
  LogSink log;
};

/// A container that has nothing from us: its sandbox is of no pod, or of one
/// that the source of devices does not know.
struct UnknownContainer {
  std::string id;
  std::string name;  ///< As the client named it.
  ObjectName pod;    ///< Both may be empty.
  PodUid uid;        ///< Empty: of no pod.
  friend bool operator==(const UnknownContainer&,
                         const UnknownContainer&) = default;
};

/// What the shim knows of the runtime, and what it did.
struct CriShimInfo {
  bool runtime_known = false;  ///< It answered; else the rest says nothing.
  std::string runtime_name;
  std::string runtime_version;
  RuntimeCdi runtime_cdi = RuntimeCdi::kNone;
  /// What decided about `runtime_cdi`: `override`, `status`, `version`,
  /// `default`; with a sentence for people.
  std::string runtime_cdi_source;
  std::string runtime_cdi_reason;
  std::string runtime_error;  ///< Why the runtime could not be asked.

  std::uint64_t sandboxes = 0;          ///< That are known.
  std::uint64_t foreign_sandboxes = 0;  ///< Of them: of no pod.
  std::uint64_t containers = 0;
  std::uint64_t injected = 0;    ///< Containers changed so far.
  std::uint64_t unchanged = 0;   ///< Containers passed as they came.
  std::uint64_t refused = 0;     ///< Calls answered with an error of ours.
  std::uint64_t unreadable = 0;  ///< Requests that could not be read.

  /// Those that had not exited when the runtime last listed them, by ID.
  std::vector<UnknownContainer> unknown_containers;
  std::map<std::string, std::uint64_t> events;  ///< How many, by reason.
};

/// Annotation of a container that the shim changed: a digest of what it was
/// given, so that a list of containers shows which holds what.
inline constexpr std::string_view kAllocationAnnotation = "devmgr/allocation";

/// Annotation of a container that the shim gave devices: which, as JSON, so
/// that they are known as long as it runs, whatever becomes of its pod.
inline constexpr std::string_view kDevicesAnnotation = "devmgr/devices";

/// Annotation of a sandbox with the CDI names of all containers of its pod, as
/// a container has them in such an annotation
/// (CriShimOptions::sandbox_devices).
inline constexpr std::string_view kSandboxDevicesAnnotation =
    "cdi.k8s.io/devmgr_sandbox";

/// Thread-safe. Two threads: that of its proxy, and `devmgr-shim`, which
/// decides.
class DEVMGR_EXPORT CriShim {
 public:
  /// Listens from here on; the runtime is asked about itself as soon as it is
  /// there, and containers wait for that.
  ///   InvalidArgument  an option is out of range, or they contradict each
  ///                    other
  ///   FailedPrecondition  `runtime_source` is that of another shim, which has
  ///                    not ended
  ///   as CriProxy::Start
  static absl::StatusOr<std::unique_ptr<CriShim>> Start(
      const CriShimOptions& options);
  /// As of CriProxy. Containers that run are not touched.
  virtual ~CriShim() = default;

  virtual CriShimInfo Info() const = 0;
  virtual CriProxyStats Stats() const = 0;
};

}  // namespace devmgr
