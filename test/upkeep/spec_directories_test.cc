// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with files of the CDI directories is an event.
#include "upkeep/spec_directories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/mailbox.h"
#include "support/temp_folder.h"

namespace devmgr::upkeep {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// A clock that moves when told, for tasks that other threads post.
class PostedExecutor : public ManualExecutor {
 public:
  void Post(Task task) override {
    ManualExecutor::Post(std::move(task));
    posted_.Put(1);
  }
  /// False when nothing is posted for long.
  bool RunNext() {
    if (!posted_.Take().has_value()) return false;
    RunPending();
    return true;
  }

 private:
  Mailbox<int> posted_;
};

class SpecDirectoriesTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (directories_.has_value()) directories_->Stop();
  }

  void Start(std::vector<fs::path> directories) {
    directories_.emplace(executor_, events_, std::move(directories));
    ASSERT_TRUE(executor_.RunNext());
    executor_.Advance(events::LastingProblems::kDelay);
  }
  /// Until the events are these.
  bool WaitForEvents(const std::vector<std::string>& wanted) {
    return WaitUntil([&] { return Events() == wanted; });
  }
  bool WaitUntil(const std::function<bool()>& condition) {
    while (!condition()) {
      if (!executor_.RunNext()) return false;
      executor_.Advance(events::LastingProblems::kDelay);
    }
    return true;
  }

  /// In one step, as drivers write specs.
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / (name + ".tmp")) << text;
    fs::rename(folder_.path() / (name + ".tmp"), folder_.path() / name);
  }
  void WriteGood(const std::string& name) {
    Write(name, "cdiVersion: 0.5.0\nkind: example.com/x\ndevices: [{name: " +
                    fs::path(name).stem().string() +
                    ", containerEdits: {env: [A=1]}}]\n");
  }

  /// `file: message xcount`, oldest first.
  std::vector<std::string> Events() const {
    std::vector<std::string> texts;
    for (const EventInfo& event : events_.After(0)) {
      EXPECT_EQ(event.reason, "CdiSpecProblem");
      EXPECT_EQ(event.object_kind, "CdiSpec");
      EXPECT_TRUE(event.warning);
      texts.push_back(fs::path(event.object.name).filename().string() + ": " +
                      event.message + " x" + std::to_string(event.count));
    }
    return texts;
  }

  const std::string kDangles = "a symbolic link without a target";

  TempFolder folder_;
  PostedExecutor executor_;
  events::EventLog events_{executor_, 1'000, [] { return WallTime(); },
                           [](const EventInfo&) {}};
  std::optional<SpecDirectories> directories_;
};

TEST_F(SpecDirectoriesTest, ALinkThatDanglesIsAnEvent) {
  WriteGood("a.yaml");
  fs::create_symlink("gone.yaml", folder_.path() / "b.yaml");
  Start({folder_.path()});
  EXPECT_THAT(Events(), ElementsAre("b.yaml: " + kDangles + " x1"));
  EXPECT_EQ(events_.After(0)[0].object.name, folder_.path() / "b.yaml");
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(SpecDirectoriesTest, SoIsAFileThatIsNoSpec) {
  Write("a.yaml", "cdiVersion: 0.5.0\nkind: nothing\n");
  Start({folder_.path()});
  EXPECT_THAT(Events(), ElementsAre(HasSubstr("a.yaml: ")));
  EXPECT_THAT(Events()[0], HasSubstr("kind"));
}

TEST_F(SpecDirectoriesTest, SoAreFilesThatDefineTheSameDevices) {
  const std::string devices =
      "cdiVersion: 0.5.0\nkind: example.com/x\ndevices:\n"
      "- {name: d0, containerEdits: {env: [A=1]}}\n"
      "- {name: d1, containerEdits: {env: [A=1]}}\n"
      "- {name: d2, containerEdits: {env: [A=1]}}\n";
  Write("a.yaml", devices);
  WriteGood("b.yaml");
  Start({folder_.path()});
  EXPECT_THAT(Events(), IsEmpty());
  Write("c.yaml", devices);
  ASSERT_TRUE(WaitUntil([&] { return Events().size() == 1; }));
  EXPECT_THAT(Events()[0],
              AllOf(StartsWith("a.yaml: "), HasSubstr("example.com/x=d0"),
                    HasSubstr("c.yaml"), HasSubstr("2 more devices")));
}

TEST_F(SpecDirectoriesTest, WhatComesLaterIsNoticed) {
  Start({folder_.path()});
  EXPECT_THAT(Events(), IsEmpty());
  fs::create_symlink("gone.yaml", folder_.path() / "b.yaml");
  EXPECT_TRUE(WaitForEvents({"b.yaml: " + kDangles + " x1"}));
}

TEST_F(SpecDirectoriesTest, WhatStaysIsToldOnceAndWhatComesAgainIsCounted) {
  const fs::path link = folder_.path() / "b.yaml";
  fs::create_directory(folder_.path() / "elsewhere");
  fs::create_symlink("elsewhere/gone.yaml", link);
  Start({folder_.path()});
  // Another file changes; the link is as it was.
  Write("c.yaml", "{}");
  ASSERT_TRUE(WaitUntil([&] { return Events().size() == 2; }));
  EXPECT_EQ(Events()[0], "b.yaml: " + kDangles + " x1");
  // It is mended, which other files show, and breaks again.
  WriteGood("elsewhere/gone.yaml");
  fs::remove(folder_.path() / "c.yaml");
  Write("d.yaml", "{}");
  ASSERT_TRUE(WaitUntil([&] { return Events().size() == 3; }));
  fs::remove(folder_.path() / "elsewhere/gone.yaml");
  fs::remove(folder_.path() / "d.yaml");
  EXPECT_TRUE(WaitUntil([&] {
    const auto events = Events();
    return std::find(events.begin(), events.end(),
                     "b.yaml: " + kDangles + " x2") != events.end();
  }));
}

TEST_F(SpecDirectoriesTest, ADirectoryThatDoesNotExistIsFine) {
  Start({folder_.path() / "none", ""});
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(SpecDirectoriesTest, ADirectoryThatCannotBeReadIsAnEvent) {
  const fs::path file = folder_.path() / "file";
  std::ofstream(file) << "x";
  Start({file});
  EXPECT_THAT(Events(), ElementsAre(HasSubstr("cannot read directory '" +
                                              file.string() + "'")));
}

TEST_F(SpecDirectoriesTest, ReadingSeesWhatWasThereWhenItWasAsked) {
  Start({folder_.path()});
  for (const std::string name : {"a", "b", "c"}) {
    WriteGood(name + ".yaml");
    Mailbox<bool> found;
    directories_->Read([&](const CdiRegistry& specs) {
      found.Put(specs.Find("example.com/x=" + name) != nullptr);
    });
    EXPECT_EQ(found.Take(), true) << name;
  }
}

TEST_F(SpecDirectoriesTest, WithoutDirectoriesThereIsNothingToRead) {
  const SpecDirectories none(executor_, events_, {});
  EXPECT_FALSE(none.any());
}

}  // namespace
}  // namespace devmgr::upkeep
