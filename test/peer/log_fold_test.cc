// SPDX-License-Identifier: Apache-2.0
#include "peer/log_fold.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace devmgr::peer {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class LogFoldTest : public testing::Test {
 protected:
  void Log(const std::string& subject, const std::string& text) {
    fold_->Log(LogLevel::kWarning, subject, text);
  }
  std::vector<std::string> TakeLines() { return std::exchange(lines_, {}); }

  ManualExecutor executor_;
  std::vector<std::string> lines_;
  std::unique_ptr<LogFold> fold_ = std::make_unique<LogFold>(
      executor_,
      [this](LogLevel, std::string_view line) { lines_.emplace_back(line); });
};

TEST_F(LogFoldTest, AFewLinesAreWrittenAtOnce) {
  for (int i = 0; i < LogFold::kMaxLines; ++i) Log("a", "x");
  EXPECT_THAT(TakeLines(), SizeIs(LogFold::kMaxLines));
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(LogFoldTest, WhatComesBeyondThatIsToldOnceWithItsNumber) {
  for (int i = 0; i < LogFold::kMaxLines; ++i) Log("a", "x");
  executor_.Advance(milliseconds(4'000));
  for (int i = 0; i < 500; ++i) Log("a", fmt::format("y{}", i));
  Log("b", "of another");
  EXPECT_EQ(TakeLines().back(), "of another");
  executor_.Advance(milliseconds(5'999));
  EXPECT_THAT(TakeLines(), IsEmpty());
  executor_.Advance(milliseconds(1));
  EXPECT_THAT(TakeLines(), ElementsAre("y499 (repeated 500 times)"));
  Log("a", "z");
  EXPECT_THAT(TakeLines(), ElementsAre("z"));
}

TEST_F(LogFoldTest, EverNewSubjectsCountAsOne) {
  for (int i = 0; i < 10'000; ++i) {
    Log(fmt::format("s{}", i), "x");
    executor_.Advance(milliseconds(1));
  }
  executor_.Advance(LogFold::kPause);
  EXPECT_LE(TakeLines().size(),
            LogFold::kMaxSubjects + LogFold::kMaxLines + 1u);
}

TEST_F(LogFoldTest, NothingIsLostAtTheEnd) {
  for (int i = 0; i <= LogFold::kMaxLines; ++i) Log("a", "x");
  fold_.reset();
  EXPECT_EQ(lines_.back(), "x (repeated 1 times)");
  EXPECT_EQ(executor_.timers(), 0u);
}

}  // namespace
}  // namespace devmgr::peer
