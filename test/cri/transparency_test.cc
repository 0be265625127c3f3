// SPDX-License-Identifier: Apache-2.0
//
// Generated calls, each made directly and through the proxy: both ends have to
// see the same, header by header and byte by byte.
#include <algorithm>
#include <cmath>
#include <random>

#include "cri/fixture.h"
#include "cri/patch.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"
#include "http2/grpc_message.h"
#include "support/random_lives.h"
#include "support/sanitizers.h"

namespace devmgr::cri {
namespace {

/// What both ends have seen of one call.
struct Seen {
  RawMessage at_runtime;
  RawMessage at_caller;
};

std::string Describe(const RawMessage& message) {
  std::string text;
  for (const RawHeaders& block : message.headers) {
    for (const auto& [name, value] : block) {
      text += name + ": " + value.substr(0, 200) + " (" +
              std::to_string(value.size()) + ")\n";
    }
    text += "--\n";
  }
  return text + std::to_string(message.body_bytes) + " bytes, reset " +
         std::to_string(message.reset) + (message.ended ? ", ended" : "") +
         (message.lost ? ", lost" : "");
}

bool Same(const RawMessage& a, const RawMessage& b) {
  return a.headers == b.headers && a.body == b.body && a.ended == b.ended &&
         a.reset == b.reset && a.lost == b.lost;
}

/// A call that was held may have less time than it came with.
void AllowForTime(const RawMessage& direct, RawMessage* proxied) {
  if (direct.headers.empty() || proxied->headers.empty()) return;
  const std::string given = HeaderOf(direct.headers.front(), "grpc-timeout");
  for (auto& [name, value] : proxied->headers.front()) {
    if (name != "grpc-timeout") continue;
    const auto left = http2::ParseTimeout(value);
    const auto all = http2::ParseTimeout(given);
    if (left && all && *left <= *all &&
        *left > *all - std::chrono::seconds(60)) {
      value = given;
    }
  }
}

class Generator {
 public:
  explicit Generator(Luck& luck) : luck_(luck) {}

  /// Log-uniform.
  std::size_t Size(double most) {
    const double power =
        std::uniform_real_distribution<>(0, std::log2(most))(luck_);
    return static_cast<std::size_t>(std::exp2(power)) - 1;
  }

  std::string Bytes(std::size_t count) {
    std::string bytes(count, '\0');
    // Every byte at random would cost more than all the rest.
    for (std::size_t i = 0; i < count; i += 61) {
      bytes[i] = static_cast<char>(luck_());
    }
    return bytes;
  }

  /// Of a header: anything that HTTP/2 carries, not only what gRPC sends.
  std::string Value() {
    static constexpr char kOdd[] = "\xc3\xa4\xe2\x82\xac\xff";
    switch (luck_.Below(8)) {
      case 0:
        return "";
      case 1:
        return kOdd;
      case 2:
        return " outer blanks ";
      case 3:
        return std::string(luck_.Below(3000), 'v');
      default:
        return "value-" + std::to_string(luck_.Below(1000));
    }
  }

  /// Of a message: log-uniform up to 4 MiB, where all large ones together stay
  /// below kLargeBytesPerCall of each call so far.
  std::size_t MessageSize() {
    constexpr std::size_t kSmall = 1 << 17;
    constexpr std::size_t kMost = 4 << 20;
    const std::size_t size = Size(std::clamp(allowance_, kSmall, kMost));
    if (size >= kSmall) allowance_ -= size;
    return size;
  }

