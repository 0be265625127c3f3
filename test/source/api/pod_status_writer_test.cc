// SPDX-License-Identifier: Apache-2.0
#include "source/api/pod_status_writer.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "source/api/api_texts.h"
#include "source/api/pod_status_patch.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kPodTarget[] = "/api/v1/namespaces/ns/pods/a";
constexpr char kPodStatusTarget[] = "/api/v1/namespaces/ns/pods/a/status";
constexpr char kPodDeletion[] =
    R"({"apiVersion":"v1","gracePeriodSeconds":0,"kind":"DeleteOptions",)"
    R"("preconditions":{"uid":"u-a"}})";

/// A pod with the members of its status.
std::string PodSaying(const std::string& status = "",
                      const std::string& uid = "u-a", bool deleted = false) {
  return fmt::format(
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"a",)"
      R"("namespace":"ns","uid":"{}"{}}},"status":{{{}}}}})",
      uid, deleted ? R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")" : "",
      status);
}

ReportedPodStatus OfPhase(const std::string& phase) {
  ReportedPodStatus status;
  status.phase = phase;
  return status;
}

Condition ConditionSaying(const std::string& type, const std::string& value,
                          const std::string& time,
                          const std::string& reason = "") {
  Condition condition;
  condition.type = type;
  condition.status = value;
  condition.last_transition_time = time;
  condition.reason = reason;
  return condition;
}

