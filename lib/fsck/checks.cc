// SPDX-License-Identifier: Apache-2.0
//
// Checks of the ledger by itself, against the drivers and against the source.
#include "fsck/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "claim/container_answer.h"
#include "common/counted.h"
#include "common/status.h"

namespace devmgr::fsck {
namespace {

constexpr char kReportIt[] =
    "our own bug: report it with the output of 'devmgrctl history -o json'";

}  // namespace

Finding Error(std::string check, std::string object, std::string message,
              std::string hint) {
  Finding finding;
  finding.shown = {std::move(check),   true, std::move(object),
                   std::move(message), "",   std::move(hint)};
  return finding;
}

Finding Warning(std::string check, std::string object, std::string message,
                std::string hint) {
  Finding finding = Error(std::move(check), std::move(object),
                          std::move(message), std::move(hint));
  finding.shown.error = false;
  return finding;
}

std::vector<Finding> CheckInvariants(const Input& input) {
  std::vector<Finding> findings;
  for (std::string& violation :
       state::CheckInvariants(input.state, input.boot_id)) {
    findings.push_back(
        Error("invariant", "ledger", std::move(violation), kReportIt));
  }
  return findings;
}

/// What resolve answers is frozen; it must still be what the claims say.
std::vector<Finding> CheckAnswers(const Input& input) {
  std::vector<Finding> findings;
  for (const auto& [uid, pod] : input.state.pods) {
    if (pod->phase != state::PodPhase::kReady || pod->answer == nullptr ||
        pod->boot_id != input.boot_id) {
      continue;
    }
    const auto answer = claim::AnswerFor(*pod, [&](const ClaimUid& claim) {
      return input.state.FindClaim(claim);
    });
    if (answer.ok() && **answer == *pod->answer) continue;
    const std::string why = answer.ok() ? "it differs from what its claims hold"
                                        : MessageOf(answer.status());
    findings.push_back(
        Error("answer", "pod/" + pod->name.ToString(),
              fmt::format("the answer of pod '{}' ({}) does not hold: {}",
                          pod->name.ToString(), uid.value, why),
              kReportIt));
  }
  return findings;
}

std::vector<Finding> CheckAbsentDrivers(const Input& input) {
  std::vector<Finding> findings;
  if (input.running == nullptr) return findings;
  std::map<std::string, std::vector<std::string>> held;
  for (const auto& [uid, claim] : input.state.claims) {
    for (const auto& [driver, part] : claim->drivers) {
      if (input.running->registered.contains(driver) ||
          (part.skipped.prepare && part.skipped.unprepare)) {
        continue;
      }
      held[driver].push_back("'" + claim->name.ToString() + "'");
    }
  }
  for (const auto& [driver, claims] : held) {
    findings.push_back(Warning(
        "absent-driver", "driver/" + driver,
        fmt::format("driver '{}' is not registered and has a part in {} "
                    "({}), which cannot be prepared or unprepared",
                    driver, Counted(claims.size(), "claim"),
                    fmt::join(claims, ", ")),
        "start the driver; what it prepared goes on being answered"));
  }
  return findings;
}

std::vector<Finding> CheckRefusals(const Input& input) {
  std::vector<Finding> findings;
  if (input.running == nullptr) return findings;
  for (const auto& [key, error] : input.running->refusals) {
    const auto& [uid, driver] = key;
    const state::ClaimRecord* claim = input.state.FindClaim(uid);
    if (claim == nullptr || !input.running->registered.contains(driver)) {
      continue;
    }
    const auto part = claim->drivers.find(driver);
    if (part == claim->drivers.end() ||
        part->second.phase == state::DriverPhase::kPrepared) {
      continue;
    }
    findings.push_back(Warning(
        "refused", "claim/" + claim->name.ToString(),
        fmt::format("claim '{}' ({}) is {} by driver '{}', which answered: {}",
                    claim->name.ToString(), uid.value,
                    state::DriverPhaseName(part->second.phase), driver, error),
        "it is tried again; see the driver's log"));
  }
  return findings;
}

/// A complete source that lacks a pod means that the pod is gone.
std::vector<Finding> CheckGonePods(const Input& input) {
  std::vector<Finding> findings;
  if (input.running == nullptr || !input.running->source_pods.has_value()) {
    return findings;
  }
  for (const auto& [uid, pod] : input.state.pods) {
    if (input.running->source_pods->contains(uid) ||
        pod->phase == state::PodPhase::kReleasing) {
      continue;
    }
    findings.push_back(Warning(
        "gone-pod", "pod/" + pod->name.ToString(),
        fmt::format("pod '{}' ({}) is {} but no longer in the source",
                    pod->name.ToString(), uid.value,
                    state::PodPhaseName(pod->phase)),
        "it is released in a moment; with 'actuate: embedder' release it: "
        "devmgrctl release pod " +
            pod->name.ToString()));
  }
  return findings;
}

}  // namespace devmgr::fsck
