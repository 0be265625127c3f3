// SPDX-License-Identifier: Apache-2.0
#include "common/executor_gate.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "common/executor.h"

namespace devmgr {
namespace {

TEST(ExecutorGateTest, AnAnswerRunsOnTheExecutorInATurnOfItsOwn) {
  ManualExecutor executor;
  std::vector<int> answers;
  const ExecutorGate gate(executor);
  const auto pass =
      gate.Pass<int>([&](int answer) { answers.push_back(answer); });
  pass(1);
  pass(2);
  EXPECT_TRUE(answers.empty());
  executor.RunPending();
  EXPECT_EQ(answers, (std::vector<int>{1, 2}));
}

TEST(ExecutorGateTest, NothingRunsOnceTheGateIsGone) {
  ManualExecutor executor;
  int answers = 0;
  auto gate = std::make_unique<ExecutorGate>(executor);
  const auto pass = gate->Pass<int>([&](int) { ++answers; });
  pass(1);  // On its way when the gate goes.
  gate.reset();
  pass(2);
  executor.RunPending();
  EXPECT_EQ(answers, 0);
}

}  // namespace
}  // namespace devmgr
