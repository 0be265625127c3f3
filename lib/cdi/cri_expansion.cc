// SPDX-License-Identifier: Apache-2.0
//
// CDI edits as plain fields of CRI. What CRI has no words for is an obstacle;
// all of them are collected before anything is decided.
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>
#include <devmgr/cdi.h>
#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/quote.h"
#include "cdi/device_node.h"
#include "common/status.h"

namespace devmgr {
namespace {

/// Bytes of one obstacle, and of all of them in a refusal.
constexpr std::size_t kMaxWhat = 500;
constexpr std::size_t kMaxRefusal = 8'000;

/// Takes out the item that `is_same` finds, and appends.
template <typename T, typename IsSame>
void Replace(std::vector<T>& list, T item, IsSame is_same) {
  const auto found = std::find_if(list.begin(), list.end(), is_same);
  if (found != list.end()) list.erase(found);
  list.push_back(std::move(item));
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// Whether `allowed`, words with blanks between, is how the hook begins.
bool IsAllowed(const CdiHook& hook, std::string_view allowed) {
  std::string command(BaseName(hook.path));
  for (std::size_t i = 1; i < hook.args.size(); ++i) {
    command += " " + hook.args[i];
  }
  return !allowed.empty() && command.starts_with(allowed) &&
         (command.size() == allowed.size() || command[allowed.size()] == ' ');
}

std::string Where(const CriTarget& target) {
  return fmt::format("container '{}' of pod '{}'", target.container,
                     target.pod);
}

CriExpansion Refused(const CriTarget& target, const std::string& why) {
  CriExpansion refused;
  refused.verdict = FailedPreconditionError("{}: {}", Where(target), why);
  return refused;
}

class Expander {
 public:
  Expander(const CriTarget& target, const CdiHost& host)
      : target_(target), host_(host) {}

  CriExpansion Expand(const CdiEdits& parts) {
    for (const CdiEditsPart& part : parts) {
      part_ = &part;
      const CdiContainerEdits& edits = *part.edits;
      for (const std::string& env : edits.env) AddEnv(env);
      for (const CdiDeviceNode& node : edits.device_nodes) AddNode(node);
      for (const CdiNetDevice& device : edits.net_devices) {
        Obstacle("netDevices", target_.net_devices,
                 fmt::format("moves the network interface '{}' into it",
                             device.host_interface_name));
      }
      for (const CdiMount& mount : edits.mounts) AddMount(mount);
      for (const CdiHook& hook : edits.hooks) AddHook(hook);
      if (edits.intel_rdt) {
        Obstacle("intelRdt", target_.intel_rdt, "sets Intel RDT");
      }
      for (const std::uint32_t gid : edits.additional_gids) AddGroup(gid);
    }
    result_.verdict = Verdict();
    if (!result_.verdict.ok()) {
      result_.edits = {};
      result_.warnings.clear();
      return std::move(result_);
    }
    for (const CriObstacle& obstacle : result_.obstacles) {
      result_.warnings.push_back(fmt::format(
          "{}: device '{}' from '{}', {} left out: {}", Where(target_),
          obstacle.device, obstacle.path, obstacle.edit, obstacle.what));
    }
    return std::move(result_);
  }

 private:
  void Obstacle(const char* edit, CriPolicy policy, const std::string& what) {
    result_.obstacles.push_back({part_->device, part_->path, edit,
                                 api::Readable(what, kMaxWhat),
                                 policy == CriPolicy::kWarn});
  }

  void AddEnv(const std::string& env) {
    const std::size_t equals = env.find('=');
    NamedValue variable{env.substr(0, equals), env.substr(equals + 1)};
    const std::string name = variable.name;
    Replace(result_.edits.env, std::move(variable),
            [&](const NamedValue& other) { return other.name == name; });
  }

  void AddNode(const CdiDeviceNode& node) {
    const std::string problem = ProblemOf(node);
    if (!problem.empty()) {
      return Obstacle("deviceNodes", target_.device_nodes,
                      fmt::format("device node '{}' {}", node.path, problem));
    }
    DeviceNode device{node.path, cdi::HostPathOf(node),
                      node.permissions.empty() ? "rwm" : node.permissions};
    for (const DeviceNode& other : result_.edits.devices) {
      if (other.container_path != node.path || other == device) continue;
      result_.warnings.push_back(
          fmt::format("{}: device '{}' from '{}' has another node '{}' than a "
                      "device before it, whose is replaced",
                      Where(target_), part_->device, part_->path, node.path));
    }
    Replace(result_.edits.devices, std::move(device),
            [&](const DeviceNode& other) {
              return other.container_path == node.path;
            });
  }

  /// Why a runtime would make another node of the host's; empty if it would
  /// not.
  std::string ProblemOf(const CdiDeviceNode& node) const {
    const std::string& path = cdi::HostPathOf(node);
    if (node.permissions == "none") return "has permissions 'none'";
    const auto host = host_.look_at(path, /*follow_links=*/false);
    if (!host.ok()) return "needs a host node: " + MessageOf(host.status());
    const std::string_view type = cdi::NodeType(*host);
    if (type == "p") return "is a fifo";
    if (type.empty()) {
      return fmt::format("needs a host node, '{}' is none", path);
    }
    if (!node.type.empty() && node.type != type) {
      return fmt::format("has type '{}', the host's has '{}'", node.type, type);
    }
    if (node.major != 0 &&
        (node.major != host->major || node.minor != host->minor)) {
      return fmt::format("has the numbers {}:{}, the host's has {}:{}",
                         node.major, node.minor, host->major, host->minor);
    }
    if (node.file_mode && (*node.file_mode & 07777) != host->mode) {
      return fmt::format("has mode {:04o}, the host's has {:04o}",
                         *node.file_mode, host->mode);
    }
    if ((node.uid && *node.uid != host->uid) ||
        (node.gid && *node.gid != host->gid)) {
      return fmt::format("has an owner, the host's has {}:{}", host->uid,
                         host->gid);
    }
    return "";
  }

  void AddMount(const CdiMount& mount) {
    CriMount result;
    result.container_path = mount.container_path;
    result.host_path = mount.host_path;
    const std::string problem = Translate(mount, &result);
    if (!problem.empty()) {
      return Obstacle(
          "mounts", target_.mounts,
          fmt::format("mount of '{}' {}", mount.container_path, problem));
    }
    Replace(result_.edits.mounts, std::move(result),
            [&](const CriMount& other) {
              return other.container_path == mount.container_path;
            });
  }

  /// Why CRI cannot make this mount; empty if it can.
  std::string Translate(const CdiMount& mount, CriMount* result) const {
    if (!mount.type.empty() && mount.type != "bind" && mount.type != "rbind" &&
        mount.type != "none") {
      return fmt::format("is of type '{}', not a bind mount", mount.type);
    }
    for (const std::string& option : mount.options) {
      if (TakeOption(option, result)) continue;
      if (!target_.mount_options || option.find("idmap") != std::string::npos) {
        return fmt::format("has the option '{}'", option);
      }
      result->options.push_back(option);
    }
    // Runtimes make a directory of a source that is not there.
    const auto source = host_.look_at(mount.host_path, /*follow_links=*/true);
    return source.ok() ? "" : "lacks its source: " + MessageOf(source.status());
  }

  static bool TakeOption(std::string_view option, CriMount* result) {
    if (option == "bind" || option == "rbind") return true;
    if (option == "ro" || option == "rw") {
      result->read_only = option == "ro";
      return true;
    }
    using Propagation = CriMount::Propagation;
    absl::string_view name(option.data(), option.size());
    absl::ConsumePrefix(&name, "r");
    if (name == "private") {
      result->propagation = Propagation::kPrivate;
    } else if (name == "slave") {
      result->propagation = Propagation::kHostToContainer;
    } else if (name == "shared") {
      result->propagation = Propagation::kBidirectional;
    } else {
      return false;
    }
    return true;
  }

  void AddHook(const CdiHook& hook) {
    CriPolicy policy = target_.hooks;
    if (policy == CriPolicy::kAllowList) {
      const bool is_allowed = std::any_of(
          target_.allowed_hooks.begin(), target_.allowed_hooks.end(),
          [&](const auto& allowed) { return IsAllowed(hook, allowed); });
      policy = is_allowed ? CriPolicy::kWarn : CriPolicy::kRefuse;
    }
    // The first one is the program's own name.
    std::string arguments;
    for (std::size_t i = 1; i < hook.args.size(); ++i) {
      arguments += fmt::format("{}'{}'", i == 1 ? "" : " ", hook.args[i]);
    }
    Obstacle("hooks", policy,
             fmt::format("runs the {} hook '{}'{}{}", hook.hook_name, hook.path,
                         arguments.empty() ? "" : " with the arguments ",
                         arguments));
  }

  void AddGroup(std::uint32_t gid) {
    std::vector<std::uint32_t>& groups = result_.edits.supplemental_groups;
    if (gid == 0 ||
        std::find(groups.begin(), groups.end(), gid) != groups.end()) {
      return;
    }
    groups.push_back(gid);
  }

  absl::Status Verdict() const {
    std::vector<std::string> sentences;
    const CriObstacle* last = nullptr;
    for (const CriObstacle& obstacle : result_.obstacles) {
      if (obstacle.is_skipped) continue;
      const bool is_same_device = last != nullptr &&
                                  last->device == obstacle.device &&
                                  last->path == obstacle.path;
      sentences.push_back(is_same_device
                              ? obstacle.what
                              : fmt::format("device '{}' from '{}' {}",
                                            obstacle.device, obstacle.path,
                                            obstacle.what));
      last = &obstacle;
    }
    if (sentences.empty()) return absl::OkStatus();
    const std::string runtime =
        target_.runtime.empty() ? "runtime" : target_.runtime;
    return FailedPreconditionError(
        "{}: without CDI the {} cannot give it its devices: {}; enable CDI in "
        "the runtime (containerd 1.7.2 or newer with enable_cdi, CRI-O 1.28 or "
        "newer)",
        Where(target_), runtime,
        api::Readable(absl::StrJoin(sentences, "; "), kMaxRefusal));
  }

  const CriTarget& target_;
  const CdiHost& host_;
  const CdiEditsPart* part_ = nullptr;
  CriExpansion result_;
};

}  // namespace

CriExpansion ExpandCdiForCri(const CdiEdits& edits, const CriTarget& target,
                             const CdiHost& host) {
  return Expander(target, host).Expand(edits);
}

CriExpansion ExpandCdiForCri(
    const CdiRegistry& registry,
    const absl::StatusOr<std::vector<std::string>>& names,
    const CriTarget& target, const CdiHost& host) {
  if (!names.ok()) return Refused(target, MessageOf(names.status()));
  const auto edits = CdiEditsOf(registry, *names);
  if (edits.ok()) return ExpandCdiForCri(*edits, target, host);
  return Refused(
      target,
      fmt::format("{}; searched in {}", MessageOf(edits.status()),
                  absl::StrJoin(target.cdi_directories, ", ",
                                [](std::string* to, const std::string& path) {
                                  to->append("'" + path + "'");
                                })));
}

}  // namespace devmgr
