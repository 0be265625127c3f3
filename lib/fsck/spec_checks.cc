// SPDX-License-Identifier: Apache-2.0
//
// Checks of the ledger against the CDI directories, by content: file names
// mean nothing. What counts as an orphan is written down in README.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "cdi/qualified_name.h"
#include "claim/spec_recovery.h"
#include "common/counted.h"
#include "fsck/checks.h"

namespace devmgr::fsck {
namespace {

bool IsAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

/// Whether `uid` stands in `name`, not as a piece of a longer word.
bool Carries(std::string_view name, std::string_view uid) {
  if (uid.empty()) return false;
  for (std::size_t at = name.find(uid); at != std::string_view::npos;
       at = name.find(uid, at + 1)) {
    const std::size_t end = at + uid.size();
    if ((at == 0 || !IsAlnum(name[at - 1])) &&
        (end == name.size() || !IsAlnum(name[end]))) {
      return true;
    }
  }
  return false;
}

/// Whether a text of the form 8-4-4-4-12 hexadecimal digits stands at `at`.
bool HasUuidAt(std::string_view name, std::size_t at) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (name.size() - at < kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const char c = name[at + i];
    const bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (kForm[i] == '-' ? c != '-' : !is_hex) return false;
  }
  return true;
}

bool HasUuid(std::string_view name) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (HasUuidAt(name, at)) return true;
  }
  return false;
}

/// Calls `visit(driver, id)` for every CDI device ID of a claim.
template <typename Visit>
void ForEachId(const state::ClaimRecord& claim, Visit visit) {
  for (const auto& [driver, part] : claim.drivers) {
    for (const state::PreparedDevice& device : part.devices) {
      for (const std::string& id : device.cdi_device_ids) {
        visit(driver, id);
      }
    }
  }
}

/// Which devices of spec files belong to claims, as far as ledger and history
/// tell, and which are held at all.
class Owners {
 public:
  explicit Owners(const Input& input) : state_(input.state) {
    PastDevices present;
    for (const auto& [uid, claim] : state_.claims) {
      present.Learn(*claim);
      ForEachId(*claim,
                [this](const auto&, const auto& id) { held_.insert(id); });
    }
    for (const PastDevices* made : {&input.past, &std::as_const(present)}) {
      for (const auto& [id, claim] : made->claims()) {
        const cdi::QualifiedName name = cdi::SplitQualifiedName(id);
        claim_kinds_.insert(name.vendor + "/" + name.device_class);
        if (state_.FindClaim(claim.uid) == nullptr) released_[id] = claim;
      }
    }
    for (const auto& [uid, pod] : state_.pods) {
      for (const state::DeviceHold& hold : pod->holds) {
        held_.insert(hold.edits.cdi_devices.begin(),
                     hold.edits.cdi_devices.end());
      }
    }
  }

  using Claim = PastDevices::Claim;

  /// The released claim that a device was made for; null when there is none,
  /// or the device may be needed.
  const Claim* ReleasedOwnerOf(const std::string& kind,
                               const std::string& device) const {
    const auto found = released_.find(kind + "=" + device);
    if (found == released_.end() || MayBeHeld(kind, device)) return nullptr;
    return &found->second;
  }

  /// Whether a claim or a pod of the ledger has the device.
  bool IsHeld(const std::string& id) const { return held_.contains(id); }

  /// Whether a device looks as if made for a claim that nobody knows.
  bool LooksAbandoned(const std::string& kind,
                      const std::string& device) const {
    return claim_kinds_.contains(kind) && HasUuid(device) &&
           !MayBeHeld(kind, device);
  }

 private:
  bool MayBeHeld(const std::string& kind, const std::string& device) const {
    const auto carries = [&](const auto& entry) {
      return Carries(device, entry.first.value);
    };
    return held_.contains(kind + "=" + device) ||
           std::any_of(state_.claims.begin(), state_.claims.end(), carries) ||
           std::any_of(state_.pods.begin(), state_.pods.end(), carries);
  }

  const state::State& state_;
  std::set<std::string> held_;             ///< IDs that the ledger holds.
  std::set<std::string> claim_kinds_;      ///< Whose devices carry claim UIDs.
  std::map<std::string, Claim> released_;  ///< By ID.
};

Finding OrphanOf(const CdiSpecFile& file, const Owners::Claim& claim) {
  Finding finding;
  finding.shown = {
      "orphaned-spec",
      true,
      "file/" + file.path,
      fmt::format("'{}' defines devices of claim '{}' ({}), which was released",
                  file.path, claim.name.ToString(), claim.uid.value),
      fmt::format("renames it to '{}.orphaned', which no runtime reads",
                  file.path),
      "its driver left it behind; see whether it still holds the claim"};
  finding.repair = SetAside{file, claim.uid, claim.name};
  return finding;
}

Finding AbandonedOf(const CdiSpecFile& file, const std::string& device) {
  Finding finding;
  finding.shown = {
      "orphaned-spec",
      false,
      "file/" + file.path,
      fmt::format("'{}' defines '{}={}', named as those of claims, and no such "
                  "claim is known",
                  file.path, file.spec->kind, device),
      "",
      "another user of the driver may need it; if there is none, remove it"};
  return finding;
}

