// SPDX-License-Identifier: Apache-2.0
//
// Calls to plugins: over which connection, for how long, and what is made of
// those that fail.
#include "common/peer_status.h"
#include "common/status.h"
#include "plugin/registry_fixture.h"
#include "support/status_matchers.h"

namespace devmgr::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(PluginRegistryTest, AllocatesOverTheConnectionThatWasNamed) {
  GoLive("a.sock");
  GoLive("b.sock");
  Allocate(1);
  const auto& call = peer_.calls()[LastCall(kAllocatePath)];
  EXPECT_EQ(call.connection, 0u);
  EXPECT_EQ(call.timeout, seconds(30));
  EXPECT_THAT(call.metadata, IsEmpty());
  v1beta1::AllocateRequest request;
  ASSERT_TRUE(request.ParseFromString(call.request));
  ASSERT_EQ(request.container_requests_size(), 1);
  EXPECT_EQ(request.container_requests(0).devices_ids(0), "a");
  v1beta1::AllocateResponse response;
  (*response.add_container_responses()->mutable_envs())["A"] = "1";
  Answer(kAllocatePath, response.SerializeAsString());
  EXPECT_THAT(allocated_, ElementsAre(IsOk()));
  EXPECT_THAT(edits_.env, ElementsAre(NamedValue{"A", "1"}));
}

TEST_F(PluginRegistryTest, EachCallIsReportedWithItsDurationAndEnd) {
  std::vector<std::string> calls;
  PluginRegistryOptions options;
  options.on_call = [&](const std::string& resource, std::string_view method,
                        const absl::Status& status,
                        std::chrono::nanoseconds took) {
    calls.push_back(resource + " " + std::string(method) + " " +
                    (status.ok() ? "OK" : MessageOf(status)) + " " +
                    std::to_string(took / milliseconds(1)));
  };
  Make(options);
  GoLive();
  // Those that are made for no pod.
  const std::string resource = kResource;
  EXPECT_THAT(std::exchange(calls, {}),
              ElementsAre(resource + " GetDevicePluginOptions OK 0",
                          resource + " ListAndWatch (first list) OK 0"));
  Allocate(1);
  executor_.Advance(milliseconds(40));
  Answer(kAllocatePath, v1beta1::AllocateResponse().SerializeAsString());
  Allocate(1);
  Answer(kAllocatePath, FailedPreconditionError("text T"));
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0], std::string(kResource) + " Allocate OK 40");
  EXPECT_THAT(calls[1], HasSubstr("text T"));
  EndList(absl::OkStatus());
  ASSERT_THAT(calls, SizeIs(3));
  EXPECT_EQ(calls[2],
            resource + " ListAndWatch the plugin ended ListAndWatch 40");
}

// DP-050
TEST_F(PluginRegistryTest, RefusesCallsOverAConnectionThatEnded) {
  GoLive();
  EndList(absl::OkStatus());
  Allocate(1);
  Allocate(0);
  Allocate(1, "example.com/other");
  EXPECT_THAT(allocated_, SizeIs(3));
  for (const auto& status : allocated_) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("has been stopped")));
  }
  EXPECT_EQ(CallsOf(kAllocatePath), 0u);
}

// DP-069, DP-070
TEST_F(PluginRegistryTest, TellsWhyAllocateFailed) {
  GoLive();
  Allocate(1);
  Answer(kAllocatePath, FailedPreconditionError("text T"));
  Allocate(1);
  Answer(kAllocatePath, "");
  Allocate(1);
  v1beta1::AllocateResponse response;
  response.add_container_responses()->add_cdi_devices()->set_name("gpu0");
  Answer(kAllocatePath, response.SerializeAsString());
  EXPECT_THAT(
      allocated_,
      ElementsAre(
          StatusIs(absl::StatusCode::kFailedPrecondition, "text T"),
          StatusIs(absl::StatusCode::kInvalidArgument,
                   "answer of the plugin of 'example.com/dev': no containers "
                   "return in allocation response"),
          StatusIs(absl::StatusCode::kInvalidArgument,
                   testing::AllOf(HasSubstr("'example.com/dev'"),
                                  HasSubstr("gpu0")))));
}

