// SPDX-License-Identifier: Apache-2.0
#include "manager/container_start.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "common/status.h"

namespace devmgr::manager {
namespace {

using state::DeviceHold;
using state::PodRecord;

absl::StatusOr<const PodRecord*> FindReady(const state::State& state,
                                           const std::string& boot_id,
                                           const PodUid& uid,
                                           const std::string& container) {
  const PodRecord* pod = state.FindPod(uid);
  if (pod == nullptr) {
    return NotFoundError("pod with UID '{}' is not known", uid.value);
  }
  if (pod->phase != state::PodPhase::kReady) {
    return FailedPreconditionError("pod '{}' is {}, not Ready",
                                   pod->name.ToString(),
                                   state::PodPhaseName(pod->phase));
  }
  if (pod->boot_id != boot_id) {
    return FailedPreconditionError(
        "pod '{}' was prepared in another boot, and not yet again",
        pod->name.ToString());
  }
  const bool known =
      std::any_of(pod->needs.begin(), pod->needs.end(),
                  [&](const auto& need) { return need.name == container; });
  if (known) return pod;
  return NotFoundError("pod '{}' has no container '{}'", pod->name.ToString(),
                       container);
}

}  // namespace

void AskBeforeStart(const state::State& state, const std::string& boot_id,
                    const DeviceBook& devices, plugin::Plugins& plugins,
                    const PodUid& uid, const std::string& container,
                    std::function<void(absl::Status)> done) {
  const auto pod = FindReady(state, boot_id, uid, container);
  if (!pod.ok()) return done(pod.status());
  std::vector<const DeviceHold*> asked;
  for (const DeviceHold& hold : (*pod)->holds) {
    if (hold.container == container && hold.pre_start) asked.push_back(&hold);
  }
  if (asked.empty()) return done(absl::OkStatus());
  struct Answers {
    std::size_t missing;
    absl::Status failure;
  };
  auto answers = std::make_shared<Answers>(Answers{asked.size(), {}});
  for (const DeviceHold* hold : asked) {
    std::vector<std::string> ids;
    for (const auto& device : hold->devices) ids.push_back(device.id);
    plugins.PreStartContainer(
        hold->resource, devices.PrimaryOf(hold->resource).value_or(0), ids,
        {uid.value, (*pod)->name.ns, (*pod)->name.name, container},
        [answers, done](absl::Status status) {
          answers->failure.Update(std::move(status));
          if (--answers->missing == 0) done(answers->failure);
        });
  }
}

}  // namespace devmgr::manager
