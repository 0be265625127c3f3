// SPDX-License-Identifier: Apache-2.0
//
// wait, prepare and release: each ends when a pod is in a state, or can never
// get there, or the time is over.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "commands.h"
#include "objects.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

using std::chrono::milliseconds;
using TimePoint = std::chrono::steady_clock::time_point;

constexpr milliseconds kDefaultWait{30'000};
/// Between two attempts to connect.
constexpr milliseconds kAskPause{100};
constexpr milliseconds kLongestPoll{30'000};

/// A daemon that is not there (any more), is silent or stops: try again.
bool MayComeBack(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

std::string PodStateText(const PodInfo& pod) {
  std::string text(PodStateName(pod.state));
  if (!pod.reason.empty()) text += ": " + pod.reason;
  if (!pod.message.empty()) text += ": " + pod.message;
  return text;
}

/// Nobody knows the pod: `found` is not there.
using Found = std::optional<PodInfo>;

/// Whether to go on waiting. An error ends the wait.
using Condition = std::function<absl::StatusOr<bool>(const Found& found)>;

class PodWait {
 public:
  explicit PodWait(const Session& session)
      : session_(session),
        timeout_(session.options().timeout.value_or(kDefaultWait)),
        deadline_(session.environment().steady_now() + timeout_) {}

  /// Connects once; then `ask` is sent.
  absl::Status Ask(const std::function<absl::Status(Inspector&)>& ask) {
    absl::Status status = Connect();
    if (status.ok()) status = ask(*inspector_);
    if (status.ok()) connected_ = true;
    return status;
  }

  /// Waits until `holds`; connecting is part of it.
  ///   Unavailable         never connected: exit code 4
  ///   FailedPrecondition  the time is over, or what `holds` says: exit code 1
  absl::StatusOr<Found> Until(const std::string& goal, const Condition& holds) {
    Found found;
    for (;;) {
      absl::StatusOr<bool> done = Step(holds, &found);
      if (done.ok() && *done) return found;
      if (!done.ok() && !MayComeBack(done.status())) return done.status();
      if (!done.ok()) inspector_.reset();
      if (Remaining() <= milliseconds(0)) {
        return TimedOut(goal, found, done.status());
      }
      if (!done.ok()) {
        session_.environment().pause(std::min(kAskPause, Remaining()));
      }
    }
  }

 private:
  /// Looks once, and waits for the next change if there is more to wait for.
  absl::StatusOr<bool> Step(const Condition& holds, Found* found) {
    if (absl::Status status = Connect(); !status.ok()) return status;
    // The version first: what changes after it, ends the wait below.
    const auto version = inspector_->WaitForChange(0, milliseconds(0));
    if (!version.ok()) return version.status();
    connected_ = true;
    auto pod = inspector_->FindPod(session_.options().name);
    if (!pod.ok() && pod.status().code() != absl::StatusCode::kNotFound) {
      return pod.status();
    }
    *found = pod.ok() ? Found(*std::move(pod)) : std::nullopt;
    const absl::StatusOr<bool> done = holds(*found);
    if (!done.ok() || *done) return done;
    const milliseconds wait = std::min(Remaining(), kLongestPoll);
    if (wait <= milliseconds(0)) return false;
    const auto changed = inspector_->WaitForChange(*version, wait);
    if (!changed.ok()) return changed.status();
    return false;
  }

  absl::Status Connect() {
    if (inspector_ != nullptr) return absl::OkStatus();
    const milliseconds most = std::chrono::seconds(2);
    auto inspector = session_.environment().connect(
        session_.options().endpoint,
        std::clamp(Remaining(), milliseconds(1), most));
    if (!inspector.ok()) return inspector.status();
    inspector_ = *std::move(inspector);
    return absl::OkStatus();
  }

  /// A timeout of 0 is no limit.
  milliseconds Remaining() const {
    if (timeout_.count() == 0) return kLongestPoll;
    return std::chrono::ceil<milliseconds>(deadline_ -
                                           session_.environment().steady_now());
  }

  absl::Status TimedOut(const std::string& goal, const Found& found,
                        const absl::Status& last) const {
    if (!connected_) {
      return MakeError(absl::StatusCode::kUnavailable,
                       fmt::format("no daemon within {}: {}",
                                   DurationText(timeout_), MessageOf(last)));
    }
    const std::string state = !last.ok() ? MessageOf(last)
                              : found.has_value()
                                  ? "it is " + PodStateText(*found)
                                  : "the daemon does not know it";
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        fmt::format("timed out after {} waiting for pod '{}' to be {}: {}",
                    DurationText(timeout_), session_.options().name.ToString(),
                    goal, state));
  }

  const Session& session_;
  const milliseconds timeout_;
  const TimePoint deadline_;
  bool connected_ = false;
  std::unique_ptr<Inspector> inspector_;
};

/// Ready is never reached from Rejected under the same UID.
absl::StatusOr<bool> IsReady(const Found& pod) {
  if (!pod) return false;
  if (pod->state == PodState::kRejected) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     fmt::format("pod '{}' is {}", pod->name.ToString(),
                                 PodStateText(*pod)));
  }
  return pod->state == PodState::kReady;
}