TEST_F(PluginRegistryTest, ALostAnswerIsTold) {
  GoLive();
  Allocate(1);
  peer_.HangUp(0);
  executor_.RunPending();
  ASSERT_THAT(allocated_, SizeIs(1));
  EXPECT_TRUE(OutcomeIsUnknown(allocated_[0]));
}

// DP-078, DP-086
TEST_F(PluginRegistryTest, NamesTheCallThatFailed) {
  GoLive();
  std::vector<absl::Status> ends;
  registry_->GetPreferredAllocation(
      kResource, 1, {{"a", "b"}, {"a"}, 2}, {},
      [&](const auto& ids) { ends.push_back(ids.status()); });
  const auto& call =
      peer_.calls()[LastCall("/v1beta1.DevicePlugin/GetPreferredAllocation")];
  v1beta1::PreferredAllocationRequest request;
  ASSERT_TRUE(request.ParseFromString(call.request));
  EXPECT_EQ(request.container_requests(0).allocation_size(), 2);
  Answer(call.method, InternalError("x"));
  registry_->PreStartContainer(
      kResource, 1, {"a"}, {},
      [&](const absl::Status& status) { ends.push_back(status); });
  Answer("/v1beta1.DevicePlugin/PreStartContainer", InternalError("y"));
  EXPECT_THAT(ends,
              ElementsAre(StatusIs(absl::StatusCode::kInternal,
                                   "device plugin GetPreferredAllocation rpc "
                                   "failed with err: x"),
                          StatusIs(absl::StatusCode::kInternal,
                                   "device plugin PreStartContainer rpc failed "
                                   "with err: y")));
}

TEST_F(PluginRegistryTest, HasDeadlinesByResource) {
  PluginRegistryOptions options;
  options.timeouts[kResource] = {milliseconds(1), milliseconds(2),
                                 milliseconds(3), milliseconds(4)};
  Make(options);
  GoLive();
  EXPECT_EQ(peer_.calls()[0].timeout, milliseconds(1));
  Allocate(1);
  EXPECT_EQ(peer_.calls().back().timeout, milliseconds(3));
  registry_->PreStartContainer(kResource, 1, {}, {}, [](const auto&) {});
  EXPECT_EQ(peer_.calls().back().timeout, milliseconds(4));
  registry_->GetPreferredAllocation(kResource, 1, {}, {}, [](const auto&) {});
  EXPECT_EQ(peer_.calls().back().timeout, milliseconds(2));
  GoLive("q.sock", "example.com/other");
  Allocate(2, "example.com/other");
  EXPECT_EQ(peer_.calls().back().timeout, seconds(30));
}

TEST_F(PluginRegistryTest, SaysForWhomACallIsIfToldTo) {
  PluginRegistryOptions options;
  options.pod_identity_metadata = true;
  Make(options);
  GoLive();
  const PodIdentity pod = {"u-1", "ns", "p", "main"};
  using Pair = std::pair<std::string, std::string>;
  const auto whole = ElementsAre(
      Pair("devmgr-pod-uid", "u-1"), Pair("devmgr-pod-namespace", "ns"),
      Pair("devmgr-pod-name", "p"), Pair("devmgr-container", "main"));
  Allocate(1, kResource, pod);
  EXPECT_THAT(peer_.calls().back().metadata, whole);
  registry_->PreStartContainer(kResource, 1, {}, pod, [](const auto&) {});
  EXPECT_THAT(peer_.calls().back().metadata, whole);
  registry_->GetPreferredAllocation(kResource, 1, {}, pod, [](const auto&) {});
  EXPECT_THAT(peer_.calls().back().metadata, whole);
  EXPECT_THAT(peer_.calls()[0].metadata, IsEmpty());
}

// W-08
TEST_F(PluginRegistryTest, AHungPluginIsLeftAloneAndHurtsNoOther) {
  GoLive("p.sock");
  GoLive("q.sock", "example.com/other");
  for (int i = 0; i < 3; ++i) {
    Allocate(1);
    Answer(kAllocatePath, DeadlineExceededError("late"));
  }
  EXPECT_EQ(listener_.infos_.back().breaker, peer::BreakerState::kOpen);
  Allocate(1);
  EXPECT_THAT(allocated_.back(), StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr("'example.com/dev'")));
  EXPECT_EQ(registry_->CheckAllocate(kResource, 1), allocated_.back());
  EXPECT_THAT(registry_->CheckAllocate("example.com/other", 2), IsOk());
  EXPECT_THAT(registry_->CheckAllocate("example.com/other", 3),
              StatusIs(absl::StatusCode::kUnavailable));
  Allocate(2, "example.com/other");
  Answer(kAllocatePath, std::string("\x0a\0", 2));
  EXPECT_THAT(allocated_.back(), IsOk());
  executor_.Advance(seconds(10));
  EXPECT_EQ(listener_.infos_.back().breaker, peer::BreakerState::kHalfOpen);
}

