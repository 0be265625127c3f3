// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/unique_fd.h"
#include "rpc/connection.h"
#include "rpc/server.h"
#include "support/mailbox.h"
#include "support/temp_folder.h"

namespace devmgr::rpc {

using Result = absl::StatusOr<std::string>;

/// The method whose answer is a stream of messages.
inline constexpr char kStreamMethod[] = "/t.Watch/List";

/// A runtime and a folder, short enough for socket paths.
class RpcTest : public testing::Test {
 protected:
  void SetUp() override {
    auto runtime = Runtime::Start();
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = *std::move(runtime);
  }

  std::filesystem::path Path(const std::string& name = "s.sock") const {
    return folder_.path() / name;
  }

  absl::StatusOr<std::unique_ptr<Server>> TryServe(
      std::map<std::string, UnaryHandler> methods,
      const std::filesystem::path& path) {
    ServerOptions options;
    options.socket = path;
    options.methods = std::move(methods);
    return Server::Start(std::move(options));
  }

  std::unique_ptr<Server> Serve(std::map<std::string, UnaryHandler> methods) {
    auto server = TryServe(std::move(methods), Path());
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    return server.ok() ? *std::move(server) : nullptr;
  }

  /// A server whose `/t.Echo/Say` answers what it was sent.
  std::unique_ptr<Server> ServeEcho() {
    return Serve({{"/t.Echo/Say", [](std::string request, Respond respond) {
                     respond(std::move(request));
                   }}});
  }

  std::unique_ptr<Connection> Connect(std::function<void()> on_hang_up = {}) {
    auto connection = Dial(*runtime_, Path(), std::move(on_hang_up));
    EXPECT_TRUE(connection.ok()) << connection.status().ToString();
    return connection.ok() ? *std::move(connection) : nullptr;
  }

  static Result CallAndWait(Connection& connection, const std::string& method,
                            std::string request,
                            std::chrono::milliseconds timeout = kPatience) {
    const auto answers = std::make_shared<Mailbox<Result>>();
    connection.Call(method, std::move(request), {timeout},
                    [answers](Result result) { answers->Put(result); });
    auto answer = answers->Take(timeout + kPatience);
    if (!answer) return absl::InternalError("the call never ended");
    return *std::move(answer);
  }

  const TempFolder folder_;
  std::unique_ptr<Runtime> runtime_;
};

inline UniqueFd NewSocket(int type = SOCK_STREAM) {
  return UniqueFd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
}

inline sockaddr_un AddressOf(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

inline bool ConnectRaw(const UniqueFd& fd, const std::filesystem::path& path) {
  const sockaddr_un address = AddressOf(path);
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)) == 0;
}

inline bool BindRaw(const UniqueFd& fd, const std::filesystem::path& path) {
  const sockaddr_un address = AddressOf(path);
  return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0;
}

/// A peer that is no gRPC server.
class RawPeer {
 public:
  /// Bound to `path`; listens when told.
  RawPeer(const std::filesystem::path& path, bool listens, int backlog = 8) {
    EXPECT_TRUE(BindRaw(listener_, path)) << path;
    if (listens) {
      EXPECT_EQ(listen(listener_.get(), backlog), 0);
    }
  }
  /// Blocks.
  UniqueFd Accept() {
    return UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  const UniqueFd listener_ = NewSocket();
};

}  // namespace devmgr::rpc
