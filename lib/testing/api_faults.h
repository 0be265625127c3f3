// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/testing_api_server.h>

#include <optional>
#include <string>
#include <vector>

namespace devmgr::testing {

/// Which fault a request gets. Not thread-safe.
class ApiFaults {
 public:
  void Add(ApiFault fault) { faults_.push_back(std::move(fault)); }
  void Clear() { faults_.clear(); }
  /// The first that fits, which is counted.
  std::optional<ApiFault> Take(const ScriptedApiServer::Call& call);

 private:
  std::vector<ApiFault> faults_;
};

}  // namespace devmgr::testing
