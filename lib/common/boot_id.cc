// SPDX-License-Identifier: Apache-2.0
#include "common/boot_id.h"

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

}  // namespace devmgr
