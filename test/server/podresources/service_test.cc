// SPDX-License-Identifier: Apache-2.0
//
// Without sockets, by a clock that the test moves.
#include "server/podresources/service.h"

#include <devmgr/wire/podresources/v1/podresources.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "rpc/message.h"
#include "server/podresources/resources.h"
#include "support/fake_device_manager.h"
#include "support/status_matchers.h"

namespace devmgr::podresources {
namespace {

namespace pb = wire::podresources::v1;
using ::testing::HasSubstr;

/// A client's end of a call. It reads nothing until the test lets it.
class FakeCall final : public rpc::ServerStream {
 public:
  explicit FakeCall(pid_t pid) : caller_(rpc::PeerCredentials{pid, 0, 0}) {}

  const std::map<std::string, std::string>& metadata() const override {
    return metadata_;
  }
  const rpc::Caller& caller() const override { return caller_; }
  void Write(std::shared_ptr<const std::string> message) override {
    messages.push_back(*message);
    unread_ = std::move(message);
  }
  void Finish(const absl::Status& end) override { status = end; }
  void WhenClientGone(std::function<void()> /*gone*/) override {}
  void WhenTaken(std::function<void()> /*taken*/) override {}
  void Read() { unread_ = nullptr; }

  std::vector<std::string> messages;
  absl::Status status = absl::UnknownError("the call has not ended");

 private:
  const std::map<std::string, std::string> metadata_;
  const rpc::Caller caller_;
  std::shared_ptr<const std::string> unread_;
};

class ServiceTest : public ::testing::Test {
 protected:
  /// With a new service.
  void Start(bool strict_kubelet, UnreadAnswers::Limits unread = {}) {
    service_ =
        std::make_unique<Service>(manager_, executor_, strict_kubelet, unread);
    methods_ = service_->Methods();
  }
  void SetUp() override { Start(false); }
  void TearDown() override { executor_.Stop(); }

  void SetPods(
      std::initializer_list<std::shared_ptr<const PodResources>> pods) {
    manager_.Set([list = ListOf(pods)](FakeDeviceManager::World& world) {
      world.pod_resources = list;
    });
  }
  std::shared_ptr<FakeCall> Call(const std::string& path,
                                 const std::string& request = "",
                                 pid_t pid = 1) {
    auto call = std::make_shared<FakeCall>(pid);
    methods_.at(path)(request, call);
    executor_.RunPending();
    return call;
  }
  /// A call that waits for its turn.
  std::shared_ptr<FakeCall> Begin(pid_t pid) {
    auto call = std::make_shared<FakeCall>(pid);
    methods_.at(kListPath)("", call);
    return call;
  }
  /// What the last of `calls` calls ended with, and how many were answered.
  std::pair<absl::Status, int> Calls(int calls, pid_t pid) {
    absl::Status last;
    int answered = 0;
    for (int i = 0; i < calls; ++i) {
      const auto call = Call(kListPath, "", pid);
      last = call->status;
      if (last.ok()) ++answered;
    }
    return {last, answered};
  }
  static std::string GetRequest(const std::string& ns,
                                const std::string& name) {
    pb::GetPodResourcesRequest request;
    request.set_pod_namespace(ns);
    request.set_pod_name(name);
    return rpc::Encode(request);
  }

