// SPDX-License-Identifier: Apache-2.0
//
// devmgrctl fsck on a node whose CDI directory somebody has meddled with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "e2e/daemon.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FsckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    driver_ = node_.StartDriver();
    daemon_ = std::make_unique<Daemon>(node_.root());
    node_.Write("p.yaml", ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"}) +
                              PodManifest("p", "u-p", "c1"));
    ASSERT_TRUE(WaitFor("ready"));
    before_ = node_.Ctl({"resolve", "p", "-o", "json"}).out;
    ASSERT_TRUE(IsClean(node_.Ctl({"fsck"})));
  }

  ::testing::AssertionResult WaitFor(const std::string& state) {
    return IsClean(
        node_.Ctl({"wait", "pod", "p", "--for=" + state, "--timeout", "20s"}));
  }
  static ::testing::AssertionResult IsClean(const Exit& exit) {
    if (exit.code == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << "exit " << exit.code << ": " << exit.out << exit.err;
  }

  /// The only spec file there is.
  fs::path SpecFile() {
    for (const auto& entry : fs::directory_iterator(node_.root() / "cdi")) {
      return entry.path();
    }
    ADD_FAILURE() << "no spec file";
    return {};
  }

  Exit FsckStopped(std::vector<std::string> args = {}) {
    args.insert(args.begin(),
                {"fsck", "--state-dir", (node_.root() / "state").string(),
                 "--cdi-spec-dir", (node_.root() / "cdi").string()});
    return RunTool("devmgrctl", args);
  }

  NodeFolder node_;
  std::unique_ptr<testing::FakeDraDriver> driver_;
  std::unique_ptr<Daemon> daemon_;
  std::string before_;
};

TEST_F(FsckTest, MissingSpecComesBackWhileThePodRuns) {
  fs::remove(SpecFile());
  const Exit found = node_.Ctl({"fsck", "--repair"});
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.out, HasSubstr("missing-spec"));
  EXPECT_EQ(driver_->Calls().size(), 1u);
  ASSERT_TRUE(IsClean(node_.Ctl({"fsck", "--repair", "--yes"})));
  ASSERT_TRUE(driver_->WaitForCalls(2, std::chrono::seconds(20)));
  ASSERT_TRUE(WaitFor("ready"));
  EXPECT_EQ(node_.Ctl({"resolve", "p", "-o", "json"}).out, before_);
  EXPECT_EQ(node_.cdi_files(), 1u);
  EXPECT_TRUE(IsClean(node_.Ctl({"fsck"})));
  EXPECT_THAT(node_.Ctl({"history"}).out, HasSubstr("Repair"));
  EXPECT_THAT(node_.Ctl({"events"}).out, HasSubstr("Repaired"));
}

TEST_F(FsckTest, MissingSpecIsFoundInAStoppedStore) {
  daemon_->Kill();
  fs::remove(SpecFile());
  const Exit found = FsckStopped();
  EXPECT_EQ(found.code, 1) << found.err;
  ASSERT_TRUE(IsClean(FsckStopped({"--repair", "--yes"})));
  ASSERT_TRUE(IsClean(FsckStopped()));
  daemon_ = std::make_unique<Daemon>(node_.root());
  daemon_->Inspect();
  ASSERT_TRUE(WaitFor("ready"));
  EXPECT_EQ(node_.cdi_files(), 1u);
  EXPECT_EQ(node_.Ctl({"resolve", "p", "-o", "json"}).out, before_);
  EXPECT_EQ(FsckStopped().code, 8);  // held
}

TEST_F(FsckTest, OrphanIsSetAside) {
  const fs::path file = SpecFile();
  const fs::path kept = node_.root() / "kept";
  fs::copy_file(file, kept);
  node_.Remove("p.yaml");
  ASSERT_TRUE(WaitFor("released"));
  fs::copy_file(kept, file);
  const Exit found = node_.Ctl({"fsck"});
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.out, HasSubstr("orphaned-spec"));
  ASSERT_TRUE(IsClean(node_.Ctl({"fsck", "--repair", "--yes"})));
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(fs::exists(file.string() + ".orphaned"));
  ASSERT_TRUE(IsClean(node_.Ctl({"fsck"})));
}

}  // namespace
}  // namespace devmgr
