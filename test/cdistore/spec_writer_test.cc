// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi_cache.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "support/as_nobody.h"
#include "support/read_all.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CdiSpec SpecOf(const std::string& device) {
  CdiSpec spec;
  spec.version = "0.3.0";
  spec.kind = "v.com/c";
  spec.devices = {{device, {}, {}}};
  spec.devices[0].edits.env = {"A=1"};
  return spec;
}

class SpecWriterTest : public ::testing::Test {
 protected:
  TempFolder folder_;
  const fs::path directory_ = folder_.path() / "run/cdi";
};

// BO-046
TEST_F(SpecWriterTest, ASpecIsYamlUnlessItsNameSaysOtherwise) {
  const auto yaml = WriteCdiSpec(SpecOf("d"), directory_, "v-c_claim1");
  ASSERT_THAT(yaml, IsOk());
  EXPECT_EQ(*yaml, directory_ / "v-c_claim1.yaml");
  const auto spec = ParseCdiSpec(ReadAll(*yaml), "");
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(*spec, SpecOf("d"));
  EXPECT_EQ(*WriteCdiSpec(SpecOf("d"), directory_, "a.yml"),
            directory_ / "a.yml.yaml");
  const auto json = WriteCdiSpec(SpecOf("d"), directory_, "a.json");
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(*json, directory_ / "a.json");
  EXPECT_THAT(ReadAll(*json), StartsWith("{"));
  struct stat info {};
  ASSERT_EQ(::stat(json->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644u);
}

// BO-048
TEST_F(SpecWriterTest, NamesOfTransientSpecsFit) {
  const std::string name = CdiSpecFileName("v.com/c", "ns/pod/1");
  EXPECT_EQ(name, "v.com-c_ns_pod_1");
  EXPECT_THAT(WriteCdiSpec(SpecOf("d"), directory_, name), IsOk());
  EXPECT_TRUE(fs::exists(directory_ / "v.com-c_ns_pod_1.yaml"));
  EXPECT_THAT(RemoveCdiSpec(directory_, name), IsOk());
  EXPECT_FALSE(fs::exists(directory_ / "v.com-c_ns_pod_1.yaml"));
  // BO-047
  EXPECT_THAT(RemoveCdiSpec(directory_, name), IsOk());
}

TEST_F(SpecWriterTest, BadNamesAndBadSpecsLeaveNoTrace) {
  for (const std::string name : {"", "a/b", "../a"}) {
    EXPECT_THAT(WriteCdiSpec(SpecOf("d"), directory_, name),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(RemoveCdiSpec(directory_, name),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(WriteCdiSpec(SpecOf("d"), "", "a"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      WriteCdiSpec(SpecOf("-"), directory_, "a"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.yaml")));
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(SpecWriterTest, DoesNotReplaceWhenToldSo) {
  ASSERT_THAT(WriteCdiSpec(SpecOf("d"), directory_, "a"), IsOk());
  EXPECT_THAT(WriteCdiSpec(SpecOf("e"), directory_, "a", CdiIfPresent::kFail),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(WriteCdiSpec(SpecOf("e"), directory_, "a"), IsOk());
  EXPECT_THAT(ReadAll(directory_ / "a.yaml"), HasSubstr("e"));
}

TEST_F(SpecWriterTest, WhoMayNotWriteIsTold) {
  fs::permissions(folder_.path(), fs::perms{0555});
  EXPECT_TRUE(AsNobody([this] {
    return absl::IsPermissionDenied(
        WriteCdiSpec(SpecOf("d"), directory_, "a").status());
  }));
  fs::permissions(folder_.path(), fs::perms{0755});
}

}  // namespace
}  // namespace devmgr
