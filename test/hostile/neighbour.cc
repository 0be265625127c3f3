// SPDX-License-Identifier: Apache-2.0
#include "hostile/neighbour.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "hostile/costs.h"
#include "support/mailbox.h"

namespace devmgr::hostile {

using std::chrono::steady_clock;

std::chrono::nanoseconds Phase::Percentile(int percent) const {
  if (calls.empty()) return {};
  return calls[(calls.size() - 1) * static_cast<std::size_t>(percent) / 100];
}

void Phase::Add(const Phase& other) {
  calls.insert(calls.end(), other.calls.begin(), other.calls.end());
  std::sort(calls.begin(), calls.end());
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
  time += other.time;
  processor += other.processor;
  growth_kib = std::max(growth_kib, other.growth_kib);
}

Phase CallFor(std::chrono::milliseconds time, const StartCall& call) {
  constexpr std::chrono::milliseconds kPause{2};
  // An answer may come after we gave up on it.
  const auto answers = std::make_shared<Mailbox<absl::Status>>();
  Phase phase;
  const Usage before = Usage::Now();
  const auto begin = steady_clock::now();
  const auto is_short = [&phase] {
    return phase.calls.size() + phase.failures.size() < kLeastCalls;
  };
  while (steady_clock::now() < begin + time ||
         (is_short() && steady_clock::now() < begin + kPatience)) {
    const auto called = steady_clock::now();
    call([answers](const absl::Status& status) { answers->Put(status); });
    const absl::Status status =
        answers->Take().value_or(absl::UnknownError("no answer"));
    if (status.ok()) {
      phase.calls.push_back(steady_clock::now() - called);
    } else {
      phase.failures.push_back(status);
    }
    std::this_thread::sleep_for(kPause);
  }
  phase.time = steady_clock::now() - begin;
  const Usage after = Usage::Now();
  phase.processor = after.processor - before.processor;
  phase.growth_kib = after.resident_kib - before.resident_kib;
  std::sort(phase.calls.begin(), phase.calls.end());
  return phase;
}

}  // namespace devmgr::hostile
