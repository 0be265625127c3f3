// SPDX-License-Identifier: Apache-2.0
//
// Checks of hardware that drivers and device plugins offer under several names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "claim/held_hardware.h"
#include "fsck/checks.h"

namespace devmgr::fsck {
namespace {

/// As of one that was allocated before it was known which hardware it is.
void AddHeldTwice(const Input& input, std::vector<Finding>* findings) {
  for (const auto& [uid, pod] : input.state.pods) {
    for (const auto& [owner, hardware] : state::HardwareOf(*pod)) {
      const auto other =
          claim::FindHardwareHolder(input.state, *hardware, {*owner, uid, {}});
      if (!other.has_value()) continue;
      findings->push_back(Warning(
          "shared-hardware", "pod/" + pod->name.ToString(),
          fmt::format("pod '{}' ({}) holds {} by {}, and {} holds it{}",
                      pod->name.ToString(), uid.value,
                      device::IdentityText(other->identity), *owner,
                      other->holder,
                      other->owner.empty() ? "" : " by " + other->owner),
          "one of the two has to end; no third pod gets it"));
    }
  }
}

}  // namespace

std::vector<Finding> CheckSharedHardware(const Input& input) {
  std::vector<Finding> findings;
  AddHeldTwice(input, &findings);
  if (input.running == nullptr) return findings;
  for (const Overlap& overlap : input.running->overlaps) {
    findings.push_back(Warning(
        "shared-hardware", "hardware/" + overlap.identity,
        fmt::format("{} is offered as {}", overlap.identity,
                    fmt::join(overlap.devices, ", ")),
        "one pod gets it at a time, by whichever name; let one of them offer "
        "it, so that its amount is not counted twice"));
  }
  return findings;
}

}  // namespace devmgr::fsck
