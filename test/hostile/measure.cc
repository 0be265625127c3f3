// SPDX-License-Identifier: Apache-2.0
#include "hostile/measure.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/sanitizers.h"
#include "support/test_scale.h"

namespace devmgr::hostile {
namespace {

/// Of a processor. Where compiler and machine make all of this slow, it is what
/// so many calls of the neighbour in a second take, and less than what spins.
constexpr double kModest = 0.7;
constexpr double kModestCalls = 2'000;
constexpr double kMostModest = 0.95;

}  // namespace

std::chrono::milliseconds MeasuredTime() {
  return std::chrono::milliseconds(500) * TestScale();
}

void ExpectModest(const Phase& quiet, const Phase& phase, int calls) {
  if (kSanitized) return;
  const auto time_of = [](const Phase& of) {
    return std::chrono::duration<double>(of.time).count();
  };
  const double a_call =
      quiet.load() * time_of(quiet) / static_cast<double>(quiet.calls.size());
  const double slow = std::min(kMostModest, kModestCalls * a_call);
  EXPECT_LE(phase.load() - quiet.load(),
            std::max({kModest, slow, calls * a_call / time_of(phase)}))
      << calls << " calls, of which each takes " << a_call * 1e6 << " us";
  EXPECT_LE(phase.growth_kib, 48 * 1024);
}

void Measured::Add(const Phase& quiet_turn, const Phase& turn,
                   int turn_connections, const Costs& costs) {
  quiet.Add(quiet_turn);
  phase.Add(turn);
  connections += turn_connections;
  log_lines += costs.log_lines;
  events += costs.events;
}

void PrintRow(std::string_view kind, std::string_view misbehaviour,
              const Measured& measured) {
  const Phase& quiet = measured.quiet;
  const Phase& phase = measured.phase;
  const auto seconds = static_cast<double>(phase.time.count()) / 1e9;
  const auto in_us = [](std::chrono::nanoseconds span) {
    return static_cast<double>(span.count()) / 1e3;
  };
  const auto ratio = [&](int percent) {
    return in_us(phase.Percentile(percent)) / in_us(quiet.Percentile(percent));
  };
  fmt::print(
      "| {} | {} | {:.1f} | {:.0f} | {:.1f} | {:.1f} | {:.1f} | {:.0f} | "
      "{:.2f} | {:.0f} | {:.2f} | {} |\n",
      kind, misbehaviour, measured.connections / seconds,
      (phase.load() - quiet.load()) * 100, measured.log_lines / seconds,
      measured.events / seconds, static_cast<double>(phase.growth_kib) / 1024,
      in_us(quiet.Percentile(50)), ratio(50), in_us(quiet.Percentile(99)),
      ratio(99), phase.failures.size());
}

}  // namespace devmgr::hostile
