// SPDX-License-Identifier: Apache-2.0
//
// Each kind of socket that we serve, against each way in which a client may
// misbehave: what that costs us, and whether other clients are served. A new
// kind of socket is one more line in kServed, and gets all rows.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "hostile/hostile_client.h"
#include "hostile/measure.h"
#include "hostile/neighbour.h"
#include "hostile/served.h"
#include "rpc/connection.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::hostile {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kClientTime{600};
constexpr int kMaxLogLines = 48;
constexpr int kMaxEvents = 24;

struct ServedKind {
  const char* name;
  std::unique_ptr<Served> (*make)(rpc::Runtime& runtime,
                                  const std::filesystem::path& folder);
};
constexpr ServedKind kServed[] = {
    {"Inspection", &ServedInspection},
    {"Proxy", &ServedProxy},
    {"Registry", &ServedRegistry},
};

class HostileClientsTest : public testing::TestWithParam<
                               std::tuple<std::size_t, ClientMisbehaviour>> {
 protected:
  void SetUp() override {
    auto runtime = rpc::Runtime::Start();
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
    MakeAnew();
  }

  void MakeAnew() {
    client_.reset();
    served_.reset();
    folder_.emplace();
    served_ = kind().make(*runtime_, folder_->path());
  }

  static const ServedKind& kind() { return kServed[std::get<0>(GetParam())]; }
  static ClientMisbehaviour misbehaviour() { return std::get<1>(GetParam()); }

  void Begin() {
    client_ = std::make_unique<HostileClient>(
        misbehaviour(), served_->socket(),
        [this](int name) { return served_->CallOf(name); });
  }

  /// For so long the neighbour is called.
  Phase Call(milliseconds time) {
    const auto others = [this] {
      return client_ == nullptr ? std::chrono::nanoseconds(0)
                                : client_->processor_time();
    };
    const auto before = others();
    Phase phase = CallFor(time, [this](std::function<void(absl::Status)> done) {
      served_->CallNeighbour(std::move(done));
    });
    phase.processor -= others() - before;
    return phase;
  }

  std::optional<TempFolder> folder_;
  std::unique_ptr<rpc::Runtime> runtime_;
  std::unique_ptr<Served> served_;
  std::unique_ptr<HostileClient> client_;
};

TEST_P(HostileClientsTest, CostsLittleAndHurtsNobodyElse) {
  const Phase quiet = Call(kQuiet);
  ASSERT_THAT(quiet.failures, testing::IsEmpty());
  Begin();
  const Phase phase = Call(kClientTime);
  const Costs& costs = served_->costs();
  EXPECT_GT(client_->connections(), 0);
  EXPECT_LE(costs.log_lines, kMaxLogLines);
  EXPECT_LE(costs.events, kMaxEvents);
  ExpectModest(quiet, phase, client_->calls());
  EXPECT_GE(phase.calls.size(), kLeastCalls);
  EXPECT_THAT(phase.failures, testing::IsEmpty());
}

// Figures for docs/reliability.md; a row of its table.
TEST_P(HostileClientsTest, DISABLED_Measure) {
  Measured measured;
  for (int turn = 0; turn < kMeasuredTurns; ++turn) {
    if (turn > 0) MakeAnew();
    Call(kQuiet);  // Until first times are over.
    const Phase quiet = Call(MeasuredTime());
    Begin();
    const Phase phase = Call(MeasuredTime());
    measured.Add(quiet, phase, client_->connections(), served_->costs());
  }
  PrintRow(kind().name, NameOf(misbehaviour()), measured);
}

INSTANTIATE_TEST_SUITE_P(
    AllSockets, HostileClientsTest,
    testing::Combine(testing::Range<std::size_t>(0, std::size(kServed)),
                     testing::ValuesIn(kClientMisbehaviours)),
    [](const auto& test) {
      return kServed[std::get<0>(test.param)].name +
             std::string(NameOf(std::get<1>(test.param)));
    });

}  // namespace
}  // namespace devmgr::hostile