using Ids = std::set<std::string>;

Finding ConflictOf(const std::vector<std::string>& paths, const Ids& devices,
                   bool is_effective, bool is_held) {
  std::vector<std::string> names(devices.begin(), devices.end());
  if (names.size() > kMostNames) {
    names.resize(kMostNames);
    names.emplace_back("...");
  }
  const std::string what = fmt::format(
      "{} {} defined by each of '{}' ({})", Counted(devices.size(), "device"),
      devices.size() == 1 ? "is" : "are", fmt::join(paths, "', '"),
      fmt::join(names, ", "));
  Finding finding =
      is_effective
          ? Error("conflicting-spec", "file/" + paths.front(),
                  what + ": no runtime injects them",
                  "have all of these files but one removed, or their devices "
                  "named otherwise")
          : Error("conflicting-spec", "file/" + paths.front(),
                  what +
                      ": a directory of higher priority defines them, but "
                      "many runtimes inject none of them all the same",
                  "have all of these files but one removed");
  finding.shown.error = is_effective && is_held;
  return finding;
}

/// Whether any spec file defines the device, be it in conflict with another.
bool IsDefined(const CdiRegistry& specs, const std::string& id) {
  if (specs.Find(id) != nullptr) return true;
  const auto conflict = std::lower_bound(
      specs.conflicts().begin(), specs.conflicts().end(), id,
      [](const CdiConflict& a, const std::string& b) { return a.device < b; });
  return conflict != specs.conflicts().end() && conflict->device == id;
}

/// ` in '/etc/cdi', '/var/run/cdi'`; empty when that is not known.
std::string Where(const std::vector<std::string>& directories) {
  if (directories.empty()) return "";
  return fmt::format(" in '{}'", fmt::join(directories, "', '"));
}

/// What people have to do where nothing more may be asked of a driver.
std::string HintOf(const state::State& state, const state::ClaimRecord& claim,
                   const std::string& driver, claim::SpecRemedy remedy,
                   const claim::KnownIdle& idle) {
  if (remedy == claim::SpecRemedy::kStopPods) {
    return fmt::format(
        "driver '{}' has prepared it again without writing them, so it may "
        "remember the claim; it is not asked to unprepare it, since containers "
        "of '{}' may run with it: delete these pods and make them again, or "
        "reboot the node",
        driver, fmt::join(claim::PodsThatMayRun(state, claim, idle), "', '"));
  }
  if (claim.drivers.at(driver).spec_recovery == state::SpecRecovery::kRenewed) {
    return fmt::format(
        "driver '{}' has unprepared it and prepared it again without writing "
        "them: see its log, and whether it writes its specs to another "
        "directory (cdiSpecDirs)",
        driver);
  }
  return fmt::format(
      "driver '{}' has prepared it again without writing them, and the claim's "
      "allocation says that it wants no unprepare: see its log",
      driver);
}

/// What plugins answered for a pod that is Ready in this boot, and no spec
/// defines.
void AddMissing(const state::PodRecord& pod, const Input& input,
                std::vector<Finding>* findings) {
  if (pod.phase != state::PodPhase::kReady || pod.boot_id != input.boot_id) {
    return;
  }
  std::map<std::string, Ids> missing;
  for (const state::DeviceHold& hold : pod.holds) {
    for (const std::string& id : hold.edits.cdi_devices) {
      if (!IsDefined(*input.specs, id)) missing[hold.resource].insert(id);
    }
  }
  for (const auto& [resource, ids] : missing) {
    findings->push_back(Error(
        "missing-spec", "pod/" + pod.name.ToString(),
        fmt::format(
            "pod '{}' ({}) holds devices of '{}', but no CDI spec file{} "
            "defines {}, which their plugin answered",
            pod.name.ToString(), pod.uid.value, resource,
            Where(input.spec_dirs), fmt::join(ids, ", ")),
        "a plugin is not asked twice: restart it, most write their specs then; "
        "if the pod must not wait for that, delete it and make it again"));
  }
}

}  // namespace

void PastDevices::Learn(const state::Batch& batch) {
  for (const state::Change& change : batch.decision.changes) {
    const auto* put = std::get_if<state::PutClaim>(&change);
    if (put != nullptr) Learn(*put->claim);
  }
}

void PastDevices::Learn(const state::ClaimRecord& claim) {
  ForEachId(claim, [&](const auto&, const std::string& id) {
    if (Carries(cdi::SplitQualifiedName(id).name, claim.uid.value)) {
      claims_[id] = {claim.uid, claim.name};
    }
  });
}

