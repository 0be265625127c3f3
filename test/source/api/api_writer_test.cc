// SPDX-License-Identifier: Apache-2.0
#include "source/api/api_writer.h"

#include <devmgr/pod_status.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/executor.h"
#include "common/status.h"
#include "source/api/api_texts.h"
#include "source/api/fake_transport.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kNode[] =
    R"({"kind":"Node","metadata":{"name":"n1","uid":"u-n1"},"status":{}})";

EventInfo Event(const std::string& kind, const ObjectName& object,
                const std::string& message) {
  EventInfo event;
  event.object_kind = kind;
  event.object = object;
  event.reason = "R";
  event.message = message;
  return event;
}

class ApiWriterTest : public ::testing::Test {
 protected:
  ~ApiWriterTest() override { writer.reset(); }

  void Start(int burst = 100) {
    Kubeconfig config;
    config.server = "https://api.test";
    config.token_file = "/token";
    credentials.emplace(
        config,
        Credentials::Seams{
            .read_file = [this](const std::filesystem::path&)
                -> absl::StatusOr<std::string> {
              if (token.empty()) return NotFoundError("no such file");
              return token;
            },
            .check_pair = {},
            .wall_clock = [] { return std::chrono::system_clock::now(); },
            .warn = [](const std::string&) {}});
    rate.emplace(/*per_second=*/1, burst);
    writer.emplace(
        ApiWriter::Options{.node_name = "n1"},
        ApiWriter::Parts{
            .executor = executor,
            .rate = *rate,
            .random = [] { return 0.0; },
            .uid_of =
                [this](const std::string& kind, const ObjectName& name) {
                  return uids[kind + " " + name.ToString()];
                },
            .on_problem =
                [this](const std::string& reason, const std::string&) {
                  problems.push_back(reason);
                },
            .on_not_served = [this] { ++not_served; },
            .on_state = [this](const std::string& text) { state = text; },
            .on_request =
                [this](const ApiServerRequest& request) {
                  requests.push_back(request.verb + " " + request.resource +
                                     " " + std::to_string(request.code));
                }});
    writer->Connect(&transport, &*credentials);
  }
  static NodeDeviceStatus Gpus(std::int64_t count) {
    NodeDeviceStatus status;
    status.resources[ResourceName("v.com/gpu")] = {{count, count}};
    return status;
  }
  void RecordPodEvent(const std::string& message) {
    writer->RecordEvent(Event("Pod", {"ns", "a"}, message));
  }
  std::string Content(const std::string& part) const {
    const auto id = transport.Find(part);
    return id == 0 ? "" : transport.transfers.at(id).request.content;
  }

  ManualExecutor executor;
  FakeTransport transport;
  std::string token = "sesame";
  std::map<std::string, std::string> uids = {{"Pod ns/a", "u-a"}};
  std::vector<std::string> problems;
  std::vector<std::string> requests;
  int not_served = 0;
  std::string state;
  std::optional<Credentials> credentials;
  std::optional<RequestRate> rate;
  std::optional<ApiWriter> writer;
};

TEST_F(ApiWriterTest, IsSilentWhileNothingIsWanted) {
  Start();
  writer->SetVersion(Discovery::State::kServed, "v1");
  EXPECT_TRUE(transport.transfers.empty());
  EXPECT_EQ(executor.timers(), 0u);
}

TEST_F(ApiWriterTest, WritesTheStatusOfTheNode) {
  Start();
  writer->SetNodeStatus(Gpus(8));
  ASSERT_TRUE(transport.Answer("/nodes/n1", kNode));
  executor.Advance(seconds(0));
  EXPECT_THAT(Content("/nodes/n1/status"), HasSubstr(R"("v.com/gpu":"8")"));
  ASSERT_TRUE(transport.Answer("/nodes/n1/status", kNode));
  EXPECT_THAT(requests, ElementsAre("get nodes 200", "patch nodes/status 200"));
}

TEST_F(ApiWriterTest, EventsOfPodsCarryTheirUids) {
  Start();
  RecordPodEvent("m");
  EXPECT_THAT(Content("/events"), HasSubstr(R"("uid":"u-a")"));
  ASSERT_TRUE(transport.Answer("/events", "{}", 201));
  // The pod is gone since.
  uids.clear();
  RecordPodEvent("released");
  executor.Advance(seconds(0));
  EXPECT_THAT(Content("/events"), HasSubstr(R"("uid":"u-a")"));
}

