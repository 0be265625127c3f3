// SPDX-License-Identifier: Apache-2.0
#include "model/reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace devmgr::model {
namespace {

using state::ClaimRecord;
using state::DriverPhase;
using state::PodPhase;
using state::PodRecord;
using state::State;

bool IsPreparingOrReady(const PodRecord& pod) {
  return pod.phase == PodPhase::kPreparing || pod.phase == PodPhase::kReady;
}

/// Given, or what the ledger gave it; empty when there is neither.
std::string UidOf(const ObjectMeta& object, const std::string& kind,
                  const State& ledger) {
  if (!object.uid.empty()) return object.uid;
  const auto* identity = ledger.FindIdentity(kind, object.FullName());
  return identity != nullptr ? identity->uid : "";
}

const std::vector<Objects::PodObject>& VersionsOf(const Objects& objects,
                                                  const ObjectName& name,
                                                  const PodUid& uid) {
  const auto& known = objects.Versions(name, uid.value);
  return known.empty() ? objects.Versions(name, "") : known;
}

/// What the pod's entry calls for: a claim's name, none needed (empty), or not
/// known yet.
std::optional<std::string> ClaimOf(const Pod& pod,
                                   const PodResourceClaim& entry) {
  if (entry.resource_claim_name.has_value()) return entry.resource_claim_name;
  for (const auto& status : pod.status.resource_claim_statuses) {
    if (status.name == entry.name) {
      return status.resource_claim_name.value_or("");
    }
  }
  return std::nullopt;
}

std::string Base(const std::string& request) {
  return request.substr(0, request.find('/'));
}

bool Serves(const state::PreparedDevice& device, const std::string& request) {
  if (request.empty() || device.request_names.empty()) return true;
  return std::any_of(device.request_names.begin(), device.request_names.end(),
                     [&](const auto& r) { return Base(r) == Base(request); });
}

/// Adds what the claim's drivers said for any of `requests`.
void AddIds(const ClaimRecord& claim, const std::vector<std::string>& requests,
            std::vector<std::string>* ids) {
  for (const auto& [driver, record] : claim.drivers) {
    for (const auto& device : record.devices) {
      if (std::none_of(requests.begin(), requests.end(),
                       [&](const auto& r) { return Serves(device, r); })) {
        continue;
      }
      for (const std::string& id : device.cdi_device_ids) {
        if (std::find(ids->begin(), ids->end(), id) == ids->end()) {
          ids->push_back(id);
        }
      }
    }
  }
}

std::vector<std::string> IdsOf(
    const Pod& pod, const Container& container,
    const std::map<std::string, const ClaimRecord*>& claims) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> requests;
  const auto want = [&](const std::string& claim, const std::string& request) {
    if (!requests.contains(claim)) order.push_back(claim);
    requests[claim].push_back(request);
  };
  for (const PodResourceClaim& entry : pod.spec.resource_claims) {
    for (const auto& wanted : container.resources.claims) {
      if (wanted.name != entry.name) continue;
      want(ClaimOf(pod, entry).value_or(""), wanted.request);
    }
  }
  const auto& special = pod.status.extended_resource_claim_status;
  if (special.has_value()) {
    for (const auto& mapping : special->request_mappings) {
      if (mapping.container_name == container.name &&
          container.resources.requests.contains(mapping.resource_name)) {
        want(special->resource_claim_name, mapping.request_name);
      }
    }
  }
  std::vector<std::string> ids;
  for (const std::string& claim : order) {
    const auto found = claims.find(claim);
    if (found != claims.end()) AddIds(*found->second, requests[claim], &ids);
  }
  return ids;
}

/// `name: id id; name: ...` as an answer or a version of the pod has it.
std::string Text(const PodDevices& answer) {
  std::string text;
  for (const ContainerDevices& container : answer.containers) {
    text += container.name.value + ":";
    for (const CdiDevice& id : container.cdi_devices) text += " " + id.name;
    text += "; ";
  }
  return text;
}
std::string Text(const Pod& pod,
                 const std::map<std::string, const ClaimRecord*>& claims) {
  std::string text;
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const Container& container : *list) {
      text += container.name + ":";
      for (const auto& id : IdsOf(pod, container, claims)) text += " " + id;
      text += "; ";
    }
  }
  return text;
}

