// SPDX-License-Identifier: Apache-2.0
//
// Calls that are held until somebody has decided about them.
#include <atomic>

#include "cri/fixture.h"

namespace devmgr::cri {
namespace {

using namespace std::chrono_literals;

using InterceptionTest = ProxyTest;

// BO-098: what nobody changes stays as it is, to the byte.
TEST_F(InterceptionTest, ForwardsTheOriginalBytesOfAHeldCall) {
  options_.intercept = {kCreate};
  StartBoth();
  const std::string body = Message(std::string("\x1a\x00\xff\xfe", 4));
  const RawMessage answer =
      Call(*Client(), kCreate, {{"x-id", "1"}, {"x-b-bin", "AAEC"}}, body);
  EXPECT_EQ(answer.body, body);
  ASSERT_EQ(interceptor_.calls().size(), 1U);
  const CriCall call = interceptor_.calls().front();
  EXPECT_EQ(call.method, kCreate);
  EXPECT_EQ(call.message, body.substr(5));
  EXPECT_FALSE(call.deadline);
  const std::pair<std::string, std::string> expected = {"x-b-bin", "AAEC"};
  EXPECT_EQ(call.metadata.back(), expected);
  const auto ends = interceptor_.ends();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends.front().first, call.id);
  EXPECT_TRUE(ends.front().second.status.ok());
  EXPECT_TRUE(ends.front().second.forwarded);
  EXPECT_EQ(ends.front().second.message, body.substr(5));
}

TEST_F(InterceptionTest, ForwardsAnotherRequestWhereOneIsGiven) {
  options_.intercept = {kCreate};
  const std::string other(3 << 20, 'o');
  interceptor_.on_call = [&](const CriCall&,
                             const CriInterceptor::Decide& decide) {
    decide(CriDecision::Replace(other));
  };
  StartBoth();
  const RawMessage answer =
      Call(*Client(), kCreate, {{"content-length", "6"}}, Message("x"));
  EXPECT_EQ(answer.body, Message(other));
  backend_->ForEach([&](RawConnection& connection) {
    EXPECT_EQ(
        HeaderOf(connection.Received(1).headers.front(), "content-length"), "");
  });
}

TEST_F(InterceptionTest, FailsAHeldCallAsDecided) {
  options_.intercept = {kCreate};
  interceptor_.on_call = [](const CriCall&,
                            const CriInterceptor::Decide& decide) {
    // From another thread, and twice.
    std::thread([decide] {
      decide(CriDecision::Fail(
          absl::FailedPreconditionError("100% of 'gpu' \u20ac")));
      decide(CriDecision::Forward());
    }).detach();
  };
  StartBoth();
  const RawMessage answer = Call(*Client(), kCreate);
  EXPECT_EQ(StatusOf(answer), "9");
  EXPECT_EQ(TextOf(answer), "100%25 of 'gpu' %E2%82%AC");
  EXPECT_EQ(answer.headers.size(), 1U);
  EXPECT_TRUE(NothingLeft());
  EXPECT_EQ(interceptor_.ends().size(), 1U);
  EXPECT_FALSE(interceptor_.ends().front().second.forwarded);
}

TEST_F(InterceptionTest, AnswersInternalWhenNobodyDecides) {
  options_.intercept = {kCreate};
  interceptor_.on_call = [](const CriCall&, const CriInterceptor::Decide&) {};
  StartBoth();
  EXPECT_EQ(StatusOf(Call(*Client(), kCreate)), "13");
}

// BO-099: a call that hangs delays no other one.
TEST_F(InterceptionTest, HeldCallsDelayNobody) {
  options_.intercept = {kCreate};
  std::atomic<bool> first = true;
  CriInterceptor::Decide kept;
  interceptor_.on_call = [&](const CriCall&,
                             const CriInterceptor::Decide& decide) {
    if (first.exchange(false)) {
      kept = decide;
    } else {
      decide(CriDecision::Forward());
    }
  };
  StartBoth();
  const auto client = Client();
  RawSend hanging;
  hanging.headers = CallHeaders(kCreate);
  hanging.body = Message("pod A");
  const std::int32_t held = client->Request(hanging);
  ASSERT_TRUE(Eventually([&] { return proxy_->Stats().intercepted == 1; }));
  std::vector<std::int32_t> streams;
  for (int i = 0; i < 1000; ++i) {
    RawSend send;
    send.headers =
        CallHeaders(i % 3 == 0   ? kList
                    : i % 3 == 1 ? "/runtime.v1.RuntimeService/Status"
                                 : kCreate);
    send.body = Message("pod B");
    streams.push_back(client->Request(send));
  }
  for (const std::int32_t stream : streams) {
    ASSERT_TRUE(client->WaitClosed(stream));
    EXPECT_EQ(StatusOf(client->Received(stream)), "0");
  }
  EXPECT_FALSE(client->Received(held).closed);
  EXPECT_EQ(proxy_->Stats().held, 1U);
  kept(CriDecision::Forward());
  kept = nullptr;
  ASSERT_TRUE(client->WaitClosed(held));
  EXPECT_EQ(StatusOf(client->Received(held)), "0");
}

TEST_F(InterceptionTest, TellsWhenTheCallerOfAHeldCallGivesUp) {
  options_.intercept = {kCreate};
  std::vector<CriInterceptor::Decide> kept;
  interceptor_.on_call = [&](const CriCall&,
                             const CriInterceptor::Decide& decide) {
    kept.push_back(decide);
  };
  StartBoth();
  auto client = Client();
  RawSend send;
  send.headers = CallHeaders(kCreate);
  send.body = Message("x");
  const std::int32_t reset = client->Request(send);
  client->Request(send);
  ASSERT_TRUE(Eventually([&] { return interceptor_.calls().size() == 2; }));
  client->Reset(reset, NGHTTP2_CANCEL);
  ASSERT_TRUE(Eventually([&] { return interceptor_.ends().size() == 1; }));
  client->Cut();
  ASSERT_TRUE(Eventually([&] { return interceptor_.ends().size() == 2; }));
  for (const auto& [id, outcome] : interceptor_.ends()) {
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kCancelled);
    EXPECT_FALSE(outcome.forwarded);
  }
  // Too late, and harmless; so it is after the proxy.
  kept[0](CriDecision::Forward());
  EXPECT_TRUE(NothingLeft());
  proxy_.reset();
  kept[1](CriDecision::Forward());
  EXPECT_EQ(backend_->open_streams(), 0U);
}

