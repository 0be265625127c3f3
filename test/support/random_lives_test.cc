// SPDX-License-Identifier: Apache-2.0
#include "support/random_lives.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace devmgr {
namespace {

using ::testing::ExitedWithCode;

/// Counts its steps, and fails where it is asked to.
struct Counter {
  std::vector<RandomStep> Steps() {
    return {{"often", 9, [this] { ++often; }},
            {"seldom", 1, [this] { return fmt::format("{}.", ++seldom); }},
            {"never", 0, [this] { ++never; }}};
  }
  void Check() {
    if (++checked == fails_at) ADD_FAILURE() << "it is enough";
  }

  int often = 0, seldom = 0, never = 0, checked = 0;
  int fails_at = 0;
};

std::vector<std::uint32_t> FirstNumbers() {
  std::vector<std::uint32_t> numbers;
  LiveEach({7, 3}, [&](Luck& luck) { numbers.push_back(luck()); });
  return numbers;
}

/// What the failures of this test say, and how many lives there were.
[[noreturn]] void Report(int lives) {
  const auto& result =
      *::testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    std::fputs(result.GetTestPartResult(i).message(), stderr);
  }
  std::exit(lives);
}

TEST(RandomLivesTest, EachHasASeedOfItsOwnAndIsTheSameEachTime) {
  const auto numbers = FirstNumbers();
  ASSERT_EQ(numbers.size(), 3u * static_cast<unsigned>(TestScale()));
  EXPECT_NE(numbers[0], numbers[1]);
  EXPECT_NE(numbers[1], numbers[2]);
  EXPECT_EQ(FirstNumbers(), numbers);
}

TEST(RandomLivesTest, StepsAreTakenByTheirWeightAndChecked) {
  Luck luck(1);
  Counter life;
  TakeSteps(1'000, luck, life.Steps(), [&] { life.Check(); });
  EXPECT_EQ(life.checked, 1'000);
  EXPECT_EQ(life.often + life.seldom, 1'000);
  EXPECT_GT(life.seldom, 50);
  EXPECT_GT(life.often, 800);
  EXPECT_EQ(life.never, 0);
}

TEST(RandomLivesTest, AFailureEndsThemAndSaysItsSeedAndTheStepsBefore) {
  const auto live = [] {
    ::unsetenv("DEVMGR_TEST_SEED");
    int lives = 0;
    const bool whole = LiveEach({1'000, 5}, [&](Luck& luck) {
      Counter life;
      life.fails_at = ++lives == 3 ? 30 : 0;
      TakeSteps(100, luck, life.Steps(), [&] { life.Check(); });
    });
    Report(whole ? 99 : lives);
  };
  EXPECT_EXIT(live(), ExitedWithCode(3), "it is enough");
  EXPECT_EXIT(live(), ExitedWithCode(3), "DEVMGR_TEST_REPLAY=1002");
  EXPECT_EXIT(live(), ExitedWithCode(3), "29 seldom: 1\\.");
}

TEST(RandomLivesTest, OneIsLivedAgain) {
  const auto live = [] {
    ::setenv("DEVMGR_TEST_REPLAY", "8", 1);
    const bool one = FirstNumbers() == std::vector{Luck(8)()};
    const bool whole = LiveEach({7, 3}, [](Luck&) {});
    std::exit(one && !whole ? 0 : 1);
  };
  EXPECT_EXIT(live(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace devmgr
