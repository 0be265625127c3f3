// SPDX-License-Identifier: Apache-2.0
#include "common/sysfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using absl::StatusCode;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST(SysfsTest, ReadsBelowItsRoot) {
  const TempFolder root;
  const std::filesystem::path folder = root.path() / "devices/node";
  std::filesystem::create_directories(folder / "node0");
  std::ofstream(folder / "online") << "0-3\n";
  std::ofstream(folder / "long") << std::string(kMaxSysfsFile + 1, 'x');
  const auto files = HostSysfs(root.path().string());
  const auto text = files->Read("devices/node/online");
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(*text, "0-3\n");
  const auto names = files->List("devices/node");
  ASSERT_THAT(names, IsOk());
  EXPECT_THAT(*names, UnorderedElementsAre("node0", "online", "long"));
  EXPECT_THAT(
      files->Read("devices/node/absent"),
      StatusIs(StatusCode::kNotFound, HasSubstr("devices/node/absent")));
  EXPECT_THAT(files->List("absent"), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(files->Read("devices/node/long"),
              StatusIs(StatusCode::kDataLoss));
  EXPECT_FALSE(files->Read("devices/node").ok());
}

}  // namespace
}  // namespace devmgr
