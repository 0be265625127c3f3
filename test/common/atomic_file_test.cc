// SPDX-License-Identifier: Apache-2.0
#include "common/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/as_nobody.h"
#include "support/read_all.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class AtomicFileTest : public ::testing::Test {
 protected:
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  TempFolder folder_;
  const fs::path file_ = folder_.path() / "a.json";
};

TEST_F(AtomicFileTest, WritesForAllToReadAndLeavesNothingElse) {
  const mode_t before = ::umask(0077);
  const absl::Status status = WriteFileAtomically(file_, "text");
  ::umask(before);
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(ReadAll(file_), "text");
  struct stat info {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644u);
  EXPECT_THAT(Names(), ElementsAre("a.json"));
}

TEST_F(AtomicFileTest, MakesDirectoriesThatAreMissing) {
  const fs::path deep = folder_.path() / "b/c/d.yaml";
  ASSERT_THAT(WriteFileAtomically(deep, "text"), IsOk());
  EXPECT_EQ(ReadAll(deep), "text");
}

TEST_F(AtomicFileTest, ReplacesUnlessToldNotTo) {
  ASSERT_THAT(WriteFileAtomically(file_, "one", IfPresent::kFail), IsOk());
  const absl::Status status =
      WriteFileAtomically(file_, "two", IfPresent::kFail);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a.json"));
  EXPECT_EQ(ReadAll(file_), "one");
  ASSERT_THAT(WriteFileAtomically(file_, "three"), IsOk());
  EXPECT_EQ(ReadAll(file_), "three");
  EXPECT_THAT(Names(), ElementsAre("a.json"));
}

// BO-046: complete at every moment.
TEST_F(AtomicFileTest, ReadersSeeTheOldFileOrTheNewOne) {
  const std::string even(100'000, 'e');
  const std::string odd(200'000, 'o');
  ASSERT_THAT(WriteFileAtomically(file_, even), IsOk());
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 1; i <= 50; ++i) {
      EXPECT_THAT(WriteFileAtomically(file_, i % 2 == 0 ? even : odd), IsOk());
    }
    done = true;
  });
  int looks = 0;
  while (!done || looks == 0) {
    const std::string content = ReadAll(file_);
    ASSERT_TRUE(content == even || content == odd) << content.size();
    ++looks;
  }
  writer.join();
}

TEST_F(AtomicFileTest, AFailureChangesNothing) {
  ASSERT_THAT(WriteFileAtomically(file_, "one"), IsOk());
  // What is there cannot be replaced by a file.
  fs::create_directory(folder_.path() / "b.json");
  EXPECT_FALSE(WriteFileAtomically(folder_.path() / "b.json", "two").ok());
  fs::remove(folder_.path() / "b.json");
  EXPECT_FALSE(WriteFileAtomically(file_ / "c.json", "three").ok());
  EXPECT_EQ(ReadAll(file_), "one");
  EXPECT_THAT(Names(), ElementsAre("a.json"));
}

TEST_F(AtomicFileTest, WhoMayNotWriteIsTold) {
  ASSERT_THAT(WriteFileAtomically(file_, "one"), IsOk());
  fs::permissions(folder_.path(), fs::perms{0555});
  EXPECT_TRUE(AsNobody([this] {
    return absl::IsPermissionDenied(WriteFileAtomically(file_, "two")) &&
           absl::IsPermissionDenied(RemoveFile(file_)) &&
           absl::IsPermissionDenied(
               WriteFileAtomically(folder_.path() / "d/e.json", "two"));
  }));
  fs::permissions(folder_.path(), fs::perms{0755});
  EXPECT_EQ(ReadAll(file_), "one");
  EXPECT_THAT(Names(), ElementsAre("a.json"));
}

// BO-047
TEST_F(AtomicFileTest, WhatAKilledWriterLeftGoesWithTheFile) {
  ASSERT_THAT(WriteFileAtomically(folder_.path() / "a.json", "{}"), IsOk());
  std::ofstream(folder_.path() / "a.json.x1Y2z3.tmp") << "{";
  std::ofstream(folder_.path() / "a.json.other.txt") << "kept";
  std::ofstream(folder_.path() / "aa.json.x1Y2z3.tmp") << "kept";
  ASSERT_THAT(RemoveFile(folder_.path() / "a.json"), IsOk());
  EXPECT_THAT(Names(),
              UnorderedElementsAre("a.json.other.txt", "aa.json.x1Y2z3.tmp"));
}

TEST_F(AtomicFileTest, RemovingWhatIsGoneIsFine) {
  ASSERT_THAT(WriteFileAtomically(file_, "one"), IsOk());
  EXPECT_THAT(RemoveFile(file_), IsOk());
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_THAT(RemoveFile(file_), IsOk());
  EXPECT_THAT(RemoveFile(folder_.path() / "none/a.json"), IsOk());
}

}  // namespace
}  // namespace devmgr
