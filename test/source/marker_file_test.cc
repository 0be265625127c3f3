// SPDX-License-Identifier: Apache-2.0
#include "source/marker_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/unique_fd.h"
#include "support/temp_folder.h"

namespace devmgr::source {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class MarkerFileTest : public ::testing::Test {
 protected:
  Marker Read() const { return ReadMarker(directory_.get()); }
  Marker Write(const std::string& id) const {
    return WriteMarker(folder_.path(), DirectoryIdOf(directory_.get()), id);
  }
  fs::path Path() const { return folder_.path() / kMarkerName; }

  const TempFolder folder_;
  const UniqueFd directory_{
      ::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(MarkerFileTest, IsReadAsItWasWritten) {
  EXPECT_EQ(Read().id, "");
  EXPECT_EQ(Read().problem, "");
  EXPECT_EQ(Write("id-1").id, "id-1");
  EXPECT_EQ(Read().id, "id-1");
  EXPECT_EQ(Write("id-2").id, "id-2");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(MarkerFileTest, IsNotWrittenIntoAnotherDirectory) {
  const TempFolder other;
  const UniqueFd directory(
      ::open(other.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Marker marker =
      WriteMarker(folder_.path(), DirectoryIdOf(directory.get()), "id");
  EXPECT_EQ(marker.id, "");
  EXPECT_FALSE(fs::exists(Path()));
}

TEST_F(MarkerFileTest, WhatIsNoMarkerCountsAsNone) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("two words"),
        std::string("a\0b", 3), std::string(5'000, 'x')}) {
    std::ofstream(Path(), std::ios::trunc) << text;
    EXPECT_EQ(Read().id, "") << text.substr(0, 20);
    EXPECT_THAT(Read().problem, HasSubstr("is no marker"));
  }
  fs::remove(Path());
  ASSERT_EQ(::mkfifo(Path().c_str(), 0600), 0);
  EXPECT_THAT(Read().problem, HasSubstr("cannot be read"));
  fs::remove(Path());
  fs::create_symlink("elsewhere", Path());
  EXPECT_THAT(Read().problem, HasSubstr("cannot be read"));
}

TEST_F(MarkerFileTest, SaysWhyItCannotBeWritten) {
  // A folder in the place of the marker cannot be replaced by a file.
  fs::create_directory(Path());
  const Marker marker = Write("id");
  EXPECT_EQ(marker.id, "");
  EXPECT_THAT(marker.problem, HasSubstr("cannot be written: "));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
  EXPECT_THAT(WriteMarker(folder_.path() / "none", {}, "id").problem,
              HasSubstr("No such file"));
}

}  // namespace
}  // namespace devmgr::source
