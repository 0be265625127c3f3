// SPDX-License-Identifier: Apache-2.0
#include "cdi/spec_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "api/problems.h"
#include "api/quote.h"
#include "cdi/qualified_name.h"
#include "cdi/spec_problems.h"
#include "common/status.h"

namespace devmgr::cdi {
namespace {

using api::Quoted;

/// In the order of CdiVersions().
enum Version { k030, k040, k050, k060, k070, k080, k100, k110 };

constexpr std::size_t kMaxClosIdBytes = 4095;
constexpr std::array<std::string_view, 6> kHookNames = {
    "prestart",       "createRuntime", "createContainer",
    "startContainer", "poststart",     "poststop"};

template <typename Range, typename Holds>
bool Any(const Range& range, Holds holds) {
  return std::any_of(range.begin(), range.end(), holds);
}

Version NeededBy(const CdiContainerEdits& edits) {
  const auto& rdt = edits.intel_rdt;
  if (!edits.net_devices.empty()) return k110;
  if (rdt && (rdt->schemata || rdt->enable_monitoring)) return k110;
  if (rdt || !edits.additional_gids.empty()) return k070;
  if (Any(edits.device_nodes,
          [](const CdiDeviceNode& n) { return !n.host_path.empty(); })) {
    return k050;
  }
  if (Any(edits.mounts, [](const CdiMount& m) { return !m.type.empty(); })) {
    return k040;
  }
  return k030;
}

Version NeededBy(const CdiSpecDevice& device) {
  Version needed = NeededBy(device.edits);
  if (!device.annotations.empty()) needed = std::max(needed, k060);
  if (!device.name.empty() && device.name[0] >= '0' && device.name[0] <= '9') {
    needed = std::max(needed, k050);
  }
  return needed;
}

Version NeededBy(const CdiSpec& spec) {
  Version needed = NeededBy(spec.edits);
  const std::size_t slash = spec.kind.find('/');
  if (!spec.annotations.empty() ||
      (slash != std::string::npos &&
       spec.kind.find('.', slash) != std::string::npos)) {
    needed = std::max(needed, k060);
  }
  for (const CdiSpecDevice& device : spec.devices) {
    needed = std::max(needed, NeededBy(device));
  }
  return needed;
}

/// The rules for one block of edits.
class EditsCheck {
 public:
  EditsCheck(std::string path, const ReportProblem& report)
      : path_(std::move(path)), report_(report) {}

  void Check(const CdiContainerEdits& edits) const {
    CheckEnv(edits.env, "env");
    for (std::size_t i = 0; i < edits.device_nodes.size(); ++i) {
      Check(edits.device_nodes[i], fmt::format("deviceNodes[{}]", i));
    }
    CheckNetDevices(edits.net_devices);
    for (std::size_t i = 0; i < edits.mounts.size(); ++i) {
      const std::string field = fmt::format("mounts[{}]", i);
      Require(edits.mounts[i].host_path, field + ".hostPath");
      Require(edits.mounts[i].container_path, field + ".containerPath");
    }
    for (std::size_t i = 0; i < edits.hooks.size(); ++i) {
      Check(edits.hooks[i], fmt::format("hooks[{}]", i));
    }
    if (edits.intel_rdt) CheckClosId(edits.intel_rdt->clos_id);
  }

 private:
  void Report(const std::string& field, const std::string& message) const {
    report_(path_ + "." + field, message);
  }

  void Require(const std::string& text, const std::string& field) const {
    if (text.empty()) Report(field, "must not be empty");
  }

  void CheckEnv(const std::vector<std::string>& env,
                const std::string& field) const {
    for (std::size_t i = 0; i < env.size(); ++i) {
      const std::size_t equals = env[i].find('=');
      if (equals != std::string::npos && equals != 0) continue;
      Report(fmt::format("{}[{}]", field, i),
             fmt::format("{} is not 'NAME=value'", Quoted(env[i])));
    }
  }

  void Check(const CdiDeviceNode& node, const std::string& field) const {
    Require(node.path, field + ".path");
    const bool is_type =
        node.type.empty() ||
        (node.type.size() == 1 &&
         std::string_view("bcup").find(node.type[0]) != std::string_view::npos);
    if (!is_type) {
      Report(field + ".type",
             fmt::format("{} is not 'b', 'c', 'u' or 'p'", Quoted(node.type)));
    }
    if (node.permissions != "none" &&
        node.permissions.find_first_not_of("rwm") != std::string::npos) {
      Report(field + ".permissions",
             fmt::format("{} is not made of 'r', 'w', 'm', and not 'none'",
                         Quoted(node.permissions)));
    }
  }

  void CheckNetDevices(const std::vector<CdiNetDevice>& devices) const {
    std::set<std::string_view> host_names;
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const std::string field = fmt::format("netDevices[{}]", i);
      const auto check = [&](const std::string& name, const char* member,
                             std::set<std::string_view>& seen) {
        Require(name, field + member);
        if (!name.empty() && !seen.insert(name).second) {
          Report(field + member,
                 fmt::format("{} is there already", Quoted(name)));
        }
      };
      check(devices[i].host_interface_name, ".hostInterfaceName", host_names);
      check(devices[i].name, ".name", names);
    }
  }

