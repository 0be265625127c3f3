// SPDX-License-Identifier: Apache-2.0
#include "plugin/registry_socket.h"

#include <devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <utility>
#include <vector>

#include "common/status.h"
#include "plugin/socket_fixture.h"
#include "rpc/unix_socket.h"
#include "support/status_matchers.h"

namespace devmgr::plugin {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

class RegistrySocketTest : public SocketTest {
 protected:
  absl::Status Start(fs::path directory) {
    absl::Status status;
    RunOnExecutor([&] {
      RegistrySocketOptions options;
      options.directory = std::move(directory);
      options.log = [this](LogLevel, std::string_view line) {
        log_.Put(std::string(line));
      };
      auto socket =
          RegistrySocket::Start(*executor_, *runtime_, options,
                                [this](const RegisterRequest& request,
                                       RegistrySocket::Answer answer) {
                                  requests_.Put(request);
                                  answer(answer_);
                                });
      status = socket.status();
      if (socket.ok()) socket_ = *std::move(socket);
    });
    return status;
  }
  absl::Status Start() { return Start(folder()); }
  void TearDown() override {
    RunOnExecutor([&] { socket_.reset(); });
    SocketTest::TearDown();
  }

  std::string Problem() {
    std::string problem;
    RunOnExecutor([&] { problem = socket_->problem(); });
    return problem;
  }
  /// Until the problem is, or is not, there.
  bool WaitForProblem(bool wanted) {
    return WaitUntil([&] { return Problem().empty() != wanted; });
  }

