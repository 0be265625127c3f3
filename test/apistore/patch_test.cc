// SPDX-License-Identifier: Apache-2.0
#include "apistore/patch.h"

#include "apistore/bed.h"
#include "apistore/strategic_merge.h"
#include "common/foreign_json.h"

namespace devmgr::apistore {
namespace {

std::string Merged(std::string_view target, std::string_view patch) {
  Json result = J(target);
  MergePatch(result, J(patch));
  return result.dump();
}

TEST(MergePatch, FollowsTheExamplesOfTheRfc) {
  EXPECT_EQ(Merged(R"({"a":"b"})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(Merged(R"({"a":"b"})", R"({"b":"c"})"), R"({"a":"b","b":"c"})");
  EXPECT_EQ(Merged(R"({"a":"b","b":"c"})", R"({"a":null})"), R"({"b":"c"})");
  EXPECT_EQ(Merged(R"({"a":["b"]})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(Merged(R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})"),
            R"({"a":{"b":"d"}})");
  EXPECT_EQ(Merged(R"({"a":[{"b":"c"}]})", R"({"a":[1]})"), R"({"a":[1]})");
  EXPECT_EQ(Merged(R"({"e":null})", R"({"a":1})"), R"({"a":1,"e":null})");
  EXPECT_EQ(Merged(R"([1,2])", R"({"a":"b","c":null})"), R"({"a":"b"})");
  EXPECT_EQ(Merged(R"({})", R"({"a":{"bb":{"ccc":null}}})"),
            R"({"a":{"bb":{}}})");
}

struct Patched {
  absl::Status status;
  std::string result;
};

Patched Apply(std::string_view target, std::string_view patch) {
  Json result = J(target);
  const absl::Status status = JsonPatch(result, J(patch));
  return {status, result.dump()};
}

TEST(JsonPatch, KnowsAllOperations) {
  const auto result = [](std::string_view target, std::string_view patch) {
    const Patched patched = Apply(target, patch);
    EXPECT_TRUE(patched.status.ok()) << patched.status;
    return patched.result;
  };
  EXPECT_EQ(result(R"({"a":1})", R"([{"op":"add","path":"/b","value":2}])"),
            R"({"a":1,"b":2})");
  EXPECT_EQ(result(R"([1,3])", R"([{"op":"add","path":"/1","value":2}])"),
            "[1,2,3]");
  EXPECT_EQ(result(R"([1])", R"([{"op":"add","path":"/-","value":2}])"),
            "[1,2]");
  EXPECT_EQ(result(R"({"a":1,"b":2})", R"([{"op":"remove","path":"/a"}])"),
            R"({"b":2})");
  EXPECT_EQ(result(R"([1,2,3])", R"([{"op":"remove","path":"/1"}])"), "[1,3]");
  EXPECT_EQ(result(R"({"a":1})", R"([{"op":"replace","path":"/a","value":2}])"),
            R"({"a":2})");
  EXPECT_EQ(result(R"({"a":{"x":1}})",
                   R"([{"op":"move","from":"/a/x","path":"/b"}])"),
            R"({"a":{},"b":1})");
  EXPECT_EQ(result(R"({"a":1})", R"([{"op":"copy","from":"/a","path":"/b"}])"),
            R"({"a":1,"b":1})");
  EXPECT_EQ(result(R"({"a":1})", R"([{"op":"replace","path":"","value":[]}])"),
            "[]");
}

TEST(JsonPatch, NamesWithSlashAndTilde) {
  const Patched patched =
      Apply(R"({"v.com/gpu":1,"a~b":2})",
            R"([{"op":"replace","path":"/v.com~1gpu","value":8},
                {"op":"test","path":"/a~0b","value":2}])");
  EXPECT_TRUE(patched.status.ok()) << patched.status;
  EXPECT_EQ(patched.result, R"({"a~b":2,"v.com/gpu":8})");
}

TEST(JsonPatch, WhatCannotBeAppliedIsAFailedPrecondition) {
  for (const char* patch : {R"([{"op":"test","path":"/a","value":2}])",
                            R"([{"op":"test","path":"/none","value":2}])",
                            R"([{"op":"remove","path":"/none"}])",
                            R"([{"op":"replace","path":"/none","value":1}])",
                            R"([{"op":"add","path":"/none/x","value":1}])",
                            R"([{"op":"add","path":"/l/3","value":1}])",
                            R"([{"op":"add","path":"/l/01","value":1}])",
                            R"([{"op":"add","path":"/a/x","value":1}])",
                            R"([{"op":"remove","path":"/l/2"}])",
                            R"([{"op":"move","from":"/o","path":"/o/x"}])",
                            R"([{"op":"copy","from":"/none","path":"/b"}])"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(
        Apply(R"({"a":1,"l":[1,2],"o":{}})", patch).status))
        << patch;
  }
}

TEST(JsonPatch, WhatIsNoPatchIsAnInvalidArgument) {
  for (const char* patch :
       {R"({})", R"([1])", R"([{"op":"add","value":1}])",
        R"([{"op":"add","path":"/a"}])", R"([{"op":"grow","path":"/a"}])",
        R"([{"op":"add","path":"a","value":1}])", R"([{"path":"/a"}])",
        R"([{"op":"add","path":"/a~2","value":1}])",
        R"([{"op":"copy","path":"/a"}])", R"([{"op":"add","path":1}])"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Apply(R"({"a":1})", patch).status))
        << patch;
  }
}

TEST(JsonPatch, ATestOfNothingAgainstNullPasses) {
  EXPECT_TRUE(
      Apply("{}", R"([{"op":"test","path":"/a","value":null}])").status.ok());
}

TEST(JsonPatch, CopiesCannotDoubleWithoutEnd) {
  Json patch = Json::array();
  patch.push_back({{"op", "add"}, {"path", "/a"}, {"value", {1, 2, 3, 4}}});
  for (int i = 0; i < 60; ++i) {
    patch.push_back({{"op", "copy"}, {"from", "/a"}, {"path", "/a/-"}});
  }
  Json target = Json::object();
  EXPECT_TRUE(absl::IsFailedPrecondition(JsonPatch(target, patch)));
}

TEST(JsonPatch, DepthAndNumberOfOperationsAreBounded) {
  std::string path;
  Json deep = Json::array();
  for (int i = 0; i < kMaxJsonDepth + 1; ++i) {
    path += "/a";
    deep.push_back({{"op", "add"}, {"path", path}, {"value", Json::object()}});
  }
  Json target = Json::object();
  EXPECT_FALSE(JsonPatch(target, deep).ok());
  Json many = Json::array();
  for (std::size_t i = 0; i <= kMaxPatchOperations; ++i) many.push_back(1);
  EXPECT_TRUE(absl::IsInvalidArgument(JsonPatch(target, many)));
}

TEST(ForeignJson, RefusesWhatIsNoneAndWhatIsTooDeep) {
  EXPECT_FALSE(ParseForeignJson("").ok());
  EXPECT_FALSE(ParseForeignJson("{").ok());
  EXPECT_FALSE(ParseForeignJson(std::string_view("{}\0", 3)).ok());
  EXPECT_FALSE(ParseForeignJson(std::string(1000, '[')).ok());
  EXPECT_TRUE(ParseForeignJson("{\"a\": [1]}").ok());
}

std::string Strategic(const char* kind, std::string_view target,
                      std::string_view patch) {
  Json result = J(target);
  const absl::Status status = StrategicMerge(kind, result, J(patch));
  EXPECT_TRUE(status.ok()) << status;
  return result.dump();
}

TEST(StrategicMerge, NodeStatusKeepsForeignKeysAndConditions) {
  EXPECT_EQ(Strategic("Node",
                      R"({"status":{"capacity":{"cpu":"4","v.com/gpu":"1"},
                    "conditions":[{"type":"Ready","status":"True"}]}})",
                      R"({"status":{"capacity":{"v.com/gpu":null,"w.com/x":"8"},
                    "conditions":[{"type":"Pressure","status":"False"},
                                  {"type":"Ready","status":"False"}],
                    "$setElementOrder/conditions":[{"type":"Pressure"},
                                                   {"type":"Ready"}]}})"),
            R"({"status":{"capacity":{"cpu":"4","w.com/x":"8"},)"
            R"("conditions":[{"status":"False","type":"Pressure"},)"
            R"({"status":"False","type":"Ready"}]}})");
}

