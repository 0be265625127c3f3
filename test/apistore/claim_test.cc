// SPDX-License-Identifier: Apache-2.0
//
// Claims: the status of their devices, and the versions of the group.
#include "apistore/bed.h"
#include "apistore/resource_versions.h"

namespace devmgr::apistore {
namespace {

class StoreClaims : public ::testing::Test {
 protected:
  StoreClaims() {
    EXPECT_EQ(
        bed_.store
            ->Load(
                J(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
            "metadata":{"name":"c","namespace":"x","uid":"u-c"},
            "spec":{"devices":{"requests":[
              {"name":"r","exactly":{"deviceClassName":"gpu","count":2}},
              {"name":"f","firstAvailable":[{"name":"a",
                "deviceClassName":"gpu"}]}]}},
            "status":{"allocation":{"devices":{"results":[
              {"request":"r","driver":"D","pool":"n1","device":"a"},
              {"request":"r","driver":"D","pool":"n1","device":"b"}]}}}})"),
                kNow)
            .code,
        201);
  }

  Answer Apply(const std::string& manager, std::string_view body,
               bool force = true) {
    WriteOptions options;
    options.status = true;
    options.field_manager = manager;
    options.force = force;
    return bed_.store->Patch(claim_, PatchKind::kApply, J(body), options);
  }
  std::vector<std::string> Devices() {
    std::vector<std::string> names;
    const Json claim = bed_.Get(claim_);
    if (!claim["status"].contains("devices")) return names;
    for (const Json& entry : claim["status"]["devices"]) {
      names.push_back(TextField(entry, "device"));
    }
    return names;
  }

  Bed bed_;
  const Target claim_ = bed_.At("resourceclaims", "x", "c");
};

// API-063
TEST_F(StoreClaims, AStatusPutMayBeRestrictedToDevices) {
  Json claim = bed_.Get(claim_);
  claim["status"]["allocation"]["devices"]["results"] = Json::array();
  claim["status"]["devices"] =
      J(R"([{"driver":"D","pool":"n1","device":"a"}])");
  WriteOptions options;
  options.status = true;
  options.only_status_field = "devices";
  const Answer answer = bed_.store->Put(claim_, claim, options);
  EXPECT_EQ(answer.code, 200) << answer.body;
  EXPECT_EQ(answer.body["status"]["devices"], claim["status"]["devices"]);
  EXPECT_EQ(answer.body["status"]["allocation"]["devices"]["results"].size(),
            2u);
}

TEST_F(StoreClaims, ARestrictedPutOfNothingChangesNothing) {
  WriteOptions options;
  options.status = true;
  options.only_status_field = "devices";
  const Json before = bed_.Get(claim_);
  EXPECT_EQ(bed_.store->Put(claim_, before, options).body, before);
}

// API-064
TEST_F(StoreClaims, AnApplyRemovesWhatTheSameManagerLeavesOut) {
  EXPECT_EQ(Apply("D", R"({"status":{"devices":[
                      {"driver":"D","pool":"n1","device":"a"},
                      {"driver":"D","pool":"n1","device":"b"}]}})")
                .code,
            200);
  EXPECT_EQ(Apply("D", R"({"status":{"devices":[
                      {"driver":"D","pool":"n1","device":"b"}]}})")
                .code,
            200);
  EXPECT_EQ(Devices(), std::vector<std::string>{"b"});
  // Another manager's entries stay.
  EXPECT_EQ(Apply("E", R"({"status":{"devices":[
                      {"driver":"D","pool":"n1","device":"a"}]}})")
                .code,
            200);
  EXPECT_EQ(Devices(), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(Apply("D", R"({"status":{"devices":[]}})").code, 200);
  EXPECT_EQ(Devices(), std::vector<std::string>{"a"});
}

