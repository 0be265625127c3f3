// SPDX-License-Identifier: Apache-2.0
//
// Each kind of socket that we dial, against each way in which a peer may
// misbehave: what that costs us, and whether the neighbour is served. A new
// kind of socket is one more line in kSockets, and gets all rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "hostile/dialled.h"
#include "hostile/hostile_peer.h"
#include "rpc/connection.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::hostile {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How long each peer may misbehave.
constexpr milliseconds kTime{1'000};
/// In that time: a back-off from 50 ms makes five dials, calls make one more,
/// and some sockets are registered twice.
constexpr int kMaxDials = 16;
constexpr int kMaxReports = 24;

struct Kind {
  std::string name;
  std::unique_ptr<Dialled> (*make)(rpc::Runtime& runtime,
                                   const std::filesystem::path& folder);
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {"Driver", &DialledDrivers},
      {"Plugin", &DialledPlugins},
  };
  return kinds;
}

class HostilePeersTest
    : public testing::TestWithParam<std::tuple<std::size_t, Misbehaviour>> {
 protected:
  void SetUp() override {
    auto runtime = rpc::Runtime::Start();
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
    dialled_ = Kinds()[std::get<0>(GetParam())].make(*runtime_, folder_.path());
  }

  static Misbehaviour misbehaviour() { return std::get<1>(GetParam()); }

  void Begin() {
    const std::filesystem::path socket = folder_.path() / "bad.sock";
    if (misbehaviour() == Misbehaviour::kAnswersLate) {
      server_ = dialled_->Serve(socket, kLate);
    } else if (misbehaviour() == Misbehaviour::kAnswersForAnother) {
      rpc::ServerOptions options;
      options.socket = socket;
      auto server = rpc::Server::Start(*runtime_, std::move(options));
      ASSERT_THAT(server, IsOk());
      server_ = *std::move(server);
    } else {
      peer_ = std::make_unique<HostilePeer>(misbehaviour(), socket);
    }
    dialled_->Register(socket);
  }

  absl::Status CallNeighbour() {
    dialled_->CallNeighbour(
        [this](const absl::Status& status) { answers_.Put(status); });
    return answers_.Take().value_or(absl::UnknownError("no answer"));
  }

  const TempFolder folder_;
  Mailbox<absl::Status> answers_;
  std::unique_ptr<rpc::Runtime> runtime_;
  std::unique_ptr<Dialled> dialled_;
  std::unique_ptr<HostilePeer> peer_;
  std::unique_ptr<rpc::Server> server_;  ///< Of those that speak gRPC.
};

TEST_P(HostilePeersTest, CostsLittleAndHurtsNobodyElse) {
  ASSERT_THAT(CallNeighbour(), IsOk());
  Begin();
  int served = 0;
  std::vector<absl::Status> failures;
  for (const auto end = steady_clock::now() + kTime;
       steady_clock::now() < end;) {
    const absl::Status status = CallNeighbour();
    status.ok() ? ++served : (failures.push_back(status), 0);
  }
  const Costs& costs = dialled_->costs();
  EXPECT_GT(costs.dials, 0);
  EXPECT_LE(costs.dials, kMaxDials);
  EXPECT_LE(costs.reports, kMaxReports);
  EXPECT_GT(costs.calls, 10) << "nobody wanted anything of it";
  // An instance that answers, if only with errors, and is the newest, is who
  // the driver says is to be called.
  if (misbehaviour() == Misbehaviour::kAnswersForAnother) return;
  EXPECT_GT(served, 10);
  EXPECT_THAT(failures, testing::IsEmpty());
}

std::string NameOfCase(
    const testing::TestParamInfo<HostilePeersTest::ParamType>& info) {
  return Kinds()[std::get<0>(info.param)].name +
         std::string(NameOf(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(
    AllSockets, HostilePeersTest,
    testing::Combine(testing::Range<std::size_t>(0, Kinds().size()),
                     testing::ValuesIn(kMisbehaviours)),
    NameOfCase);

}  // namespace
}  // namespace devmgr::hostile
