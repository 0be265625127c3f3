// SPDX-License-Identifier: Apache-2.0
#include "shim/injection.h"

#include <devmgr/cdi_spec.h>
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "shim/allocation_stamp.h"

namespace devmgr::shim {
namespace {

using Names = std::vector<std::string>;

bool Contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Adds those that are not there yet.
void AddMissing(Names* to, const Names& names) {
  for (const std::string& name : names) {
    if (!Contains(*to, name)) to->push_back(name);
  }
}

/// One container's config on its way to the runtime.
class Plan {
 public:
  Plan(const cri::ContainerConfig& config, const ContainerDevices* devices,
       const InjectionTarget& target)
      : config_(config), devices_(devices), target_(target) {}

  absl::StatusOr<Injection> Make() {
    if (devices_ != nullptr) AddPluginEdits();
    DEVMGR_RETURN_IF_ERROR(PlaceNames());
    Hold();
    if (!result_.edits.empty()) Stamp();
    return std::move(result_);
  }

 private:
  std::string Where() const {
    return fmt::format("container '{}' of pod '{}'", config_.name,
                       target_.fallback.pod);
  }

  /// Of plugins (borders between pod and plugin as the kubelet draws them).
  void AddPluginEdits() {
    cri::ConfigEdits& edits = result_.edits;
    edits.env.first = devices_->env;
    for (const DeviceMount& mount : devices_->mounts) {
      edits.mounts.first.push_back(
          {mount.container_path, mount.host_path, mount.read_only});
    }
    edits.devices.first = devices_->devices;
    for (const NamedValue& annotation : devices_->annotations) {
      if (config_.annotations.contains(annotation.name)) continue;
      edits.annotations.first.push_back(annotation);
    }
    for (const DeviceNode& node : devices_->devices) {
      if (!node.permissions.empty() &&
          node.permissions.find_first_not_of("rwm") == std::string::npos) {
        continue;
      }
      result_.warnings.push_back(fmt::format(
          "{}: resource '{}' gives device '{}' the permissions '{}', which "
          "runtimes may refuse",
          Where(), node.resource, node.container_path, node.permissions));
    }
  }

  absl::Status PlaceNames() {
    // All that the runtime would see.
    cri::TextMap annotations = config_.annotations;
    for (const NamedValue& added : result_.edits.annotations.first) {
      annotations.emplace(added.name, added.value);
    }
    Names ours;
    if (devices_ != nullptr) {
      for (const CdiDevice& device : devices_->cdi_devices) {
        ours.push_back(device.name);
      }
    }
    if (target_.runtime == RuntimeCdi::kFieldAndAnnotations ||
        target_.runtime == RuntimeCdi::kAnnotations) {
      // What cannot be read, the runtime refuses by itself.
      const auto annotated = ParseCdiAnnotations(annotations);
      const Names by_annotation = annotated.ok() ? *annotated : Names();
      if (target_.runtime == RuntimeCdi::kAnnotations) {
        return Annotate(ours, by_annotation);
      }
      AppendToField(ours, by_annotation);
      return absl::OkStatus();
    }
    Names field = config_.cdi_devices;
    AddMissing(&field, ours);
    const auto names = CdiNamesOf(field, annotations);
    if (!names.ok()) {
      return FailedPreconditionError("{}: {}", Where(),
                                     MessageOf(names.status()));
    }
    DropCdiAnnotations(annotations);
    if (target_.runtime == RuntimeCdi::kField) {
      AppendToField(*names, {});
      return absl::OkStatus();
    }
    if (names->empty()) return absl::OkStatus();
    DropNamesOfField();
    return Expand(*names);
  }

  void AppendToField(const Names& names, const Names& there_already) {
    Names all = config_.cdi_devices;
    AddMissing(&all, there_already);
    for (const std::string& name : names) {
      if (Contains(all, name)) continue;
      all.push_back(name);
      result_.edits.cdi_devices.last.push_back(name);
    }
  }

