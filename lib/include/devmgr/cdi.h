// SPDX-License-Identifier: Apache-2.0
//
// Giving a container its devices, where no runtime does it by CDI names: the
// edits behind names, laid over an OCI runtime configuration, or expressed in
// plain CRI fields.
//
// Functions here are reentrant and keep nothing. They block only as far as the
// CdiHost does, for the file system that has the device nodes.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/cdi_registry.h>
#include <devmgr/cdi_spec.h>
#include <devmgr/container_devices.h>
#include <devmgr/export.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// What stands at a path of the host.
struct HostPath {
  enum class Type { kCharNode, kBlockNode, kFifo, kSymlink, kDirectory, kFile };
  Type type = Type::kFile;  ///< kFile: all that is none of the others.
  std::int64_t major = 0;   ///< Of nodes.
  std::int64_t minor = 0;
  std::uint32_t mode = 0;  ///< Permission bits.
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

/// How the engine sees the host. Called on the caller's thread; errors name the
/// path.
struct CdiHost {
  /// What stands there: a link itself, or what it leads to.
  std::function<absl::StatusOr<HostPath>(const std::string& path,
                                         bool follow_links)>
      look_at;
  /// Names in a directory, sorted.
  std::function<absl::StatusOr<std::vector<std::string>>(
      const std::string& directory)>
      list;
};

/// The host that this process sees. Blocks for the file system.
DEVMGR_EXPORT CdiHost SystemCdiHost();

// --- Which devices -----------------------------------------------------------

/// Whether an annotation of this key names CDI devices to a runtime. One that
/// is given their edits instead must not see it.
inline bool IsCdiAnnotation(std::string_view key) {
  return key.starts_with(kCdiAnnotationPrefix);
}

/// The CDI devices of a request, as runtimes take them: those of the field,
/// then those of annotations, by key; each once.
///   FailedPrecondition  an annotation of CDI is malformed; names it
DEVMGR_EXPORT absl::StatusOr<std::vector<std::string>> CdiNamesOf(
    const std::vector<std::string>& field,
    const std::map<std::string, std::string>& annotations);

/// The same of what a container gets: device plugins may name CDI devices by
/// annotation.
DEVMGR_EXPORT absl::StatusOr<std::vector<std::string>> CdiNamesOf(
    const ContainerDevices& devices);

/// Edits that one requested device brings, in the order to be applied.
struct CdiEditsPart {
  std::string device;    ///< The requested name.
  std::string path;      ///< Of the spec file.
  bool of_spec = false;  ///< Top-level edits, brought by its first device.
  std::shared_ptr<const CdiContainerEdits> edits;  ///< Never null.
};
using CdiEdits = std::vector<CdiEditsPart>;

/// Edits of one injection.
inline constexpr std::size_t kMaxCdiEdits = 10'000;

/// The edits of devices, in the order of `names`: before the first device of a
/// spec file its top-level edits, once; then the device's own. Repeated names
/// count once, at their first place. Remains valid without the registry.
///   NotFound           `unresolvable CDI devices`: all that are unresolvable,
///                      each with the reason
///   ResourceExhausted  more than kMaxCdiEdits edits
DEVMGR_EXPORT absl::StatusOr<CdiEdits> CdiEditsOf(
    const CdiRegistry& registry, const std::vector<std::string>& names);

// --- OCI runtime configuration ---------------------------------------------

/// Longest configuration that is edited.
inline constexpr std::size_t kMaxOciConfigBytes = std::size_t{16} << 20;

/// Lays edits over an OCI runtime configuration (`config.json`): its text with
/// env, device nodes and their cgroup rules, net devices, mounts, hooks, RDT
/// and groups as CDI runtimes write them. Host nodes are looked at anew each
/// time. Nothing else changes, not a blank: unknown members, their order and
/// large numbers stay. Without edits the text is returned as it is.
///   InvalidArgument     the text is no JSON object, or nested deeper than 256
///                       levels, or a member on the way has another type, or
///                       is there twice
///   FailedPrecondition  a device node cannot be had from the host; the message
///                       names device, spec file and host path
///   ResourceExhausted   the text is longer than kMaxOciConfigBytes
DEVMGR_EXPORT absl::StatusOr<std::string> InjectCdiIntoOciConfig(
    std::string_view config, const CdiEdits& edits,
    const CdiHost& host = SystemCdiHost());

/// The same for all that a container gets, of claims and of device plugins.
/// What plugins ask for goes in first, so that CDI wins, in the way of the
/// kubelet and its runtimes: env and annotations do not replace what is there;
/// mounts (recursive, private) and device nodes replace those of the same path
/// in the container. Links that lead to a host node are followed, as CRI
/// runtimes do, and of a directory all nodes in it are given. CDI devices that
/// annotations name are injected in place of these annotations, which the
/// client that runs the configuration would not read.
///   as CdiNamesOf, CdiEditsOf, InjectCdiIntoOciConfig
DEVMGR_EXPORT absl::StatusOr<std::string> InjectIntoOciConfig(
    std::string_view config, const ContainerDevices& devices,
    const CdiRegistry& registry, const CdiHost& host = SystemCdiHost());

// --- Plain CRI, for runtimes without CDI ------------------------------------

struct CriMount {
  /// As of `runtime.v1.MountPropagation`.
  enum class Propagation {
    kPrivate = 0,
    kHostToContainer = 1,
    kBidirectional = 2
  };
  std::string container_path;
  std::string host_path;
  bool read_only = false;
  Propagation propagation = Propagation::kPrivate;
  std::vector<std::string> options;  ///< `mount_options`, as `nosuid`.
  friend bool operator==(const CriMount&, const CriMount&) = default;
};

/// What to add to a CreateContainer request. Each replaces what the request has
/// of the same name (env) or container path (devices, mounts): remove that,
/// then append. Names and paths occur once.
struct CriEdits {
  std::vector<NamedValue> env;
  std::vector<DeviceNode> devices;  ///< Permissions are never empty.
  std::vector<CriMount> mounts;
  /// For `supplemental_groups`, where they are not there already. Never 0.
  std::vector<std::uint32_t> supplemental_groups;
  friend bool operator==(const CriEdits&, const CriEdits&) = default;
};

/// What is done with an edit that plain CRI cannot express.
enum class CriPolicy {
  kRefuse,     ///< The container is refused.
  kWarn,       ///< The edit is left out, and reported.
  kAllowList,  ///< Hooks only: as kWarn for those listed, kRefuse for others.
};

/// How a request without CDI is to be made.
struct CriTarget {
  // For messages.
  std::string pod;  ///< `namespace/name`.
  std::string container;
  std::string runtime;  ///< Name and version; may be empty.
  std::vector<std::string> cdi_directories;  ///< Where specs were searched.

