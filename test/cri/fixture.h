// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cri.h>
#include <dirent.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/raw_peer.h"
#include "support/temp_folder.h"

namespace devmgr::cri {

using http2::CallHeaders;
using http2::Message;
using http2::RawConnect;
using http2::RawConnection;
using http2::RawHeaders;
using http2::RawMessage;
using http2::RawSend;
using http2::RawServer;

inline constexpr char kCreate[] = "/runtime.v1.RuntimeService/CreateContainer";
inline constexpr char kList[] = "/runtime.v1.RuntimeService/ListContainers";
inline constexpr char kEvents[] =
    "/runtime.v1.RuntimeService/GetContainerEvents";

inline std::string HeaderOf(const RawHeaders& headers,
                            const std::string& name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

/// Waits for what nobody tells: 30 s at most.
inline bool Eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline int OpenDescriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

/// What the runtime of these tests answers, by the request's header `x-do`:
///   echo (or none)  the same body, when the request has ended
///   error           only trailers, code and message of `x-code`, `x-text`
///   reset           RST_STREAM with `x-code`, when the request has ended
///   half            headers and one message, then RST_STREAM with `x-code`
///   early           an answer at once, whatever the request still says
///   stream          `x-count` messages of `x-size` bytes
///   never           nothing
/// Headers `x-echo...` come back in headers and trailers.
inline void Play(RawConnection& connection, std::int32_t stream,
                 const RawMessage& request) {
  const RawHeaders& headers = request.headers.front();
  const std::string what = HeaderOf(headers, "x-do");
  if (what == "never") return;
  if (what == "early" ? request.events > 1 : !request.ended) return;
  RawSend send;
  send.headers = {{":status", "200"}, {"content-type", "application/grpc"}};
  send.trailers = {{"grpc-status", "0"}};
  for (const auto& [name, value] : headers) {
    if (name.rfind("x-echo", 0) != 0) continue;
    send.headers.emplace_back(name, value);
    send.trailers.emplace_back(name + "-too", value);
  }
  const std::string code = HeaderOf(headers, "x-code");
  if (what == "error") {
    send.headers.emplace_back("grpc-status", code);
    send.headers.emplace_back("grpc-message", HeaderOf(headers, "x-text"));
    send.headers.emplace_back("grpc-status-details-bin", "CAUSAQ");
    send.has_body = false;
  } else if (what == "reset") {
    return connection.Reset(stream,
                            static_cast<std::uint32_t>(std::stoi(code)));
  } else if (what == "half") {
    send.body = Message("half");
    send.reset_after = static_cast<std::uint32_t>(std::stoi(code));
  } else if (what == "stream") {
    const int count = std::stoi(HeaderOf(headers, "x-count"));
    const std::string message =
        Message(std::string(std::stoul(HeaderOf(headers, "x-size")), 's'));
    for (int i = 0; i < count; ++i) send.body += message;
  } else if (what == "early") {
    send.body = Message("early");
  } else {
    send.body = request.body;
  }
  connection.Answer(stream, std::move(send));
}

/// An interceptor whose answers a test writes.
class TestInterceptor : public CriInterceptor {
 public:
  std::function<void(CriCall, Decide)> on_call = [](const CriCall&,
                                                    const Decide& decide) {
    decide(CriDecision::Forward());
  };

  void OnCall(CriCall call, Decide decide) override {
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(call);
    }
    on_call(std::move(call), std::move(decide));
  }
  void OnEnd(std::uint64_t call, const CriOutcome& outcome) override {
    const std::lock_guard lock(mutex_);
    ends_.emplace_back(call, outcome);
  }
  void OnPassedUnread(const std::string& method,
                      const std::string& why) override {
    const std::lock_guard lock(mutex_);
    unread_.push_back(method + ": " + why);
  }
  void OnBackendLost(const absl::Status& why) override {
    const std::lock_guard lock(mutex_);
    story_.push_back("lost " + std::string(why.message()));
  }
  void OnRightsNotTaken(const absl::Status& why) override {
    const std::lock_guard lock(mutex_);
    story_.push_back("rights not taken: " + std::string(why.message()));
  }
  void OnTurnedAway(const std::string& why) override {
    const std::lock_guard lock(mutex_);
    story_.push_back("turned away: " + why);
  }
  void OnBackendConnected() override {
    const std::lock_guard lock(mutex_);
    story_.emplace_back("connected");
  }

  std::vector<CriCall> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  std::vector<std::pair<std::uint64_t, CriOutcome>> ends() {
    const std::lock_guard lock(mutex_);
    return ends_;
  }
  std::vector<std::string> unread() {
    const std::lock_guard lock(mutex_);
    return unread_;
  }
  std::vector<std::string> story() {
    const std::lock_guard lock(mutex_);
    return story_;
  }

 private:
  std::mutex mutex_;
  std::vector<CriCall> calls_;
  std::vector<std::pair<std::uint64_t, CriOutcome>> ends_;
  std::vector<std::string> unread_;
  std::vector<std::string> story_;
};

/// A runtime, a proxy before it, and callers.
class ProxyTest : public testing::Test {
 protected:
  static RawConnection::Options Runtime() {
    RawConnection::Options options;
    options.on_event = Play;
    return options;
  }

  void StartBackend(RawConnection::Options options = Runtime()) {
    backend_ = std::make_unique<RawServer>(backend_path(), std::move(options));
  }
  void StartProxy() {
    options_.listen = listen_path();
    options_.backend = backend_path();
    if (!options_.intercept.empty()) options_.interceptor = &interceptor_;
    absl::StatusOr<std::unique_ptr<CriProxy>> proxy = CriProxy::Start(options_);
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    proxy_ = *std::move(proxy);
  }
  void StartBoth() {
    StartBackend();
    StartProxy();
  }
  std::unique_ptr<RawConnection> Client(RawConnection::Options options = {}) {
    return RawConnect(listen_path(), std::move(options));
  }
  /// One call from its beginning to its end.
  static RawMessage Call(RawConnection& client, const std::string& method,
                         const RawHeaders& headers = {},
                         const std::string& body = Message("x")) {
    RawSend send;
    send.headers = CallHeaders(method, headers);
    send.body = body;
    const std::int32_t stream = client.Request(std::move(send));
    EXPECT_TRUE(client.WaitClosed(stream));
    return client.Take(stream);
  }
  /// The status that ended a call: code, and message as on the wire.
  static std::string StatusOf(const RawMessage& message) {
    if (message.lost) return "lost";
    if (message.reset != 0) return "reset " + std::to_string(message.reset);
    if (message.headers.empty()) return "nothing";
    return HeaderOf(message.headers.back(), "grpc-status");
  }
  static std::string TextOf(const RawMessage& message) {
    return HeaderOf(message.headers.back(), "grpc-message");
  }
  bool NothingLeft() {
    return Eventually([&] {
      const CriProxyStats stats = proxy_->Stats();
      return stats.calls == 0 && stats.held == 0 &&
             backend_->open_streams() == 0;
    });
  }

  std::filesystem::path listen_path() const { return folder_.path() / "shim"; }
  std::filesystem::path backend_path() const { return folder_.path() / "cri"; }

  const TempFolder folder_;
  TestInterceptor interceptor_;
  CriProxyOptions options_;
  std::unique_ptr<RawServer> backend_;
  std::unique_ptr<CriProxy> proxy_;
};

}  // namespace devmgr::cri