// It is asked for its options before anything is allocated from it again.
TEST_F(PluginRegistryTest, AProbeFindsOutWhetherAHungPluginIsBack) {
  GoLive();
  for (int i = 0; i < 3; ++i) {
    Allocate(1);
    Answer(kAllocatePath, DeadlineExceededError("late"));
  }
  executor_.Advance(seconds(10));
  EXPECT_EQ(CallsOf(kOptionsPath), 2u);
  EXPECT_THAT(registry_->CheckAllocate(kResource, 1),
              StatusIs(absl::StatusCode::kUnavailable));
  Answer(kOptionsPath, OptionsOf(false, false));
  EXPECT_EQ(listener_.infos_.back().breaker, peer::BreakerState::kClosed);
  EXPECT_THAT(registry_->CheckAllocate(kResource, 1), IsOk());
}

// Codes that gRPC uses itself were taken for lost calls, whoever sent them.
TEST_F(PluginRegistryTest, WhatAPluginAnswersIsItsAnswer) {
  GoLive();
  for (int i = 0; i < 3; ++i) {
    Allocate(1);
    Answer(kAllocatePath, FromPeer(DeadlineExceededError("the bus is slow")));
  }
  EXPECT_EQ(Only().breaker, peer::BreakerState::kClosed);
  EXPECT_FALSE(OutcomeIsUnknown(allocated_.back()));
}

TEST_F(PluginRegistryTest, APluginThatFlapsIsInQuarantine) {
  for (int i = 0; i < 5; ++i) {
    // The process crashes, and registers again at the same socket.
    peer_.set_dial_status(absl::OkStatus());
    GoLive();
    peer_.set_dial_status(UnavailableError("nobody listens"));
    peer_.HangUp(static_cast<std::size_t>(i));
    executor_.RunPending();
    executor_.Advance(milliseconds(100));
  }
  peer_.set_dial_status(absl::OkStatus());
  GoLive();
  EXPECT_THAT(listener_.Take().back(), HasSubstr("list"));
  ASSERT_TRUE(Only().quarantined_until.has_value());
  Allocate(6);
  EXPECT_THAT(allocated_.back(), StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr("quarantine for 60 s")));
  EXPECT_EQ(registry_->CheckAllocate(kResource, 6), allocated_.back());
  // Containers that run may be restarted.
  registry_->PreStartContainer(kResource, 6, {}, {}, [](const auto&) {});
  EXPECT_EQ(CallsOf("/v1beta1.DevicePlugin/PreStartContainer"), 1u);
  listener_.infos_.clear();
  executor_.Advance(seconds(61));
  ASSERT_FALSE(listener_.infos_.empty());
  EXPECT_FALSE(listener_.infos_.back().quarantined_until.has_value());
  Allocate(6);
  EXPECT_EQ(CallsOf(kAllocatePath), 1u);
}

// A plugin may repeat Register while its stream lives: it is not flapping.
TEST_F(PluginRegistryTest, APluginThatRegistersAgainIsTrusted) {
  for (int i = 0; i < 6; ++i) {
    GoLive();
    executor_.Advance(milliseconds(300));
  }
  EXPECT_FALSE(Only().quarantined_until.has_value());
  Allocate(6);
  EXPECT_EQ(CallsOf(kAllocatePath), 1u);
}

// It restarts, and its registration is there before its hang-up is noticed.
TEST_F(PluginRegistryTest, APluginThatRegistersOverAHangUpFlaps) {
  for (std::size_t i = 0; i < 6; ++i) {
    GoLive();
    peer_.HangUpSilently(i);
  }
  EXPECT_TRUE(Only().quarantined_until.has_value());
}

}  // namespace
}  // namespace devmgr::plugin