TEST(StrategicMerge, ContainerStatusesAreAtomic) {
  EXPECT_EQ(Strategic("Pod",
                      R"({"status":{"containerStatuses":[{"name":"a"},
                          {"name":"b"}]}})",
                      R"({"status":{"containerStatuses":[{"name":"b"}]}})"),
            R"({"status":{"containerStatuses":[{"name":"b"}]}})");
}

TEST(StrategicMerge, DirectivesDeleteReplaceAndRetain) {
  EXPECT_EQ(
      Strategic("Pod",
                R"({"status":{"conditions":[{"type":"A"},{"type":"B"}]}})",
                R"({"status":{"conditions":[
                          {"$patch":"delete","type":"A"}]}})"),
      R"({"status":{"conditions":[{"type":"B"}]}})");
  EXPECT_EQ(
      Strategic("Pod",
                R"({"status":{"conditions":[{"type":"A"},{"type":"B"}]}})",
                R"({"status":{"conditions":[{"$patch":"replace"},
                          {"type":"C"}]}})"),
      R"({"status":{"conditions":[{"type":"C"}]}})");
  EXPECT_EQ(Strategic("Node", R"({"status":{"capacity":{"cpu":"4"}}})",
                      R"({"status":{"capacity":{"$patch":"replace",
                          "m":"1"}}})"),
            R"({"status":{"capacity":{"m":"1"}}})");
  EXPECT_EQ(Strategic("Node", R"({"spec":{"a":1,"b":2}})",
                      R"({"spec":{"$retainKeys":["b","c"],"c":3}})"),
            R"({"spec":{"b":2,"c":3}})");
  EXPECT_EQ(Strategic("Node", R"({"spec":{"a":1}})",
                      R"({"spec":{"$patch":"delete"}})"),
            R"({"spec":{}})");
  EXPECT_EQ(Strategic("Pod", R"({"spec":{"containers":[{"name":"c",
                          "env":[{"name":"A","value":"1"}]}]}})",
                      R"({"spec":{"containers":[{"name":"c",
                          "env":[{"name":"B","value":"2"}]}]}})"),
            R"({"spec":{"containers":[{"env":[{"name":"A","value":"1"},)"
            R"({"name":"B","value":"2"}],"name":"c"}]}})");
}

TEST(StrategicMerge, ListsOfPlainValuesAreUnited) {
  EXPECT_EQ(Strategic("Node", R"({"metadata":{"finalizers":["a","b"]}})",
                      R"({"metadata":{"finalizers":["c","b"],
                          "$deleteFromPrimitiveList/finalizers":["a"]}})"),
            R"({"metadata":{"finalizers":["b","c"]}})");
}

TEST(StrategicMerge, RefusesElementsWithoutKeyAndUnknownDirectives) {
  Json target = Json::object();
  for (const char* patch :
       {R"({"status":{"conditions":[{"status":"True"}]}})",
        R"({"status":{"conditions":["A"]}})", R"({"$patch":"grow"})", R"([])",
        R"({"$retainKeys":1})", R"({"$setElementOrder/x":1})",
        R"({"$deleteFromPrimitiveList/x":1})"}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(StrategicMerge("Pod", target, J(patch))))
        << patch;
  }
}

}  // namespace
}  // namespace devmgr::apistore