  FakeDeviceManager manager_;
  ManualExecutor executor_;
  std::unique_ptr<Service> service_;
  std::map<std::string, rpc::StreamHandler> methods_;
};

// BO-115
TEST_F(ServiceTest, WithoutPodsTheAnswerIsEmpty) {
  for (const char* path : {kListPath, kAllocatablePath, kOldListPath}) {
    const auto call = Call(path);
    EXPECT_THAT(call->status, IsOk());
    ASSERT_EQ(call->messages.size(), 1U);
    EXPECT_EQ(call->messages[0], "");
  }
}

// BO-124
TEST_F(ServiceTest, GetAnswersAsListDoesOrThatThereIsNone) {
  const auto pod = PodWith("p", {{"0", {0}}});
  SetPods({pod});
  const auto found = Call(kGetPath, GetRequest("default", "p"));
  ASSERT_THAT(found->status, IsOk());
  EXPECT_EQ(found->messages, Call(kListPath)->messages);
  EXPECT_THAT(Call(kGetPath, GetRequest("team", "p"))->status,
              StatusIs(absl::StatusCode::kNotFound,
                       "pod p in namespace team not found"));
  Start(true);
  EXPECT_THAT(Call(kGetPath, GetRequest("team", "p"))->status,
              StatusIs(absl::StatusCode::kUnknown,
                       "pod p in namespace team not found"));
}

// What a client sends comes back in a header, which has to stay one.
TEST_F(ServiceTest, NamesThatNoPodHasAreNotRepeated) {
  EXPECT_THAT(
      Call(kGetPath, GetRequest("a\nb", std::string(1'000'000, 'x')))->status,
      StatusIs(absl::StatusCode::kNotFound,
               "pod <1000000 bytes, which are no name> in namespace <3 bytes, "
               "which are no name> not found"));
  EXPECT_THAT(Call(kGetPath, GetRequest("", "\xff"))->status,
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ServiceTest, WhatIsNoRequestIsRefusedAndCounted) {
  EXPECT_THAT(Call(kGetPath, "\x0a\x05p")->status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("GetPodResourcesRequest")));
  EXPECT_EQ(service_->counters().v1.errors_get, 1U);
  EXPECT_THAT(Call(kListPath, "\xff")->status,
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(service_->counters().v1.errors_list, 1U);
}

TEST_F(ServiceTest, CallsAreCountedByVersionAndMethod) {
  auto pod = PodWith("p");
  pod->missing_claims = 2;
  SetPods({pod});
  Call(kListPath);
  Call(kListPath);
  Call(kAllocatablePath);
  Call(kGetPath, GetRequest("default", "p"));
  Call(kGetPath, GetRequest("default", "q"));
  Call(kOldListPath);
  const PodResourcesCounters counters = service_->counters();
  EXPECT_EQ(counters.v1.requests, 5U);
  EXPECT_EQ(counters.v1.list, 2U);
  EXPECT_EQ(counters.v1.get_allocatable, 1U);
  EXPECT_EQ(counters.v1.get, 2U);
  EXPECT_EQ(counters.v1.errors_get, 1U);
  EXPECT_EQ(counters.v1.errors_list + counters.v1.errors_get_allocatable, 0U);
  EXPECT_EQ(counters.v1alpha1.requests, 1U);
  EXPECT_EQ(counters.v1alpha1.list, 1U);
  EXPECT_EQ(counters.missing_claims, 2U * 4) << "in each answer";
  EXPECT_EQ(counters.refused, 0U);
}

// BO-125
TEST_F(ServiceTest, TheKubeletHasOneLimitForAllClients) {
  Start(true);
  const auto [status, answered] = Calls(200, 1);
  EXPECT_EQ(answered, 10);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               "rejected by rate limit"));
  EXPECT_EQ(Calls(1, 2).second, 0) << "nor another client";
  EXPECT_FALSE(Call(kAllocatablePath)->status.ok()) << "nor another method";
  EXPECT_EQ(service_->counters().v1.requests, 10U);
  EXPECT_EQ(service_->counters().refused, 192U);
  // 100 a second from then on.
  int later = 0;
  for (int i = 0; i < 1'000; ++i) {
    executor_.Advance(std::chrono::milliseconds(1));
    later += Calls(1, 1).second;
  }
  EXPECT_EQ(later, 100);
}

// BO-125, of one client: the others do not notice it.
TEST_F(ServiceTest, AClientThatPollsWildlyTakesNothingFromOthers) {
  const auto [status, answered] = Calls(200, 1);
  EXPECT_EQ(answered, 10);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("rejected by rate limit: uid 0, pid 1")));
  for (int i = 0; i < 1'000; ++i) {
    executor_.Advance(std::chrono::milliseconds(10));
    Calls(20, 1);
    EXPECT_EQ(Calls(1, 2).second, 1) << i;
  }
}

