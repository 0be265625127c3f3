// SPDX-License-Identifier: Apache-2.0
#include "runtime_ledger.h"

#include <devmgr/cdi_cache.h>
#include <fmt/core.h>

#include <algorithm>
#include <functional>
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

/// What the ledger says of those pods that are `wanted`.
absl::StatusOr<LedgerAnswers> Answers(
    Inspector& inspector, const std::function<bool(const PodUid&)>& wanted) {
  LedgerAnswers answers;
  const auto pods = inspector.Pods();
  if (!pods.ok()) return pods.status();
  for (const PodInfo& pod : *pods) {
    if (!wanted(pod.uid)) continue;
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

/// What the runtime made of containers that no shim has marked. Of those that
/// it does not tell: a warning.
absl::StatusOr<std::vector<UnmarkedContainer>> LookInto(
    RuntimeInspector& runtime, const std::vector<RuntimeContainer>& containers,
    std::vector<FsckFinding>* findings) {
  std::vector<UnmarkedContainer> unmarked;
  std::size_t unread = 0;
  for (const RuntimeContainer& container : containers) {
    if (!container.allocation.empty()) continue;
    auto config = runtime.ConfigOf(container.id);
    const absl::Status& status = config.status();
    if (config.ok()) {
      unmarked.push_back({container, *std::move(config)});
    } else if (status.code() == absl::StatusCode::kFailedPrecondition) {
      if (++unread > 1) continue;
      findings->push_back(
          {"unreadable-container", false, "container/" + container.id,
           "what it holds is not known: " + MessageOf(status), "", ""});
    } else if (status.code() != absl::StatusCode::kNotFound) {
      return status;
    }
  }
  if (unread > 1) {
    findings->back().message += fmt::format("; nor of {} more", unread - 1);
  }
  return unmarked;
}

/// Those that a look at the runtime and then at the ledger finds.
absl::StatusOr<std::vector<FsckFinding>> LookOnce(RuntimeInspector& runtime,
                                                  Inspector& inspector,
                                                  const CdiRegistry& registry) {
  auto containers = runtime.Containers();
  if (!containers.ok()) return containers.status();
  std::erase_if(*containers, [](const RuntimeContainer& container) {
    return container.state == RuntimeContainer::State::kExited;
  });
  std::vector<FsckFinding> findings;
  const auto unmarked = LookInto(runtime, *containers, &findings);
  if (!unmarked.ok()) return unmarked.status();
  const auto answers = Answers(inspector, [](const PodUid&) { return true; });
  if (!answers.ok()) return answers.status();
  for (auto& found : {CheckRuntimeContainers(*containers, *answers),
                      CheckUnmarkedContainers(*unmarked, *answers, registry)}) {
    findings.insert(findings.end(), found.begin(), found.end());
  }
  return findings;
}

}  // namespace

absl::StatusOr<LedgerAnswers> AnswersFor(
    Inspector& inspector, const std::vector<RuntimeContainer>& containers) {
  std::set<PodUid> wanted;
  for (const RuntimeContainer& container : containers) {
    if (!container.pod_uid.value.empty()) wanted.insert(container.pod_uid);
  }
  if (wanted.empty()) return LedgerAnswers();
  return Answers(inspector,
                 [&](const PodUid& uid) { return wanted.contains(uid); });
}

absl::StatusOr<std::vector<FsckFinding>> CheckRuntime(const Session& session,
                                                      Inspector& inspector) {
  const auto runtime = session.OpenRuntime();
  if (!runtime.ok()) return runtime.status();
  const auto cache = session.OpenCdi();
  if (!cache.ok()) return cache.status();
  const auto look = [&] {
    return LookOnce(**runtime, inspector, *(*cache)->Registry());
  };
  auto findings = look();
  if (!findings.ok() || findings->empty()) return findings;
  const auto again = look();
  if (!again.ok()) return again;
  std::erase_if(*findings, [&](const FsckFinding& finding) {
    return std::find(again->begin(), again->end(), finding) == again->end();
  });
  return findings;
}

}  // namespace devmgr::ctl
