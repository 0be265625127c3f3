// SPDX-License-Identifier: Apache-2.0
#include "runtime_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace devmgr::ctl {
namespace {

absl::StatusOr<PodDevices> AnswerOf(Inspector& inspector, const PodInfo& pod) {
  if (pod.state == PodState::kReady) {
    auto answer = inspector.Resolve(pod.name);
    if (answer.ok() && answer->uid == pod.uid) return answer;
    if (!answer.ok() &&
        answer.status().code() != absl::StatusCode::kFailedPrecondition) {
      return answer;
    }
    return MakeError(absl::StatusCode::kUnavailable,
                     answer.ok() ? fmt::format("a newer pod has the name '{}'",
                                               pod.name.ToString())
                                 : MessageOf(answer.status()));
  }
  std::string why = fmt::format("pod '{}' is {}", pod.name.ToString(),
                                PodStateName(pod.state));
  for (const std::string* part : {&pod.reason, &pod.message}) {
    if (!part->empty()) why += ": " + *part;
  }
  return MakeError(pod.state == PodState::kRejected
                       ? absl::StatusCode::kFailedPrecondition
                       : absl::StatusCode::kUnavailable,
                   why);
}

/// Those that a look at the runtime and then at the ledger finds.
absl::StatusOr<std::vector<FsckFinding>> LookOnce(RuntimeInspector& runtime,
                                                  Inspector& inspector) {
  auto containers = runtime.Containers();
  if (!containers.ok()) return containers.status();
  std::erase_if(*containers, [](const RuntimeContainer& container) {
    return container.allocation.empty() ||
           container.state == RuntimeContainer::State::kExited;
  });
  const auto answers = AnswersFor(inspector, *containers);
  if (!answers.ok()) return answers.status();
  return CheckRuntimeContainers(*containers, *answers);
}

}  // namespace

absl::StatusOr<LedgerAnswers> AnswersFor(
    Inspector& inspector, const std::vector<RuntimeContainer>& containers) {
  LedgerAnswers answers;
  std::set<PodUid> wanted;
  for (const RuntimeContainer& container : containers) {
    if (!container.pod_uid.value.empty()) wanted.insert(container.pod_uid);
  }
  if (wanted.empty()) return answers;
  const auto pods = inspector.Pods();
  if (!pods.ok()) return pods.status();
  for (const PodInfo& pod : *pods) {
    if (!wanted.contains(pod.uid)) continue;
    auto answer = AnswerOf(inspector, pod);
    const absl::StatusCode code = answer.status().code();
    if (code == absl::StatusCode::kNotFound) continue;  // Gone meanwhile.
    if (!answer.ok() && code != absl::StatusCode::kFailedPrecondition &&
        code != absl::StatusCode::kUnavailable) {
      return answer.status();
    }
    answers.emplace(pod.uid, std::move(answer));
  }
  return answers;
}

absl::StatusOr<std::vector<FsckFinding>> CheckRuntime(const Session& session,
                                                      Inspector& inspector) {
  const auto runtime = session.OpenRuntime();
  if (!runtime.ok()) return runtime.status();
  auto findings = LookOnce(**runtime, inspector);
  if (!findings.ok() || findings->empty()) return findings;
  const auto again = LookOnce(**runtime, inspector);
  if (!again.ok()) return again;
  std::erase_if(*findings, [&](const FsckFinding& finding) {
    return std::find(again->begin(), again->end(), finding) == again->end();
  });
  return findings;
}

}  // namespace devmgr::ctl
