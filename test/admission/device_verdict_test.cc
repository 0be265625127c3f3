// SPDX-License-Identifier: Apache-2.0
//
// The table of verdicts in lib/admission/README.md, a row at a time.
#include "admission/device_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admission/resource_names.h"
#include "common/peer_status.h"
#include "common/status.h"

namespace devmgr::admission {
namespace {

using device::EndpointState;
using device::Shortage;
using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Verdict::Kind;

DevicePolicy Policy(Authority authority, Profile profile = Profile::kDefault) {
  return {authority, profile, minutes(5)};
}

Shortage Short(Shortage::Kind kind,
               EndpointState state = EndpointState::kLive) {
  Shortage shortage;
  shortage.kind = kind;
  shortage.container = "main";
  shortage.resource = kGpu;
  shortage.state = state;
  shortage.requested = 2;
  shortage.available = 1;
  shortage.listed = 3;
  return shortage;
}

DeviceVerdict Judge(const Shortage& shortage, const DevicePolicy& policy,
                    milliseconds waited = milliseconds(0)) {
  return JudgeShortages({shortage}, policy, waited);
}

const Shortage::Kind kAllKinds[] = {
    Shortage::Kind::kNotServed,      Shortage::Kind::kTooFewExist,
    Shortage::Kind::kTooFewHealthy,  Shortage::Kind::kTooFewFree,
    Shortage::Kind::kChangedRequest, Shortage::Kind::kHeldUnhealthy};

TEST(DeviceVerdictTest, TheNodeWaitsForAllThatMayChange) {  // W-01, W-21
  for (const Shortage::Kind kind : kAllKinds) {
    const DeviceVerdict judged =
        Judge(Short(kind), Policy(Authority::kNode), minutes(60));
    const bool never = kind == Shortage::Kind::kChangedRequest;
    EXPECT_EQ(judged.verdict.kind, never ? Kind::kReject : Kind::kWait);
    EXPECT_EQ(judged.limit, std::nullopt);
    if (never) continue;
    EXPECT_THAT(judged.verdict.message, HasSubstr(kGpu));
    EXPECT_THAT(judged.verdict.waiting_for,
                ElementsAre(WaitingFor{WaitingFor::Kind::kResource, kGpu}));
  }
}

TEST(DeviceVerdictTest, BelowASchedulerALatePluginIsWaitedForAWhile) {
  for (const EndpointState state :
       {EndpointState::kUnknown, EndpointState::kRestored,
        EndpointState::kConnected, EndpointState::kStopped,
        EndpointState::kForgotten}) {
    const Shortage late = Short(Shortage::Kind::kNotServed, state);
    const DevicePolicy policy = Policy(Authority::kScheduler);
    const DeviceVerdict waits =
        Judge(late, policy, minutes(5) - milliseconds(1));
    EXPECT_EQ(waits.verdict.kind, Kind::kWait);
    EXPECT_EQ(waits.limit, milliseconds(minutes(5)));
    const DeviceVerdict over = Judge(late, policy, minutes(5));
    EXPECT_EQ(over.verdict.kind, Kind::kReject);
    EXPECT_EQ(over.verdict.reason, "UnexpectedAdmissionError");
    EXPECT_EQ(over.limit, std::nullopt);
  }
}

TEST(DeviceVerdictTest, BelowASchedulerAPluginWithoutDevicesIsWaitedFor) {
  Shortage none = Short(Shortage::Kind::kTooFewExist);
  none.listed = 0;
  const DevicePolicy policy = Policy(Authority::kScheduler);
  EXPECT_EQ(Judge(none, policy).verdict.kind, Kind::kWait);
  EXPECT_EQ(Judge(none, policy, minutes(5)).verdict.kind, Kind::kReject);
}

TEST(DeviceVerdictTest, BelowASchedulerTooFewDevicesReject) {
  for (const Shortage::Kind kind : kAllKinds) {
    if (kind == Shortage::Kind::kNotServed) continue;
    const DeviceVerdict judged =
        Judge(Short(kind), Policy(Authority::kScheduler));
    EXPECT_EQ(judged.verdict.kind, Kind::kReject);
    // For a pod that cannot be rejected any more.
    EXPECT_THAT(judged.verdict.waiting_for,
                ElementsAre(WaitingFor{WaitingFor::Kind::kResource, kGpu}));
  }
  EXPECT_EQ(
      Judge(Short(Shortage::Kind::kTooFewFree), Policy(Authority::kScheduler))
          .verdict.message,
      "Allocate failed due to requested number of devices unavailable "
      "for example.com/gpu. Requested: 2, Available: 1, which is "
      "unexpected");
}

TEST(DeviceVerdictTest, TheStrictKubeletWaitsForNothing) {
  for (const Authority authority : {Authority::kNode, Authority::kScheduler}) {
    for (const Shortage::Kind kind : kAllKinds) {
      EXPECT_EQ(Judge(Short(kind), Policy(authority, Profile::kStrictKubelet))
                    .verdict.kind,
                Kind::kReject);
    }
  }
  // DP-067
  EXPECT_EQ(Judge(Short(Shortage::Kind::kNotServed, EndpointState::kUnknown),
                  Policy(Authority::kNode, Profile::kStrictKubelet))
                .verdict.message,
            "Allocate failed due to cannot allocate unregistered device "
            "example.com/gpu, which is unexpected");
}

// The next pod may be here before the devices of the last one are free.
TEST(DeviceVerdictTest, AReleaseIsWaitedForAWhileByEveryPolicy) {
  Shortage shortage = Short(Shortage::Kind::kTooFewFree);
  shortage.holders_end = true;
  for (const Profile profile : {Profile::kDefault, Profile::kStrictKubelet}) {
    const DevicePolicy policy = Policy(Authority::kScheduler, profile);
    const DeviceVerdict judged = Judge(shortage, policy);
    EXPECT_EQ(judged.verdict.kind, Kind::kWait);
    EXPECT_EQ(judged.limit, minutes(5));
    EXPECT_EQ(Judge(shortage, policy, minutes(5)).verdict.kind, Kind::kReject);
  }
  shortage.kind = Shortage::Kind::kTooFewExist;
  EXPECT_EQ(Judge(shortage, Policy(Authority::kScheduler)).verdict.kind,
            Kind::kReject);
}

TEST(DeviceVerdictTest, OneReasonToRejectIsEnough) {
  const DeviceVerdict judged = JudgeShortages(
      {Short(Shortage::Kind::kNotServed), Short(Shortage::Kind::kTooFewFree)},
      Policy(Authority::kScheduler), milliseconds(0));
  EXPECT_EQ(judged.verdict.kind, Kind::kReject);
  EXPECT_EQ(judged.limit, std::nullopt);
}

TEST(DeviceVerdictTest, AFailedCallIsTriedAgainByTheNodeOnly) {
  const absl::Status boom = InternalError("boom");
  const auto judge = [&](const absl::Status& status, const DevicePolicy& policy,
                         milliseconds waited) {
    return JudgeFailedCall(kGpu, status, policy, waited);
  };
  const DeviceVerdict waits =
      judge(boom, Policy(Authority::kNode), minutes(60));
  EXPECT_EQ(waits.verdict.kind, Kind::kWait);
  EXPECT_EQ(waits.verdict.message, "boom");
  for (const DevicePolicy& policy :
       {Policy(Authority::kScheduler),
        Policy(Authority::kNode, Profile::kStrictKubelet)}) {
    const DeviceVerdict rejects = judge(boom, policy, milliseconds(0));
    EXPECT_EQ(rejects.verdict.kind, Kind::kReject);
    EXPECT_EQ(rejects.verdict.message,
              "Allocate failed due to boom, which is unexpected");
  }
}

// A plugin's own answer was taken for a call that had not been sent.
TEST(DeviceVerdictTest, APluginsOwnAnswerIsNoLostCall) {
  for (const absl::Status& answer :
       {UnavailableError("no card"), ResourceExhaustedError("no memory")}) {
    EXPECT_EQ(JudgeFailedCall(kGpu, FromPeer(answer),
                              Policy(Authority::kScheduler), milliseconds(0))
                  .verdict.kind,
              Kind::kReject);
  }
}

TEST(DeviceVerdictTest, WhatWasNotSentIsWaitedForBelowAScheduler) {
  for (const absl::Status& not_sent :
       {UnavailableError("breaker open"), ResourceExhaustedError("full")}) {
    const DevicePolicy policy = Policy(Authority::kScheduler);
    const DeviceVerdict waits =
        JudgeFailedCall(kGpu, not_sent, policy, milliseconds(0));
    EXPECT_EQ(waits.verdict.kind, Kind::kWait);
    EXPECT_EQ(waits.limit, milliseconds(minutes(5)));
    EXPECT_EQ(JudgeFailedCall(kGpu, not_sent, policy, minutes(5)).verdict.kind,
              Kind::kReject);
  }
}

}  // namespace
}  // namespace devmgr::admission
