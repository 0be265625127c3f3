// SPDX-License-Identifier: Apache-2.0
//
// What the endpoint makes of a journal that failed, or has what is no object.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "endpoint/bed.h"
#include "endpoint/endpoint.h"

namespace devmgr::endpoint {
namespace {

using apistore::J;
using apistore::Json;
using apistore::MetaText;

class EndpointFailures : public ::testing::Test, public EndpointBed {
 protected:
  void SetUp() override { Start(); }
  void Restart() {
    endpoint.reset();
    Start();
  }
};

/// What need not be durable may be anything, and keeps no endpoint from
/// starting.
TEST_F(EndpointFailures, PassesOverWhatNeedNotBeDurable) {
  ASSERT_TRUE(endpoint->PutObject(Claim("c")).ok());
  endpoint.reset();
  const std::string claims = "resource.k8s.io/resourceclaims/default/";
  const std::string other = Json{{"object", J(Claim("other"))}}.dump();
  for (const JournalEntry& entry :
       {JournalEntry{7, claims + "x", "no JSON"},
        JournalEntry{8, claims + "y", other},
        JournalEntry{9, "example.com/nothings/default/z", other}}) {
    ASSERT_TRUE(journal.AppendLater(entry).ok());
  }
  Start();
  const auto left = endpoint->Objects("ResourceClaim");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(MetaText(J(left[0]), "name"), "c");
  // What is durable is the driver's.
  endpoint.reset();
  ASSERT_TRUE(journal.Append({10, claims + "y", other}).ok());
  EXPECT_EQ(Endpoint::Start(options, journal).status().code(),
            absl::StatusCode::kDataLoss);
}

/// The claim is durable after a write that failed on its way back: what comes
/// after it must be as well.
TEST_F(EndpointFailures, AClaimThatMayBeDurableStaysSo) {
  ASSERT_TRUE(endpoint->PutObject(Claim("c")).ok());
  const Json status = J(R"({"apiVersion": "resource.k8s.io/v1",
      "kind": "ResourceClaim", "metadata": {"name": "c"}, "status": {"devices":
      [{"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]}})");
  journal.loses_answers = true;
  EXPECT_EQ(Call("PATCH",
                 std::string(kClaim) +
                     "/status?fieldManager=gpu.example.com&force=true",
                 status.dump(), "application/apply-patch+yaml")
                .code,
            503);
  journal.loses_answers = false;
  Json claim = J(Claim("c"));
  claim["metadata"]["labels"]["a"] = "b";
  ASSERT_TRUE(endpoint->PutObject(claim.dump()).ok());
  Restart();
  EXPECT_EQ(Call("GET", kClaim).json()["metadata"]["labels"]["a"], "b");
  EXPECT_FALSE(Call("GET", kClaim).json()["status"].contains("devices"));
}

/// A driver that does not know of its first slice finds it when it lists.
TEST_F(EndpointFailures, DriversListAgainWhenThereMayBeMoreThanTheySaw) {
  journal.loses_answers = true;
  EXPECT_EQ(Call("POST", kSlices, Slice("a").dump()).code, 503);
  journal.loses_answers = false;
  ASSERT_EQ(Call("POST", kSlices, Slice("b").dump()).code, 201);
  const auto watch_from_last = [&](const Json& list) {
    return Call("GET", fmt::format("{}?watch=true&timeoutSeconds=1&"
                                   "resourceVersion={}",
                                   kSlices, MetaText(list, "resourceVersion")))
        .code;
  };
  const Json before = Call("GET", kSlices).json();
  EXPECT_EQ(before["items"].size(), 1u);
  EXPECT_EQ(watch_from_last(before), 200);
  Restart();
  EXPECT_EQ(watch_from_last(before), 410);
  const Json now = Call("GET", kSlices).json();
  EXPECT_EQ(now["items"].size(), 2u);
  Restart();
  EXPECT_EQ(watch_from_last(now), 200) << "once is enough";
}

}  // namespace
}  // namespace devmgr::endpoint
