// SPDX-License-Identifier: Apache-2.0
#include "testing/call_script.h"

#include <unistd.h>

#include <utility>

#include "common/mutex.h"
#include "common/status.h"

namespace devmgr::testing {
namespace {

using Action = ScenarioStep::Action;

void ExitAsKilled() { ::_exit(137); }

}  // namespace

absl::Status FailureOf(const ScenarioStep& step) {
  return MakeStatus(
      absl::StatusCode::kUnknown,
      step.message.empty() ? "failed as the scenario says" : step.message);
}

CallScript::CallScript(Fake fake, const char* thread_name,
                       std::vector<ScenarioStep> steps,
                       std::function<void()> crash)
    : crash_(crash ? std::move(crash) : ExitAsKilled),
      executor_(ThreadExecutor::Start(thread_name)),
      scenario_(fake, std::move(steps)) {}

void CallScript::RunSync(const Task& task) const {
  if (executor_->IsCurrent()) return task();
  Mutex mutex;
  CondVar changed;
  bool done = false;
  executor_->Post([&] {
    task();
    MutexLock lock(mutex);
    done = true;
    changed.NotifyAll();
  });
  MutexLock lock(mutex);
  while (!done) changed.Wait(mutex);
}

void CallScript::Add(ScenarioStep step) {
  RunSync([&] { scenario_.Add(std::move(step)); });
}

void CallScript::Clear() {
  RunSync([&] { scenario_.Clear(); });
}

void CallScript::ReleaseHanging() {
  RunSync([&] {
    for (const Task& finish : std::exchange(hanging_, {})) finish();
  });
}

bool CallScript::EndsBeforeWork(const ScenarioStep& step,
                                std::function<void(const absl::Status&)> fail) {
  switch (step.action) {
    case Action::kFail:
      FinishAfterWork(
          step, [step, fail = std::move(fail)] { fail(FailureOf(step)); });
      return true;
    case Action::kCrashBefore:
      abandoned_.push_back([fail = std::move(fail)] {});
      Crash();
      return true;
    default:
      return false;
  }
}

void CallScript::FinishAfterWork(const ScenarioStep& step, Task finish) {
  // An answer that a restart overtook has nobody to go to.
  Task end = Unforgotten(std::move(finish));
  if (step.action == Action::kHang) {
    hanging_.push_back(std::move(end));
  } else if (step.action == Action::kCrashAfter) {
    abandoned_.push_back(std::move(end));
    Crash();
  } else if (step.delay.count() > 0) {
    executor_->PostAfter(step.delay, std::move(end));
  } else {
    end();
  }
}

void CallScript::Later(std::chrono::milliseconds delay, Task task) {
  executor_->PostAfter(delay, Unforgotten(std::move(task)));
}

void CallScript::Forget() {
  ++epoch_;
  hanging_.clear();
  abandoned_.clear();
}

Task CallScript::Unforgotten(Task task) {
  return [this, epoch = epoch_, task = std::move(task)] {
    if (epoch == epoch_) task();
  };
}

}  // namespace devmgr::testing
