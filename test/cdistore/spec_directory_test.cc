// SPDX-License-Identifier: Apache-2.0
#include "cdistore/spec_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "cdistore/spec_text.h"
#include "support/temp_folder.h"

namespace devmgr::cdistore {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SpecDirectoryTest : public ::testing::Test {
 protected:
  fs::path Write(const std::string& file, const std::string& text) {
    fs::create_directories((folder_.path() / file).parent_path());
    std::ofstream(folder_.path() / file) << text;
    return folder_.path() / file;
  }
  TempFolder folder_;
};

TEST_F(SpecDirectoryTest, ReadsSpecFilesOfAllDirectoriesInOrder) {
  Write("a/2.json", SpecText({"two"}));
  Write("a/1.yaml", SpecText({"one"}));
  Write("a/sub/4.yaml", SpecText({"four"}));
  for (const std::string name : {"3.yml", "3.json.bak", "3.yaml.tmp"}) {
    Write("a/" + name, SpecText({"three"}));
  }
  Write("b/.5.yaml", SpecText({"five"}));
  const auto specs = ReadSpecFiles(
      {folder_.path() / "a", folder_.path() / "none", folder_.path() / "b"});
  EXPECT_THAT(specs->unread(), IsEmpty());
  std::vector<std::string> devices;
  for (const CdiSpecFile& file : specs->files()) {
    EXPECT_EQ(file.problem, "");
    ASSERT_NE(file.spec, nullptr);
    EXPECT_EQ(file.spec->kind, "v.com/c");
    for (const CdiSpecDevice& device : file.spec->devices) {
      devices.push_back(device.name);
    }
  }
  EXPECT_THAT(devices, ElementsAre("one", "two", "five"));
}

TEST_F(SpecDirectoryTest, ALinkThatLeadsNowhereIsShown) {
  Write("a/good.json", SpecText({"one"}));
  fs::create_symlink(folder_.path() / "none.json",
                     folder_.path() / "a/link.json");
  const auto specs = ReadSpecFiles({folder_.path() / "a"});
  ASSERT_THAT(specs->files(), SizeIs(2));
  EXPECT_EQ(specs->files()[1].path, (folder_.path() / "a/link.json").string());
  EXPECT_EQ(specs->files()[1].problem, "a symbolic link without a target");
  EXPECT_THAT(specs->unread(), IsEmpty());
  // When its target comes, it counts.
  Write("none.json", SpecText({"two"}));
  const auto again = ReadSpecFiles({folder_.path() / "a"});
  EXPECT_EQ(again->files()[1].problem, "");
}

TEST_F(SpecDirectoryTest, FilesThatAreNoSpecsAreTold) {
  Write("a/bad.json", "{");
  Write("a/empty.json", "");
  ASSERT_EQ(::mkfifo((folder_.path() / "a/pipe.json").c_str(), 0600), 0);
  const auto specs = ReadSpecFiles({folder_.path() / "a"});
  EXPECT_THAT(specs->unread(), IsEmpty());
  ASSERT_THAT(specs->files(), SizeIs(3));
  for (const CdiSpecFile& file : specs->files()) {
    EXPECT_NE(file.problem, "") << file.path;
    EXPECT_EQ(file.spec, nullptr);
  }
  EXPECT_THAT(specs->files()[2].problem, HasSubstr("regular file"));
}

TEST_F(SpecDirectoryTest, WhatCannotBeReadIsToldAndTheRestIsRead) {
  const fs::path file = Write("a/1.yaml", SpecText({"one"}));
  Write("a/big.yaml", std::string((4 << 20) + 1, ' '));
  const auto specs = ReadSpecFiles({file, folder_.path() / "a"});
  EXPECT_THAT(specs->files(), SizeIs(1));
  ASSERT_THAT(specs->unread(), SizeIs(2));
  EXPECT_THAT(specs->unread()[0], HasSubstr("1.yaml'"));
  EXPECT_THAT(specs->unread()[1], HasSubstr("big.yaml' has more than"));
}

TEST_F(SpecDirectoryTest, SetsAsideOnlyWhatWasRead) {
  const fs::path path = Write("a/1.yaml", SpecText({"one"}));
  const CdiSpecFile file = ReadSpecFiles({path.parent_path()})->files().at(0);
  Write("a/1.yaml", SpecText({"other"}));
  EXPECT_TRUE(absl::IsFailedPrecondition(SetAside(file)));
  EXPECT_TRUE(fs::exists(path));
  Write("a/1.yaml", SpecText({"one"}));
  EXPECT_TRUE(SetAside(file).ok());
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(AsidePath(path)));
  EXPECT_THAT(ReadSpecFiles({path.parent_path()})->files(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(SetAside(file)));
}

}  // namespace
}  // namespace devmgr::cdistore
