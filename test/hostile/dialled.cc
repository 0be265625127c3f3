// SPDX-License-Identifier: Apache-2.0
#include "hostile/dialled.h"

#include <gtest/gtest.h>

#include <utility>

namespace devmgr::hostile {

std::unique_ptr<rpc::Server> Dialled::Start(rpc::ServerOptions options) {
  auto server = rpc::Server::Start(std::move(options));
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

}  // namespace devmgr::hostile