std::set<std::string> DriversOf(const ClaimRecord& claim) {
  std::set<std::string> drivers;
  for (const auto& [driver, record] : claim.drivers) drivers.insert(driver);
  return drivers;
}
std::set<std::string> DriversOf(const AllocationResult& allocation) {
  std::set<std::string> drivers;
  for (const auto& result : allocation.results) drivers.insert(result.driver);
  return drivers;
}

bool IsReserved(const ResourceClaim& claim, const Pod& pod,
                const std::string& uid) {
  return std::any_of(
      claim.status.reserved_for.begin(), claim.status.reserved_for.end(),
      [&](const ResourceClaimConsumer& consumer) {
        return consumer.uid.empty() ? consumer.name == pod.metadata.name
                                    : consumer.uid == uid;
      });
}

bool IsOwned(const ResourceClaim& claim, const Pod& pod,
             const std::string& uid) {
  const auto& owners = claim.metadata.owner_references;
  if (owners.empty()) return false;
  return owners[0].uid.empty() ? owners[0].name == pod.metadata.name
                               : owners[0].uid == uid;
}

/// What keeps the pod from having this claim; empty when nothing does.
std::string Obstacle(const Pod& pod, const std::string& pod_uid,
                     const std::string& name, bool made, const State& ledger,
                     const Objects& objects) {
  const ObjectName full{pod.metadata.ns, name};
  const auto found = objects.claims().find(full);
  if (found == objects.claims().end()) return "there is no claim " + name;
  const ResourceClaim& claim = *found->second;
  if (made && !IsOwned(claim, pod, pod_uid)) return "another's claim " + name;
  if (!IsReserved(claim, pod, pod_uid)) return "no reservation of " + name;
  if (!claim.status.allocation.has_value()) return "no allocation of " + name;
  const std::string uid = UidOf(claim.metadata, "ResourceClaim", ledger);
  for (const ClaimUid& held : ledger.ClaimsNamed(full)) {
    if (held.value != uid) return "an older claim " + name;
  }
  const ClaimRecord* record = ledger.FindClaim(ClaimUid{uid});
  if (record == nullptr) return "";
  for (const auto& [driver, part] : record->drivers) {
    if (part.phase == DriverPhase::kUnpreparing) return "the end of " + name;
  }
  if (DriversOf(*record) != DriversOf(*claim.status.allocation)) {
    return "another allocation of " + name;
  }
  return "";
}

/// What keeps the pod from being Ready, by claim; empty when nothing does. The
/// key of what is not about a claim is empty.
std::map<std::string, std::string> Obstacles(const Pod& pod,
                                             const std::string& uid,
                                             const State& ledger,
                                             const Objects& objects,
                                             const Rules& rules) {
  std::map<std::string, std::string> obstacles;
  const auto look = [&](const std::string& claim, bool made) {
    auto text = Obstacle(pod, uid, claim, made, ledger, objects);
    if (!text.empty()) obstacles[claim] = std::move(text);
  };
  if (!pod.metadata.deletion_timestamp.empty()) obstacles[""] = "its deletion";
  for (const PodResourceClaim& entry : pod.spec.resource_claims) {
    const auto claim = ClaimOf(pod, entry);
    if (!claim.has_value()) {
      obstacles[""] = "no claim for " + entry.name;
    } else if (!claim->empty()) {
      look(*claim, !entry.resource_claim_name.has_value());
    }
  }
  const auto& special = pod.status.extended_resource_claim_status;
  const bool mapped = special.has_value() && rules.extended_resources;
  if (mapped) look(special->resource_claim_name, false);
  const bool wants_resource =
      pod.spec.containers.back().resources.requests.contains(kResource);
  if (wants_resource && !mapped) obstacles[""] = "no mapping";
  for (const PodUid& other : ledger.PodsNamed(pod.metadata.FullName())) {
    if (other.value == uid) break;
    obstacles[""] = "an older pod of its name";
  }
  return obstacles;
}

