// SPDX-License-Identifier: Apache-2.0
#include "shim/device_source.h"

#include "rpc/message.h"
#include "rpc/rpc_fixture.h"
#include "server/convert.h"
#include "support/status_matchers.h"

namespace devmgr::shim {
namespace {

using DaemonSourceTest = rpc::RpcTest;

// A daemon that is asked to hold its answer too briefly is asked all the time.
TEST_F(DaemonSourceTest, AsksADaemonToHoldItsAnswer) {
  Mailbox<server::pb::WaitForChangeRequest> asked;
  const auto daemon =
      Serve({{std::string(server::kServicePath) + "WaitForChange",
              [&](const std::string& bytes, const rpc::Respond& respond) {
                auto request =
                    rpc::Decode<server::pb::WaitForChangeRequest>(bytes);
                if (request.ok()) asked.Put(*std::move(request));
                server::pb::WaitForChangeResponse response;
                response.set_version(7);
                respond(rpc::Encode(response));
              }}});
  ASSERT_NE(daemon, nullptr);
  const auto source = MakeDaemonSource(*runtime_, Path(), kPatience, [] {});
  Mailbox<absl::StatusOr<std::uint64_t>> versions;
  const auto wait_after = [&](std::uint64_t version) {
    source->WaitForChange(
        version,
        [&](const absl::StatusOr<std::uint64_t>& now) { versions.Put(now); });
    const auto now = versions.Take();
    ASSERT_TRUE(now.has_value());
    EXPECT_THAT(*now, IsOk());
  };
  wait_after(0);
  wait_after(7);
  const auto first = asked.Take();
  const auto next = asked.Take();
  ASSERT_TRUE(first.has_value() && next.has_value());
  EXPECT_EQ(first->wait_ms(), 0);
  EXPECT_EQ(next->version(), 7U);
  EXPECT_EQ(next->wait_ms(), 20'000);
}

}  // namespace
}  // namespace devmgr::shim
