// SPDX-License-Identifier: Apache-2.0
//
// A model beside the machine: the manager and all it is made of, on one thread
// and a clock of the test's, held against a simple reference after each of many
// random operations. A failure is shrunk, and printed with its seed.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/shrink.h"
#include "model/simulation.h"
#include "support/random_lives.h"
#include "support/temp_folder.h"

namespace devmgr::model {
namespace {

using Operations = std::vector<Operation>;

std::optional<Failure> Replay(const Operations& operations,
                              const Simulation::Saboteur& saboteur = {},
                              std::string* story = nullptr) {
  const TempFolder folder;
  Simulation simulation({folder.path() / "state", saboteur});
  auto failure = simulation.Run(operations);
  if (story != nullptr) {
    for (const std::string& line : simulation.story()) *story += line + "\n";
  }
  return failure;
}

/// The shortest sequence found that breaks the same rule.
Operations ShrinkFailure(Operations operations, const Failure& failure,
                         const Simulation::Saboteur& saboteur = {}) {
  operations.resize(std::min(operations.size(), failure.step + 1));
  return Shrink<Operation>(operations, [&](const Operations& shorter) {
    const auto again = Replay(shorter, saboteur);
    return again.has_value() && again->check == failure.check;
  });
}

/// Drivers of a manager that forgets things: of all claims to be unprepared at
/// once, it calls for one and takes the others for done.
class ForgetfulDrivers final : public dra::Drivers {
 public:
  explicit ForgetfulDrivers(std::unique_ptr<dra::Drivers> real)
      : real_(std::move(real)) {}

  bool IsRegistered(const std::string& driver) const override {
    return real_->IsRegistered(driver);
  }
  bool IsConnected(const std::string& driver) const override {
    return real_->IsConnected(driver);
  }
  void Prepare(const std::string& driver,
               std::vector<dra::ClaimReference> claims,
               std::function<void(dra::PrepareAnswer)> done) override {
    real_->Prepare(driver, std::move(claims), std::move(done));
  }
  void Unprepare(const std::string& driver,
                 std::vector<dra::ClaimReference> claims,
                 std::function<void(dra::UnprepareAnswer)> done) override {
    real_->Unprepare(driver, {claims.front()},
                     [claims, done](dra::UnprepareAnswer answer) {
                       for (const auto& claim : claims) {
                         answer.emplace(claim.uid, absl::OkStatus());
                       }
                       done(std::move(answer));
                     });
  }
  std::vector<std::shared_ptr<const PluginInfo>> Plugins() const override {
    return real_->Plugins();
  }

 private:
  const std::unique_ptr<dra::Drivers> real_;
};

// The model is worth something only if it finds what is wrong.
TEST(ModelTest, AFaultIsFoundAndShrunkToAFewOperations) {
  const Simulation::Saboteur forgetful =
      [](std::unique_ptr<dra::Drivers> real) {
        return std::make_unique<ForgetfulDrivers>(std::move(real));
      };
  const Operations life = RandomLife(Luck(TestSeed(1)), 2'500);
  const auto failure = Replay(life, forgetful);
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(failure->text, testing::HasSubstr("stays prepared at driver"));
  const Operations shrunk = ShrinkFailure(life, *failure, forgetful);
  std::string story;
  const auto again = Replay(shrunk, forgetful, &story);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->check, failure->check);
  EXPECT_LE(shrunk.size(), 12u) << story;
  EXPECT_FALSE(Replay(shrunk).has_value()) << story;
}

TEST(ModelTest, ALifeCanBeRepeated) {
  const Operations life = RandomLife(Luck(TestSeed(2)), 300);
  std::string first;
  std::string second;
  EXPECT_FALSE(Replay(life, {}, &first).has_value());
  EXPECT_FALSE(Replay(life, {}, &second).has_value());
  EXPECT_EQ(first, second);
}

TEST(ModelTest, RandomLivesOfANodeKeepToTheReference) {
  constexpr std::size_t kLength = 2'500;
  constexpr RandomLives kLives = {20'261'204, 40};
  Simulation::Counts all;
  const bool whole = LiveEach(kLives, [&](Luck& luck) {
    const Operations operations = RandomLife(luck, kLength);
    const TempFolder folder;
    Simulation simulation({folder.path() / "state", {}});
    const auto failure = simulation.Run(operations);
    all.decisions += simulation.counts().decisions;
    all.driver_calls += simulation.counts().driver_calls;
    all.pods_ready += simulation.counts().pods_ready;
    all.managers += simulation.counts().managers;
    all.reopened += simulation.counts().reopened;
    all.debts += simulation.counts().debts;
    all.given_up += simulation.counts().given_up;
    all.allocations += simulation.counts().allocations;
    if (!failure.has_value()) return;
    const Operations shrunk = ShrinkFailure(operations, *failure);
    std::string story;
    const auto again = Replay(shrunk, {}, &story);
    FAIL() << "operation " << failure->step << ": " << failure->check << ": "
           << failure->text << "\nshrunk: " << again->text << "\n"
           << story << ToString(shrunk);
  });
  if (!whole) return;
  const auto lives = static_cast<std::size_t>(kLives.count());
  fmt::print(
      "{} operations, {} decisions, {} calls of drivers, {} pods Ready, "
      "{} managers, {} stores reopened, {} debts, {} given up\n",
      lives * kLength, all.decisions, all.driver_calls, all.pods_ready,
      all.managers, all.reopened, all.debts, all.given_up);
  // The lives are worth something only if much happens in them.
  EXPECT_GT(all.pods_ready, lives * kLength / 50);
  EXPECT_GT(all.driver_calls, lives * kLength / 20);
  EXPECT_GT(all.debts, lives);
  EXPECT_GT(all.given_up, lives);
  EXPECT_GT(all.allocations, lives);
  EXPECT_EQ(all.reopened, lives * 2);
}

}  // namespace
}  // namespace devmgr::model
