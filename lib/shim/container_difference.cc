// SPDX-License-Identifier: Apache-2.0
//
// Both sides as parts of an OCI configuration: the runtime's, and an empty one
// into which was injected what the ledger says.
#include <devmgr/cri_shim.h>
#include <devmgr/runtime_inspection.h>
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "common/enum_names.h"
#include "common/status.h"
#include "shim/allocation_stamp.h"
#include "shim/json_member.h"
#include "shim/oci_devices.h"

namespace devmgr {
namespace {

using shim::DeviceAccess;
using shim::MemberOf;
using shim::NumberOf;
using shim::OciNode;
using shim::OciNodesOf;
using shim::PathOf;
using shim::TextOf;
using Json = nlohmann::json;

constexpr char kEnvironment[] = "environment";
constexpr char kMount[] = "mount";
constexpr char kDeviceNode[] = "device node";
constexpr char kCdiDevice[] = "CDI device";
constexpr char kAnnotation[] = "annotation";

/// What and name, with the value.
using Parts = std::map<std::pair<std::string, std::string>, std::string>;

/// Runtimes follow links before they mount.
std::string SourceOf(const Json& json) {
  const std::string source = TextOf(json);
  if (!source.starts_with('/')) return source;
  std::error_code error;
  const auto path = std::filesystem::weakly_canonical(source, error);
  return error ? source : path.string();
}

void TakeEnv(const Json& config, Parts* parts) {
  for (const Json& variable : MemberOf(config, "process", "env")) {
    const std::string text = TextOf(variable);
    const std::size_t equals = text.find('=');
    (*parts)[{kEnvironment, text.substr(0, equals)}] =
        equals == std::string::npos ? "" : text.substr(equals + 1);
  }
}

void TakeMounts(const Json& config, Parts* parts) {
  for (const Json& mount : MemberOf(config, "mounts")) {
    const Json& options = MemberOf(mount, "options");
    const bool read_only =
        std::find(options.begin(), options.end(), Json("ro")) != options.end();
    (*parts)[{kMount, PathOf(MemberOf(mount, "destination"))}] =
        SourceOf(MemberOf(mount, "source")) + (read_only ? " ro" : " rw");
  }
}

void TakeDevices(const Json& config, Parts* parts) {
  const DeviceAccess access(config);
  for (const OciNode& node : OciNodesOf(config)) {
    std::string& text = (*parts)[{kDeviceNode, node.path}] = node.type;
    if (node.type != "c" && node.type != "b") continue;
    text += fmt::format(" {}:{} {}", node.major, node.minor,
                        access.Of(node.type.front(), node.major, node.minor));
  }
}

void TakeHooks(const Json& config, Parts* parts) {
  const Json& hooks = MemberOf(config, "hooks");
  if (!hooks.is_object()) return;
  for (const auto& [point, list] : hooks.items()) {
    for (const Json& hook : list) {
      std::string name = point + " " + TextOf(MemberOf(hook, "path"));
      const Json& args = MemberOf(hook, "args");
      // The first argument is the program's name.
      for (std::size_t i = 1; args.is_array() && i < args.size(); ++i) {
        name += " " + TextOf(args.at(i));
      }
      (*parts)[{"hook", name}] = "";
    }
  }
}

void TakeOthers(const Json& config, Parts* parts) {
  const Json& interfaces = MemberOf(config, "linux", "netDevices");
  if (interfaces.is_object()) {
    for (const auto& [name, device] : interfaces.items()) {
      (*parts)[{"net device", name}] = TextOf(MemberOf(device, "name"));
    }
  }
  for (const Json& gid :
       MemberOf(config, "process", "user", "additionalGids")) {
    (*parts)[{"group", fmt::format("{}", NumberOf(gid))}] = "";
  }
  const Json& rdt = MemberOf(config, "linux", "intelRdt");
  if (rdt.is_object()) {
    (*parts)[{"RDT", "intelRdt"}] =
        rdt.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

Parts PartsOf(const Json& config) {
  Parts parts;
  TakeEnv(config, &parts);
  TakeMounts(config, &parts);
  TakeDevices(config, &parts);
  TakeHooks(config, &parts);
  TakeOthers(config, &parts);
  return parts;
}

/// Collects what differs.
class Comparison {
 public:
  void Compare(const Parts& ledger, const Parts& container) {
    for (const auto& [key, value] : ledger) {
      const auto found = container.find(key);
      if (found == container.end()) {
        Add(HeldDifference::Kind::kMissing, key, value, "");
      } else if (found->second != value) {
        Add(HeldDifference::Kind::kDiffers, key, value, found->second);
      }
    }
  }

  /// What of `what` the ledger knows nothing of.
  void FindAdditional(const std::string& what, const Parts& ledger,
                      const Parts& container) {
    for (const auto& [key, value] : container) {
      if (key.first != what || ledger.contains(key)) continue;
      if (what == kDeviceNode && shim::IsEverywhere(key.second)) continue;
      Add(HeldDifference::Kind::kAdditional, key, "", value);
    }
  }

  void Add(HeldDifference::Kind kind,
           const std::pair<std::string, std::string>& key, std::string ledger,
           std::string container) {
    differences_.push_back(
        {kind, key.first, key.second, std::move(ledger), std::move(container)});
  }

  std::vector<HeldDifference> Take() && {
    std::sort(differences_.begin(), differences_.end(),
              [](const HeldDifference& a, const HeldDifference& b) {
                return std::tie(a.what, a.name) < std::tie(b.what, b.name);
              });
    return std::move(differences_);
  }

 private:
  std::vector<HeldDifference> differences_;
};

/// A privileged container reaches all devices: its nodes say nothing.
void CompareConfigs(const Json& container, const Json& ledger,
                    Comparison* comparison) {
  const Parts has = PartsOf(container);
  Parts should = PartsOf(ledger);
  if (!DeviceAccess(container).all()) {
    comparison->Compare(should, has);
    comparison->FindAdditional(kDeviceNode, should, has);
    return;
  }
  std::erase_if(should, [&](const auto& part) {
    return part.first.first == kDeviceNode && has.contains(part.first);
  });
  comparison->Compare(should, has);
  comparison->Add(HeldDifference::Kind::kAdditional,
                  {kDeviceNode, "all of the host"}, "", "rwm");
}

void CompareNames(const RuntimeContainerConfig& config,
                  const std::vector<std::string>& names,
                  Comparison* comparison) {
  // None: they were expanded, or the runtime does not tell.
  if (config.cdi_devices.empty()) return;
  Parts has;
  Parts should;
  for (const std::string& name : config.cdi_devices) has[{kCdiDevice, name}];
  for (const std::string& name : names) should[{kCdiDevice, name}];
  comparison->Compare(should, has);
  comparison->FindAdditional(kCdiDevice, should, has);
}

void CompareAnnotations(const RuntimeContainerConfig& config,
                        const ContainerDevices& devices,
                        Comparison* comparison) {
  Parts has;
  Parts should;
  for (const auto& [name, value] : config.annotations) {
    has[{kAnnotation, name}] = value;
  }
  for (const NamedValue& annotation : devices.annotations) {
    // Those are names of devices, which are looked at by themselves.
    if (IsCdiAnnotation(annotation.name)) continue;
    should[{kAnnotation, annotation.name}] = annotation.value;
  }
  comparison->Compare(should, has);
}

}  // namespace

std::string_view HeldDifferenceKindName(HeldDifference::Kind kind) {
  using enum HeldDifference::Kind;
  static constexpr auto kNames = EnumTable<HeldDifference::Kind>({
      {kMissing, "missing"},
      {kAdditional, "additional"},
      {kDiffers, "differs"},
  });
  return kNames.Of(kind, "differs");
}

absl::StatusOr<std::vector<HeldDifference>> CompareWithLedger(
    const RuntimeContainer& container, const RuntimeContainerConfig& config,
    const ContainerDevices& devices, const CdiRegistry& registry,
    const CdiHost& host) {
  const auto has = shim::ParseJson(config.oci);
  if (!has.ok() || !has->is_object()) {
    return FailedPreconditionError(
        "the OCI configuration of container {} {}", container.id,
        has.ok() ? "is no JSON object" : MessageOf(has.status()));
  }
  const auto names = CdiNamesOf(devices);
  if (!names.ok()) {
    return FailedPreconditionError("container '{}': {}", devices.name,
                                   MessageOf(names.status()));
  }
  const auto injected = InjectIntoOciConfig("{}", devices, registry, host);
  if (!injected.ok()) {
    return FailedPreconditionError("container '{}': {}", devices.name,
                                   MessageOf(injected.status()));
  }
  const Json should = Json::parse(*injected, nullptr, false);
  Comparison comparison;
  CompareConfigs(*has, should, &comparison);
  CompareNames(config, *names, &comparison);
  CompareAnnotations(config, devices, &comparison);
  const std::string stamp = shim::ReadStamp(container.allocation).ledger;
  const std::string digest = shim::AllocationDigest(&devices);
  if (!stamp.empty() && stamp != digest) {
    comparison.Add(HeldDifference::Kind::kDiffers,
                   {kAnnotation, std::string(kAllocationAnnotation)}, digest,
                   stamp);
  }
  return std::move(comparison).Take();
}

}  // namespace devmgr
