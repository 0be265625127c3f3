// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/executor.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "plugin/api_version.h"
#include "rpc/connection.h"
#include "rpc/message.h"
#include "support/mailbox.h"
#include "support/temp_folder.h"

namespace devmgr::plugin {

/// A socket file with a listener behind it that never answers.
class LiveSocket {
 public:
  explicit LiveSocket(const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)),
              0);
    EXPECT_EQ(listen(fd_.get(), 8), 0);
  }

 private:
  const UniqueFd fd_{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

inline void LeaveSocket(const std::filesystem::path& path) {
  const LiveSocket gone(path);
}

/// Of this process, behind the backs of their owners.
inline void ShutDownAllListeners() {
  for (int fd = 3; fd < 1024; ++fd) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 &&
        listens == 1) {
      shutdown(fd, SHUT_RDWR);
    }
  }
}

/// A runtime, an executor with a thread, and a registry directory.
class SocketTest : public testing::Test {
 protected:
  void SetUp() override {
    auto runtime = rpc::Runtime::Start();
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = *std::move(runtime);
    executor_ = ThreadExecutor::Start("test");
  }
  void TearDown() override {
    if (executor_ != nullptr) executor_->Stop();
  }

  void RunOnExecutor(const std::function<void()>& task) {
    Mailbox<bool> done;
    executor_->Post([&] {
      task();
      done.Put(true);
    });
    ASSERT_TRUE(done.Take().value_or(false));
  }

  static bool WaitUntil(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  std::filesystem::path folder() const { return folder_.path(); }

  /// To the registry socket.
  absl::StatusOr<std::string> CallAndWait(const std::string& method,
                                          const std::string& request) {
    const auto connection = rpc::Dial(*runtime_, folder() / "kubelet.sock", {});
    if (!connection.ok()) return connection.status();
    Mailbox<absl::StatusOr<std::string>> answers;
    (*connection)
        ->Call(method, request, {kPatience},
               [&](absl::StatusOr<std::string> answer) {
                 answers.Put(std::move(answer));
               });
    return answers.Take().value_or(InternalError("the call never ended"));
  }

  absl::StatusOr<std::string> Register(const std::string& endpoint,
                                       const std::string& resource,
                                       const std::string& version = "v1beta1") {
    wire::deviceplugin::v1beta1::RegisterRequest request;
    request.set_version(version);
    request.set_endpoint(endpoint);
    request.set_resource_name(resource);
    request.mutable_options()->set_pre_start_required(true);
    return CallAndWait(kRegisterMethod, rpc::Encode(request));
  }

  const TempFolder folder_;
  std::unique_ptr<rpc::Runtime> runtime_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace devmgr::plugin