  RawSend Call(int number) {
    constexpr std::size_t kLargeBytesPerCall = 10'000;
    allowance_ += kLargeBytesPerCall;
    static const std::vector<std::string> kMethods = {
        kList,
        kCreate,
        "/runtime.v1.ImageService/PullImage",
        "/runtime.v1.RuntimeService/FromTheFuture",
        "/a.b/C",
        "/"};
    RawHeaders more = {{"x-id", std::to_string(number)}};
    const std::vector<std::string> kinds = {"echo",  "echo", "echo",  "error",
                                            "reset", "half", "early", "stream"};
    const std::string kind = luck_.Pick(kinds);
    more.emplace_back("x-do", kind);
    more.emplace_back("x-code",
                      std::to_string(kind == "error" ? 1 + luck_.Below(16)
                                                     : 1 + luck_.Below(13)));
    more.emplace_back("x-count", std::to_string(1 + luck_.Below(30)));
    more.emplace_back("x-size", std::to_string(Size(4096)));
    if (luck_.Below(3) == 0) {
      more.emplace_back("grpc-timeout",
                        std::to_string(1 + luck_.Below(999)) + "S");
    }
    for (std::size_t i = luck_.Below(6); i > 0; --i) {
      more.emplace_back(luck_.Below(2) == 0 ? "x-echo" : "x-more", Value());
    }
    if (luck_.Below(100) == 0) {  // 50 kB of headers
      for (int i = 0; i < 25; ++i) {
        more.emplace_back("x-echo-" + std::to_string(i),
                          std::string(2000, 'h'));
      }
    }
    RawSend send;
    send.headers = CallHeaders(luck_.Pick(kMethods), more);
    if (luck_.Below(10) == 0) send.headers[3].second = "/run/with/slashes.sock";
    for (std::size_t messages = luck_.Below(3); messages > 0; --messages) {
      send.body += Message(Bytes(MessageSize()), luck_.Below(10) == 0);
    }
    // No messages at all.
    if (luck_.Below(50) == 0) send.body = Bytes(Size(1000));
    send.piece = 1 + send.body.size() / 50 + Size(16384);
    if (send.body.empty() && luck_.Below(2) == 0) send.has_body = false;
    if (send.has_body && luck_.Below(20) == 0) {
      send.trailers = {{"x-request-trailer", Value()}};
    }
    return send;
  }

 private:
  Luck& luck_;
  std::size_t allowance_ = 0;
};

class TransparencyTest : public ProxyTest {
 protected:
  /// Keeps what the runtime saw, by the caller's number.
  RawConnection::Options Recording() {
    RawConnection::Options options;
    options.on_event = [this](RawConnection& connection, std::int32_t stream,
                              const RawMessage& request) {
      if (request.events == 1) {
        const std::lock_guard lock(mutex_);
        where_[HeaderOf(request.headers.front(), "x-id")] = {&connection,
                                                             stream};
      }
      Play(connection, stream, request);
    };
    return options;
  }

  std::vector<Seen> Make(RawConnection& client,
                         const std::vector<RawSend>& calls) {
    Forget();
    std::vector<std::int32_t> streams;
    for (const RawSend& call : calls) streams.push_back(client.Request(call));
    std::vector<Seen> seen;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      Seen& one = seen.emplace_back();
      EXPECT_TRUE(client.WaitClosed(streams[i]));
      one.at_caller = client.Take(streams[i]);
      const auto place = Where(HeaderOf(calls[i].headers, "x-id"));
      if (place.first == nullptr) {
        ADD_FAILURE() << "the runtime has not heard of the call";
        continue;
      }
      EXPECT_TRUE(place.first->WaitClosed(place.second));
      one.at_runtime = place.first->Take(place.second);
    }
    return seen;
  }

  /// Makes a call, and resets it when all of it is there.
  Seen GiveUp(RawConnection& client, const RawSend& call, std::uint32_t code) {
    const std::string id = HeaderOf(call.headers, "x-id");
    Forget();
    const std::int32_t stream = client.Request(call);
    EXPECT_TRUE(Eventually([&] { return Where(id).first != nullptr; }));
    const auto [connection, at] = Where(id);
    if (connection == nullptr) return {};
    EXPECT_TRUE(connection->WaitFor(at, [&](const RawMessage& message) {
      return message.body_bytes == call.body.size();
    }));
    client.Reset(stream, code);
    EXPECT_TRUE(connection->WaitClosed(at));
    EXPECT_TRUE(client.WaitClosed(stream));
    return {connection->Take(at), client.Take(stream)};
  }