TEST_F(StoreClaims, AnApplyMergesConditionsByType) {
  Apply("D", R"({"status":{"devices":[{"driver":"D","pool":"n1","device":"a",
      "conditions":[{"type":"Ready","status":"False"},{"type":"X"}]}]}})");
  const Answer answer = Apply(
      "D", R"({"status":{"devices":[{"driver":"D","pool":"n1","device":"a",
      "data":{"k":1},"conditions":[{"type":"Ready","status":"True"}]}]}})");
  EXPECT_EQ(answer.body["status"]["devices"],
            J(R"([{"driver":"D","pool":"n1","device":"a","data":{"k":1},
      "conditions":[{"type":"Ready","status":"True"},{"type":"X"}]}])"));
}

TEST_F(StoreClaims, AnotherManagersEntryConflictsWithoutForce) {
  const char* const body = R"({"status":{"devices":[
      {"driver":"D","pool":"n1","device":"a"}]}})";
  EXPECT_EQ(Apply("D", body).code, 200);
  const Answer answer = Apply("E", body, /*force=*/false);
  EXPECT_EQ(answer.code, 409);
  EXPECT_EQ(answer.body["details"]["causes"][0]["reason"],
            "FieldManagerConflict");
  EXPECT_EQ(Apply("E", body).code, 200);
  EXPECT_EQ(Apply("D", body, /*force=*/false).code, 409);
}

TEST_F(StoreClaims, AnApplyIsRefused) {
  EXPECT_EQ(Apply("D", R"({"spec":{}})").code, 422);
  EXPECT_EQ(Apply("D", R"({"status":{"allocation":{}}})").code, 422);
  EXPECT_EQ(Apply("D", R"({"status":[]})").code, 422);
  EXPECT_EQ(Apply("D", R"({"status":{"devices":{}}})").code, 422);
  EXPECT_EQ(Apply("D", R"({"status":{"devices":[1]}})").code, 422);
  EXPECT_EQ(Apply("", R"({"status":{"devices":[]}})").code, 422);
  EXPECT_EQ(Apply("D", R"([])").code, 400);
  EXPECT_EQ(Apply("D", R"({"metadata":{"uid":"u-x"},"status":{}})").code, 409);
}

// API-065
TEST_F(StoreClaims, AnEntryForADeviceThatIsNotAllocatedIsRefused) {
  Json claim = bed_.Get(claim_);
  claim["status"]["devices"] = J(R"([{"driver":"D","pool":"n1","device":"z"},
            {"driver":"D","pool":"n1","device":"a"},
            {"driver":"D","pool":"n1","device":"a"}])");
  const Answer answer = bed_.Put(claim_, claim, /*status=*/true);
  EXPECT_EQ(answer.code, 422);
  EXPECT_EQ(answer.body["details"]["causes"][0]["field"], "status.devices[0]");
  EXPECT_EQ(answer.body["details"]["causes"][1]["field"], "status.devices[2]");
}

// A typed client could not read the claim any more.
TEST_F(StoreClaims, DevicesThatAreNoListAreRefused) {
  const Json before = bed_.Get(claim_);
  const auto expect_refusal = [&](const Answer& answer) {
    EXPECT_EQ(answer.code, 422);
    const Json& cause = answer.body["details"]["causes"][0];
    EXPECT_EQ(cause["field"], "status.devices");
    EXPECT_NE(TextField(cause, "message").find("must be a list"),
              std::string::npos);
    EXPECT_EQ(bed_.Get(claim_), before);
  };
  for (const char* devices :
       {R"({"x":{"driver":"D","pool":"n1","device":"a"}})", R"("x")", "1"}) {
    Json claim = before;
    claim["status"]["devices"] = J(devices);
    expect_refusal(bed_.Put(claim_, claim, /*status=*/true));
    expect_refusal(
        bed_.Patch(claim_, PatchKind::kMerge,
                   std::string(R"({"status":{"devices":)") + devices + "}}",
                   /*status=*/true));
  }
  // Typed clients read this as an empty list.
  Json claim = before;
  claim["status"]["devices"] = nullptr;
  EXPECT_EQ(bed_.Put(claim_, claim, /*status=*/true).code, 200);
}

