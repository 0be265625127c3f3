// SPDX-License-Identifier: Apache-2.0
#include <devmgr/runtime_inspection.h>
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "common/status.h"
#include "shim/allocation_stamp.h"

namespace devmgr {
namespace {

constexpr char kUnaccounted[] = "unaccounted-container";
constexpr char kDifferent[] = "different-allocation";
constexpr char kEndIt[] =
    "until the container ends its devices are in use, whatever the ledger "
    "says: stop it before they are given to others";
constexpr char kCompare[] =
    "see what it holds with 'devmgrctl resolve --diff'; a container that is "
    "created anew gets what the ledger says";

/// Judges one container.
class Judge {
 public:
  Judge(const RuntimeContainer& container, const LedgerAnswers& answers)
      : container_(container),
        answers_(answers),
        stamp_(shim::ReadStamp(container.allocation)) {}

  std::optional<FsckFinding> Find() const {
    const auto known = answers_.find(container_.pod_uid);
    if (known == answers_.end()) {
      return NotKnown(container_.pod_uid.value.empty()
                          ? "it belongs to no pod"
                          : "the ledger does not know its pod");
    }
    if (!known->second.ok()) return NoAnswer(known->second.status());
    const auto& all = known->second->containers;
    const auto devices = std::find_if(
        all.begin(), all.end(),
        [&](const ContainerDevices& c) { return c.name == container_.name; });
    if (devices == all.end()) {
      return NotKnown("the ledger has no such container in its pod");
    }
    if (devices->devices_released) {
      return Finding(kUnaccounted, true,
                     "its devices were given back when the init containers "
                     "had ended",
                     kEndIt);
    }
    const std::string digest = shim::AllocationDigest(&*devices);
    if (stamp_.ledger != digest) {
      return Finding(kDifferent, true,
                     fmt::format("it was given other devices than the ledger "
                                 "says: its digest is {}, the ledger's {}",
                                 stamp_.ledger, digest),
                     kCompare);
    }
    if (stamp_.client.empty()) return std::nullopt;
    return ByClient();
  }

 private:
  std::optional<FsckFinding> NotKnown(const std::string& why) const {
    if (stamp_.ledger == shim::AllocationDigest(nullptr)) return ByClient();
    return Finding(kUnaccounted, true, "it was given devices, and " + why,
                   kEndIt);
  }

  FsckFinding ByClient() const {
    return Finding(kUnaccounted, false,
                   "its client named CDI devices, of which the ledger knows "
                   "nothing",
                   kCompare);
  }

  FsckFinding NoAnswer(const absl::Status& status) const {
    const bool is_none = status.code() == absl::StatusCode::kFailedPrecondition;
    return Finding(
        kUnaccounted, is_none,
        "it was given devices, and the ledger has none for it: " +
            MessageOf(status),
        is_none ? kEndIt : "look again when the pod is Ready or gone");
  }

  FsckFinding Finding(const char* check, bool error, const std::string& why,
                      const char* hint) const {
    const bool has_pod = !container_.pod.name.empty();
    FsckFinding finding;
    finding.check = check;
    finding.error = error;
    finding.object =
        has_pod ? fmt::format("container/{}/{}", container_.pod.ToString(),
                              container_.name)
                : "container/" + container_.id;
    finding.message = fmt::format("container {}: {}", container_.id, why);
    finding.hint = hint;
    return finding;
  }

  const RuntimeContainer& container_;
  const LedgerAnswers& answers_;
  const shim::Stamp stamp_;
};

}  // namespace

std::vector<FsckFinding> CheckRuntimeContainers(
    const std::vector<RuntimeContainer>& containers,
    const LedgerAnswers& answers) {
  std::vector<FsckFinding> findings;
  for (const RuntimeContainer& container : containers) {
    if (container.allocation.empty() ||
        container.state == RuntimeContainer::State::kExited) {
      continue;
    }
    if (auto finding = Judge(container, answers).Find()) {
      findings.push_back(*std::move(finding));
    }
  }
  return findings;
}

}  // namespace devmgr