/// When it was judged last one of its claims may have had no allocation: a
/// driver that publishes devices could have this node make it.
bool NamesClaim(const Pod& pod) {
  return pod.status.extended_resource_claim_status.has_value() ||
         !pod.spec.resource_claims.empty();
}

bool IsOver(const Pod& pod) { return pod.status.phase == "Succeeded"; }

/// The UIDs of pods that somebody wants.
std::map<std::string, ObjectName> WantedPods(const State& ledger,
                                             const Objects& objects) {
  std::map<std::string, ObjectName> wanted;
  for (const auto& [name, pod] : objects.Snapshot().pods) {
    if (!IsOver(*pod)) wanted[UidOf(pod->metadata, "Pod", ledger)] = name;
  }
  for (const auto& [name, pod] : objects.Snapshot().malformed_pods) {
    wanted[UidOf(pod->pod.metadata, "Pod", ledger)] = name;
  }
  return wanted;
}

std::string CheckPodAtRest(const std::string& uid, const ObjectName& name,
                           const State& ledger, const Objects& objects,
                           const std::string& boot_id, const Rules& rules) {
  const PodRecord* record = ledger.FindPod(PodUid{uid});
  if (record == nullptr) {
    return fmt::format("pod {} ({}) is not known", name.name, uid);
  }
  if (record->phase == PodPhase::kRejected) {
    return record->reason == "InvalidPod" ? ""
                                          : "rejected for " + record->reason;
  }
  if (objects.IsMalformed(name)) {
    return record->claims.empty() && record->phase != PodPhase::kReady
               ? "malformed pod " + name.name + " is not rejected"
               : "";
  }
  if (record->phase == PodPhase::kReady && record->boot_id == boot_id) {
    return "";
  }
  const Pod& pod = *objects.pods().at(name);
  if (record->phase == PodPhase::kReady) {
    // Another pod under the UID that was made up for the name is refused when
    // it asks for more.
    if (pod.metadata.uid.empty() && objects.Versions(name, "").size() > 1) {
      return "";
    }
    return fmt::format("pod {} ({}) is still as in boot {}", name.name, uid,
                       record->boot_id);
  }
  const auto obstacles = Obstacles(pod, uid, ledger, objects, rules);
  if (!obstacles.empty()) return "";
  return fmt::format("pod {} ({}) is {} and could be Ready", name.name, uid,
                     PodPhaseName(record->phase));
}

}  // namespace

std::string AnswerHistory::Add(const State& before, const state::Batch& batch) {
  for (const state::Change& change : batch.decision.changes) {
    if (const auto* erased = std::get_if<state::ErasePod>(&change)) {
      answers_.erase(erased->uid);
    }
    const auto* put = std::get_if<state::PutPod>(&change);
    if (put == nullptr || put->pod->phase != PodPhase::kReady) continue;
    const PodRecord& pod = *put->pod;
    const auto known = answers_.find(pod.uid);
    if (known != answers_.end() && known->second.boot_id == pod.boot_id &&
        !(*known->second.answer == *pod.answer)) {
      return fmt::format("decision {} changes the answer of pod {} ({})",
                         batch.seq, pod.name.name, pod.uid.value);
    }
    const PodRecord* old = before.FindPod(pod.uid);
    if (old != nullptr && old->phase != PodPhase::kReady &&
        old->phase != PodPhase::kPreparing &&
        old->phase != PodPhase::kWaiting) {
      return fmt::format("decision {} makes {} pod {} Ready", batch.seq,
                         PodPhaseName(old->phase), pod.name.name);
    }
    answers_[pod.uid] = {pod.boot_id, pod.answer};
  }
  return "";
}