Condition ConditionOf(PodCondition condition) {
  switch (condition) {
    case PodCondition::kReady:
      return IsReady;
    case PodCondition::kWaiting:
      return [](const Found& pod) -> absl::StatusOr<bool> {
        return pod && pod->state == PodState::kWaiting;
      };
    case PodCondition::kRejected:
      return [](const Found& pod) -> absl::StatusOr<bool> {
        return pod && pod->state == PodState::kRejected;
      };
    case PodCondition::kReleased:
      return [](const Found& pod) -> absl::StatusOr<bool> {
        // The source may keep one that has finished.
        return !pod.has_value() || pod->reason == kFinishedReason;
      };
  }
  return IsReady;
}

const char* ConditionText(PodCondition condition) {
  switch (condition) {
    case PodCondition::kReady:
      return "ready";
    case PodCondition::kWaiting:
      return "waiting";
    case PodCondition::kRejected:
      return "rejected";
    case PodCondition::kReleased:
      return "released";
  }
  return "ready";
}

/// A released pod has no document: only its name is left to print.
void PrintResult(const Session& session, const std::string& state,
                 const Found& pod) {
  const ObjectName& name = session.options().name;
  if (session.is_document() && pod) {
    PrintDocument(session.out(), DocumentOf("Pod", ItemOf(*pod)),
                  session.options().format);
  } else if (session.is_document()) {
    const Json metadata{{"namespace", name.ns}, {"name", name.name}};
    PrintDocument(session.out(),
                  DocumentOf("Pod", Json{{"metadata", metadata}}),
                  session.options().format);
  } else if (session.options().format == Format::kName) {
    session.out() << "pod/" << name.name << "\n";
  } else {
    session.out() << "pod '" << name.ToString() << "' is " << state << "\n";
  }
}

}  // namespace

absl::Status Wait(const Session& session) {
  if (absl::Status status = session.CheckOnline("wait"); !status.ok()) {
    return status;
  }
  const PodCondition condition = session.options().condition;
  PodWait wait(session);
  const auto pod = wait.Until(ConditionText(condition), ConditionOf(condition));
  if (!pod.ok()) return pod.status();
  PrintResult(session, ConditionText(condition), *pod);
  return absl::OkStatus();
}

absl::Status Prepare(const Session& session) {
  if (absl::Status status = session.CheckOnline("prepare"); !status.ok()) {
    return status;
  }
  PodWait wait(session);
  const absl::Status asked = wait.Ask([&](Inspector& inspector) {
    return inspector.PreparePod(session.options().name);
  });
  if (!asked.ok()) return asked;
  const auto pod = wait.Until("ready", IsReady);
  if (!pod.ok()) return pod.status();
  PrintResult(session, "ready", *pod);
  return absl::OkStatus();
}

absl::Status Release(const Session& session) {
  if (absl::Status status = session.CheckOnline("release"); !status.ok()) {
    return status;
  }
  PodWait wait(session);
  PodUid uid;
  const absl::Status asked = wait.Ask([&](Inspector& inspector) {
    const auto pod = inspector.FindPod(session.options().name);
    if (!pod.ok()) return pod.status();
    uid = pod->uid;
    return inspector.ReleasePod(session.options().name);
  });
  if (!asked.ok()) return asked;
  // The source may well keep the pod; what counts is that the ledger does not.
  const auto pod =
      wait.Until("released", [&](const Found& found) -> absl::StatusOr<bool> {
        return !found || found->uid != uid ||
               found->reason == kNotRequestedReason ||
               found->reason == kFinishedReason;
      });
  if (!pod.ok()) return pod.status();
  PrintResult(session, "released", std::nullopt);
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