  /// False at the first difference.
  static bool Compare(const std::vector<RawSend>& calls,
                      std::vector<Seen> direct, std::vector<Seen> proxied) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::string what = HeaderOf(calls[i].headers, "x-do");
      if (what == "early") {
        // How much of the request was on its way then is a matter of time.
        for (Seen* seen : {&direct[i], &proxied[i]}) {
          seen->at_runtime.body.clear();
          seen->at_runtime.body_bytes = 0;
          seen->at_runtime.ended = false;
          seen->at_runtime.reset = 0;
          if (seen->at_runtime.headers.size() > 1) {
            seen->at_runtime.headers.resize(1);
          }
        }
      }
      if (HeaderOf(calls[i].headers, ":path") == kCreate) {
        AllowForTime(direct[i].at_runtime, &proxied[i].at_runtime);
      }
      if (Same(direct[i].at_runtime, proxied[i].at_runtime) &&
          Same(direct[i].at_caller, proxied[i].at_caller)) {
        continue;
      }
      ADD_FAILURE() << what << "\n== runtime, direct\n"
                    << Describe(direct[i].at_runtime) << "\n== proxied\n"
                    << Describe(proxied[i].at_runtime)
                    << "\n== caller, direct\n"
                    << Describe(direct[i].at_caller) << "\n== proxied\n"
                    << Describe(proxied[i].at_caller);
      return false;
    }
    return true;
  }

 private:
  using Place = std::pair<RawConnection*, std::int32_t>;

  void Forget() {
    const std::lock_guard lock(mutex_);
    where_.clear();
  }
  /// Which stream of the runtime's a call came on.
  Place Where(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto it = where_.find(id);
    return it == where_.end() ? Place() : it->second;
  }

  std::mutex mutex_;
  std::map<std::string, std::pair<RawConnection*, std::int32_t>> where_;
};

TEST_F(TransparencyTest, BothEndsSeeWhatTheyWouldSeeDirectly) {
  constexpr int kCalls = 10'000;
  constexpr int kAtOnce = 50;
  options_.intercept = {kCreate};
  StartBackend(Recording());
  StartProxy();
  const auto direct = RawConnect(backend_path());
  const auto proxied = Client();
  int number = 0;
  LiveEach({1, 1}, [&](Luck& luck) {
    Generator generator(luck);
    for (int done = 0; done < kCalls; done += kAtOnce) {
      std::vector<RawSend> calls;
      for (int i = 0; i < kAtOnce; ++i)
        calls.push_back(generator.Call(++number));
      ASSERT_TRUE(Compare(calls, Make(*direct, calls), Make(*proxied, calls)))
          << "call " << number << " or before";
    }
  });
  EXPECT_TRUE(NothingLeft());
}

/// A CreateContainerRequest with fields that nobody knows, and one CDI device
/// if `injected`; `filling` is an environment variable.
std::string CreateRequest(const std::string& filling, bool injected) {
  std::string variable;
  AppendBytesField(&variable, 1, "FILLING");
  AppendBytesField(&variable, 2, filling);
  std::string config;
  AppendBytesField(&config, 999, "unknown");
  AppendBytesField(&config, field::container_config::kEnvs, variable);
  std::string device;
  AppendBytesField(&device, 1, "v.com/c=1");
  if (injected) {
    AppendBytesField(&config, field::container_config::kCdiDevices, device);
  }
  std::string request;
  AppendBytesField(&request, 1, "sandbox");
  AppendBytesField(&request, 2, config);
  AppendBytesField(&request, 999, "unknown");
  return request;
}

