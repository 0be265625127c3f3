// SPDX-License-Identifier: Apache-2.0
#include "endpoint/node_uid.h"

#include <cerrno>
#include <fstream>
#include <random>
#include <system_error>

#include "api/names.h"
#include "common/atomic_file.h"
#include "common/status.h"
#include "common/uuid.h"

namespace devmgr::endpoint {

absl::StatusOr<std::string> KeepNodeUid(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream in(file);
  std::string uid;
  if (in.is_open()) {
    std::getline(in, uid);
    if (api::CheckUuid(uid).empty()) return uid;
    return DataLossError("'{}' does not hold the UID of the node",
                         file.string());
  }
  if (errno != ENOENT) {
    return UnavailableError("cannot read '{}': {}", file.string(),
                            std::generic_category().message(errno));
  }
  std::random_device random;
  const auto bits = [&] {
    return std::uint64_t{random()} << 32 | std::uint64_t{random()};
  };
  const std::uint64_t high = bits();
  uid = UuidText(high, bits());
  DEVMGR_RETURN_IF_ERROR(WriteFileAtomically(file, uid + "\n"));
  return uid;
}

}  // namespace devmgr::endpoint
