// SPDX-License-Identifier: Apache-2.0
#include "ledger/pod_names.h"

#include <utility>

#include "common/status.h"

namespace devmgr::ledger {

void PodNames::Put(const ObjectName& name, std::vector<PodUid> pods) {
  const MutexLock lock(mutex_);
  if (pods.empty()) {
    names_.erase(name);
  } else {
    names_[name] = std::move(pods);
  }
}

absl::StatusOr<PodUid> PodNames::Find(const ObjectName& name) const {
  const MutexLock lock(mutex_);
  const auto found = names_.find(name);
  if (found == names_.end()) {
    return NotFoundError("pod '{}' is not known", name.ToString());
  }
  return found->second.back();
}

}  // namespace devmgr::ledger
