// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace devmgr::hostile {

/// What the sockets of a kind have cost us so far. A kind that does not have
/// some of these leaves them 0.
struct Costs {
  std::atomic<int> dials{0};      ///< Of the hostile socket.
  std::atomic<int> reports{0};    ///< Each wakes pods, and may be an event.
  std::atomic<int> calls{0};      ///< To the hostile peer, well or not.
  std::atomic<int> log_lines{0};  ///< Of warnings, and below.
  std::atomic<int> events{0};     ///< That observers heard of.
};

/// What this process, with all of its threads, has used of the machine.
struct Usage {
  std::chrono::nanoseconds processor{0};
  long resident_kib = 0;

  static Usage Now();
};

/// Of one thread: that of a hostile peer is none of our costs.
std::chrono::nanoseconds ProcessorTimeOf(std::thread& thread);

/// The calling thread takes no processor from the rest of a process that runs
/// at real-time priority: what a neighbour notices then is what we do with what
/// the thread sends, and not that it needs a processor itself.
void GiveWayToRealTime();

}  // namespace devmgr::hostile
