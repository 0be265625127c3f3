// SPDX-License-Identifier: Apache-2.0
#include "cdi/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"

namespace devmgr::cdi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ProblemOf(const std::string& text) {
  const auto spec = ParseSpec(text);
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return MessageOf(spec.status());
}

TEST(SpecTest, ReadsJsonAndYaml) {
  const auto json = ParseSpec(
      R"({"cdiVersion": "0.5.0", "kind": "a.com/claim",
          "devices": [{"name": "u-1-gpu", "containerEdits": {}}]})");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->kind, "a.com/claim");
  EXPECT_THAT(json->devices, ElementsAre("u-1-gpu"));
  const auto yaml = ParseSpec(
      "cdiVersion: 0.5.0\nkind: a.com/gpu\ndevices:\n- name: 0\n- name: all\n");
  ASSERT_TRUE(yaml.ok()) << yaml.status();
  EXPECT_THAT(yaml->devices, ElementsAre("0", "all"));
}

TEST(SpecTest, SaysWhatIsWrong) {
  EXPECT_THAT(ProblemOf(""), HasSubstr("no spec in it"));
  EXPECT_THAT(ProblemOf("{"), HasSubstr("line 1"));
  EXPECT_THAT(ProblemOf("[]"), HasSubstr("must be an object"));
  const std::string head = "cdiVersion: 0.5.0\nkind: a.com/gpu\n";
  EXPECT_THAT(ProblemOf("kind: a.com/gpu\ndevices: [{name: x}]"),
              HasSubstr("'cdiVersion' is missing"));
  EXPECT_THAT(ProblemOf("cdiVersion: 0.5.0\ndevices: [{name: x}]"),
              HasSubstr("'kind' is missing"));
  EXPECT_THAT(ProblemOf(head), HasSubstr("'devices' must be"));
  EXPECT_THAT(ProblemOf(head + "devices: []"), HasSubstr("'devices' must be"));
  EXPECT_THAT(ProblemOf(head + "devices: [x]"), HasSubstr("must be an object"));
  EXPECT_THAT(ProblemOf(head + "devices: [{}]"),
              HasSubstr("'name' is missing"));
  EXPECT_THAT(ProblemOf(head + "devices: [{name: -x}]"),
              HasSubstr("invalid device name"));
  EXPECT_THAT(ProblemOf(head + "devices: [{name: x}, {name: x}]"),
              HasSubstr("a second device 'x'"));
  EXPECT_THAT(ProblemOf("cdiVersion: 0.5.0\nkind: gpu\ndevices: [{name: x}]"),
              HasSubstr("unqualified device 'gpu=x'"));
}

}  // namespace
}  // namespace devmgr::cdi
