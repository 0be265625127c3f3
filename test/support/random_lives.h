// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/luck.h"
#include "support/test_scale.h"

namespace devmgr {

/// How often a random test runs: each life has a seed of its own.
struct RandomLives {
  std::uint32_t seed;  ///< Of the first life; DEVMGR_TEST_SEED replaces it.
  int lives;           ///< At scale 1.

  int count() const { return lives * TestScale(); }
};

/// Calls `live(luck)` for each life until one fails, whose seed then stands at
/// each of its failures. With DEVMGR_TEST_REPLAY there is just the life of that
/// seed. Returns whether all lives were lived, so that what they came to
/// together can be judged.
template <typename Live>
bool LiveEach(const RandomLives& lives, Live live) {
  const auto replayed = TestReplay();
  const std::uint32_t first = replayed.value_or(TestSeed(lives.seed));
  const int count = replayed ? 1 : lives.count();
  // For a life that ends this program.
  fmt::print("{} lives, the first with seed {}\n", count, first);
  std::fflush(stdout);
  for (int i = 0; i < count; ++i) {
    const std::uint32_t seed = first + static_cast<std::uint32_t>(i);
    const ::testing::ScopedTrace trace(
        __FILE__, __LINE__, fmt::format("DEVMGR_TEST_REPLAY={}", seed));
    Luck luck(seed);
    live(luck);
    if (::testing::Test::HasFailure()) return false;
  }
  return !replayed;
}

/// Something that can happen. The more it weighs, the more often it does. What
/// it returns, if anything, is its line in the story of the life.
struct RandomStep {
  template <typename Do>
  RandomStep(std::string_view step, int weighs, Do does)
      : name(step), weight(weighs), run([does]() mutable -> std::string {
          if constexpr (std::is_void_v<std::invoke_result_t<Do&>>) {
            return does(), "";
          } else {
            return does();
          }
        }) {}

  std::string_view name;
  int weight;
  std::function<std::string()> run;
};

/// One of `steps`, by their weights.
template <typename Steps>
const auto& Draw(const Steps& steps, Luck& luck) {
  int all = 0;
  for (const auto& step : steps) all += step.weight;
  int left = luck.Below(all);
  auto step = std::begin(steps);
  for (; left >= step->weight; ++step) left -= step->weight;
  return *step;
}

/// Takes `count` of these steps, and calls `check` after each. The first
/// failure ends them, and the steps that led to it are reported.
inline void TakeSteps(
    int count, Luck& luck, const std::vector<RandomStep>& steps,
    const std::function<void()>& check = [] {}) {
  constexpr std::size_t kTold = 60;
  std::deque<std::string> story;
  for (int i = 0; i < count; ++i) {
    const RandomStep& step = Draw(steps, luck);
    story.push_back(fmt::format("\n  {} {}: ", i, step.name));
    if (story.size() > kTold) story.pop_front();
    story.back() += step.run();
    if (!::testing::Test::HasFailure()) check();
    if (!::testing::Test::HasFailure()) continue;
    ADD_FAILURE() << "after these steps:"
                  << fmt::format("{}", fmt::join(story, ""));
    return;
  }
}

}  // namespace devmgr
