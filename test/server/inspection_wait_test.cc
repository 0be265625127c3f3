// SPDX-License-Identifier: Apache-2.0
//
// Clients that wait for changes and events, and more of them than there are
// places.
#include <gmock/gmock.h>

#include <future>
#include <string>
#include <vector>

#include "rpc/connection.h"
#include "rpc/message.h"
#include "server/inspection_fixture.h"
#include "server/inspection_service.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using InspectionWaitTest = InspectionServerTest;

TEST_F(InspectionWaitTest, ChangesWakeThoseWhoWait) {
  StartServer();
  const auto inspector = Connect();
  const auto version = inspector->WaitForChange(0, milliseconds(0));
  ASSERT_TRUE(version.ok());
  auto waiting = std::async(std::launch::async, [&] {
    return inspector->WaitForChange(*version, kPatience);
  });
  manager_.ChangePod(InfoOf(PodState::kReady));
  ASSERT_EQ(waiting.wait_for(kPatience), std::future_status::ready);
  const auto changed = waiting.get();
  ASSERT_TRUE(changed.ok()) << changed.status().ToString();
  EXPECT_NE(*changed, *version);
}

TEST_F(InspectionWaitTest, WaitEndsWithoutAChange) {
  StartServer();
  const auto inspector = Connect();
  const auto version = inspector->WaitForChange(0, milliseconds(0));
  ASSERT_TRUE(version.ok());
  EXPECT_EQ(*inspector->WaitForChange(*version, milliseconds(20)), *version);
  // A number of another daemon's counts as a change at once.
  EXPECT_EQ(*inspector->WaitForChange(*version + 9, kPatience), *version);
}

TEST_F(InspectionWaitTest, EventsComeAtOnceOrWhenTheyHappen) {
  StartServer();
  const auto inspector = Connect();
  EXPECT_THAT(*inspector->Events(0, milliseconds(0)), IsEmpty());
  EXPECT_THAT(*inspector->Events(0, milliseconds(20)), IsEmpty());

  EventInfo event;
  event.reason = "Prepared";
  auto waiting = std::async(std::launch::async,
                            [&] { return inspector->Events(0, kPatience); });
  // A change that is no event does not end the wait.
  manager_.ChangePod(InfoOf(PodState::kReady));
  manager_.AddEvent(event);
  ASSERT_EQ(waiting.wait_for(kPatience), std::future_status::ready);
  const auto events = waiting.get();
  ASSERT_TRUE(events.ok()) << events.status().ToString();
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ(events->front().reason, "Prepared");
  EXPECT_EQ(events->front().sequence, 1u);

  EXPECT_THAT(*inspector->Events(0, kPatience), SizeIs(1));
  EXPECT_THAT(*inspector->Events(1, milliseconds(0)), IsEmpty());
}

TEST_F(InspectionWaitTest, StopsWhileSomebodyWaits) {
  StartServer();
  const auto inspector = Connect();
  const auto version = inspector->WaitForChange(0, milliseconds(0));
  ASSERT_TRUE(version.ok());
  auto waiting = std::async(std::launch::async, [&] {
    return inspector->WaitForChange(*version, kPatience);
  });
  const auto begin = std::chrono::steady_clock::now();
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  ASSERT_EQ(waiting.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(waiting.get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(inspector->Node().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(InspectionWaitTest, TooManyWaitersAreTurnedAway) {
  StartServer();
  auto runtime = rpc::Runtime::Start();
  ASSERT_TRUE(runtime.ok());
  // One client alone may not have so many.
  std::vector<std::unique_ptr<rpc::Connection>> connections;
  for (int i = 0; i < 3; ++i) {
    auto connection = rpc::Dial(**runtime, endpoint_, [] {});
    ASSERT_TRUE(connection.ok());
    connections.push_back(*std::move(connection));
  }
  server::pb::EventsRequest request;
  request.set_wait_ms(60'000);
  Mailbox<absl::StatusCode> answers;
  constexpr std::size_t kCalls = server::InspectionService::kMaxCalls + 1;
  for (std::size_t i = 0; i < kCalls; ++i) {
    connections[i % connections.size()]->Call(
        std::string(server::kServicePath) + "Events", rpc::Encode(request),
        {kPatience}, [&](absl::StatusOr<std::string> answer) {
          answers.Put(answer.status().code());
        });
  }
  EXPECT_EQ(answers.Take(), absl::StatusCode::kResourceExhausted);
  manager_.AddEvent(EventInfo());
  for (std::size_t i = 1; i < kCalls; ++i) {
    EXPECT_EQ(answers.Take(), absl::StatusCode::kOk);
  }
  // All places are free again.
  EXPECT_TRUE(Connect()->Node().ok());
}

}  // namespace
}  // namespace devmgr
