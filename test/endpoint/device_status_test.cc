// SPDX-License-Identifier: Apache-2.0
//
// What drivers say of the devices of claims, over the wire.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "endpoint/bed.h"

namespace devmgr::endpoint {
namespace {

using apistore::J;
using apistore::Json;

class DeviceStatusTest : public ::testing::Test, public EndpointBed {
 protected:
  void SetUp() override { Start(); }
};

// What an API server refuses is refused here, and names its field.
TEST_F(DeviceStatusTest, ChecksTheStatusOfDevices) {
  ASSERT_TRUE(endpoint->PutObject(Claim("c")).ok());
  const std::string status = std::string(kClaim) + "/status";
  const auto apply = [&](const Json& more, const std::string& query = "") {
    Json entry = J(R"({"driver": "gpu.example.com", "pool": "n1",
                       "device": "gpu-0"})");
    entry.update(more);
    const Json body = {{"apiVersion", "resource.k8s.io/v1"},
                       {"kind", "ResourceClaim"},
                       {"metadata", {{"name", "c"}}},
                       {"status", {{"devices", Json::array({entry})}}}};
    return Call("PATCH", status + "?fieldManager=d&force=true" + query,
                body.dump(), "application/apply-patch+yaml");
  };
  Json condition = J(R"({"type": "Ready", "status": "True", "reason": "Up",
      "message": "", "lastTransitionTime": "2026-11-28T08:00:00Z"})");
  Json many = Json::array();
  for (int i = 0; i < 9; ++i) {
    many.push_back(condition);
    many.back()["type"] = "Ready" + std::to_string(i);
  }
  Json no_reason = condition;
  no_reason.erase("reason");
  Json addresses = Json::array();
  for (int i = 0; i < 17; ++i) {
    addresses.push_back("192.0.2." + std::to_string(i) + "/24");
  }
  const std::pair<Json, std::string> refused[] = {
      {{{"conditions", many}}, "status.devices[0].conditions"},
      {{{"conditions", {condition, condition}}},
       "status.devices[0].conditions[1].type"},
      {{{"conditions", {no_reason}}}, "status.devices[0].conditions[0].reason"},
      {{{"data", "text"}}, "status.devices[0].data"},
      {{{"data", {{"a", std::string(10'241, 'x')}}}}, "status.devices[0].data"},
      {{{"networkData", {{"interfaceName", std::string(257, 'x')}}}},
       "status.devices[0].networkData.interfaceName"},
      {{{"networkData", {{"hardwareAddress", std::string(129, 'x')}}}},
       "status.devices[0].networkData.hardwareAddress"},
      {{{"networkData", {{"ips", {"192.0.2.5"}}}}},
       "status.devices[0].networkData.ips[0]"},
      {{{"networkData", {{"ips", addresses}}}},
       "status.devices[0].networkData.ips"},
  };
  for (const auto& [more, field] : refused) {
    const Reply reply = apply(more);
    EXPECT_EQ(reply.code, 422) << field;
    if (reply.code != 422) continue;
    EXPECT_EQ(reply.json()["details"]["causes"][0]["field"], field)
        << reply.body;
  }
  EXPECT_FALSE(Call("GET", kClaim).json()["status"].contains("devices"));

  // A field that is not known is dropped, and said.
  const Reply reply = apply({{"colour", "red"}, {"conditions", {condition}}});
  ASSERT_EQ(reply.code, 200) << reply.body;
  EXPECT_FALSE(reply.json()["status"]["devices"][0].contains("colour"));
  EXPECT_NE(reply.head.find("unknown field"), std::string::npos) << reply.head;
  EXPECT_EQ(apply({{"colour", "red"}}, "&fieldValidation=Strict").code, 400);
  const Reply merge =
      Call("PATCH", status,
           R"({"status": {"devices": [{"driver": "gpu.example.com",
               "pool": "n1", "device": "gpu-0", "x": 1, "data": {"y": 2}}]}})",
           "application/merge-patch+json");
  ASSERT_EQ(merge.code, 200) << merge.body;
  EXPECT_EQ(merge.json()["status"]["devices"][0],
            J(R"({"driver": "gpu.example.com", "pool": "n1",
                  "device": "gpu-0", "data": {"y": 2}})"));
}

// A claim with devices of two drivers: each says what it has to say, and the
// other one's words stay.
TEST_F(DeviceStatusTest, ADriverSaysNothingOfDevicesOfOthers) {
  Json both = J(Claim("c"));
  both["status"]["allocation"]["devices"]["results"][1]["driver"] = kOther;
  ASSERT_TRUE(endpoint->PutObject(both.dump()).ok());
  const std::string status = std::string(kClaim) + "/status";
  const auto entry = [](const char* driver, const char* device, int data) {
    return Json{{"driver", driver},
                {"pool", "n1"},
                {"device", device},
                {"data", {{"n", data}}}};
  };
  const auto put = [&](const char* driver, const Json& entries) {
    Json claim = Call("GET", kClaim).json();
    claim["status"]["devices"] = entries;
    return Call("PUT", status, claim.dump(), "application/json", driver);
  };
  const Json gpu = entry(kDriver, "gpu-0", 1);
  const Json nic = entry(kOther, "gpu-1", 1);
  ASSERT_EQ(put(kDriver, Json::array({gpu})).code, 200);
  EXPECT_EQ(put(kOther, Json::array({nic})).code, 403)
      << "it takes the other one's away";
  EXPECT_EQ(put(kOther, Json::array({entry(kDriver, "gpu-0", 2), nic})).code,
            403);
  ASSERT_EQ(put(kOther, Json::array({gpu, nic})).code, 200);
  // Under the name of the other's field manager, too.
  const auto apply = [&](const char* driver, const Json& entries) {
    const Json body = {{"apiVersion", "resource.k8s.io/v1"},
                       {"kind", "ResourceClaim"},
                       {"metadata", {{"name", "c"}}},
                       {"status", {{"devices", entries}}}};
    return Call("PATCH", status + "?fieldManager=" + kDriver + "&force=true",
                body.dump(), "application/apply-patch+yaml", driver);
  };
  ASSERT_EQ(apply(kDriver, Json::array({gpu})).code, 200);
  EXPECT_EQ(apply(kOther, Json::array()).code, 403);
  EXPECT_EQ(apply(kOther, Json::array({entry(kDriver, "gpu-0", 2)})).code, 403);
  ASSERT_EQ(apply(kDriver, Json::array()).code, 200);
  EXPECT_EQ(Call("GET", kClaim).json()["status"]["devices"],
            Json::array({nic}));
}

// API-064: which entries a manager applied is known after a restart, also of
// an apply that changed nothing else.
TEST_F(DeviceStatusTest, RemembersWhichManagerAppliedAnEntry) {
  ASSERT_TRUE(endpoint->PutObject(Claim("c")).ok());
  const auto apply = [&](const std::string& manager, const std::string& list) {
    return Call(
        "PATCH",
        std::string(kClaim) + "/status?force=true&fieldManager=" + manager,
        R"({"apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaim", "metadata": {"name": "c"},
                    "status": {"devices": )" +
            list + "}}",
        "application/apply-patch+yaml");
  };
  const std::string list = R"([{"driver": "gpu.example.com", "pool": "n1",
                                "device": "gpu-0"}])";
  ASSERT_EQ(apply("a", list).code, 200);
  ASSERT_EQ(apply("b", list).code, 200);
  const Json last = Call("GET", kClaim).json();
  EXPECT_EQ(apply("b", list).json(), last) << "nothing changes";
  endpoint.reset();
  Start();
  EXPECT_EQ(apply("a", "[]").json()["status"]["devices"],
            last["status"]["devices"]);
  EXPECT_FALSE(apply("b", "[]").json()["status"].contains("devices"));
}