TEST_F(StoreClaims, TheSpecOfAClaimStays) {
  Json claim = bed_.Get(claim_);
  claim["spec"] = Json::object();
  EXPECT_EQ(bed_.Put(claim_, claim).code, 422);
}

// API-066: a real 404 is one in each version.
TEST_F(StoreClaims, AllVersionsShowOneStore) {
  for (std::size_t version : {0u, 1u, 2u}) {
    const Target none = bed_.At("resourceclaims", "x", "none", version);
    EXPECT_EQ(bed_.store->Get(none, "").code, 404);
    const Answer answer =
        bed_.store->Get(bed_.At("resourceclaims", "x", "c", version), "");
    EXPECT_EQ(answer.code, 200);
    EXPECT_EQ(answer.body["apiVersion"], claim_.type->ApiVersion(version));
  }
  const Json beta =
      bed_.store->Get(bed_.At("resourceclaims", "x", "c", 2), "").body;
  EXPECT_EQ(beta["spec"]["devices"]["requests"][0],
            J(R"({"name":"r","deviceClassName":"gpu","count":2})"));
  EXPECT_TRUE(
      beta["spec"]["devices"]["requests"][1].contains("firstAvailable"));
}

TEST_F(StoreClaims, AClaimComesBackFromV1beta1AsItWas) {
  const Json stored = bed_.Get(claim_);
  Json claim = stored;
  ClaimToBeta1(claim);
  EXPECT_NE(claim, stored);
  ClaimFromBeta1(claim);
  EXPECT_EQ(claim, stored);
}

// API-053
TEST_F(StoreClaims, ASliceOfV1beta1IsStoredAsOneOfV1) {
  Json body = Bed::SliceBody("a");
  body["spec"]["devices"] =
      J(R"([{"name":"gpu-0","basic":{"attributes":{"m":{"string":"x"}}}}])");
  const Target beta = bed_.At("resourceslices", "", "a", 2);
  const Json made = bed_.MustCreate(bed_.At("resourceslices", "", "", 2), body);
  EXPECT_EQ(made["spec"], body["spec"]);
  EXPECT_EQ(made["apiVersion"], "resource.k8s.io/v1beta1");
  const Json v1 = bed_.Get(bed_.Slice("a"));
  EXPECT_EQ(v1["spec"]["devices"],
            J(R"([{"name":"gpu-0","attributes":{"m":{"string":"x"}}}])"));
  // A patch in that version sees it as that version does.
  EXPECT_EQ(bed_.Patch(beta, PatchKind::kJson,
                       R"([{"op":"add","path":"/spec/devices/0/basic/allNodes",
                            "value":true}])")
                .code,
            200);
  EXPECT_EQ(bed_.Get(bed_.Slice("a"))["spec"]["devices"][0]["allNodes"], true);
  // So does a watch.
  const auto stream = bed_.Watch(bed_.At("resourceslices", "", "", 2), {});
  EXPECT_TRUE(
      Events(*stream)[0]["object"]["spec"]["devices"][0].contains("basic"));
}

TEST(ResourceVersions, LeaveAloneWhatIsNotAsItShouldBe) {
  for (const char* text :
       {R"({})", R"({"spec":1})", R"({"spec":{"devices":1}})",
        R"({"spec":{"devices":[1]}})",
        R"({"spec":{"devices":{"requests":[1]}}})",
        R"({"spec":{"devices":{"requests":[{"name":"a"}]}}})"}) {
    for (auto* convert :
         {SliceFromBeta1, SliceToBeta1, ClaimFromBeta1, ClaimToBeta1}) {
      Json object = J(text);
      convert(object);
      EXPECT_EQ(object, J(text)) << text;
    }
  }
}

}  // namespace
}  // namespace devmgr::apistore
