// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SystemCdiHostTest, TellsNodesFromOtherThings) {
  const CdiHost host = SystemCdiHost();
  TempFolder folder;
  const std::string base = folder.path().string();
  const auto null = host.look_at("/dev/null", /*follow_links=*/false);
  ASSERT_THAT(null, IsOk());
  EXPECT_EQ(null->type, HostPath::Type::kCharNode);
  EXPECT_EQ(null->major, 1);
  EXPECT_EQ(null->minor, 3);
  EXPECT_EQ(host.look_at(base, false)->type, HostPath::Type::kDirectory);

  ASSERT_EQ(::mkfifo((base + "/fifo").c_str(), 0600), 0);
  ASSERT_EQ(::chmod((base + "/fifo").c_str(), 0640), 0);
  const auto fifo = host.look_at(base + "/fifo", false);
  ASSERT_THAT(fifo, IsOk());
  EXPECT_EQ(fifo->type, HostPath::Type::kFifo);
  EXPECT_EQ(fifo->mode, 0640u);
  EXPECT_EQ(fifo->uid, ::geteuid());

  std::filesystem::create_symlink("/dev/null", base + "/link");
  EXPECT_EQ(host.look_at(base + "/link", false)->type,
            HostPath::Type::kSymlink);
  EXPECT_EQ(host.look_at(base + "/link", true)->minor, 3);
}

TEST(SystemCdiHostTest, NamesWhatIsNotThere) {
  const CdiHost host = SystemCdiHost();
  TempFolder folder;
  const std::string gone = (folder.path() / "gone").string();
  EXPECT_THAT(host.look_at(gone, false),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(gone)));
  EXPECT_THAT(host.list(gone),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(gone)));
}

TEST(SystemCdiHostTest, ListsInOrder) {
  TempFolder folder;
  for (const char* name : {"b", "a", ".c"}) {
    std::ofstream(folder.path() / name) << "";
  }
  const auto names = SystemCdiHost().list(folder.path().string());
  ASSERT_THAT(names, IsOk());
  EXPECT_THAT(*names, ElementsAre(".c", "a", "b"));
}

}  // namespace
}  // namespace devmgr
