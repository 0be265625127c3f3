// SPDX-License-Identifier: Apache-2.0
//
// Specs of the Container Device Interface (CDI) as values: reading, checking
// and writing their text, qualified device names, and names in annotations.
//
// Everything here is pure and reentrant. Names of fields and rules are those
// of the CDI specification, versions 0.3.0 to 1.1.0.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/container_devices.h>
#include <devmgr/export.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// The parts of `vendor/class=name`.
struct CdiName {
  std::string vendor;
  std::string device_class;
  std::string name;

  /// `vendor/class`.
  std::string Kind() const { return vendor + "/" + device_class; }
  friend bool operator==(const CdiName&, const CdiName&) = default;
};

/// Splits a qualified name at the first `=`, then at the first `/` of its left
/// part, and checks the parts.
///   InvalidArgument  quotes the name, the part that is wrong and the rule
DEVMGR_EXPORT absl::StatusOr<CdiName> ParseCdiName(std::string_view name);

/// A device node of a container.
struct CdiDeviceNode {
  std::string path;        ///< In the container.
  std::string host_path;   ///< Empty: as `path`.
  std::string type;        ///< Empty (as on the host), `b`, `c`, `u` or `p`.
  std::int64_t major = 0;  ///< 0: not given.
  std::int64_t minor = 0;
  std::optional<std::uint32_t> file_mode;  ///< Permission bits.
  /// Any of `r`, `w`, `m`; empty means `rwm`; `none` gives the node without
  /// access by the device cgroup.
  std::string permissions;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  friend bool operator==(const CdiDeviceNode&, const CdiDeviceNode&) = default;
};

/// A network interface that moves into the container.
struct CdiNetDevice {
  std::string host_interface_name;
  std::string name;  ///< In the container.
  friend bool operator==(const CdiNetDevice&, const CdiNetDevice&) = default;
};

struct CdiMount {
  std::string host_path;
  std::string container_path;
  std::vector<std::string> options;
  std::string type;
  friend bool operator==(const CdiMount&, const CdiMount&) = default;
};

struct CdiHook {
  std::string hook_name;  ///< `prestart`, `createRuntime`, `createContainer`...
  std::string path;
  std::vector<std::string> args;
  std::vector<std::string> env;         ///< `NAME=value` each.
  std::optional<std::int64_t> timeout;  ///< Seconds.
  friend bool operator==(const CdiHook&, const CdiHook&) = default;
};

struct CdiIntelRdt {
  std::string clos_id;
  std::string l3_cache_schema;
  std::string mem_bw_schema;
  std::optional<std::vector<std::string>> schemata;
  bool enable_monitoring = false;
  /// Versions 0.7.0 to 1.0.0 only; they mean monitoring to the engine.
  std::optional<bool> enable_cmt;
  std::optional<bool> enable_mbm;
  friend bool operator==(const CdiIntelRdt&, const CdiIntelRdt&) = default;
};

/// What a device, or a whole spec, changes in a container.
struct CdiContainerEdits {
  std::vector<std::string> env;  ///< `NAME=value` each.
  std::vector<CdiDeviceNode> device_nodes;
  std::vector<CdiNetDevice> net_devices;
  std::vector<CdiMount> mounts;
  std::vector<CdiHook> hooks;
  std::optional<CdiIntelRdt> intel_rdt;
  std::vector<std::uint32_t> additional_gids;

  /// How many edits these are.
  DEVMGR_EXPORT std::size_t Count() const;
  friend bool operator==(const CdiContainerEdits&,
                         const CdiContainerEdits&) = default;
};

struct CdiSpecDevice {
  std::string name;  ///< Without vendor and class.
  std::map<std::string, std::string> annotations;
  CdiContainerEdits edits;
  friend bool operator==(const CdiSpecDevice&, const CdiSpecDevice&) = default;
};

/// What a spec file says.
struct CdiSpec {
  std::string version;  ///< `cdiVersion`, without a leading `v`.
  std::string kind;     ///< `vendor/class`.
  std::map<std::string, std::string> annotations;
  std::vector<CdiSpecDevice> devices;  ///< In the file's order.
  /// Top-level edits: for a container that gets any of the devices.
  CdiContainerEdits edits;
  friend bool operator==(const CdiSpec&, const CdiSpec&) = default;
};

/// Reads the text of a spec file, JSON or YAML whatever its name. Strict:
/// unknown members and members written twice are errors; case does not matter
/// in names of members. Any error makes the whole file invalid. The text may
/// have 8 MiB.
///   InvalidArgument  one message with all problems, the first ten in full,
///                    each as `FILE:LINE: FIELD: WHAT`; without the file where
///                    `file_name` is empty. An empty text: `no spec data`
DEVMGR_EXPORT absl::StatusOr<CdiSpec> ParseCdiSpec(std::string_view text,
                                                   std::string_view file_name);

/// The rules of ParseCdiSpec for a spec that did not come as text; the same
/// errors, without line.
DEVMGR_EXPORT absl::Status ValidateCdiSpec(const CdiSpec& spec);

/// The oldest version whose readers understand all that is in the spec,
/// whatever it declares: `0.3.0` at least. What a writer should declare.
DEVMGR_EXPORT std::string MinimumCdiVersion(const CdiSpec& spec);

/// The versions that specs may declare, oldest first.
DEVMGR_EXPORT const std::vector<std::string>& CdiVersions();

enum class CdiFormat { kJson, kYaml };

/// The text of a spec file, with the end of its last line. ParseCdiSpec makes
/// the same spec of it. Stricter than the reader: keys of annotations have to
/// be qualified names of Kubernetes.
///   ResourceExhausted  the text is longer than ParseCdiSpec takes
///   InvalidArgument    a text in it is not UTF-8
///   as ValidateCdiSpec
DEVMGR_EXPORT absl::StatusOr<std::string> EncodeCdiSpec(const CdiSpec& spec,
                                                        CdiFormat format);

/// Annotations that tell runtimes of devices begin so.
inline constexpr std::string_view kCdiAnnotationPrefix = "cdi.k8s.io/";

/// The annotation for runtimes that take names from there:
/// `cdi.k8s.io/<plugin>_<device ID>`, with `/` of the ID as `_`, and the names
/// joined by commas.
///   InvalidArgument  plugin or ID empty, the part behind the prefix longer
///                    than 63 characters or with others than letters, digits,
///                    `_`, `-`, `.`; a name that is not qualified
DEVMGR_EXPORT absl::StatusOr<NamedValue> MakeCdiAnnotation(
    std::string_view plugin, std::string_view device_id,
    const std::vector<std::string>& names);

/// Adds it; `annotations` stay as they are on error.
///   FailedPrecondition  the key is there already
///   as MakeCdiAnnotation
DEVMGR_EXPORT absl::Status AddCdiAnnotation(
    std::string_view plugin, std::string_view device_id,
    const std::vector<std::string>& names,
    std::map<std::string, std::string>& annotations);

/// The names in all CDI annotations, in order of key, repeats kept. Other
/// annotations do not matter.
///   InvalidArgument  a name is not qualified, or there is none; names the key
DEVMGR_EXPORT absl::StatusOr<std::vector<std::string>> ParseCdiAnnotations(
    const std::map<std::string, std::string>& annotations);

/// A name for the file of a spec that lives as long as something else, as a
/// claim or a container: `vendor-class_id`, `/` of the ID as `_`. Without an
/// ID, `vendor-class`. No suffix. The parts are not checked.
DEVMGR_EXPORT std::string CdiSpecFileName(std::string_view kind,
                                          std::string_view id);

}  // namespace devmgr
