// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cri_connection.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "support/fake_cri_runtime.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CriConnectionTest : public ::testing::Test {
 protected:
  CriConnectionTest() {
    auto opened = CriConnection::Open(socket_);
    EXPECT_THAT(opened, IsOk());
    connection_ = *std::move(opened);
  }

  absl::StatusOr<std::string> Call(const std::string& method,
                                   std::chrono::milliseconds timeout = 20s) {
    return connection_->Call("RuntimeService/" + method, "", timeout);
  }

  const TempFolder folder_;
  const std::filesystem::path socket_ = folder_.path() / "cri.sock";
  FakeCriRuntime runtime_;
  std::unique_ptr<CriConnection> connection_;
};

TEST_F(CriConnectionTest, RequestsAndAnswersPassAsBytes) {
  ASSERT_TRUE(runtime_.Start(socket_));
  const auto answer = connection_->Call("RuntimeService/RunPodSandbox",
                                        CriField(1, "config"), 20s);
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(*answer, CriField(1, "made"));
  EXPECT_EQ(runtime_.sandbox_requests.Take(), CriField(1, "config"));
}

TEST_F(CriConnectionTest, ErrorsAreTheRuntimesWithTheMethodInFront) {
  ASSERT_TRUE(runtime_.Start(socket_));
  runtime_.Answer(cri::method::kVersion,
                  absl::ResourceExhaustedError("no room"));
  EXPECT_THAT(Call("Version").status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(StartsWith("RuntimeService/Version: "),
                             HasSubstr("no room"))));
  EXPECT_THAT(Call("Unheard").status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       StartsWith("RuntimeService/Unheard: ")));
}

TEST_F(CriConnectionTest, ARuntimeMayComeAndGo) {
  EXPECT_THAT(Call("Version").status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("RuntimeService/Version"),
                             HasSubstr(socket_.string()))));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(runtime_.Start(socket_));
    // The end of the connection before may not have been noticed yet.
    auto answer = Call("Version");
    for (int tries = 0; absl::IsUnavailable(answer.status()) && tries < 100;
         ++tries) {
      answer = Call("Version");
    }
    EXPECT_THAT(answer, IsOk());
    runtime_.Stop();
    EXPECT_THAT(Call("Version").status(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Version")));
  }
}

TEST_F(CriConnectionTest, AnAnswerIsWaitedForUntilTheTimeoutOnly) {
  ASSERT_TRUE(runtime_.Start(socket_));
  Mailbox<rpc::Respond> asked;
  runtime_.Hang(cri::method::kVersion, &asked);
  EXPECT_THAT(Call("Version", 50ms).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("RuntimeService/Version")));
  EXPECT_THAT(
      Call("Version", 0ms).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("positive")));
  // One that waits holds up no other.
  auto waiting =
      std::async(std::launch::async, [this] { return Call("Version"); });
  auto respond = asked.Take();
  ASSERT_TRUE(respond.has_value());
  ASSERT_TRUE((respond = asked.Take()).has_value());
  EXPECT_THAT(Call("ListContainers"), IsOk());
  (*respond)(std::string("late"));
  const auto answer = waiting.get();
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(*answer, "late");
}

}  // namespace
}  // namespace devmgr