  absl::Status answer_;
  Mailbox<RegisterRequest> requests_;
  Mailbox<std::string> log_;
  std::unique_ptr<RegistrySocket> socket_;
};

TEST_F(RegistrySocketTest, SaysThatAClientWasHungUpOn) {
  constexpr int kOneTooMany = 257;
  ASSERT_THAT(Start(), IsOk());
  std::vector<UniqueFd> silent;
  for (int i = 0; i < kOneTooMany; ++i) {
    auto client = rpc::ConnectUnix(folder() / "kubelet.sock");
    ASSERT_THAT(client, IsOk());
    silent.push_back(*std::move(client));
  }
  const auto line = log_.Take();
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(*line,
              HasSubstr("256 clients are connected, which is the limit"));
}

// DP-017
TEST_F(RegistrySocketTest, WantsAnAbsolutePath) {
  EXPECT_EQ(MessageOf(Start("")), "bad socketPath, must be an absolute path: ");
  EXPECT_EQ(MessageOf(Start("device-plugins")),
            "bad socketPath, must be an absolute path: "
            "device-plugins/kubelet.sock");
  EXPECT_FALSE(fs::exists("device-plugins"));
}

TEST_F(RegistrySocketTest, MakesTheDirectoryAndTheSocket) {
  const fs::path directory = folder() / "a" / "device-plugins";
  ASSERT_THAT(Start(directory), IsOk());
  struct stat status {};
  ASSERT_EQ(stat(directory.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0750u);
  ASSERT_EQ(stat((directory / "kubelet.sock").c_str(), &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

// DP-018
TEST_F(RegistrySocketTest, RemovesSocketsThatAreLeftAndNothingElse) {
  LeaveSocket(folder() / "a.sock");
  LeaveSocket(folder() / "b.sock");
  LeaveSocket(folder() / "kubelet.sock");
  std::ofstream(folder() / "plain.sock") << "x";
  std::ofstream(folder() / "kubelet_internal_checkpoint") << "{}";
  fs::create_directory(folder() / "sub");
  LeaveSocket(folder() / "sub" / "c.sock");
  fs::create_symlink(folder() / "sub" / "c.sock", folder() / "link.sock");
  ASSERT_THAT(Start(), IsOk());
  EXPECT_FALSE(fs::exists(folder() / "a.sock"));
  EXPECT_FALSE(fs::exists(folder() / "b.sock"));
  for (const char* kept : {"plain.sock", "kubelet_internal_checkpoint", "sub",
                           "sub/c.sock", "link.sock", "kubelet.sock"}) {
    EXPECT_TRUE(fs::exists(folder() / kept)) << kept;
  }
}

TEST_F(RegistrySocketTest, LeavesTheSocketsOfAnotherManagerAlone) {
  ASSERT_THAT(Start(), IsOk());
  LeaveSocket(folder() / "a.sock");
  auto first = std::move(socket_);
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("listens on")));
  EXPECT_TRUE(fs::exists(folder() / "a.sock"));
  RunOnExecutor([&] { first.reset(); });
}

TEST_F(RegistrySocketTest, HandsRegistrationsOnAndTheAnswerBack) {
  ASSERT_THAT(Start(), IsOk());
  EXPECT_THAT(Register("p.sock", "example.com/dev").status(), IsOk());
  const auto request = requests_.Take();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->version, "v1beta1");
  EXPECT_EQ(request->endpoint, "p.sock");
  EXPECT_EQ(request->resource, "example.com/dev");

  answer_ = InvalidArgumentError("the reason");
  EXPECT_THAT(Register("p.sock", "example.com/dev").status(),
              StatusIs(absl::StatusCode::kUnknown, "the reason"));
  EXPECT_THAT(log_.Take().value_or(""), HasSubstr("the reason"));
  EXPECT_THAT(CallAndWait(kRegisterMethod, "\xff").status(),
              StatusIs(absl::StatusCode::kUnknown, HasSubstr("not a")));
  EXPECT_THAT(CallAndWait("/v1beta1.Registration/Other", "").status(),
              StatusIs(absl::StatusCode::kUnimplemented));
}

// DP-020, W-24
TEST_F(RegistrySocketTest, ComesBackWhenItsListenerFails) {
  ASSERT_THAT(Start(), IsOk());
  EXPECT_EQ(Problem(), "");
  ShutDownAllListeners();
  EXPECT_THAT(log_.Take().value_or(""), HasSubstr("listening again"));
  EXPECT_EQ(Problem(), "");
  EXPECT_THAT(Register("p.sock", "example.com/dev").status(), IsOk());
}

TEST_F(RegistrySocketTest, ComesBackWhenItsFileIsDeleted) {
  ASSERT_THAT(Start(), IsOk());
  LeaveSocket(folder() / "p.sock");
  fs::remove(folder() / "kubelet.sock");
  EXPECT_THAT(log_.Take().value_or(""), HasSubstr("listening again"));
  EXPECT_THAT(Register("p.sock", "example.com/dev").status(), IsOk());
  EXPECT_TRUE(fs::exists(folder() / "p.sock"));  // No start, no clean-up.
}

TEST_F(RegistrySocketTest, ComesBackWhenTheDirectoryIsDeleted) {
  const fs::path directory = folder() / "device-plugins";
  ASSERT_THAT(Start(directory), IsOk());
  // The socket may be back before its directory is gone, which is no error.
  std::error_code error;
  fs::remove_all(directory, error);
  EXPECT_TRUE(WaitUntil([&] {
    return rpc::ConnectUnix(directory / "kubelet.sock").ok() &&
           Problem().empty();
  }));
}

// DP-020
TEST_F(RegistrySocketTest, SaysSoWhileAnotherIsInItsPlace) {
  ASSERT_THAT(Start(), IsOk());
  fs::remove(folder() / "kubelet.sock");
  log_.Take();
  auto other = std::make_unique<LiveSocket>(folder() / "new.sock");
  fs::rename(folder() / "new.sock", folder() / "kubelet.sock");
  EXPECT_TRUE(WaitForProblem(true));
  EXPECT_THAT(Problem(), HasSubstr("listens on"));
  other.reset();  // It is stale now; the next try takes its place.
  EXPECT_TRUE(WaitForProblem(false));
  EXPECT_THAT(Register("p.sock", "example.com/dev").status(), IsOk());
}

// DP-019
TEST_F(RegistrySocketTest, GoesWithoutATraceAndComesAgain) {
  ASSERT_THAT(Start(), IsOk());
  RunOnExecutor([&] { socket_.reset(); });
  EXPECT_FALSE(fs::exists(folder() / "kubelet.sock"));
  ASSERT_THAT(Start(), IsOk());
  EXPECT_TRUE(fs::exists(folder() / "kubelet.sock"));
}

}  // namespace
}  // namespace devmgr::plugin
