// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apistore/api_request.h"
#include "apistore/bed.h"
#include "common/status.h"

namespace devmgr::apistore {
namespace {

Json ClaimBody(const std::string& uid = "u-c") {
  Json claim = J(R"({"apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim", "metadata": {"name": "c"},
    "status": {"allocation": {"devices": {"results": [
      {"driver": "d", "pool": "p", "device": "a"},
      {"driver": "d", "pool": "p", "device": "b"}]}}}})");
  claim["metadata"]["uid"] = uid;
  return claim;
}

TEST(StorePublish, LeavesWhatIsEqualAlone) {
  Bed bed;
  const Json first = bed.store->Publish(ClaimBody(), kNow).body;
  const std::uint64_t revision = bed.store->revision();
  const Json second = bed.store->Publish(ClaimBody(), kNow + 5).body;
  EXPECT_EQ(first, second);
  EXPECT_EQ(bed.store->revision(), revision);
}

TEST(StorePublish, ShowsAnotherUidAsAnotherObject) {
  Bed bed;
  bed.store->Publish(ClaimBody(), kNow);
  const auto stream =
      bed.Watch(bed.At("resourceclaims", "default"),
                {.resource_version = std::to_string(bed.store->revision())});
  bed.store->Publish(ClaimBody("u-new"), kNow);
  EXPECT_EQ(Briefly(Events(*stream)),
            (std::vector<std::string>{"DELETED c@3", "ADDED c@4"}));
}

TEST(StorePublish, KeepsWhatDriversSaidOfDevicesThatAreStillAllocated) {
  Bed bed;
  const Target claim = bed.At("resourceclaims", "default", "c");
  Json body = bed.store->Publish(ClaimBody(), kNow).body;
  body["status"]["devices"] = J(R"([{"driver": "d", "pool": "p", "device": "a"},
            {"driver": "d", "pool": "p", "device": "b"}])");
  ASSERT_EQ(bed.Put(claim, body, /*status=*/true).code, 200);
  Json smaller = ClaimBody();
  smaller["status"]["allocation"]["devices"]["results"].erase(0);
  bed.store->Publish(smaller, kNow);
  EXPECT_EQ(bed.Get(claim)["status"]["devices"],
            J(R"([{"driver": "d", "pool": "p", "device": "b"}])"));
  smaller["status"].erase("allocation");
  bed.store->Publish(smaller, kNow);
  EXPECT_FALSE(bed.Get(claim)["status"].contains("devices"));
}

TEST(StorePublish, AnOwnerSaysOfDevicesOnlyWhatItBeginsWith) {
  Bed bed;
  const Target claim = bed.At("resourceclaims", "default", "c");
  Json body = ClaimBody();
  body["status"]["devices"] = J(R"([{"driver": "d", "pool": "p", "device": "a"},
            {"driver": "d", "pool": "p", "device": "not-allocated"}])");
  const Json first = bed.store->Publish(body, kNow).body;
  EXPECT_EQ(first["status"]["devices"],
            J(R"([{"driver": "d", "pool": "p", "device": "a"}])"));
  Json put = first;
  put["status"]["devices"][0]["data"] = {{"n", 1}};
  ASSERT_EQ(bed.Put(claim, put, /*status=*/true).code, 200);
  bed.store->Publish(body, kNow);
  EXPECT_EQ(bed.Get(claim)["status"], put["status"]);
  put = bed.Get(claim);
  put["status"].erase("devices");
  ASSERT_EQ(bed.Put(claim, put, /*status=*/true).code, 200);
  bed.store->Publish(body, kNow);
  EXPECT_FALSE(bed.Get(claim)["status"].contains("devices"));
}

