// SPDX-License-Identifier: Apache-2.0
//
// Pods of a server from their binding to their last deletion, as the agent of
// the node has them: what is said of them, written to a store that answers as a
// server does, and read back.
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apistore/api_request.h"
#include "apistore/object_meta.h"
#include "apistore/store.h"
#include "podstatus/pod_status.h"
#include "source/api/pod_status_writer.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kLivingPod[] = "/api/v1/namespaces/ns/pods/a";

const char* MethodOf(const ApiRequest& request) {
  switch (request.method) {
    case ApiRequest::Method::kPatch:
      return "PATCH";
    case ApiRequest::Method::kDelete:
      return "DELETE";
    default:
      return "GET";
  }
}

class PodLifeTest : public ::testing::Test {
 protected:
  PodLifeTest() {
    apistore::Store::Options options;
    options.random = [this] { return ++random_; };
    store_ = std::make_unique<apistore::Store>(apistore::BuiltinTypes(),
                                               std::move(options));
    LoadPod("u-a");
    info_.name = {"ns", "a"};
    info_.uid = PodUid{"u-a"};
    info_.state = PodState::kReady;
    info_.first_seen = WallTime(seconds(1'700'000'000));
    runtime_.known = true;
    runtime_.runtime = "containerd 1.6.20";
  }
  void LoadPod(const std::string& uid) {
    const auto pod = apistore::Json::parse(R"({"kind":"Pod","apiVersion":"v1",
      "metadata":{"name":"a","namespace":"ns","generation":1},
      "spec":{"nodeName":"n1","restartPolicy":"Never",
        "readinessGates":[{"conditionType":"a.com/b"}],
        "resourceClaims":[{"name":"x","resourceClaimTemplateName":"t"}],
        "containers":[{"name":"c","image":"i"}]},
      "status":{"phase":"Pending","qosClass":"BestEffort",
        "resourceClaimStatuses":[{"name":"x","resourceClaimName":"a-x"}],
        "conditions":[
          {"type":"PodScheduled","status":"True","lastTransitionTime":"T"},
          {"type":"a.com/b","status":"True"}]}})");
    apistore::Json named = pod;
    named["metadata"]["uid"] = uid;
    ASSERT_TRUE(store_->Load(named, 0).ok());
  }
  apistore::Answer Serve(const std::string& method, const std::string& target,
                         const std::string& type = "",
                         const std::string& body = "") {
    const auto read = apistore::ReadApiRequest(*store_, method, target);
    if (const auto* error = std::get_if<apistore::ApiError>(&read)) {
      return apistore::Refuse(*error);
    }
    return apistore::ServeRequest(*store_, std::get<apistore::ApiRequest>(read),
                                  {type, body}, 1'700'000'100);
  }
  std::string Stored() { return apistore::Dump(Serve("GET", kLivingPod).body); }
  /// Null: the server has none.
  std::shared_ptr<const devmgr::Pod> Read() {
    const auto answer = Serve("GET", kLivingPod);
    if (!answer.ok()) return nullptr;
    const auto decoded =
        DecodeManifest(apistore::Dump(answer.body), "pod.json");
    if (decoded.objects.size() != 1) return nullptr;
    const auto* pod = std::get_if<devmgr::Pod>(&decoded.objects[0].object);
    return pod == nullptr ? nullptr : std::make_shared<const devmgr::Pod>(*pod);
  }
  /// What the agent does when something has changed.
  void Look() {
    const auto pod = Read();
    if (pod == nullptr) return;
    const podstatus::PodFacts facts{.pod = *pod,
                                    .info = in_ledger_ ? &info_ : nullptr,
                                    .failure = nullptr,
                                    .runtime = &runtime_,
                                    .former = last_ ? &*last_ : nullptr,
                                    .now = WallTime(seconds(1'700'000'050))};
    const ObjectName name = pod->metadata.FullName();
    if (auto status = podstatus::StatusOf(facts)) {
      writer_.Want(now_, name, info_.uid, *status);
      last_ = std::move(status);
    }
    if (podstatus::IsFinished(facts)) writer_.Finish(now_, name, info_.uid);
    Write();
  }
  /// Carries out what the writer has to send, with lost answers.
  void Write() {
    const auto is_there = [](const ObjectName&, const PodUid&) { return true; };
    while (writer_.WakeAt()) {
      now_ = std::max(now_, *writer_.WakeAt());
      const auto next = writer_.Next(now_, is_there);
      ASSERT_TRUE(next.has_value());
      sent_.push_back(std::string(MethodOf(next->request)) + " " +
                      next->resource);
      const auto answer =
          Serve(MethodOf(next->request), next->request.target,
                next->request.content_type, next->request.content);
      if (lost_ > 0 && sent_.back() != "GET pods") {
        --lost_;
        writer_.OnFailure(now_, next->pod, "reset");
        continue;
      }
      writer_.OnAnswer(now_, next->pod,
                       {.code = answer.code, .retry_after = {}},
                       apistore::Dump(answer.body));
    }
  }
  std::vector<std::string> Sent() { return std::exchange(sent_, {}); }
  void Run(RuntimeContainer::State state, int exit_code = 0) {
    PodRun run;
    ContainerRun container;
    container.id = "c-0";
    container.name = "c";
    container.state = state;
    container.exit_code = exit_code;
    container.started_at = WallTime(seconds(1'700'000'020));
    run.containers = {container};
    runtime_.pods[info_.uid] = std::make_shared<const PodRun>(std::move(run));
  }

  std::uint64_t random_ = 0;
  std::unique_ptr<apistore::Store> store_;
  PodInfo info_;
  bool in_ledger_ = true;
  RuntimeSnapshot runtime_;
  std::optional<ReportedPodStatus> last_;
  PodStatusWriter::TimePoint now_{};
  PodStatusWriter writer_{[] { return 0.0; }};
  std::vector<std::string> sent_;
  int lost_ = 0;  ///< So many answers to writes are lost.
};

TEST_F(PodLifeTest, FromItsBindingToItsLastDeletion) {
  Look();
  EXPECT_THAT(Sent(), ElementsAre("GET pods", "PATCH pods/status"));
  EXPECT_THAT(Stored(), HasSubstr(R"("reason":"ContainerCreating")"));
  Look();
  EXPECT_THAT(Sent(), ElementsAre("GET pods")) << "it says so already";

  Run(RuntimeContainer::State::kRunning);
  Look();
  EXPECT_THAT(Sent(), ElementsAre("GET pods", "PATCH pods/status"));
  EXPECT_EQ(Read()->status.phase, "Running");
  EXPECT_THAT(Stored(), HasSubstr("containerd://c-0"));

  // It is deleted with grace, and goes on until its containers have stopped.
  ASSERT_TRUE(Serve("DELETE", kLivingPod).ok());
  Look();
  EXPECT_THAT(Sent(), ElementsAre("GET pods"));
  ASSERT_NE(Read(), nullptr);

  Run(RuntimeContainer::State::kExited, 143);
  Look();
  EXPECT_THAT(Sent(), ElementsAre("GET pods", "PATCH pods/status"));
  ASSERT_NE(Read(), nullptr);
  EXPECT_EQ(Read()->status.phase, "Failed");
  Look();
  EXPECT_THAT(Sent(), IsEmpty()) << "it holds devices";

  in_ledger_ = false;
  Look();
  EXPECT_THAT(Sent(), ElementsAre("DELETE pods"));
  EXPECT_EQ(Read(), nullptr);
}

TEST_F(PodLifeTest, WhatOthersHaveWrittenStays) {
  Run(RuntimeContainer::State::kRunning);
  Look();
  const std::string stored = Stored();
  EXPECT_THAT(stored, HasSubstr(R"("resourceClaimName":"a-x")"));
  EXPECT_THAT(stored, HasSubstr(R"("qosClass":"BestEffort")"));
  EXPECT_THAT(stored, HasSubstr(R"("type":"PodScheduled")"));
  EXPECT_THAT(stored, HasSubstr(R"("type":"a.com/b")"));
  EXPECT_THAT(stored, HasSubstr(R"("observedGeneration":)"));
}

TEST_F(PodLifeTest, LostAnswersChangeNothing) {
  lost_ = 1;
  Run(RuntimeContainer::State::kExited);
  Look();
  EXPECT_THAT(Sent(), ElementsAre("GET pods", "PATCH pods/status", "GET pods"));
  EXPECT_EQ(Read()->status.phase, "Succeeded");
  ASSERT_TRUE(Serve("DELETE", kLivingPod).ok());
  in_ledger_ = false;
  lost_ = 1;
  Look();
  EXPECT_THAT(Sent(), ElementsAre("DELETE pods", "GET pods"));
  EXPECT_EQ(Read(), nullptr);
}

// API-035: the object was deleted by force, and its name is another pod's.
TEST_F(PodLifeTest, AnotherPodOfTheNameIsNeitherPatchedNorDeleted) {
  ASSERT_TRUE(
      Serve("DELETE", std::string(kLivingPod) + "?gracePeriodSeconds=0").ok());
  LoadPod("u-b");
  ReportedPodStatus status;
  status.phase = "Failed";
  writer_.Want(now_, {"ns", "a"}, PodUid{"u-a"}, status);
  Write();
  EXPECT_THAT(Sent(), ElementsAre("GET pods"));
  writer_.Finish(now_, {"ns", "a"}, PodUid{"u-a"});
  Write();
  EXPECT_THAT(Sent(), ElementsAre("DELETE pods", "GET pods"));
  ASSERT_NE(Read(), nullptr);
  EXPECT_EQ(Read()->metadata.uid, "u-b");
  EXPECT_EQ(Read()->status.phase, "Pending");
}

TEST_F(PodLifeTest, ARejectedPodFailsAndStays) {
  info_.state = PodState::kRejected;
  info_.reason = "UnexpectedAdmissionError";
  info_.message = "no devices";
  Look();
  EXPECT_THAT(Sent(), ElementsAre("GET pods", "PATCH pods/status"));
  EXPECT_EQ(Read()->status.phase, "Failed");
  EXPECT_THAT(Stored(), HasSubstr("Pod was rejected: no devices"));
  in_ledger_ = false;
  Look();
  EXPECT_THAT(Sent(), IsEmpty()) << "no deletion was asked for";
}

}  // namespace
}  // namespace devmgr::apiserver