// So many processes that each alone would be fine.
TEST_F(ServiceTest, AllClientsTogetherHaveALimitToo) {
  int answered = 0;
  for (int pid = 1; pid <= 1'000; ++pid) answered += Calls(1, pid).second;
  EXPECT_EQ(answered, 100);
  executor_.Advance(std::chrono::milliseconds(1'000));
  EXPECT_EQ(Calls(1, 7).second, 1);
}

TEST_F(ServiceTest, AClientThatReadsNothingGetsNoMoreAtSomeTime) {
  const auto pod = PodWith("p", {{"0", {}}});
  const std::size_t size = EncodedPod(*pod).size();
  Start(false, {2 * size, 100 * size});
  SetPods({pod});
  const auto first = Call(kListPath);
  const auto second = Call(kListPath);
  EXPECT_THAT(second->status, IsOk());
  EXPECT_THAT(Call(kListPath)->status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("wait already for uid 0, pid 1")));
  EXPECT_EQ(service_->counters().refused, 1U);
  EXPECT_EQ(service_->counters().v1.errors_list, 1U);
  EXPECT_THAT(Call(kListPath, "", 2)->status, IsOk());
  first->Read();
  EXPECT_THAT(Call(kListPath)->status, IsOk());
}

TEST_F(ServiceTest, CallsThatAreNotBegunAreBounded) {
  std::vector<std::shared_ptr<FakeCall>> calls;
  for (int i = 0; i <= Service::kMaxCalls; ++i) {
    calls.push_back(Begin(/*pid=*/1 + i / Service::kMaxCallsOfOne));
  }
  EXPECT_THAT(calls.back()->status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "256 calls are waiting for an answer already"));
  EXPECT_EQ(service_->counters().refused, 1U);
  executor_.RunPending();
  EXPECT_THAT(calls.front()->status, IsOk());
}

// However many connections it has.
TEST_F(ServiceTest, AClientWhoseCallsWaitTakesNoPlaceOfOthers) {
  std::vector<std::shared_ptr<FakeCall>> calls;
  for (int i = 0; i < Service::kMaxCalls; ++i) calls.push_back(Begin(1));
  EXPECT_THAT(calls[Service::kMaxCallsOfOne - 1]->status,
              StatusIs(absl::StatusCode::kUnknown, HasSubstr("not ended")));
  for (int i = Service::kMaxCallsOfOne; i < Service::kMaxCalls; ++i) {
    EXPECT_THAT(calls[i]->status,
                StatusIs(absl::StatusCode::kResourceExhausted,
                         "32 calls of uid 0, pid 1 are waiting for an answer "
                         "already"));
  }
  EXPECT_THAT(Call(kListPath, "", 2)->status, IsOk());
  // Its places are free again when its calls have ended.
  executor_.Advance(std::chrono::milliseconds(1'000));
  for (int i = 0; i < Service::kMaxCallsOfOne; ++i) calls.push_back(Begin(1));
  executor_.RunPending();
  EXPECT_THAT(calls[Service::kMaxCalls]->status, IsOk());
  EXPECT_THAT(calls.back()->status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("rejected by rate limit")));
}

TEST_F(ServiceTest, WhatIsKeptIsLetGoWhenItIsNotAskedForAnyMore) {
  SetPods({PodWith("p")});
  std::weak_ptr<const PodResources> kept;
  manager_.Set([&](FakeDeviceManager::World& world) {
    kept = world.pod_resources->pods[0];
  });
  Call(kListPath);
  Call(kOldListPath);
  SetPods({});
  EXPECT_FALSE(kept.expired());
  executor_.Advance(Service::kKept);
  EXPECT_TRUE(kept.expired());
  EXPECT_EQ(executor_.timers(), 0U);
  SetPods({PodWith("p")});
  EXPECT_NE(Call(kListPath)->messages[0], "");
}

}  // namespace
}  // namespace devmgr::podresources
