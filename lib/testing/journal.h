// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/testing.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/status.h"
#include "testing/scenario.h"

namespace devmgr::testing {

using Json = nlohmann::ordered_json;

/// What happened to a fake: events go out as JSON lines, calls and
/// registrations are kept for tests to ask about and to wait for. Events are
/// written by one thread; the rest is thread-safe.
template <typename Call>
class Journal {
 public:
  explicit Journal(std::function<void(std::string_view)> on_event)
      : on_event_(std::move(on_event)) {}

  void Emit(const Json& event) const {
    if (!on_event_) return;
    // Names come over the wire: what is not UTF-8 is replaced, never thrown at.
    on_event_(event.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  /// An event without more to tell, or with the text of an error.
  void Note(std::string_view event, std::string_view error = {}) const {
    Json json = {{"event", std::string(event)}};
    if (!error.empty()) json["error"] = std::string(error);
    Emit(json);
  }

  void Step(std::string_view method, const ScenarioStep& step) const {
    Json json = {{"event", "step"},
                 {"action", std::string(NameOf(step.action))},
                 {"method", std::string(method)}};
    if (!step.claim.empty()) json["claim"] = step.claim;
    if (!step.device.empty()) json["device"] = step.device;
    Emit(json);
  }

  /// A call was answered with an error.
  void Failure(std::string_view method, const absl::Status& status) const {
    Emit({{"event", "answer"},
          {"method", std::string(method)},
          {"code", absl::StatusCodeToString(status.code())},
          {"error", MessageOf(status)}});
  }

  /// The manager's verdict on us. A refusal always has a text.
  void Registration(bool accepted, std::string error) {
    if (accepted) {
      error.clear();
    } else if (error.empty()) {
      error = "refused without a reason";
    }
    Note(accepted ? "registered" : "registration-refused", error);
    MutexLock lock(mutex_);
    ++registrations_;
    registration_error_ = std::move(error);
    changed_.NotifyAll();
  }

  void Record(Call call) {
    MutexLock lock(mutex_);
    calls_.push_back(std::move(call));
    changed_.NotifyAll();
  }

  std::vector<Call> Calls() const {
    MutexLock lock(mutex_);
    return calls_;
  }

  /// Waits until at least `count` of the calls are as `wanted` says.
  bool WaitForCalls(std::size_t count, std::chrono::milliseconds limit,
                    const std::function<bool(const Call&)>& wanted) const {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    std::size_t looked_at = 0;
    std::size_t found = 0;
    MutexLock lock(mutex_);
    for (;;) {
      for (; looked_at < calls_.size(); ++looked_at) {
        if (wanted(calls_[looked_at])) ++found;
      }
      if (found >= count) return true;
      if (!changed_.WaitUntil(mutex_, deadline) && looked_at == calls_.size()) {
        return false;
      }
    }
  }

  bool WaitForRegistrations(std::size_t count,
                            std::chrono::milliseconds limit) const {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    while (registrations_ < count) {
      if (!changed_.WaitUntil(mutex_, deadline)) return registrations_ >= count;
    }
    return true;
  }

  std::string LastRegistrationError() const {
    MutexLock lock(mutex_);
    return registration_error_;
  }

 private:
  const std::function<void(std::string_view)> on_event_;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<Call> calls_ DEVMGR_GUARDED_BY(mutex_);
  std::size_t registrations_ DEVMGR_GUARDED_BY(mutex_) = 0;
  std::string registration_error_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::testing