TEST_F(InterceptionTest, AnswersBeforeTheCallerGivesUp) {
  options_.intercept = {kCreate};
  std::vector<CriInterceptor::Decide> kept;
  interceptor_.on_call = [&](const CriCall&,
                             const CriInterceptor::Decide& decide) {
    kept.push_back(decide);
  };
  StartBoth();
  const RawMessage answer =
      Call(*Client(), kCreate, {{"grpc-timeout", "100m"}});
  EXPECT_EQ(StatusOf(answer), "4");
  EXPECT_NE(TextOf(answer).find(kCreate), std::string::npos);
  EXPECT_EQ(interceptor_.ends().front().second.status.code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(backend_->open_streams(), 0U);
}

TEST_F(InterceptionTest, TellsTheRuntimeWhatTimeIsLeft) {
  options_.intercept = {kCreate};
  interceptor_.on_call = [&](const CriCall& call,
                             const CriInterceptor::Decide& decide) {
    EXPECT_TRUE(call.deadline);
    std::thread([decide] {
      std::this_thread::sleep_for(20ms);
      decide(CriDecision::Forward());
    }).detach();
  };
  StartBoth();
  EXPECT_EQ(StatusOf(Call(*Client(), kCreate, {{"grpc-timeout", "60S"}})), "0");
  std::string seen;
  backend_->ForEach([&](RawConnection& connection) {
    seen = HeaderOf(connection.Received(1).headers.front(), "grpc-timeout");
  });
  EXPECT_EQ(seen.back(), 'u') << seen;
  EXPECT_LT(std::stol(seen), 60'000'000 - 19'000) << seen;
}

TEST_F(InterceptionTest, PassesRequestsItCannotRead) {
  options_.intercept = {kCreate};
  options_.max_held_bytes = 1000;
  StartBoth();
  const auto client = Client();
  const std::vector<std::string> bodies = {Message(std::string(1001, 'l')),
                                           Message(std::string(5 << 20, 'l')),
                                           "",
                                           "abc",
                                           Message("one") + Message("two"),
                                           Message("zipped", true)};
  for (const std::string& body : bodies) {
    const RawMessage answer = Call(*client, kCreate, {}, body);
    EXPECT_EQ(StatusOf(answer), "0");
    EXPECT_EQ(answer.body, body);
  }
  EXPECT_EQ(interceptor_.unread().size(), bodies.size());
  EXPECT_EQ(proxy_->Stats().passed_unread, bodies.size());
  EXPECT_TRUE(interceptor_.calls().empty());
  EXPECT_TRUE(NothingLeft());
}

// All calls together may keep so much; what is over gives it back.
TEST_F(InterceptionTest, HoldsNoMoreThanItMay) {
  options_.intercept = {kCreate};
  options_.max_total_held_bytes = 20'000;
  std::vector<CriInterceptor::Decide> kept;
  std::mutex mutex;
  interceptor_.on_call = [&](const CriCall&,
                             const CriInterceptor::Decide& decide) {
    const std::lock_guard lock(mutex);
    kept.push_back(decide);
  };
  StartBoth();
  const auto client = Client();
  const auto another = Client();
  RawSend send;
  send.headers = CallHeaders(kCreate);
  send.body = Message(std::string(12'000, 'h'));
  const std::int32_t held = client->Request(send);
  ASSERT_TRUE(Eventually([&] { return interceptor_.calls().size() == 1; }));
  for (int i = 0; i < 2; ++i) {
    const RawMessage answer = Call(*another, kCreate, {}, send.body);
    EXPECT_EQ(StatusOf(answer), "0");
    EXPECT_EQ(answer.body, send.body);
  }
  const RawHeaders headers(3, {"x-more", std::string(3000, 'h')});
  EXPECT_EQ(StatusOf(Call(*another, kCreate, headers)), "0");
  const std::vector<std::string> unread = interceptor_.unread();
  ASSERT_EQ(unread.size(), 3U);
  for (const std::string& why : unread) {
    EXPECT_NE(why.find("together have more than 20000"), std::string::npos)
        << why;
  }
  EXPECT_FALSE(client->Received(held).closed);
  {
    const std::lock_guard lock(mutex);
    kept.front()(CriDecision::Forward());
  }
  ASSERT_TRUE(client->WaitClosed(held));
  // Its answer, of as many bytes again, was not observed.
  ASSERT_TRUE(Eventually([&] { return interceptor_.ends().size() == 1; }));
  EXPECT_TRUE(interceptor_.ends().front().second.status.ok());
  EXPECT_EQ(interceptor_.ends().front().second.message, "");
  EXPECT_TRUE(NothingLeft());
  another->Request(send);
  EXPECT_TRUE(Eventually([&] { return interceptor_.calls().size() == 2; }));
}

TEST_F(InterceptionTest, RefusesWhatItMayNotHoldWhereAskedTo) {
  options_.intercept = {kCreate};
  options_.max_total_held_bytes = 1000;
  options_.refuse_unreadable = true;
  StartBoth();
  const RawMessage answer =
      Call(*Client(), kCreate, {}, Message(std::string(5000, 'l')));
  EXPECT_EQ(HeaderOf(answer.headers.back(), "grpc-status"), "8");
  EXPECT_TRUE(NothingLeft());
}

TEST_F(InterceptionTest, RefusesRequestsItCannotReadWhereAskedTo) {
  options_.intercept = {kCreate};
  options_.max_held_bytes = 1000;
  options_.refuse_unreadable = true;
  StartBoth();
  const auto client = Client();
  EXPECT_EQ(StatusOf(Call(*client, kCreate, {}, "abc")), "3");
  const RawMessage answer =
      Call(*client, kCreate, {}, Message(std::string(5 << 20, 'l')));
  EXPECT_EQ(HeaderOf(answer.headers.back(), "grpc-status"), "8");
  EXPECT_TRUE(NothingLeft());
}

}  // namespace
}  // namespace devmgr::cri