void NoteGivenUp(const State& before, const state::Batch& batch,
                 GivenUp* given_up) {
  const bool forgiven = batch.decision.kind == state::DecisionKind::kForgiven;
  for (const state::Change& change : batch.decision.changes) {
    const auto* erased = std::get_if<state::EraseClaim>(&change);
    const auto* put = std::get_if<state::PutClaim>(&change);
    if (erased == nullptr && put == nullptr) continue;
    const ClaimUid& uid = erased != nullptr ? erased->uid : put->claim->uid;
    const ClaimRecord* record = before.FindClaim(uid);
    if (forgiven && record != nullptr) {
      for (const auto& [driver, part] : record->drivers) {
        if (put != nullptr && put->claim->drivers.contains(driver)) continue;
        given_up->emplace(driver, uid.value);
      }
    }
    if (put == nullptr) continue;
    for (const auto& [driver, part] : put->claim->drivers) {
      if (part.phase == DriverPhase::kPrepared) {
        given_up->erase({driver, uid.value});
      }
    }
  }
}

std::string CheckCall(const State& ledger, bool prepare,
                      const std::string& driver, const std::string& claim) {
  const ClaimRecord* record = ledger.FindClaim(ClaimUid{claim});
  const auto complain = [&](std::string_view what) {
    return fmt::format("driver {} is asked to {} claim {}, {}", driver,
                       prepare ? "prepare" : "unprepare", claim, what);
  };
  if (record == nullptr) return complain("which the ledger does not know");
  const auto part = record->drivers.find(driver);
  if (part == record->drivers.end()) return complain("which is not its own");
  const DriverPhase phase = part->second.phase;
  // The last pod may have gone since the call was decided.
  const bool intended = phase == DriverPhase::kUnpreparing ||
                        (prepare && phase == DriverPhase::kPreparing);
  return intended ? "" : complain(DriverPhaseName(phase));
}

std::string CheckUnprepare(const State& ledger, const std::string& claim,
                           const std::string& boot_id) {
  for (const auto& [uid, pod] : ledger.pods) {
    if (!IsPreparingOrReady(*pod)) continue;
    // Of an earlier boot: it is going to be prepared again.
    if (pod->phase == PodPhase::kReady && pod->boot_id != boot_id) continue;
    if (std::find(pod->claims.begin(), pod->claims.end(), ClaimUid{claim}) !=
        pod->claims.end()) {
      return fmt::format("claim {} is unprepared under {} pod {} ({})", claim,
                         PodPhaseName(pod->phase), pod->name.name, uid.value);
    }
  }
  return "";
}

std::string CheckAnswer(const State& ledger, const Drivers& drivers,
                        const Objects& objects, const PodDevices& answer) {
  const PodRecord* pod = ledger.FindPod(answer.uid);
  if (pod == nullptr) return "an answer for no pod";
  std::map<std::string, const ClaimRecord*> claims;
  for (const ClaimUid& uid : pod->claims) {
    const ClaimRecord* claim = ledger.FindClaim(uid);
    if (claim == nullptr) return "an answer with claim " + uid.value;
    claims[claim->name.name] = claim;
    for (const auto& [driver, record] : claim->drivers) {
      if (!drivers.prepared(driver).contains(uid.value)) {
        return fmt::format("pod {} is Ready without claim {} at {}",
                           pod->name.name, uid.value, driver);
      }
      if (!drivers.Said(driver, uid.value, record.devices)) {
        return fmt::format("driver {} never said that of claim {}", driver,
                           uid.value);
      }
    }
  }
  const auto& versions = VersionsOf(objects, pod->name, pod->uid);
  const std::string text = Text(answer);
  for (const auto& version : versions) {
    if (Text(*version, claims) == text) return "";
  }
  return fmt::format(
      "pod {} ({}) has the answer '{}' instead of '{}'", pod->name.name,
      pod->uid.value, text,
      versions.empty() ? "nothing" : Text(*versions.back(), claims));
}

