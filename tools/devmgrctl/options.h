// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_changes.h>
#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "environment.h"

namespace devmgr::ctl {

enum class Format { kTable, kWide, kJson, kYaml, kName };
enum class ColorMode { kAuto, kAlways, kNever };
enum class Verb {
  kStatus,
  kVersion,
  kGet,
  kDescribe,
  kResolve,
  kExplain,
  kWait,
  kPrepare,
  kRelease,
  kEvents,
  kHistory,
  kState,
  kDiff,
  kFsck,
  kHandOver,
  kConfirm,
  kFree,
  kDelete,
  kEndpoint,
  kRecheck,
  kAuthority,
  kConvert,
  kVerify,
  kImport,
  kExport,
  kCdi,
  kInject,
  kCel,
  kAllocate,
  kSimulate,
  kPodResources,
};
enum class CdiVerb { kDirs, kList, kShow, kValidate, kWatch, kMinVersion };
enum class PodResourcesVerb { kList, kAllocatable, kGet };
enum class Kind {
  kPlugin,
  kResource,
  kClaim,
  kPod,
  kDevice,
  kClass,
  kDebt,
  kHolder,
  kSource,
  kSlice,
  kNuma,
  kChange
};
enum class PodCondition { kReady, kWaiting, kRejected, kReleased };

/// Whose history: `a/b`, `pod/b`, `claim/a/b`, or a UID.
struct Subject {
  std::optional<Kind> kind;  ///< A pod or a claim; nothing: either.
  ObjectName name;
  std::string uid;  ///< Empty: it cannot be one.
};

/// A command line, checked.
struct Options {
  Verb verb = Verb::kStatus;

  // Global flags.
  std::string endpoint;   ///< Flag, else environment, else default.
  std::string state_dir;  ///< Empty: ask the daemon.
  Format format = Format::kTable;
  ColorMode color = ColorMode::kAuto;
  bool no_headers = false;
  /// Nothing when the flag was not given; zero means no limit.
  std::optional<std::chrono::milliseconds> timeout;
  std::string ns;  ///< Empty: all of them, or `default` for a bare name.

  // Of the verb.
  Kind kind = Kind::kPod;
  /// The namespace is empty for plugins, resources and devices. Of get: the
  /// resource or driver whose devices are wanted; empty: of all.
  ObjectName name;
  std::string container;
  bool show_env = false;  ///< resolve, describe: do not mask values.
  PodCondition condition = PodCondition::kReady;
  bool follow = false;
  std::optional<ChangeToken> after;  ///< get changes
  LedgerPoint since;  ///< Nothing: all there is. Of events never a number.
  /// history: of whom; nothing: of all.
  std::optional<Subject> subject;
  LedgerPoint at;        ///< state
  LedgerPoint from, to;  ///< diff
  bool repair = false;
  bool force = false;  ///< release of a claim
  std::string reason;  ///< What an operator says for the history.
  std::string device;  ///< recheck: one device; empty: all
  ResourceOwner new_owner = ResourceOwner::kAutomatic;  ///< hand-over
  Authority authority = Authority::kNode;               ///< authority set
  std::uint64_t to_format = 0;                          ///< convert
  bool yes = false;
  std::string directory;       ///< verify, import, export
  bool dry_run = false;        ///< import, export
  bool accept_losses = false;  ///< import, export
  std::vector<std::string> cdi_spec_dirs;
  bool cdi_edits = false;  ///< resolve: what is behind the names
  bool fallback = false;   ///< resolve: for a runtime without CDI
  // Of that, as of devmgr-cri-shim.
  bool leaves_out = false;  ///< What is inexpressible; else it is refused.
  std::vector<std::string> allowed_hooks;
  bool mount_options = false;
  std::string diff_container;  ///< resolve: ID or prefix; else empty
  /// Socket of a runtime: of resolve with a container; else empty for none.
  std::string runtime_endpoint;
  CdiVerb cdi_verb = CdiVerb::kDirs;
  PodResourcesVerb pod_resources_verb = PodResourcesVerb::kList;
  std::string pod_resources_socket;  ///< podresources
  std::string cdi_device;            ///< cdi show
  std::vector<std::string> paths;    ///< cdi validate; cdi min-version: one
  std::string spec;                  ///< inject: the OCI configuration
  std::string out_file;              ///< inject; empty: stdout
  std::string expression;            ///< cel
  std::vector<std::string> slices;   ///< cel, simulate: with ResourceSlices
  /// cel: only its devices; empty: all. delete, endpoint: whose.
  std::string driver;
  bool old_variables = false;      ///< cel: those of v1alpha2
  std::vector<std::string> files;  ///< allocate, simulate: with objects
  std::string node;                ///< allocate, simulate
  std::map<std::string, std::string> node_labels;  ///< allocate, simulate
  std::map<std::string, bool> feature_gates;       ///< allocate

  // Of simulate.
  std::string like;               ///< Name of a node like this one; or empty.
  std::vector<ObjectName> minus;  ///< Pods that are taken to be gone.
  std::map<std::string, std::int64_t> plugin_devices;  ///< By resource.
  bool independent = false;
  bool count_fits = false;

  bool offline() const { return !state_dir.empty(); }
};

/// Reads a command line (without the program's name). Or the exit code, after
/// help or what is wrong has been printed.
std::variant<Options, ExitCode> ParseCommandLine(
    std::vector<std::string> arguments, const Environment& environment);

}  // namespace devmgr::ctl