// A watch of claims shows what a driver says of devices, and only to a driver
// that has some of them.
TEST_F(DeviceStatusTest, ShowsTheStatusOfDevicesInWatches) {
  ASSERT_TRUE(endpoint->PutObject(Claim("c")).ok());
  auto watch = Client();
  const std::string claims =
      "/apis/resource.k8s.io/v1/resourceclaims?watch=true";
  watch->Send("GET", claims, Token());
  EXPECT_EQ(watch->Head().code, 200);
  EXPECT_EQ(watch->Event()["type"], "ADDED");
  ASSERT_EQ(Call("PATCH", std::string(kClaim) + "/status",
                 R"({"status": {"devices": [{"driver": "gpu.example.com",
                     "pool": "n1", "device": "gpu-1"}]}})",
                 "application/merge-patch+json")
                .code,
            200);
  const Json event = watch->Event();
  EXPECT_EQ(event["type"], "MODIFIED");
  EXPECT_EQ(event["object"]["status"]["devices"][0]["device"], "gpu-1");
  EXPECT_EQ(Call("GET", kClaim, "", "application/json", kOther).code, 404);
  EXPECT_EQ(Call("PATCH", std::string(kClaim) + "/status",
                 R"({"status": {"devices": []}})",
                 "application/merge-patch+json", kOther)
                .code,
            404);
}

}  // namespace
}  // namespace devmgr::endpoint
