// SPDX-License-Identifier: Apache-2.0
#include "hostile/costs.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

namespace devmgr::hostile {
namespace {

std::chrono::nanoseconds TimeOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Usage Usage::Now() {
  Usage usage;
  usage.processor = TimeOf(CLOCK_PROCESS_CPUTIME_ID);
  long total_pages = 0;
  long resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  usage.resident_kib = resident_pages * (sysconf(_SC_PAGESIZE) / 1024);
  return usage;
}

std::chrono::nanoseconds ProcessorTimeOf(std::thread& thread) {
  clockid_t clock{};
  if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0) return {};
  return TimeOf(clock);
}

void GiveWayToRealTime() {
  if (sched_getscheduler(0) == SCHED_OTHER) return;
  const sched_param none{};
  sched_setscheduler(0, SCHED_OTHER, &none);
}

}  // namespace devmgr::hostile