  CriPolicy hooks = CriPolicy::kRefuse;
  CriPolicy device_nodes = CriPolicy::kRefuse;
  CriPolicy net_devices = CriPolicy::kRefuse;
  CriPolicy mounts = CriPolicy::kRefuse;
  CriPolicy intel_rdt = CriPolicy::kRefuse;
  /// For kAllowList: hooks of which nothing depends, by the last element of
  /// their path (`nvidia-ctk`), or by that and their first arguments behind the
  /// program's name, each after a blank (`nvidia-ctk hook update-ldcache`).
  std::vector<std::string> allowed_hooks;
  /// Whether the runtime takes `mount_options`.
  bool mount_options = false;
};

/// An edit that plain CRI cannot express.
struct CriObstacle {
  std::string device;
  std::string path;  ///< Of the spec file.
  std::string edit;  ///< The member of the spec: `hooks`, `deviceNodes`...
  std::string what;  ///< A sentence with the culprit.
  bool is_skipped = false;  ///< By policy; else it refuses the container.
  friend bool operator==(const CriObstacle&, const CriObstacle&) = default;
};

struct CriExpansion {
  /// FailedPrecondition when the container has to be refused: tells container
  /// and pod, for each device its file and what has no CRI form, and what to do
  /// about it.
  absl::Status verdict;
  CriEdits edits;                      ///< Empty when refused.
  std::vector<CriObstacle> obstacles;  ///< All of them, in order.
  /// Sentences with container and pod: what was left out by policy, and nodes
  /// of one path that differ. Empty when refused.
  std::vector<std::string> warnings;
};

/// Expresses edits in plain CRI fields. All edits are looked at, whatever is
/// found. Whoever sends the result removes the names from `CDI_devices` and the
/// annotations they came from, so that they are not applied twice.
DEVMGR_EXPORT CriExpansion
ExpandCdiForCri(const CdiEdits& edits, const CriTarget& target,
                const CdiHost& host = SystemCdiHost());

/// The same for names, as CdiNamesOf has them: what is wrong with them, and
/// what is unresolvable, refuses the container, too.
DEVMGR_EXPORT CriExpansion
ExpandCdiForCri(const CdiRegistry& registry,
                const absl::StatusOr<std::vector<std::string>>& names,
                const CriTarget& target, const CdiHost& host = SystemCdiHost());

}  // namespace devmgr