std::string CheckRest(const State& ledger, const Drivers& drivers,
                      const Objects& objects, const std::string& boot_id,
                      const std::set<std::string>& spared, const Rules& rules) {
  const auto wanted = WantedPods(ledger, objects);
  for (const auto& [uid, name] : wanted) {
    if (spared.contains(uid)) continue;
    std::string text =
        CheckPodAtRest(uid, name, ledger, objects, boot_id, rules);
    if (!text.empty()) return text;
  }
  for (const auto& [uid, pod] : ledger.pods) {
    if (wanted.contains(uid.value) || spared.contains(uid.value)) continue;
    return fmt::format("{} pod {} ({}) is not gone", PodPhaseName(pod->phase),
                       pod->name.name, uid.value);
  }
  for (const std::string& driver : kDrivers) {
    for (const auto& [uid, devices] : drivers.prepared(driver)) {
      if (rules.given_up.contains({driver, uid})) continue;
      const ClaimRecord* claim = ledger.FindClaim(ClaimUid{uid});
      if (claim == nullptr || !claim->drivers.contains(driver)) {
        return fmt::format("claim {} stays prepared at driver {}", uid, driver);
      }
    }
  }
  for (const auto& [uid, claim] : ledger.claims) {
    for (const auto& [driver, part] : claim->drivers) {
      if (part.phase != DriverPhase::kUnpreparing) continue;
      return fmt::format("claim {} is never unprepared by driver {}", uid.value,
                         driver);
    }
  }
  return "";
}

std::string CheckUndemanding(const State& ledger, const Objects& objects,
                             const std::string& boot_id,
                             const std::set<std::string>& spared,
                             const Rules& rules) {
  for (const auto& [name, pod] : objects.Snapshot().pods) {
    const auto& containers = pod->spec.containers;
    if (!pod->spec.resource_claims.empty() || IsOver(*pod) ||
        pod->status.extended_resource_claim_status.has_value() ||
        containers.back().resources.requests.contains(kResource)) {
      continue;
    }
    const std::string uid = UidOf(pod->metadata, "Pod", ledger);
    if (spared.contains(uid)) continue;
    const PodRecord* record = ledger.FindPod(PodUid{uid});
    if (record != nullptr &&
        (record->phase == PodPhase::kRejected ||
         record->phase == PodPhase::kReleasing || !record->claims.empty())) {
      continue;  // it was something else before
    }
    if (!Obstacles(*pod, uid, ledger, objects, rules).empty()) continue;
    if (record == nullptr || record->phase != PodPhase::kReady ||
        record->boot_id != boot_id) {
      return fmt::format("pod {} ({}) needs nothing and is not Ready",
                         name.name, uid);
    }
  }
  return "";
}

std::string CheckWait(const PodInfo& info, const State& ledger,
                      const Objects& objects, const Rules& rules) {
  const auto found = objects.pods().find(info.name);
  if (info.state != PodState::kWaiting || found == objects.pods().end()) {
    return "";
  }
  const Pod& pod = *found->second;
  if (UidOf(pod.metadata, "Pod", ledger) != info.uid.value) return "";
  const auto complain = [&](std::string_view what, const std::string& name) {
    return fmt::format("pod {} ({}) waits for {} '{}' without need: {} {}",
                       info.name.name, info.uid.value, what, name, info.reason,
                       info.message);
  };
  if (info.waiting_for.empty()) return complain("nothing", "");
  const auto obstacles = Obstacles(pod, info.uid.value, ledger, objects, rules);
  for (const WaitingFor& what : info.waiting_for) {
    switch (what.kind) {
      case WaitingFor::Kind::kDevices:
        if (what.name != WaitingFor::kAnyDriver || !NamesClaim(pod)) {
          return complain("devices", what.name);
        }
        break;
      case WaitingFor::Kind::kFreeDevices:  // none is published
      case WaitingFor::Kind::kFewerDevices:
      case WaitingFor::Kind::kTaint:
      case WaitingFor::Kind::kDeviceClass:
      case WaitingFor::Kind::kClaimTemplate:
      case WaitingFor::Kind::kQuota:
      case WaitingFor::Kind::kAuthority:
        return complain("devices", what.name);
      case WaitingFor::Kind::kRuntime:  // there is no source of it
        return complain("runtime", what.name);
      case WaitingFor::Kind::kDriver:  // all are there
        return complain("driver", what.name);
      case WaitingFor::Kind::kClaim:
        if (!obstacles.contains(what.name.substr(what.name.find('/') + 1))) {
          return complain("claim", what.name);
        }
        break;
      case WaitingFor::Kind::kPod:
      case WaitingFor::Kind::kResource:
        if (!obstacles.contains("")) return complain("", what.name);
        break;
    }
  }
  return "";
}

}  // namespace devmgr::model
