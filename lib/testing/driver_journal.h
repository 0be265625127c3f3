// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/testing.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/mutex.h"
#include "testing/fake_driver_wire.h"

namespace devmgr::testing {

/// What happened to a fake driver: events go out as JSON lines, calls and
/// registrations are kept for tests to ask about and to wait for.
/// Events are written by one thread; the rest is thread-safe.
class DriverJournal {
 public:
  explicit DriverJournal(std::function<void(std::string_view)> on_event)
      : on_event_(std::move(on_event)) {}

  void Serving(const std::string& driver, const std::string& pool, int devices,
               const std::string& service, const std::string& registration);
  void GetInfoCall();
  void Registration(const RegistrationOutcome& outcome);
  void ClaimCall(const DraApi& api, ClaimMethod method,
                 const std::vector<ClaimReference>& claims);
  void Answer(const DraApi& api, ClaimMethod method,
              const std::vector<ClaimAnswer>& answers);
  void Failure(std::string_view method, const absl::Status& status);
  void Step(std::string_view method, const ScenarioStep& step);
  /// An event without more to tell, or with the text of an error.
  void Note(std::string_view event, std::string_view error = {});

  std::vector<FakeDraDriver::Call> Calls() const;
  bool WaitForCalls(std::size_t count, std::chrono::milliseconds limit) const;
  bool WaitForRegistrations(std::size_t count,
                            std::chrono::milliseconds limit) const;
  std::string LastRegistrationError() const;

 private:
  const std::function<void(std::string_view)> on_event_;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<FakeDraDriver::Call> calls_ DEVMGR_GUARDED_BY(mutex_);
  std::size_t registrations_ DEVMGR_GUARDED_BY(mutex_) = 0;
  std::string registration_error_ DEVMGR_GUARDED_BY(mutex_);
};

/// `prepare` or `unprepare`.
std::string_view NameOf(ClaimMethod method);

}  // namespace devmgr::testing
