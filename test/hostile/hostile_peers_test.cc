// SPDX-License-Identifier: Apache-2.0
//
// Each kind of socket that we dial, against each way in which a peer may
// misbehave: what that costs us, and whether the neighbour is served. A new
// kind of socket is one more line in kKinds, and gets all rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include "hostile/dialled.h"
#include "hostile/hostile_peer.h"
#include "hostile/measure.h"
#include "hostile/neighbour.h"
#include "rpc/connection.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::hostile {
namespace {

using std::chrono::milliseconds;

struct Kind {
  const char* name;
  std::unique_ptr<Dialled> (*make)(rpc::Runtime& runtime,
                                   const std::filesystem::path& folder);
};
constexpr Kind kKinds[] = {
    {"Driver", &DialledDrivers},   {"Health", &DialledHealth},
    {"Plugin", &DialledPlugins},   {"Registration", &DialledRegistrations},
    {"Runtime", &DialledRuntimes}, {"Inspection", &DialledInspections},
};

class HostilePeersTest
    : public testing::TestWithParam<std::tuple<std::size_t, Misbehaviour>> {
 protected:
  void SetUp() override {
    auto runtime = rpc::Runtime::Start();
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
    MakeAnew();
  }

  void MakeAnew() {
    beat_.reset();
    server_.reset();
    peer_.reset();
    dialled_.reset();
    folder_.emplace();
    dialled_ = kind().make(*runtime_, folder_->path());
    // Until it is known.
    for (const auto end = std::chrono::steady_clock::now() + kPatience;
         !Call(milliseconds(1)).failures.empty();) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
    }
  }

  static const Kind& kind() { return kKinds[std::get<0>(GetParam())]; }
  static Misbehaviour misbehaviour() { return std::get<1>(GetParam()); }

  void Begin() {
    const std::filesystem::path socket = dialled_->SocketIn(folder_->path());
    // The server's thread has the priority of the one that starts it.
    std::thread([&] {
      GiveWayToRealTime();
      server_ = dialled_->Serve(socket, misbehaviour());
    }).join();
    if (server_ == nullptr) {
      peer_ = std::make_unique<HostilePeer>(misbehaviour(), socket);
    }
    dialled_->Register(socket);
    if (!ComesAgain(misbehaviour())) return;
    beat_ = std::make_unique<Beat>([this, socket](int beat) {
      ++registrations_;
      const bool same = misbehaviour() == Misbehaviour::kRegistersInALoop;
      dialled_->RegisterAgain(socket, *server_, same ? 0 : beat);
    });
  }

  /// For so long the neighbour is called.
  Phase Call(milliseconds time) {
    const auto others = [this] {
      return peer_ == nullptr ? std::chrono::nanoseconds(0)
                              : peer_->processor_time();
    };
    const auto before = others();
    Phase phase = CallFor(time, [this](std::function<void(absl::Status)> done) {
      dialled_->CallNeighbour(std::move(done));
    });
    phase.processor -= others() - before;
    return phase;
  }

  /// Where we do not count them ourselves the peer does.
  int dials() const {
    return std::max(dialled_->costs().dials.load(),
                    peer_ == nullptr ? 0 : peer_->accepted());
  }

  std::optional<TempFolder> folder_;
  std::unique_ptr<rpc::Runtime> runtime_;
  std::unique_ptr<Dialled> dialled_;
  std::unique_ptr<HostilePeer> peer_;
  std::unique_ptr<rpc::Server> server_;  ///< Of those that speak gRPC.
  std::unique_ptr<Beat> beat_;
  std::atomic<int> registrations_{0};
};

TEST_P(HostilePeersTest, CostsLittleAndHurtsNobodyElse) {
  const Phase quiet = Call(kQuiet);
  ASSERT_THAT(quiet.failures, testing::IsEmpty());
  Begin();
  const Phase phase = Call(kTime);
  const Costs& costs = dialled_->costs();
  const Bounds bounds = dialled_->bounds(misbehaviour());
  EXPECT_LE(dials(), bounds.dials + registrations_);
  EXPECT_LE(costs.reports, bounds.reports + 8 * registrations_);
  EXPECT_GE(costs.calls, bounds.calls_at_least);
  EXPECT_LE(costs.log_lines, bounds.log_lines);
  EXPECT_LE(costs.events, bounds.events);
  ExpectModest(quiet, phase);
  EXPECT_GE(phase.calls.size(), kLeastCalls);
  EXPECT_THAT(phase.failures, testing::IsEmpty());
}

// Figures for docs/reliability.md; a row of its table.
TEST_P(HostilePeersTest, DISABLED_Measure) {
  Measured measured;
  for (int turn = 0; turn < kMeasuredTurns; ++turn) {
    if (turn > 0) MakeAnew();
    Call(kQuiet);  // Until first times are over.
    const Phase quiet = Call(MeasuredTime());
    Begin();
    const Phase phase = Call(MeasuredTime());
    measured.Add(quiet, phase, dials(), dialled_->costs());
  }
  PrintRow(kind().name, NameOf(misbehaviour()), measured);
}

std::string NameOfCase(
    const testing::TestParamInfo<HostilePeersTest::ParamType>& info) {
  return kKinds[std::get<0>(info.param)].name +
         std::string(NameOf(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(
    AllSockets, HostilePeersTest,
    testing::Combine(testing::Range<std::size_t>(0, std::size(kKinds)),
                     testing::ValuesIn(kMisbehaviours)),
    NameOfCase);

}  // namespace
}  // namespace devmgr::hostile
