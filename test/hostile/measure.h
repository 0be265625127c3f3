// SPDX-License-Identifier: Apache-2.0
//
// What both tables have in common: bounds, and figures for people.
#pragma once

#include <chrono>
#include <string_view>

#include "hostile/costs.h"
#include "hostile/neighbour.h"

namespace devmgr::hostile {

/// How long the neighbour is alone, and how long a peer may misbehave then.
inline constexpr std::chrono::milliseconds kQuiet{100};
inline constexpr std::chrono::milliseconds kTime{1'000};

/// Expects that the peer cost less than most of a processor, on a slow machine
/// in proportion to the neighbour's calls, or where it made `calls` of us no
/// more than as many calls of the neighbour do; and that this process did not
/// grow by more than 48 MiB.
void ExpectModest(const Phase& quiet, const Phase& phase, int calls = 0);

/// The same for measurements: half a second, times DEVMGR_TEST_SCALE.
/// Of the neighbour alone, and as long beside the hostile one: so often, in
/// turns, each with all of it made anew.
inline constexpr int kMeasuredTurns = 2;
std::chrono::milliseconds MeasuredTime();

/// What came of all turns.
struct Measured {
  /// One more turn, with what it has cost.
  void Add(const Phase& quiet_turn, const Phase& turn, int turn_connections,
           const Costs& costs);

  Phase quiet;
  Phase phase;
  int connections = 0;
  int log_lines = 0;
  int events = 0;
};

/// Prints: kind, misbehaviour; a second with it: connections, hundredths of a
/// processor, log lines, events; MiB grown; how long the middle call of the
/// neighbour took while it was alone, in microseconds, and how many times that
/// with the peer; the same of the 99th of a hundred; calls of it that failed.
void PrintRow(std::string_view kind, std::string_view misbehaviour,
              const Measured& measured);

}  // namespace devmgr::hostile
