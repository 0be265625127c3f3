// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "rpc_fixture.h"

namespace devmgr::rpc {

class ServerTest : public RpcTest {
 protected:
  absl::Status StartStatus(const std::filesystem::path& path) {
    return TryServe({}, path).status();
  }

  /// What a call to `method` fails with.
  absl::Status CallError(const std::string& method) {
    const auto connection = Connect();
    return CallAndWait(*connection, method, "x").status();
  }

  Mailbox<Respond> parked_;
  /// Keeps answers from being given.
  UnaryHandler park_ = [this](std::string, Respond respond) {
    parked_.Put(std::move(respond));
  };
};

}  // namespace devmgr::rpc
