// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/testing.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/executor.h"
#include "testing/scenario.h"

namespace devmgr::testing {

/// What a step that fails says.
absl::Status FailureOf(const ScenarioStep& step);

/// The executor that a fake lives on, and what its scenario says about calls
/// whatever they are for: fail, hang, crash, wait.
class CallScript {
 public:
  CallScript(Fake fake, const char* thread_name,
             std::vector<ScenarioStep> steps, std::function<void()> crash);

  // Thread-safe.
  Executor& executor() const { return *executor_; }
  /// Runs `task` on the executor and waits for it.
  void RunSync(const Task& task) const;
  void Add(ScenarioStep step);
  void Clear();
  void ReleaseHanging();
  /// No task runs afterwards.
  void Stop() { executor_->Stop(); }

  // On the executor.
  std::vector<TakenStep> Take(std::string_view method,
                              const std::vector<std::string>& subjects) {
    return scenario_.Take(method, subjects);
  }
  /// True when `step` ends the call before any work; `fail` gets the error
  /// when it is due.
  bool EndsBeforeWork(const ScenarioStep& step,
                      std::function<void(const absl::Status&)> fail);
  /// Runs `finish`, which answers, when and if `step` lets it.
  void FinishAfterWork(const ScenarioStep& step, Task finish);
  /// Runs `task` after `delay` unless Forget comes first.
  void Later(std::chrono::milliseconds delay, Task task);
  void Crash() { crash_(); }
  /// Drops the calls that wait: what they were answered on is gone. Only when
  /// it is gone, as a call that is let go answers.
  void Forget();

 private:
  /// `task`, unless Forget comes first.
  Task Unforgotten(Task task);

  const std::function<void()> crash_;
  const std::unique_ptr<Executor> executor_;

  // Only on the executor.
  Scenario scenario_;
  std::vector<Task> hanging_;
  std::vector<Task> abandoned_;  ///< Calls that a crash leaves unanswered.
  std::uint64_t epoch_ = 0;      ///< One more at each Forget.
};

}  // namespace devmgr::testing
