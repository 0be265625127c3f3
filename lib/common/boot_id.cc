// SPDX-License-Identifier: Apache-2.0
#include "common/boot_id.h"

#include <ctime>
#include <fstream>

#include "common/status.h"

namespace devmgr {

absl::StatusOr<std::string> KernelBootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  if (!id.empty()) return id;
  return FailedPreconditionError(
      "cannot read the boot ID from /proc/sys/kernel/random/boot_id: mount "
      "/proc, or set the boot ID");
}

std::int64_t BootMs() {
  std::timespec now{};
  // Fails for clocks that there are not; this one is there since Linux 2.6.39.
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000 + now.tv_nsec / 1'000'000;
}

}  // namespace devmgr