  void Check(const CdiHook& hook, const std::string& field) const {
    if (std::find(kHookNames.begin(), kHookNames.end(), hook.hook_name) ==
        kHookNames.end()) {
      Report(field + ".hookName",
             fmt::format("{} is none of {}", Quoted(hook.hook_name),
                         fmt::join(kHookNames, ", ")));
    }
    Require(hook.path, field + ".path");
    CheckEnv(hook.env, field + ".env");
  }

  void CheckClosId(const std::string& id) const {
    if (id.empty() || id == "/") return;
    if (id.size() > kMaxClosIdBytes || id == "." || id == ".." ||
        id.find_first_of("/\n") != std::string::npos) {
      Report("intelRdt.closID",
             fmt::format("{} can be no name of a directory", Quoted(id)));
    }
  }

  const std::string path_;
  const ReportProblem& report_;
};

/// What 1.1.0 took away.
void CheckRemoved(const CdiContainerEdits& edits, const std::string& path,
                  const ReportProblem& report) {
  if (!edits.intel_rdt) return;
  const auto check = [&](const std::optional<bool>& flag, const char* member) {
    if (!flag) return;
    report(path + ".intelRdt." + member,
           "is unknown since version 1.1.0, which has 'enableMonitoring'");
  };
  check(edits.intel_rdt->enable_cmt, "enableCMT");
  check(edits.intel_rdt->enable_mbm, "enableMBM");
}

void CheckVersion(const CdiSpec& spec, const ReportProblem& report) {
  const std::vector<std::string>& versions = CdiVersions();
  if (spec.version.empty()) {
    report("cdiVersion", "invalid version: it is missing");
    return;
  }
  if (spec.version == "0.1.0" || spec.version == "0.2.0") {
    report("cdiVersion", fmt::format("version {} is too old: it must be at "
                                     "least {}",
                                     Quoted(spec.version), versions.front()));
    return;
  }
  const auto found = std::find(versions.begin(), versions.end(), spec.version);
  if (found == versions.end()) {
    report("cdiVersion",
           fmt::format("invalid version {}: known are {}", Quoted(spec.version),
                       fmt::join(versions, ", ")));
    return;
  }
  const auto declared = static_cast<Version>(found - versions.begin());
  if (const Version needed = NeededBy(spec); declared < needed) {
    report("cdiVersion",
           fmt::format("the spec's version must be at least {} for what it "
                       "holds, it is {}",
                       versions[needed], spec.version));
  }
  if (declared < k110) return;
  CheckRemoved(spec.edits, "containerEdits", report);
  for (std::size_t i = 0; i < spec.devices.size(); ++i) {
    CheckRemoved(spec.devices[i].edits,
                 fmt::format("devices[{}].containerEdits", i), report);
  }
}

void CheckDevices(const CdiSpec& spec, const ReportProblem& report) {
  if (spec.devices.empty()) report("devices", "no devices");
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < spec.devices.size(); ++i) {
    const CdiSpecDevice& device = spec.devices[i];
    const std::string path = fmt::format("devices[{}]", i);
    if (const absl::Status status = CheckDeviceName(device.name);
        !status.ok()) {
      report(path + ".name", MessageOf(status));
    } else if (!names.insert(device.name).second) {
      report(path + ".name",
             fmt::format("multiple devices {}", Quoted(device.name)));
    }
    if (device.edits.Count() == 0) {
      report(
          path + ".containerEdits",
          fmt::format("device {} has empty device edits{}", Quoted(device.name),
                      spec.edits.Count() == 0
                          ? ""
                          : "; those of the whole spec do not count"));
    }
    EditsCheck(path + ".containerEdits", report).Check(device.edits);
  }
}

}  // namespace

std::string_view PlainVersion(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  return text;
}

void CheckSpec(const CdiSpec& spec, const ReportProblem& report) {
  CheckVersion(spec, report);
  if (const absl::Status status = CheckKind(spec.kind); !status.ok()) {
    report("kind", MessageOf(status));
  }
  CheckDevices(spec, report);
  EditsCheck("containerEdits", report).Check(spec.edits);
}

}  // namespace devmgr::cdi

namespace devmgr {

std::size_t CdiContainerEdits::Count() const {
  return env.size() + device_nodes.size() + net_devices.size() + mounts.size() +
         hooks.size() + (intel_rdt ? 1 : 0) + additional_gids.size();
}

const std::vector<std::string>& CdiVersions() {
  static const auto* const kVersions = new std::vector<std::string>{
      "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
  return *kVersions;
}

std::string MinimumCdiVersion(const CdiSpec& spec) {
  return CdiVersions()[cdi::NeededBy(spec)];
}

absl::Status ValidateCdiSpec(const CdiSpec& spec) {
  api::Problems problems("");
  cdi::CheckSpec(spec,
                 [&](const std::string& field, const std::string& message) {
                   problems.Error(0, field, message);
                 });
  return cdi::StatusOf(problems);
}

}  // namespace devmgr