TEST_F(ApiWriterTest, OfPodsThatTheServerDoesNotHaveNoneAreSent) {
  Start();
  writer->RecordEvent(Event("Pod", {"ns", "static"}, "m"));
  EXPECT_TRUE(transport.transfers.empty());
}

TEST_F(ApiWriterTest, WhatTheServerHasNoObjectForIsAboutTheNode) {
  Start();
  writer->RecordEvent(Event("Plugin", {"", "v.com/gpu"}, "it hung up"));
  EXPECT_THAT(Content("/namespaces/default/events"),
              HasSubstr(R"("message":"Plugin v.com/gpu: it hung up")"));
}

TEST_F(ApiWriterTest, EventsOfClaimsAreAboutTheVersionInUse) {
  Start();
  uids["ResourceClaim ns/c"] = "u-c";
  writer->SetVersion(Discovery::State::kServed, "v1beta1");
  writer->RecordEvent(Event("ResourceClaim", {"ns", "c"}, "m"));
  EXPECT_THAT(Content("/events"),
              HasSubstr(R"("apiVersion":"resource.k8s.io/v1beta1")"));
}

TEST_F(ApiWriterTest, DeletesSlicesOnceTheVersionIsKnown) {
  Start();
  absl::Status ended = absl::UnknownError("");
  writer->DeleteSlices("d",
                       [&](const absl::Status& status) { ended = status; });
  EXPECT_TRUE(transport.transfers.empty());
  writer->SetVersion(Discovery::State::kServed, "v1");
  ASSERT_TRUE(transport.Answer("/resourceslices", "{}"));
  EXPECT_TRUE(ended.ok());
  EXPECT_THAT(requests, ElementsAre("deletecollection resourceslices 200"));
}

TEST_F(ApiWriterTest, AVersionThatIsNeverKnownEndsADeletion) {
  Start();
  absl::Status ended;
  writer->DeleteSlices("d",
                       [&](const absl::Status& status) { ended = status; });
  executor.Advance(SliceDeleter::kPatience);
  EXPECT_TRUE(absl::IsUnavailable(ended));
}

TEST_F(ApiWriterTest, ADeletionUnderWayIsStoppedWhenTheDriverIsBack) {
  Start();
  writer->SetVersion(Discovery::State::kServed, "v1");
  writer->DeleteSlices("d", [](const absl::Status&) { FAIL(); });
  EXPECT_EQ(transport.transfers.size(), 1u);
  writer->KeepSlices("d");
  EXPECT_TRUE(transport.transfers.empty());
}

TEST_F(ApiWriterTest, AVersionThatIsServedNoMoreIsReported) {
  Start();
  writer->SetVersion(Discovery::State::kServed, "v1");
  writer->DeleteSlices("d", [](const absl::Status&) {});
  ASSERT_TRUE(transport.Answer("/resourceslices", "404 page not found", 404));
  EXPECT_EQ(not_served, 1);
}

TEST_F(ApiWriterTest, SendsNoMoreThanItMay) {
  Start(/*burst=*/2);
  for (int i = 0; i < 4; ++i) RecordPodEvent(std::to_string(i));
  std::vector<std::string> seconds_sent;
  int sent = 0;
  for (int second = 0; second < 4; ++second) {
    while (transport.Answer("/events", "{}", 201)) {
      ++sent;
      executor.Advance(seconds(0));
    }
    seconds_sent.push_back(std::to_string(sent));
    executor.Advance(seconds(1));
  }
  EXPECT_THAT(seconds_sent, ElementsAre("2", "3", "4", "4"));
}

TEST_F(ApiWriterTest, WithoutCredentialsItWaitsAndSaysSo) {
  token.clear();
  Start();
  RecordPodEvent("m");
  EXPECT_TRUE(transport.transfers.empty());
  EXPECT_THAT(state, HasSubstr("1 events wait"));
  EXPECT_THAT(state, HasSubstr("no such file"));
  token = "sesame";
  executor.Advance(minutes(1));
  ASSERT_TRUE(transport.Answer("/events", "{}", 201));
  EXPECT_EQ(state, "");
}

TEST_F(ApiWriterTest, AnAnswerThatNeverComesIsAFailure) {
  Start();
  writer->SetNodeStatus(Gpus(8));
  transport.End(transport.Find("/nodes/n1"),
                DeadlineExceededError("api.test: timed out"));
  EXPECT_EQ(state, "api.test: timed out");
  EXPECT_THAT(requests, ElementsAre("get nodes 0"));
  executor.Advance(seconds(1));
  EXPECT_TRUE(transport.Answer("/nodes/n1", kNode));
}

