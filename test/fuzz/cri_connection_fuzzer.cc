// SPDX-License-Identifier: Apache-2.0
//
// A caller that sends any HTTP/2 frames, and hangs up. The proxy answers it or
// hangs up as well; nothing of it stays.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "common/unique_fd.h"
#include "cri/held_calls.h"
#include "cri/link.h"
#include "fuzz/fuzz.h"
#include "http2/loop.h"

namespace devmgr::fuzz {
namespace {

/// What fits a socket without a reader.
constexpr std::size_t kMost = 64 * 1024;
/// The beginning of every connection, so that the bytes get somewhere.
constexpr char kPreface[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

class Forwarding final : public CriInterceptor {
 public:
  void OnCall(CriCall call, Decide decide) override {
    ++asked;
    decide(call.message.size() % 2 == 0 ? CriDecision::Forward()
                                        : CriDecision::Replace("other"));
  }
  void OnEnd(std::uint64_t, const CriOutcome&) override { ++ended; }

  int asked = 0;
  int ended = 0;
};

void Connect(std::string_view bytes) {
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                     ends) == 0,
          "there are sockets");
  UniqueFd caller(ends[0]);
  Forwarding interceptor;
  CriProxyOptions options;
  options.backend = "/nonexistent/runtime";
  options.intercept = {"/held"};
  options.interceptor = &interceptor;
  options.max_held_bytes = 1000;
  cri::Counters counters;
  const std::unique_ptr<http2::Loop> loop = *http2::Loop::Make();
  cri::HeldCalls held_calls(options, *loop, counters);
  std::unique_ptr<cri::Link> link;
  link = std::make_unique<cri::Link>(
      UniqueFd(ends[1]), held_calls, [&](cri::Link* over) {
        Require(over == link.get(), "a link ends as itself");
        loop->Bury(std::move(link));
        loop->Stop();
      });
  Require(link->Start().ok(), "a link starts");
  const std::string all = std::string(kPreface, sizeof(kPreface) - 1) +
                          std::string(bytes.substr(0, kMost));
  Require(send(caller.get(), all.data(), all.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(all.size()),
          "a socket takes the bytes");
  shutdown(caller.get(), SHUT_WR);
  loop->Run();
  loop->mailbox()->Close();
  Require(counters.calls == 0 && counters.held == 0, "no call stays");
  Require(interceptor.asked == interceptor.ended, "every call ends once");
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  devmgr::fuzz::Connect({reinterpret_cast<const char*>(data), size});
  return 0;
}
