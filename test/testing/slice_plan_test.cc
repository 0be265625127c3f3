// SPDX-License-Identifier: Apache-2.0
#include "testing/slice_plan.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace devmgr::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;
using Kind = SliceWrite::Kind;

/// A server that carries out all that is planned, or some of it.
class SlicePlanTest : public ::testing::Test {
 protected:
  SlicePlan Plan(std::size_t devices) {
    apiserver::ObjectStore store(
        apiserver::ResourceCollection("v1", "ResourceSlice"));
    for (const auto& [name, slice] : slices_) store.Upsert(slice.dump());
    return PlanSlices({"gpu.example.com", "n1", "u-node", devices},
                      store.objects());
  }
  void Do(const SliceWrite& write) {
    const std::string version = std::to_string(++version_);
    if (write.kind == Kind::kDelete) {
      const Json options = Json::parse(write.content);
      const Json& metadata = slices_.at(write.name)["metadata"];
      EXPECT_EQ(options["preconditions"]["uid"], metadata["uid"]);
      slices_.erase(write.name);
      return;
    }
    Json slice = Json::parse(write.content);
    Json& metadata = slice["metadata"];
    if (write.kind == Kind::kCreate) {
      metadata["name"] = metadata["generateName"].get<std::string>() + version;
      metadata["uid"] = "u-" + version;
    } else {
      const Json& old = slices_.at(write.name)["metadata"];
      EXPECT_EQ(metadata["resourceVersion"], old["resourceVersion"]);
      EXPECT_EQ(metadata["uid"], old["uid"]);
    }
    metadata["resourceVersion"] = version;
    slices_[metadata["name"]] = slice;
  }
  void DoAll(const SlicePlan& plan) {
    for (const SliceWrite& write : plan.writes) Do(write);
  }

  std::map<std::string, Json> slices_;
  int version_ = 0;
};

TEST_F(SlicePlanTest, NoSliceHasMoreThan128Devices) {
  const SlicePlan plan = Plan(300);
  EXPECT_EQ(plan.generation, 1);
  ASSERT_THAT(plan.writes, SizeIs(3));
  DoAll(plan);
  std::set<std::string> names;
  for (const auto& [name, slice] : slices_) {
    EXPECT_THAT(name, ::testing::StartsWith("n1-gpu.example.com-"));
    const Json& spec = slice["spec"];
    EXPECT_EQ(spec["driver"], "gpu.example.com");
    EXPECT_EQ(spec["nodeName"], "n1");
    EXPECT_EQ(spec["pool"]["name"], "n1");
    EXPECT_EQ(spec["pool"]["resourceSliceCount"], 3);
    EXPECT_LE(spec["devices"].size(), 128u);
    const Json& owner = slice["metadata"]["ownerReferences"][0];
    EXPECT_EQ(owner["kind"], "Node");
    EXPECT_EQ(owner["uid"], "u-node");
    for (const Json& device : spec["devices"]) names.insert(device["name"]);
  }
  EXPECT_THAT(names, SizeIs(300));
}

TEST_F(SlicePlanTest, WhatIsThereIsLeftAlone) {
  DoAll(Plan(200));
  const SlicePlan plan = Plan(200);
  EXPECT_THAT(plan.writes, IsEmpty());
  EXPECT_EQ(plan.generation, 1);
  EXPECT_EQ(plan.slices, 2u);
}

TEST_F(SlicePlanTest, NoDevicesAreNoSlices) {
  EXPECT_THAT(Plan(0).writes, IsEmpty());
  DoAll(Plan(1));
  DoAll(Plan(0));
  EXPECT_THAT(slices_, IsEmpty());
}

TEST_F(SlicePlanTest, AChangeRaisesTheGenerationOfTheWholePool) {
  DoAll(Plan(200));
  const SlicePlan plan = Plan(201);
  EXPECT_EQ(plan.generation, 2);
  EXPECT_THAT(plan.writes, SizeIs(2));
  DoAll(plan);
  EXPECT_THAT(slices_, SizeIs(2));
  for (const auto& [name, slice] : slices_) {
    EXPECT_EQ(slice["spec"]["pool"]["generation"], 2);
  }
  EXPECT_THAT(Plan(201).writes, IsEmpty());
}

TEST_F(SlicePlanTest, ASliceThatIsGoneIsMadeAnew) {
  DoAll(Plan(200));
  slices_.erase(slices_.begin());
  DoAll(Plan(200));
  EXPECT_THAT(slices_, SizeIs(2));
  EXPECT_THAT(Plan(200).writes, IsEmpty());
}

/// The driver died after some of the requests: its next process goes on.
TEST_F(SlicePlanTest, WhatWasCutShortIsFinished) {
  DoAll(Plan(200));
  const SlicePlan cut_short = Plan(300);
  Do(cut_short.writes[0]);
  EXPECT_THAT(Plan(300).writes, ::testing::Not(IsEmpty()));
  DoAll(Plan(300));
  EXPECT_THAT(slices_, SizeIs(3));
  EXPECT_THAT(Plan(300).writes, IsEmpty());
}

TEST_F(SlicePlanTest, DuplicatesAndOtherPoolsGo) {
  DoAll(Plan(2));
  Json twin = slices_.begin()->second;
  twin["metadata"]["name"] = "twin";
  twin["metadata"]["uid"] = "u-twin";
  Json other = twin;
  other["metadata"]["name"] = "other";
  other["metadata"]["uid"] = "u-other";
  other["spec"]["pool"]["name"] = "pool-0";
  slices_["twin"] = twin;
  slices_["other"] = other;
  DoAll(Plan(2));
  EXPECT_THAT(slices_, SizeIs(1));
  EXPECT_THAT(Plan(2).writes, IsEmpty());
}

}  // namespace
}  // namespace devmgr::testing