std::vector<Finding> CheckUnreadableSpecs(const Input& input) {
  std::vector<Finding> findings;
  if (input.specs == nullptr) return findings;
  for (const std::string& problem : input.specs->unread()) {
    Finding finding;
    finding.shown = {"unreadable-spec",
                     true,
                     "node",
                     problem,
                     "",
                     "until it can be read, missing specs are not looked for"};
    findings.push_back(std::move(finding));
  }
  for (const CdiSpecFile& file : input.specs->files()) {
    if (file.problem.empty()) continue;
    Finding finding;
    finding.shown = {"unreadable-spec",
                     false,
                     "file/" + file.path,
                     fmt::format("'{}' is no CDI spec, so runtimes ignore all "
                                 "of it: {}",
                                 file.path, file.problem),
                     "",
                     "have its owner write it again"};
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> CheckMissingSpecs(const Input& input) {
  std::vector<Finding> findings;
  if (input.specs == nullptr || !input.specs->unread().empty()) return findings;
  for (const auto& [uid, claim] : input.state.claims) {
    claim::KnownIdle idle{input.boot_id, {}};
    if (input.running != nullptr && input.running->idle_pods.contains(uid)) {
      idle.pods = input.running->idle_pods.at(uid);
    }
    for (const auto& [driver, ids] :
         FindMissingSpecs(*claim, input.boot_id, *input.specs)) {
      findings.push_back(MissingSpecOf(input.state, *claim, driver, ids, idle,
                                       input.spec_dirs));
    }
  }
  for (const auto& [uid, pod] : input.state.pods) {
    AddMissing(*pod, input, &findings);
  }
  return findings;
}

IdsByDriver FindMissingSpecs(const state::ClaimRecord& claim,
                             const std::string& boot_id,
                             const CdiRegistry& specs) {
  IdsByDriver missing;
  if (!specs.unread().empty()) return missing;
  ForEachId(claim, [&](const auto& driver, const auto& id) {
    const state::DriverRecord& part = claim.drivers.at(driver);
    if (part.phase == state::DriverPhase::kPrepared &&
        part.boot_id == boot_id && !IsDefined(specs, id)) {
      missing[driver].insert(id);
    }
  });
  return missing;
}

Finding MissingSpecOf(const state::State& state,
                      const state::ClaimRecord& claim,
                      const std::string& driver,
                      const std::set<std::string>& ids,
                      const claim::KnownIdle& idle,
                      const std::vector<std::string>& directories) {
  Finding finding;
  finding.shown = {
      "missing-spec",
      true,
      "claim/" + claim.name.ToString(),
      fmt::format("claim '{}' ({}) is prepared by driver '{}', but no CDI spec "
                  "file{} defines {}",
                  claim.name.ToString(), claim.uid.value, driver,
                  Where(directories), fmt::join(ids, ", ")),
      "",
      ""};
  const auto remedy = claim::RemedyFor(state, claim, driver, idle);
  switch (remedy) {
    case claim::SpecRemedy::kPrepareAgain:
      finding.shown.repair = fmt::format(
          "has driver '{}' prepare it again; until then its pods are Preparing",
          driver);
      finding.repair = PrepareAgain{claim.uid, driver};
      break;
    case claim::SpecRemedy::kRenew:
      finding.shown.repair = fmt::format(
          "has driver '{}', which has prepared it again without writing them, "
          "unprepare it and then prepare it, since no container runs with it; "
          "until then its pods are Preparing",
          driver);
      finding.repair = Renew{claim.uid, driver, idle};
      break;
    case claim::SpecRemedy::kStopPods:
    case claim::SpecRemedy::kNothing:
      finding.shown.hint = HintOf(state, claim, driver, remedy, idle);
      break;
  }
  return finding;
}

std::vector<Finding> CheckOrphanedSpecs(const Input& input) {
  std::vector<Finding> findings;
  if (input.specs == nullptr) return findings;
  const Owners owners(input);
  for (const CdiSpecFile& file : input.specs->files()) {
    if (file.spec == nullptr) continue;
    const std::vector<CdiSpecDevice>& devices = file.spec->devices;
    const auto owner_of = [&](const CdiSpecDevice& device) {
      return owners.ReleasedOwnerOf(file.spec->kind, device.name);
    };
    if (!devices.empty() &&
        std::all_of(devices.begin(), devices.end(), owner_of)) {
      findings.push_back(OrphanOf(file, *owner_of(devices.front())));
      continue;
    }
    const auto abandoned =
        std::find_if(devices.begin(), devices.end(), [&](const auto& device) {
          return owners.LooksAbandoned(file.spec->kind, device.name);
        });
    if (abandoned != devices.end()) {
      findings.push_back(AbandonedOf(file, abandoned->name));
    }
  }
  return findings;
}

/// An error where somebody holds such a device: his containers cannot start.
std::vector<Finding> CheckConflictingSpecs(const Input& input) {
  std::vector<Finding> findings;
  if (input.specs == nullptr) return findings;
  const Owners owners(input);
  // Files, whether it matters, whether somebody holds one: the devices.
  std::map<std::tuple<std::vector<std::string>, bool, bool>, Ids> groups;
  for (const CdiConflict& conflict : input.specs->conflicts()) {
    groups[{conflict.paths, conflict.is_effective,
            owners.IsHeld(conflict.device)}]
        .insert(conflict.device);
  }
  for (const auto& [key, devices] : groups) {
    const auto& [paths, is_effective, is_held] = key;
    findings.push_back(ConflictOf(paths, devices, is_effective, is_held));
  }
  return findings;
}

}  // namespace devmgr::fsck
