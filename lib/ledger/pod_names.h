// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/types.h>

#include <map>
#include <vector>

#include "common/mutex.h"

namespace devmgr::ledger {

/// The pods that the ledger knows, by name. Thread-safe.
class PodNames {
 public:
  /// `pods`: all of that name, the newest last; empty: there is none any more.
  void Put(const ObjectName& name, std::vector<PodUid> pods);

  /// The newest pod of that name.
  ///   NotFound  there is none
  absl::StatusOr<PodUid> Find(const ObjectName& name) const;

 private:
  mutable Mutex mutex_;
  std::map<ObjectName, std::vector<PodUid>> names_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::ledger