  absl::Status Annotate(const Names& ours, const Names& there_already) {
    Names names;
    for (const Names* from : {&config_.cdi_devices, &ours}) {
      for (const std::string& name : *from) {
        if (!Contains(there_already, name)) AddMissing(&names, {name});
      }
    }
    DropNamesOfField();
    if (names.empty()) return absl::OkStatus();
    const auto annotation =
        MakeCdiAnnotation("devmgr", NamesDigest(names), names);
    if (!annotation.ok()) {
      return FailedPreconditionError("{}: {}", Where(),
                                     MessageOf(annotation.status()));
    }
    result_.edits.annotations.drop.insert(annotation->name);
    result_.edits.annotations.last.push_back(*annotation);
    return absl::OkStatus();
  }

  void DropNamesOfField() {
    result_.edits.cdi_devices.drop.insert(config_.cdi_devices.begin(),
                                          config_.cdi_devices.end());
  }

  void DropCdiAnnotations(const cri::TextMap& annotations) {
    auto& edit = result_.edits.annotations;
    for (const auto& [key, value] : annotations) {
      if (IsCdiAnnotation(key)) edit.drop.insert(key);
    }
    std::erase_if(edit.first, [](const NamedValue& annotation) {
      return IsCdiAnnotation(annotation.name);
    });
  }

  absl::Status Expand(const Names& names) {
    CriExpansion expansion = ExpandCdiForCri(target_.registry, names,
                                             target_.fallback, target_.host);
    DEVMGR_RETURN_IF_ERROR(expansion.verdict);
    result_.warnings.insert(result_.warnings.end(), expansion.warnings.begin(),
                            expansion.warnings.end());
    cri::ConfigEdits& edits = result_.edits;
    Replace(&edits.env, std::move(expansion.edits.env),
            [](const auto& entry) { return entry.name; });
    const auto path = [](const auto& entry) { return entry.container_path; };
    Replace(&edits.mounts, std::move(expansion.edits.mounts), path);
    Replace(&edits.devices, std::move(expansion.edits.devices), path);
    for (const std::uint32_t group : expansion.edits.supplemental_groups) {
      const auto& there = config_.supplemental_groups;
      if (std::find(there.begin(), there.end(), group) == there.end()) {
        edits.supplemental_groups.push_back(group);
      }
    }
    return absl::OkStatus();
  }

  /// `entries` in place of all of the same key, the plugins' included.
  template <typename Entry, typename Key>
  static void Replace(cri::ListEdit<Entry>* edit, std::vector<Entry> entries,
                      Key key) {
    for (const Entry& entry : entries) edit->drop.insert(key(entry));
    std::erase_if(edit->first, [&](const Entry& entry) {
      return edit->drop.contains(key(entry));
    });
    edit->last = std::move(entries);
  }

  /// What is ours, and what the client named.
  void Hold() {
    if (devices_ != nullptr) result_.held = HeldBy(*devices_);
    const Names names = NamesOfClient();
    result_.held.cdi_devices.insert(names.begin(), names.end());
  }

  void Stamp() {
    const std::string key(kAllocationAnnotation);
    result_.edits.annotations.drop.insert(key);
    const std::string devices(kDevicesAnnotation);
    result_.edits.annotations.drop.insert(devices);
    if (!result_.held.empty()) {
      result_.edits.annotations.last.push_back(
          {devices, WriteHeld(result_.held)});
    }
    const Names names = NamesOfClient();
    result_.edits.annotations.last.push_back(
        {key, WriteStamp({AllocationDigest(devices_),
                          names.empty() ? "" : NamesDigest(names)})});
  }

  /// Those that are not ours as well.
  Names NamesOfClient() const {
    auto named = CdiNamesOf(config_.cdi_devices, config_.annotations);
    Names names = named.ok() ? *std::move(named) : config_.cdi_devices;
    if (devices_ == nullptr) return names;
    const auto ours = CdiNamesOf(*devices_);
    if (ours.ok()) {
      std::erase_if(names, [&](const auto& n) { return Contains(*ours, n); });
    }
    return names;
  }

  const cri::ContainerConfig& config_;
  const ContainerDevices* const devices_;
  const InjectionTarget& target_;
  Injection result_;
};

}  // namespace

absl::StatusOr<Injection> PlanInjection(const cri::ContainerConfig& config,
                                        const ContainerDevices* devices,
                                        const InjectionTarget& target) {
  return Plan(config, devices, target).Make();
}

}  // namespace devmgr::shim