/// Of a container that runs, with a device.
ReportedPodStatus RunningPod() {
  ReportedPodStatus status = OfPhase("Running");
  status.start_time = WallTime(seconds(1'700'000'000));
  status.observed_generation = 2;
  ReportedContainerStatus container;
  container.name = "c";
  container.state.kind = ReportedContainerState::Kind::kRunning;
  container.state.started_at = WallTime(seconds(1'700'000'010));
  container.last_state.kind = ReportedContainerState::Kind::kTerminated;
  container.last_state.reason = "Error";
  container.last_state.exit_code = 1;
  container.ready = true;
  container.started = true;
  container.restart_count = 1;
  container.image = "i";
  container.image_id = "sha256:i";
  container.container_id = "containerd://c-1";
  container.allocated_resources = {
      {"v.com/gpu", {{"gpu-1", DeviceHealth::kUnhealthy, "hot", {}}}}};
  status.containers = {container};
  return status;
}

constexpr char kRunningPodText[] =
    R"("containerStatuses":[{"allocatedResourcesStatus":[{"name":"v.com/gpu",)"
    R"("resources":[{"health":"Unhealthy","message":"hot",)"
    R"("resourceID":"gpu-1"}]}],"containerID":"containerd://c-1","image":"i",)"
    R"("imageID":"sha256:i","lastState":{"terminated":{"exitCode":1,)"
    R"("reason":"Error"}},"name":"c","ready":true,"restartCount":1,)"
    R"("started":true,"state":{"running":{"startedAt":)"
    R"("2023-11-14T22:13:30Z"}}}],"observedGeneration":2,"phase":"Running",)"
    R"("startTime":"2023-11-14T22:13:20Z")";

class PodStatusWriterTest : public ::testing::Test {
 protected:
  void Want(const ReportedPodStatus& status, const std::string& uid = "u-a",
            const std::string& name = "a") {
    writer.Want(now, {"ns", name}, PodUid{uid}, status);
  }
  void Finish() { writer.Finish(now, {"ns", "a"}, PodUid{"u-a"}); }
  /// The request that is due now: its target.
  std::string Target() {
    const auto next =
        writer.Next(now, [this](const ObjectName&, const PodUid& uid) {
          return gone.count(uid.value) == 0;
        });
    if (!next) return "";
    pod = next->pod;
    resource = next->resource;
    request = next->request;
    return request.target;
  }
  /// Waits until a request is due.
  std::string NextTarget() {
    if (!writer.WakeAt()) return "";
    now = std::max(now, *writer.WakeAt());
    return Target();
  }
  void Answer(const std::string& body, int code = 200) {
    writer.OnAnswer(now, pod, {.code = code, .retry_after = {}}, body);
  }
  /// The pod is read, and patched.
  void Settle(const std::string& before = "") {
    ASSERT_EQ(NextTarget(), kPodTarget);
    Answer(PodSaying(before));
    ASSERT_EQ(NextTarget(), kPodStatusTarget);
    Answer(PodSaying(before));
  }

  PodStatusWriter::TimePoint now{};
  PodStatusWriter writer{[] { return 0.0; }};
  PodUid pod;
  std::string resource;
  ApiRequest request;
  std::set<std::string> gone;  ///< UIDs that the server has no more.
};

TEST_F(PodStatusWriterTest, AsksForNothingBeforeSomethingIsWanted) {
  EXPECT_EQ(Target(), "");
  EXPECT_FALSE(writer.WakeAt().has_value());
}

TEST_F(PodStatusWriterTest, ReadsThenPatchesTheStatusWithTheUid) {
  Want(RunningPod());
  ASSERT_EQ(Target(), kPodTarget);
  EXPECT_EQ(request.method, ApiRequest::Method::kGet);
  EXPECT_EQ(resource, "pods");
  Answer(
      PodSaying(R"("phase":"Pending","resourceClaimStatuses":[{"name":"x"}])"));
  ASSERT_EQ(Target(), kPodStatusTarget);
  EXPECT_EQ(resource, "pods/status");
  EXPECT_EQ(request.method, ApiRequest::Method::kPatch);
  EXPECT_EQ(request.content_type, "application/strategic-merge-patch+json");
  EXPECT_EQ(request.content,
            fmt::format(R"({{"metadata":{{"uid":"u-a"}},"status":{{{}}}}})",
                        kRunningPodText));
  Answer(PodSaying());
  EXPECT_EQ(writer.waiting(), 0u);
  EXPECT_EQ(writer.last_error(), "");
  EXPECT_FALSE(writer.WakeAt().has_value());
}

TEST_F(PodStatusWriterTest, SendsNothingWhenThePodSaysItAlready) {
  Want(RunningPod());
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying(kRunningPodText));
  EXPECT_EQ(Target(), "");
  EXPECT_EQ(writer.waiting(), 0u);
}

TEST_F(PodStatusWriterTest, KeepsConditionsOfOthersAndTimes) {
  ReportedPodStatus status = OfPhase("Running");
  status.conditions = {
      ConditionSaying("Ready", "True", "T-new"),
      ConditionSaying("Initialized", "True", "T-new"),
      ConditionSaying("ContainersReady", "False", "T-new", "Why")};
  Want(status);
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying(
      R"("phase":"Running","conditions":[)"
      R"({"type":"PodScheduled","status":"True","lastTransitionTime":"T"},)"
      R"({"type":"example.com/gate","status":"True"},)"
      R"({"type":"Initialized","status":"True","lastTransitionTime":"T"},)"
      R"({"type":"Ready","status":"False","reason":"R","message":"M",)"
      R"("lastTransitionTime":"T"},)"
      R"({"type":"ContainersReady","status":"False","reason":"Before",)"
      R"("lastTransitionTime":"T"}])"));
  ASSERT_EQ(Target(), kPodStatusTarget);
  EXPECT_EQ(request.content,
            R"({"metadata":{"uid":"u-a"},"status":{"conditions":[)"
            R"({"lastTransitionTime":"T-new","message":null,"reason":null,)"
            R"("status":"True","type":"Ready"},)"
            R"({"reason":"Why","status":"False","type":"ContainersReady"}]}})");
}

TEST_F(PodStatusWriterTest, AddressesTakeThePlaceOfThoseBefore) {
  ReportedPodStatus wanted = OfPhase("Running");
  wanted.pod_ips = {"10.0.0.2", "fd00::2"};
  const auto patch = [&](const std::string& status) {
    const auto view = ParsePodStatus(
        R"({"kind":"Pod","metadata":{"uid":"u"},"status":{"phase":"Running")" +
        status + "}}");
    return PodStatusPatch(*view, wanted);
  };
  EXPECT_EQ(patch(R"(,"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}])"),
            R"({"metadata":{"uid":"u"},"status":{"podIP":"10.0.0.2",)"
            R"("podIPs":[{"$patch":"replace"},{"ip":"10.0.0.2"},)"
            R"({"ip":"fd00::2"}]}})");
  const std::string same =
      R"(,"podIP":"10.0.0.2","podIPs":[{"ip":"10.0.0.2"},{"ip":"fd00::2"}])";
  EXPECT_EQ(patch(same), "");
  wanted.pod_ips.clear();
  EXPECT_EQ(patch(same), "");
}

