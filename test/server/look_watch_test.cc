// SPDX-License-Identifier: Apache-2.0
#include "server/look_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rpc/message.h"
#include "support/status_matchers.h"

namespace devmgr::server {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakeCall final : public rpc::ServerStream {
 public:
  explicit FakeCall(uid_t uid) : caller_(rpc::PeerCredentials{1, uid, 0}) {}
  const std::map<std::string, std::string>& metadata() const override {
    return metadata_;
  }
  const rpc::Caller& caller() const override { return caller_; }
  void Write(std::shared_ptr<const std::string> message) override {
    const auto answer = rpc::Decode<pb::RuntimeLookResponse>(*message);
    ASSERT_THAT(answer, IsOk());
    look = answer->look();
  }
  void Finish(const absl::Status& end) override { status = end; }
  void WhenClientGone(std::function<void()> gone) override { go = gone; }
  void WhenTaken(std::function<void()> /*taken*/) override {}

  std::optional<std::uint64_t> look;   ///< In the answer.
  std::optional<absl::Status> status;  ///< Nothing: it has not ended.
  std::function<void()> go;            ///< The client does.

 private:
  const std::map<std::string, std::string> metadata_;
  const rpc::Caller caller_;
};

/// Wants looks, and keeps what it hears.
class FakeSource final : public ReportedRuntimeSource {
 public:
  std::shared_ptr<const RuntimeSnapshot> Snapshot() const override {
    return nullptr;
  }
  void Subscribe(std::function<void()> /*changed*/) override {}
  void Unsubscribe() override {}
  std::string Describe() const override { return ""; }
  void Take(const RuntimeReport& /*report*/) override {}
  bool Wants(const std::string& shim) const override { return shim == "a"; }
  void OnCutOff(const std::string& session) override {
    cut_off.push_back(session);
  }
  std::uint64_t WantedLook() const override { return look; }
  void SubscribeLooks(std::function<void()> wanted) override {
    subscriber = std::move(wanted);
  }

  std::uint64_t look = 7;
  std::function<void()> subscriber;
  std::vector<std::string> cut_off;
};

class LookWatchTest : public ::testing::Test {
 protected:
  void TearDown() override { executor_.Stop(); }

  std::shared_ptr<FakeCall> Call(std::uint64_t look, std::int64_t wait_ms,
                                 const std::string& name = "a",
                                 const std::string& session = "s",
                                 uid_t uid = ::geteuid()) {
    pb::RuntimeLookRequest request;
    request.set_look(look);
    request.set_wait_ms(wait_ms);
    request.set_name(name);
    request.set_session(session);
    auto call = std::make_shared<FakeCall>(uid);
    watch_.Streams().begin()->second(rpc::Encode(request), call);
    executor_.RunPending();
    return call;
  }

  ManualExecutor executor_;
  FakeSource source_;
  const Access access_{{}};
  LookWatch watch_{&source_, executor_, access_};
};

TEST_F(LookWatchTest, TheFirstQuestionIsAnsweredAtOnce) {
  EXPECT_EQ(Call(0, 0)->look, 7u);
  EXPECT_EQ(Call(3, 1'000)->look, 7u) << "it knows an older one";
}

TEST_F(LookWatchTest, AQuestionWaitsForTheNextLook) {
  const auto call = Call(7, 1'000);
  EXPECT_FALSE(call->status.has_value());
  source_.look = 8;
  source_.subscriber();
  executor_.RunPending();
  EXPECT_EQ(call->look, 8u);
  EXPECT_THAT(*call->status, IsOk());
}

TEST_F(LookWatchTest, AQuestionEndsWithoutAnotherLook) {
  const auto call = Call(7, 1'000);
  executor_.Advance(milliseconds(1'000));
  EXPECT_EQ(call->look, 7u);
  EXPECT_THAT(*call->status, IsOk());
  EXPECT_THAT(source_.cut_off, IsEmpty());
}

// A kill closes its socket.
TEST_F(LookWatchTest, AShimWhoseCallEndsIsCutOff) {
  const auto call = Call(7, 60'000);
  call->go();
  executor_.RunPending();
  EXPECT_THAT(source_.cut_off, ElementsAre("s"));
  source_.subscriber();
  executor_.Advance(std::chrono::minutes(5));
  EXPECT_FALSE(call->look.has_value());
  EXPECT_THAT(source_.cut_off, ElementsAre("s"));
}

// It was killed between two questions, or stopped.
TEST_F(LookWatchTest, AShimThatDoesNotAskAgainIsCutOff) {
  Call(0, 0);
  executor_.Advance(LookWatch::kPatience - milliseconds(1));
  EXPECT_THAT(source_.cut_off, IsEmpty());
  const auto call = Call(7, 30'000);
  executor_.Advance(milliseconds(30'000));
  ASSERT_TRUE(call->look.has_value());
  EXPECT_THAT(source_.cut_off, IsEmpty());
  executor_.Advance(LookWatch::kPatience);
  EXPECT_THAT(source_.cut_off, ElementsAre("s"));
}

// One of an older version does not say which it is.
TEST_F(LookWatchTest, OfAShimWithoutASessionNothingIsConcluded) {
  Call(7, 60'000, "a", "")->go();
  Call(0, 0, "a", "");
  executor_.Advance(std::chrono::minutes(5));
  EXPECT_THAT(source_.cut_off, IsEmpty());
}

TEST_F(LookWatchTest, OthersHearThatTheyAreNotGoneBy) {
  const auto call = Call(0, 0, "b");
  EXPECT_THAT(*call->status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr("its name is not among")));
  LookWatch without(nullptr, executor_, access_);
  const auto other = std::make_shared<FakeCall>(::geteuid());
  without.Streams().begin()->second("", other);
  executor_.RunPending();
  EXPECT_THAT(*other->status, StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(LookWatchTest, BadQuestionsAreRefused) {
  EXPECT_THAT(*Call(0, 0, "a", "s", ::geteuid() + 1)->status,
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(*Call(0, 0, "a", std::string(129, 's'))->status,
              StatusIs(absl::StatusCode::kInvalidArgument));
  const auto call = std::make_shared<FakeCall>(::geteuid());
  watch_.Streams().begin()->second("\xFF", call);
  EXPECT_THAT(*call->status, StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(LookWatchTest, AsManyWaitAsThereCanBe) {
  for (std::size_t i = 0; i < LookWatch::kMaxWaiting; ++i) {
    Call(7, 60'000, "a", std::to_string(i));
  }
  EXPECT_THAT(*Call(7, 60'000, "a", "more")->status,
              StatusIs(absl::StatusCode::kResourceExhausted));
  for (std::size_t i = 0; i < 2 * LookWatch::kMaxWaiting; ++i) {
    Call(0, 0, "a", "x" + std::to_string(i));
  }
  executor_.Advance(LookWatch::kPatience);
  EXPECT_EQ(source_.cut_off.size(), LookWatch::kMaxWaiting);
}

}  // namespace
}  // namespace devmgr::server