TEST_F(ApiWriterTest, ProblemsOfTheNodeAreReported) {
  Start();
  writer->SetNodeStatus(Gpus(8));
  ASSERT_TRUE(transport.Answer("/nodes/n1", kNode));
  executor.Advance(seconds(0));
  ASSERT_TRUE(transport.Answer("/status", StatusText(422, "Invalid"), 422));
  EXPECT_THAT(problems, ElementsAre("NodeStatusRefused"));
}

TEST_F(ApiWriterTest, AnotherConnectionGoesOnWithWhatIsWanted) {
  Start();
  writer->SetVersion(Discovery::State::kServed, "v1");
  writer->SetNodeStatus(Gpus(8));
  RecordPodEvent("m");
  absl::Status ended;
  writer->DeleteSlices("d",
                       [&](const absl::Status& status) { ended = status; });
  EXPECT_EQ(transport.transfers.size(), 3u);
  writer->Connect(nullptr, nullptr);
  EXPECT_TRUE(transport.transfers.empty());
  // The room that asked for it asks again.
  EXPECT_TRUE(absl::IsUnavailable(ended));
  executor.Advance(minutes(10));
  EXPECT_TRUE(transport.transfers.empty());
  EXPECT_EQ(executor.timers(), 0u);
  FakeTransport other;
  writer->Connect(&other, &*credentials);
  EXPECT_TRUE(other.Answer("/nodes/n1", kNode));
  EXPECT_TRUE(other.Answer("/events", "{}", 201));
  writer.reset();
}

TEST_F(ApiWriterTest, WithoutAConnectionADeletionEnds) {
  Start();
  writer->Connect(nullptr, nullptr);
  absl::Status ended;
  writer->DeleteSlices("d",
                       [&](const absl::Status& status) { ended = status; });
  executor.Advance(SliceDeleter::kPatience);
  EXPECT_TRUE(absl::IsUnavailable(ended));
}

TEST_F(ApiWriterTest, PatchesPodsThatTheSourceHas) {
  Start();
  ReportedPodStatus status;
  status.phase = "Running";
  writer->SetPodStatus({"ns", "a"}, PodUid{"u-a"}, status);
  writer->SetPodStatus({"ns", "b"}, PodUid{"u-b"}, status);
  ASSERT_EQ(transport.transfers.size(), 1u);
  const std::string pod =
      R"({"kind":"Pod","metadata":{"name":"a","uid":"u-a",)"
      R"("deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{}})";
  ASSERT_TRUE(transport.Answer("/pods/a", pod));
  EXPECT_THAT(Content("/pods/a/status"), HasSubstr(R"("phase":"Running")"));
  ASSERT_TRUE(transport.Answer("/pods/a/status", pod));
  EXPECT_TRUE(transport.transfers.empty());
  writer->FinishPod({"ns", "a"}, PodUid{"u-a"});
  EXPECT_THAT(Content("/pods/a"), HasSubstr(R"("uid":"u-a")"));
  ASSERT_TRUE(transport.Answer("/pods/a", "{}"));
  EXPECT_THAT(requests, ElementsAre("get pods 200", "patch pods/status 200",
                                    "delete pods 200"));
  EXPECT_EQ(state, "");
}

TEST_F(ApiWriterTest, PodsShareTheRateAndSayWhatIsWrong) {
  Start(/*burst=*/1);
  ReportedPodStatus status;
  status.phase = "Running";
  uids["Pod ns/b"] = "u-b";
  writer->SetPodStatus({"ns", "a"}, PodUid{"u-a"}, status);
  writer->SetPodStatus({"ns", "b"}, PodUid{"u-b"}, status);
  EXPECT_EQ(transport.transfers.size(), 1u);
  executor.Advance(seconds(2));
  EXPECT_EQ(transport.transfers.size(), 2u);
  ASSERT_TRUE(transport.Answer(
      "/pods/a", StatusText(403, "Forbidden", "pods are not yours"), 403));
  EXPECT_THAT(state, HasSubstr("the status of 2 pods waits"));
  EXPECT_THAT(state, HasSubstr("pods are not yours"));
  // What was under way over another connection is read back.
  writer->Connect(&transport, &*credentials);
  executor.Advance(seconds(10));
  EXPECT_NE(transport.Find("/pods/a"), 0u);
  EXPECT_NE(transport.Find("/pods/b"), 0u);
}

}  // namespace
}  // namespace devmgr::apiserver