// Equal but for the injected field: what is patched on its way is what a direct
// call with that field is, whatever becomes of the call.
TEST_F(TransparencyTest, ChangedCallsAreTheSameButForWhatIsInjected) {
  options_.intercept = {kCreate};
  interceptor_.on_call = [](const CriCall& call,
                            const CriInterceptor::Decide& decide) {
    ConfigEdits edits;
    edits.cdi_devices.last = {"v.com/c=1"};
    const auto patched = PatchCreateContainer(call.message, edits);
    decide(patched.ok() ? CriDecision::Replace(*patched)
                        : CriDecision::Fail(patched.status()));
  };
  StartBackend(Recording());
  StartProxy();
  const auto direct = RawConnect(backend_path());
  const auto proxied = Client();
  Luck luck(TestSeed(4));
  Generator generator(luck);
  int number = 0;
  for (const char* kind :
       {"echo", "error", "reset", "half", "early", "stream"}) {
    for (const double most : {1e3, 1e5, 3e6}) {
      const std::string filling = generator.Bytes(generator.Size(most));
      RawSend send;
      send.headers = CallHeaders(kCreate, {{"x-id", std::to_string(++number)},
                                           {"x-do", kind},
                                           {"x-code", "7"},
                                           {"x-count", "3"},
                                           {"x-size", "1000"},
                                           {"x-echo", generator.Value()},
                                           {"grpc-timeout", "500S"}});
      RawSend with_device = send;
      send.body = Message(CreateRequest(filling, false));
      with_device.body = Message(CreateRequest(filling, true));
      ASSERT_TRUE(Compare({with_device}, Make(*direct, {with_device}),
                          Make(*proxied, {send})));
    }
  }
  EXPECT_EQ(interceptor_.calls().size(), static_cast<std::size_t>(number));
  EXPECT_TRUE(NothingLeft());
}

// Ten of 64 MiB each way; under a sanitizer that would be all one waits for.
constexpr int kLargeMessages = kSanitized ? 1 : 10;
TEST_F(TransparencyTest, LargeMessagesAreTheSame) {
  StartBackend(Recording());
  StartProxy();
  const auto direct = RawConnect(backend_path());
  const auto proxied = Client();
  Luck luck(TestSeed(2));
  Generator generator(luck);
  std::string body = generator.Bytes(64 << 20);
  for (int i = 0; i < kLargeMessages; ++i) {
    body[body.size() / 10 * i] ^= 1;
    RawSend send;
    send.headers = CallHeaders(kList, {{"x-id", std::to_string(i)}});
    send.body = Message(body);
    // The direct way is gone once; the proxy has to bring the same bytes.
    if (i == 0) {
      ASSERT_TRUE(
          Compare({send}, Make(*direct, {send}), Make(*proxied, {send})));
      continue;
    }
    const std::vector<Seen> seen = Make(*proxied, {send});
    ASSERT_EQ(seen[0].at_caller.body == send.body, true);
    ASSERT_EQ(seen[0].at_runtime.body == send.body, true);
  }
}

// Calls that are given up once the runtime knows of them.
TEST_F(TransparencyTest, CancelledCallsAreTheSame) {
  StartBackend(Recording());
  StartProxy();
  const auto direct = RawConnect(backend_path());
  const auto proxied = Client();
  int number = 0;
  LiveEach({3, 1}, [&](Luck& luck) {
    Generator generator(luck);
    for (int i = 0; i < 500; ++i) {
      RawSend send = generator.Call(number++);
      for (auto& [name, value] : send.headers) {
        if (name == "x-do") value = "never";
      }
      send.has_body = true;
      send.open_end = true;
      send.trailers.clear();
      const auto code = 1 + luck.Below(13u);
      const Seen one = GiveUp(*direct, send, code);
      const Seen other = GiveUp(*proxied, send, code);
      ASSERT_TRUE(Compare({send}, {one}, {other}));
      EXPECT_EQ(other.at_runtime.reset, code);
    }
  });
  EXPECT_TRUE(NothingLeft());
}

}  // namespace
}  // namespace devmgr::cri