TEST_F(PodStatusWriterTest, ASecondTimeTheStartStaysAsItIs) {
  ReportedPodStatus status = OfPhase("Running");
  status.start_time = WallTime(seconds(1'700'000'000));
  Want(status);
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying(R"("phase":"Running","startTime":"2020-01-01T00:00:00Z")"));
  EXPECT_EQ(Target(), "");
}

TEST_F(PodStatusWriterTest, WhatHasEndedIsNotBegunAgain) {
  Want(OfPhase("Running"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying(R"("phase":"Failed","reason":"Evicted")"));
  EXPECT_EQ(Target(), "");
  Want(OfPhase("Succeeded"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying(R"("phase":"Failed","reason":"Evicted")"));
  EXPECT_EQ(Target(), "");
}

TEST_F(PodStatusWriterTest, AnotherPodOfTheNameIsLeftAlone) {
  Want(OfPhase("Running"));
  Finish();
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying("", "u-b", true));
  EXPECT_EQ(Target(), "");
  EXPECT_EQ(writer.waiting(), 0u);
}

TEST_F(PodStatusWriterTest, AConflictIsReadAgain) {
  Want(OfPhase("Running"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying());
  ASSERT_EQ(Target(), kPodStatusTarget);
  Answer(StatusText(409, "Conflict", "the UID differs"), 409);
  EXPECT_EQ(Target(), "");
  const auto before = now;
  ASSERT_EQ(NextTarget(), kPodTarget);
  EXPECT_LE(now - before, milliseconds(11));
  Answer(PodSaying("", "u-b"));
  EXPECT_EQ(NextTarget(), "");
}

TEST_F(PodStatusWriterTest, APodThatIsNotThereIsDone) {
  Want(OfPhase("Running"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(StatusText(404, "NotFound", "no pod"), 404);
  EXPECT_EQ(writer.waiting(), 0u);
  Want(OfPhase("Running"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying());
  ASSERT_EQ(Target(), kPodStatusTarget);
  Answer(StatusText(404, "NotFound", "no pod"), 404);
  EXPECT_EQ(writer.waiting(), 0u);
  EXPECT_EQ(NextTarget(), "");
}

TEST_F(PodStatusWriterTest, APodThatTheSourceHasNotIsDoneWithoutARequest) {
  Want(OfPhase("Running"));
  gone.insert("u-a");
  EXPECT_EQ(Target(), "");
  EXPECT_EQ(writer.waiting(), 0u);
}

TEST_F(PodStatusWriterTest, ALostAnswerIsReadBack) {
  Want(OfPhase("Running"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying());
  ASSERT_EQ(Target(), kPodStatusTarget);
  writer.OnFailure(now, pod, "reset");
  EXPECT_EQ(writer.last_error(), "reset");
  EXPECT_EQ(Target(), "");
  ASSERT_EQ(NextTarget(), kPodTarget);
  // It was done.
  Answer(PodSaying(R"("phase":"Running")"));
  EXPECT_EQ(NextTarget(), "");
  EXPECT_EQ(writer.last_error(), "");
}

TEST_F(PodStatusWriterTest, TheLatestCounts) {
  Want(OfPhase("Pending"));
  Want(OfPhase("Running"));
  ASSERT_EQ(Target(), kPodTarget);
  Want(OfPhase("Failed"));
  Answer(PodSaying());
  ASSERT_EQ(Target(), kPodStatusTarget);
  EXPECT_THAT(request.content, HasSubstr(R"("phase":"Failed")"));
}

TEST_F(PodStatusWriterTest, WhatIsWantedDuringAPatchComesAfterIt) {
  Want(OfPhase("Pending"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying());
  ASSERT_EQ(Target(), kPodStatusTarget);
  Want(OfPhase("Running"));
  EXPECT_EQ(Target(), "");
  Answer(PodSaying());
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying(R"("phase":"Pending")"));
  ASSERT_EQ(Target(), kPodStatusTarget);
  EXPECT_THAT(request.content, HasSubstr(R"("phase":"Running")"));
}

// API-030
TEST_F(PodStatusWriterTest, WhileTheServerIsAwayTheLatestOfEachPodIsKept) {
  for (const char* uid : {"u-a", "u-b"}) Want(OfPhase("Pending"), uid, uid);
  std::size_t requests = 0;
  for (int i = 0; i < 50; ++i) {
    for (const char* uid : {"u-a", "u-b"}) {
      Want(OfPhase(i % 2 == 0 ? "Pending" : "Running"), uid, uid);
    }
    now += seconds(60);
    while (!Target().empty()) {
      ++requests;
      writer.OnFailure(now, pod, "refused");
    }
  }
  EXPECT_EQ(writer.waiting(), 2u);
  // All of them wait together.
  EXPECT_LE(requests, 50u);
  now += seconds(60);
  std::size_t patches = 0;
  while (!NextTarget().empty()) {
    const bool is_patch = request.method == ApiRequest::Method::kPatch;
    if (is_patch) {
      ++patches;
      EXPECT_THAT(request.content, HasSubstr(R"("phase":"Running")"));
    }
    Answer(PodSaying("", pod.value));
  }
  EXPECT_EQ(patches, 2u);
}

TEST_F(PodStatusWriterTest, AtMostFourRequestsAreUnderWay) {
  for (const char* uid : {"u-a", "u-b", "u-c", "u-d", "u-e"}) {
    Want(OfPhase("Running"), uid, uid);
  }
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Target(), Not(IsEmpty()));
  EXPECT_EQ(Target(), "");
  EXPECT_FALSE(writer.WakeAt().has_value());
  Answer(PodSaying("", pod.value));
  EXPECT_THAT(Target(), Not(IsEmpty()));
}

TEST_F(PodStatusWriterTest, WhatIsRefusedIsTriedAgainEverMoreRarely) {
  Want(OfPhase("Running"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(StatusText(403, "Forbidden", "not yours"), 403);
  EXPECT_THAT(writer.last_error(), HasSubstr("not yours"));
  // Others do not wait for it.
  Want(OfPhase("Running"), "u-b", "b");
  EXPECT_THAT(Target(), HasSubstr("pods/b"));
  Answer(PodSaying("", "u-b"));
  ASSERT_THAT(Target(), HasSubstr("pods/b/status"));
  Answer(PodSaying("", "u-b"));
  seconds longest{0};
  for (int i = 0; i < 12; ++i) {
    const auto before = now;
    ASSERT_EQ(NextTarget(), kPodTarget);
    longest =
        std::max(longest, std::chrono::duration_cast<seconds>(now - before));
    Answer(StatusText(403, "Forbidden", "not yours"), 403);
  }
  EXPECT_GE(longest, seconds(100));
  writer.Hurry(now);
  EXPECT_EQ(Target(), kPodTarget);
}

TEST_F(PodStatusWriterTest, AServerThatWantsTimeGetsIt) {
  Want(OfPhase("Running"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying());
  ASSERT_EQ(Target(), kPodStatusTarget);
  const auto before = now;
  writer.OnAnswer(now, pod, {.code = 429, .retry_after = seconds(7)}, "");
  ASSERT_EQ(NextTarget(), kPodStatusTarget);
  EXPECT_GE(now - before, seconds(7));
}

TEST_F(PodStatusWriterTest, CredentialsThatAreRefusedAreReported) {
  Want(OfPhase("Running"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(StatusText(401, "Unauthorized", "who"), 401);
  EXPECT_TRUE(writer.TakeRefused());
  EXPECT_FALSE(writer.TakeRefused());
  EXPECT_EQ(NextTarget(), kPodTarget);
}

TEST_F(PodStatusWriterTest, AServerThatTakesNoHealthGetsTheRest) {
  Want(RunningPod());
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying());
  ASSERT_EQ(Target(), kPodStatusTarget);
  Answer(StatusText(422, "Invalid", "allocatedResourcesStatus"), 422);
  EXPECT_THAT(writer.TakeProblems(), IsEmpty());
  ASSERT_EQ(NextTarget(), kPodTarget);
  Answer(PodSaying());
  ASSERT_EQ(NextTarget(), kPodStatusTarget);
  EXPECT_THAT(request.content, HasSubstr("containerStatuses"));
  EXPECT_THAT(request.content, Not(HasSubstr("allocatedResourcesStatus")));
  Answer(PodSaying());
  EXPECT_EQ(writer.waiting(), 0u);
}

TEST_F(PodStatusWriterTest, WhatIsInvalidIsAnEventAndNotRepeated) {
  Want(OfPhase("Running"));
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying());
  ASSERT_EQ(Target(), kPodStatusTarget);
  Answer(StatusText(422, "Invalid", "phase"), 422);
  const auto problems = writer.TakeProblems();
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].reason, "PodStatusRefused");
  EXPECT_THAT(problems[0].message, HasSubstr("phase"));
  EXPECT_EQ(NextTarget(), "");
}

TEST_F(PodStatusWriterTest, AnAnswerThatIsNoPodCountsAsNone) {
  Want(OfPhase("Running"));
  for (const char* body : {"", "{}", "[", R"({"kind":"Pod"})",
                           R"({"kind":"Node","metadata":{"uid":"u"}})"}) {
    ASSERT_EQ(NextTarget(), kPodTarget) << body;
    Answer(body);
    EXPECT_THAT(writer.last_error(), HasSubstr("is no pod")) << body;
  }
}

// The last deletion.

TEST_F(PodStatusWriterTest, DeletesWithoutGraceAndOnlyThisPod) {
  Finish();
  ASSERT_EQ(Target(), kPodTarget);
  EXPECT_EQ(resource, "pods");
  EXPECT_EQ(request.method, ApiRequest::Method::kDelete);
  EXPECT_EQ(request.content_type, "application/json");
  EXPECT_EQ(request.content, kPodDeletion);
  Answer("{}");
  EXPECT_EQ(writer.waiting(), 0u);
  EXPECT_EQ(NextTarget(), "");
}

TEST_F(PodStatusWriterTest, DeletesOnceTheStatusIsWritten) {
  Want(OfPhase("Succeeded"));
  Finish();
  ASSERT_EQ(Target(), kPodTarget);
  EXPECT_EQ(request.method, ApiRequest::Method::kGet);
  Answer(PodSaying("", "u-a", true));
  ASSERT_EQ(Target(), kPodStatusTarget);
  Answer(PodSaying("", "u-a", true));
  ASSERT_EQ(Target(), kPodTarget);
  EXPECT_EQ(request.method, ApiRequest::Method::kDelete);
  EXPECT_EQ(request.content, kPodDeletion);
}

TEST_F(PodStatusWriterTest, DeletesNothingThatIsToStay) {
  Want(OfPhase("Succeeded"));
  Finish();
  ASSERT_EQ(Target(), kPodTarget);
  Answer(PodSaying("", "u-a", false));
  ASSERT_EQ(Target(), kPodStatusTarget);
  Answer(PodSaying("", "u-a", false));
  EXPECT_EQ(NextTarget(), "");
}

TEST_F(PodStatusWriterTest, ADeletionWhoseAnswerWasLostIsReadBack) {
  Finish();
  ASSERT_EQ(Target(), kPodTarget);
  writer.OnFailure(now, pod, "reset");
  ASSERT_EQ(NextTarget(), kPodTarget);
  EXPECT_EQ(request.method, ApiRequest::Method::kGet);
  // It was not done.
  Answer(PodSaying("", "u-a", true));
  ASSERT_EQ(NextTarget(), kPodTarget);
  EXPECT_EQ(request.method, ApiRequest::Method::kDelete);
  writer.OnFailure(now, pod, "reset");
  ASSERT_EQ(NextTarget(), kPodTarget);
  // It was.
  Answer(StatusText(404, "NotFound", "no pod"), 404);
  EXPECT_EQ(writer.waiting(), 0u);
}

TEST_F(PodStatusWriterTest, ADeletionOfAnotherPodIsAConflictAndIsLeft) {
  Finish();
  ASSERT_EQ(Target(), kPodTarget);
  Answer(StatusText(409, "Conflict", "precondition"), 409);
  ASSERT_EQ(NextTarget(), kPodTarget);
  EXPECT_EQ(request.method, ApiRequest::Method::kGet);
  Answer(PodSaying("", "u-b", true));
  EXPECT_EQ(NextTarget(), "");
}

TEST_F(PodStatusWriterTest, APodWhoseDeletionFindsNoneIsDone) {
  Finish();
  ASSERT_EQ(Target(), kPodTarget);
  Answer(StatusText(404, "NotFound", "no pod"), 404);
  EXPECT_EQ(writer.waiting(), 0u);
}

}  // namespace
}  // namespace devmgr::apiserver