TEST(StorePersist, PutsAStoreTogetherAgain) {
  std::vector<StoreRecord> records;
  Store::Options options;
  options.persist = [&](const StoreRecord& record) {
    records.push_back(record);
    return absl::OkStatus();
  };
  Bed bed(options);
  bed.MustCreate(bed.Slice(), Bed::SliceBody("a"));
  bed.MustCreate(bed.Slice(), Bed::SliceBody("b"));
  bed.store->Delete(bed.Slice("a"), {});
  Bed other({.first_revision = records.back().revision});
  for (const StoreRecord& record : records) {
    EXPECT_TRUE(other.store->Restore(record));
  }
  EXPECT_EQ(other.store->List(other.Slice(), {}).body,
            bed.store->List(bed.Slice(), {}).body);
  StoreRecord later = records.back();
  ++later.revision;
  EXPECT_FALSE(other.store->Restore(later)) << "beyond the last";
  EXPECT_FALSE(other.store->Restore({1, "", "bananas", {}, nullptr, {}}));
}

TEST(StorePersist, ShowsNothingThatIsNotDurable) {
  bool fails = false;
  Store::Options options;
  options.persist = [&](const StoreRecord&) {
    return fails ? UnavailableError("the disk is full") : absl::OkStatus();
  };
  Bed bed(options);
  const Json slice = bed.MustCreate(bed.Slice(), Bed::SliceBody("a"));
  const auto stream = bed.Watch(
      bed.Slice(), {.resource_version = MetaText(slice, "resourceVersion")});
  fails = true;
  Json changed = slice;
  changed["spec"]["devices"][0]["name"] = "gpu-1";
  for (const Answer& answer :
       {bed.Create(bed.Slice(), Bed::SliceBody("b")),
        bed.Put(bed.Slice("a"), changed), bed.store->Delete(bed.Slice("a"), {}),
        bed.store->Publish(ClaimBody(), kNow)}) {
    EXPECT_EQ(answer.code, 503);
    EXPECT_EQ(answer.body["message"],
              "the change cannot be made durable: the disk is full");
  }
  EXPECT_FALSE(bed.store->Remove(*bed.Slice().type, {"", "a"}));
  EXPECT_TRUE(stream->empty());
  EXPECT_EQ(bed.Get(bed.Slice("a")), slice);
  fails = false;
  EXPECT_EQ(MetaText(bed.MustCreate(bed.Slice(), Bed::SliceBody("b")),
                     "resourceVersion"),
            "8")
      << "no revision is used twice";
}

TEST(ClientRules, HideAndRefuse) {
  Bed bed;
  bed.MustCreate(bed.Slice(), Bed::SliceBody("mine"));
  bed.MustCreate(bed.Slice(), Bed::SliceBody("theirs", "other"));
  ClientRules rules;
  rules.visible = [](const Json& slice) {
    return slice["spec"]["driver"] == "gpu.example.com";
  };
  rules.authorize = [](const Json* object,
                       const Json* old) -> std::optional<ApiError> {
    const Json& slice = object != nullptr ? *object : *old;
    if (slice["spec"]["driver"] == "gpu.example.com") return std::nullopt;
    return Forbidden("not yours");
  };
  const auto serve = [&](const char* method, const std::string& target,
                         const std::string& body = "") {
    const auto request = ReadApiRequest(
        *bed.store, method, "/apis/resource.k8s.io/v1/resourceslices" + target);
    return ServeRequest(*bed.store, std::get<ApiRequest>(request),
                        {"application/json", body}, kNow, rules);
  };
  EXPECT_EQ(Names(serve("GET", "").body), std::vector<std::string>{"mine"});
  EXPECT_EQ(serve("DELETE", "/theirs").code, 403);
  EXPECT_EQ(
      serve("PUT", "/theirs", Bed::SliceBody("theirs", "other").dump()).code,
      403);
  EXPECT_EQ(serve("POST", "", Bed::SliceBody("x", "other").dump()).code, 403);
  EXPECT_EQ(serve("DELETE", "").code, 200) << "of those it sees";
  EXPECT_EQ(Names(bed.store->List(bed.Slice(), {}).body),
            std::vector<std::string>{"theirs"});
}

}  // namespace
}  // namespace devmgr::apistore
