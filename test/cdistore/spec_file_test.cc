// SPDX-License-Identifier: Apache-2.0
#include "cdistore/spec_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>
#include <string>

#include "support/as_nobody.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::cdistore {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SpecFileTest : public ::testing::Test {
 protected:
  fs::path Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }
  TempFolder folder_;
};

// BO-038
TEST_F(SpecFileTest, OnlyTheSuffixMakesASpec) {
  for (const char* name :
       {"a.yml", "b.json.bak", "c.JSON", ".d.json", "f.yaml.tmp"}) {
    Write(name, "");
  }
  fs::create_directory(folder_.path() / "sub");
  Write("sub/e.yaml", "");
  const auto listing = ListSpecs(folder_.path(), 100);
  ASSERT_THAT(listing, IsOk());
  EXPECT_THAT(listing->names, ElementsAre(".d.json"));
}

TEST_F(SpecFileTest, ListsTheFirstOfTooManyAndCountsTheRest) {
  for (const char* name : {"d.json", "a.json", "c.yaml", "b.yaml"}) {
    Write(name, "");
  }
  const auto listing = ListSpecs(folder_.path(), 3);
  ASSERT_THAT(listing, IsOk());
  EXPECT_THAT(listing->names, ElementsAre("a.json", "b.yaml", "c.yaml"));
  EXPECT_EQ(listing->left_out, 1u);
}

TEST_F(SpecFileTest, AMissingDirectoryIsNotAnUnreadableOne) {
  EXPECT_TRUE(absl::IsNotFound(ListSpecs(folder_.path() / "none", 9).status()));
  const fs::path file = Write("a.json", "");
  EXPECT_TRUE(absl::IsUnavailable(ListSpecs(file, 9).status()));
  fs::permissions(folder_.path(), fs::perms{0111});
  EXPECT_TRUE(AsNobody([this] {
    return absl::IsPermissionDenied(ListSpecs(folder_.path(), 9).status());
  }));
  fs::permissions(folder_.path(), fs::perms{0755});
}

TEST_F(SpecFileTest, ReadsRegularFilesOnlyAndNoLongerThanAllowed) {
  const auto reading = ReadSpecText(Write("a.json", "text"), 4);
  ASSERT_THAT(reading, IsOk());
  EXPECT_EQ(reading->text, "text");
  const fs::path pipe = folder_.path() / "pipe.json";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const absl::Status piped = ReadSpecText(pipe, 4).status();
  EXPECT_TRUE(absl::IsInvalidArgument(piped));
  EXPECT_THAT(std::string(piped.message()), HasSubstr("pipe.json"));
  EXPECT_TRUE(
      absl::IsInvalidArgument(ReadSpecText(folder_.path(), 4).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(
      ReadSpecText(Write("b.json", "texts"), 4).status()));
  EXPECT_TRUE(
      absl::IsNotFound(ReadSpecText(folder_.path() / "c.json", 4).status()));
}

TEST_F(SpecFileTest, WhoMayNotReadIsTold) {
  const fs::path file = Write("a.json", "text");
  fs::permissions(folder_.path(), fs::perms{0755});
  fs::permissions(file, fs::perms{0});
  EXPECT_TRUE(AsNobody([&] {
    return absl::IsPermissionDenied(ReadSpecText(file, 9).status());
  }));
}

TEST_F(SpecFileTest, TheSignatureTellsContentsAndRightsApart) {
  const fs::path file = Write("a.json", "text");
  const auto first = SignatureOf(file);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(ReadSpecText(file, 9)->signature, *first);
  fs::permissions(file, fs::perms{0600});
  const auto second = SignatureOf(file);
  EXPECT_NE(*second, *first);
  Write("b.json", "text");
  fs::rename(folder_.path() / "b.json", file);
  EXPECT_NE(*SignatureOf(file), *second);
  fs::create_symlink(file, folder_.path() / "c.json");
  EXPECT_EQ(*SignatureOf(folder_.path() / "c.json"), *SignatureOf(file));
}

// Two writes within one tick of the file system's clock look the same.
TEST_F(SpecFileTest, AYoungFileIsNotSettled) {
  const fs::path file = Write("a.json", "text");
  const auto reading = ReadSpecText(file, 9);
  ASSERT_THAT(reading, IsOk());
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t now_ns =
      std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  // On a machine that stood still it may have grown old meanwhile.
  if (now_ns - reading->signature.changed_ns < 50'000'000) {
    EXPECT_FALSE(reading->settled);
  }
}

}  // namespace
}  // namespace devmgr::cdistore
