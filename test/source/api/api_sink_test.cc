// SPDX-License-Identifier: Apache-2.0
//
// What a source writes, over real sockets, to a scripted server.
#include <devmgr/api_server.h>
#include <devmgr/pod_status.h>
#include <devmgr/status_types.h>
#include <devmgr/testing_api_server.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::apiserver {
namespace {

using devmgr::testing::ApiFault;
using devmgr::testing::ScriptedApiServer;
using devmgr::testing::ScriptedApiServerOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kObjects[] = R"(
apiVersion: v1
kind: Node
metadata: {name: n1, uid: u-n1}
status:
  capacity: {cpu: "8"}
  allocatable: {cpu: "8"}
  declaredFeatures: [UserNamespaces]
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ns, uid: u-a}
spec: {nodeName: n1, containers: [{name: c}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: ours}
spec: {driver: d, nodeName: n1, pool: {name: n1, generation: 1}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: of-another-driver}
spec: {driver: e, nodeName: n1, pool: {name: n1, generation: 1}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: of-another-node}
spec: {driver: d, nodeName: n2, pool: {name: n2, generation: 1}}
)";

class ApiSinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ScriptedApiServerOptions options;
    options.objects = kObjects;
    auto started = ScriptedApiServer::Start(std::move(options));
    ASSERT_THAT(started, IsOk());
    server = *std::move(started);
    std::ofstream(folder.path() / "config")
        << "current-context: c\n"
           "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
           "clusters: [{name: k, cluster: {server: '"
        << server->url() << "'}}]\nusers: [{name: u, user: {}}]\n";
    Watch(/*node_agent=*/false);
  }
  void Watch(bool node_agent) {
    ApiServerOptions source_options;
    source_options.node_agent = node_agent;
    source_options.kubeconfig = folder.path() / "config";
    source_options.node_name = "n1";
    source_options.on_request = [this](const ApiServerRequest& request) {
      requests.Put(request.verb + " " + request.resource + " " +
                   std::to_string(request.code));
    };
    if (source != nullptr) source->Unsubscribe();
    auto watched = WatchApiServer(source_options);
    ASSERT_THAT(watched, IsOk());
    source = *std::move(watched);
    source->Subscribe([this] { changes.Put(true); });
    while (!source->Snapshot()->complete) ASSERT_TRUE(changes.Take());
  }
  ~ApiSinkTest() override {
    if (source != nullptr) source->Unsubscribe();
  }
  void SetGpus(std::int64_t capacity, std::int64_t allocatable) {
    NodeDeviceStatus status;
    status.resources[ResourceName("v.com/gpu")] = {{capacity, allocatable}};
    status.declared_features = {"DRAOptionalNodeOperations"};
    source->Sink().SetNodeStatus(status);
  }
  absl::Status DeleteSlices(const std::string& driver) {
    Mailbox<absl::Status> ended;
    source->Sink().DeleteResourceSlices(
        driver, [&](const absl::Status& status) { ended.Put(status); });
    return ended.Take().value_or(absl::UnknownError("no end came"));
  }
  void RecordEvent(const std::string& message, std::uint64_t count = 1) {
    EventInfo event;
    event.warning = true;
    event.reason = "FailedAllocate";
    event.object_kind = "Pod";
    event.object = {"ns", "a"};
    event.message = message;
    event.count = count;
    source->Sink().RecordEvent(event);
  }
  std::string Read(const std::string& target) const {
    return server->Do("GET", target).value_or("");
  }
  std::string Node() const { return Read("/api/v1/nodes/n1"); }
  /// The requests that write, up to this one.
  bool WaitForRequest(const std::string& last) {
    while (const auto request = requests.Take()) {
      if (*request == last) return true;
    }
    return false;
  }
  void Fail(const char* verb, const char* resource, ApiFault::Action action,
            int code = 500) {
    ApiFault fault;
    fault.action = action;
    fault.verb = verb;
    fault.resource = resource;
    fault.code = code;
    server->AddFault(fault);
  }

  TempFolder folder;
  std::unique_ptr<ScriptedApiServer> server;
  Mailbox<bool> changes;
  Mailbox<std::string> requests;
  std::unique_ptr<ApiServerSource> source;
};

// API-025, API-026
TEST_F(ApiSinkTest, TheNodeSaysWhatItsDevicesAre) {
  SetGpus(8, 7);
  ASSERT_TRUE(WaitForRequest("patch nodes/status 200"));
  EXPECT_THAT(Node(),
              HasSubstr(R"("allocatable":{"cpu":"8","v.com/gpu":"7"})"));
  EXPECT_THAT(Node(), HasSubstr(R"("capacity":{"cpu":"8","v.com/gpu":"8"})"));
  EXPECT_THAT(Node(), HasSubstr(R"("declaredFeatures":[)"
                                R"("DRAOptionalNodeOperations",)"
                                R"("UserNamespaces"])"));
  source->Sink().SetNodeStatus({});
  ASSERT_TRUE(WaitForRequest("patch nodes/status 200"));
  EXPECT_THAT(Node(), HasSubstr(R"("allocatable":{"cpu":"8"})"));
  EXPECT_THAT(Node(), HasSubstr(R"("declaredFeatures":["UserNamespaces"])"));
}

// API-028
TEST_F(ApiSinkTest, AConflictIsReadAndTriedAgain) {
  Fail("patch", "nodes/status", ApiFault::Action::kFail, 409);
  Fail("patch", "nodes/status", ApiFault::Action::kFail, 409);
  SetGpus(8, 8);
  std::vector<std::string> seen;
  while (seen.size() < 6) {
    const auto request = requests.Take();
    ASSERT_TRUE(request.has_value());
    seen.push_back(*request);
  }
  EXPECT_THAT(seen, ElementsAre("get nodes 200", "patch nodes/status 409",
                                "get nodes 200", "patch nodes/status 409",
                                "get nodes 200", "patch nodes/status 200"));
}

TEST_F(ApiSinkTest, ALostAnswerDoesNoHarm) {
  Fail("patch", "nodes/status", ApiFault::Action::kLoseAnswer);
  SetGpus(8, 8);
  ASSERT_TRUE(WaitForRequest("get nodes 200"));
  // libcurl repeats a request over a connection that it had kept, if that was
  // closed without an answer; without that the node is read.
  const auto patch = requests.Take();
  ASSERT_TRUE(patch.has_value());
  if (*patch == "patch nodes/status 0") {
    ASSERT_TRUE(WaitForRequest("get nodes 200"));
  } else {
    EXPECT_EQ(*patch, "patch nodes/status 200");
  }
  EXPECT_THAT(Node(), HasSubstr(R"("v.com/gpu":"8")"));
}

TEST_F(ApiSinkTest, DeletesOnlySlicesOfTheNodeAndTheDriver) {
  EXPECT_THAT(DeleteSlices("d"), IsOk());
  const std::string slices = Read("/apis/resource.k8s.io/v1/resourceslices");
  EXPECT_THAT(slices, Not(HasSubstr("\"ours\"")));
  EXPECT_THAT(slices, HasSubstr("of-another-driver"));
  EXPECT_THAT(slices, HasSubstr("of-another-node"));
  EXPECT_THAT(DeleteSlices(""), IsOk());
  EXPECT_THAT(Read("/apis/resource.k8s.io/v1/resourceslices"),
              Not(HasSubstr("of-another-driver")));
  EXPECT_THAT(Read("/apis/resource.k8s.io/v1/resourceslices"),
              HasSubstr("of-another-node"));
}

TEST_F(ApiSinkTest, ADeletionThatIsRefusedSaysWhy) {
  Fail("deletecollection", "resourceslices", ApiFault::Action::kFail, 403);
  const absl::Status status = DeleteSlices("d");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("403"));
}

TEST_F(ApiSinkTest, EventsAreCreatedAndCounted) {
  RecordEvent("no devices");
  ASSERT_TRUE(WaitForRequest("create events 201"));
  RecordEvent("no devices", 4);
  ASSERT_TRUE(WaitForRequest("patch events 200"));
  const std::string events = Read("/api/v1/namespaces/ns/events");
  EXPECT_THAT(events, HasSubstr(R"("message":"no devices")"));
  EXPECT_THAT(events, HasSubstr(R"("uid":"u-a")"));
  EXPECT_THAT(events, HasSubstr(R"("count":4)"));
}

TEST_F(ApiSinkTest, AnEventWhoseAnswerIsLostIsThereOnce) {
  Fail("create", "events", ApiFault::Action::kLoseAnswer);
  RecordEvent("no devices");
  ASSERT_TRUE(WaitForRequest("create events 409"));
  const std::string events = Read("/api/v1/namespaces/ns/events");
  const std::size_t first = events.find("no devices");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(events.find("no devices", first + 1), std::string::npos);
}

TEST_F(ApiSinkTest, ARefusalIsTriedAgain) {
  Fail("patch", "nodes/status", ApiFault::Action::kFail, 403);
  SetGpus(8, 8);
  ASSERT_TRUE(WaitForRequest("patch nodes/status 403"));
  ASSERT_TRUE(WaitForRequest("get nodes 200"));
  ASSERT_TRUE(WaitForRequest("patch nodes/status 200"));
}

TEST_F(ApiSinkTest, StopsWhileWritesAreUnderWay) {
  Fail("get", "nodes", ApiFault::Action::kSilence);
  Fail("create", "events", ApiFault::Action::kSilence);
  SetGpus(8, 8);
  RecordEvent("x");
  source->Unsubscribe();
  source.reset();
}

TEST_F(ApiSinkTest, RatesMustBePositive) {
  ApiServerOptions options;
  options.node_name = "n1";
  options.kubeconfig = folder.path() / "config";
  options.qps = 0;
  EXPECT_EQ(WatchApiServer(options).status().message(),
            "qps is 0 and burst is 100: both must be positive");
}

// The last deletion, over real sockets.
TEST_F(ApiSinkTest, WritesTheStatusOfPodsAndDeletesThemInTheEnd) {
  Watch(/*node_agent=*/true);
  EXPECT_TRUE(source->Sink().IsNodeAgent());
  const PodUid uid{"u-a"};
  ReportedPodStatus status;
  status.phase = "Running";
  source->Sink().SetPodStatus({"ns", "a"}, uid, status);
  ASSERT_TRUE(WaitForRequest("patch pods/status 200"));
  EXPECT_THAT(Read("/api/v1/namespaces/ns/pods/a"),
              HasSubstr(R"("phase":"Running")"));
  ASSERT_THAT(server->Do("DELETE", "/api/v1/namespaces/ns/pods/a"), IsOk());
  status.phase = "Succeeded";
  source->Sink().SetPodStatus({"ns", "a"}, uid, status);
  source->Sink().FinishPod({"ns", "a"}, uid);
  ASSERT_TRUE(WaitForRequest("patch pods/status 200"));
  ASSERT_TRUE(WaitForRequest("delete pods 200"));
  EXPECT_THAT(Read("/api/v1/namespaces/ns/pods/a"), Not(HasSubstr("u-a")));
}

TEST_F(ApiSinkTest, WritesNothingOfPodsBesideAnotherAgent) {
  EXPECT_FALSE(source->Sink().IsNodeAgent());
  ReportedPodStatus status;
  status.phase = "Running";
  source->Sink().SetPodStatus({"ns", "a"}, PodUid{"u-a"}, status);
  source->Sink().FinishPod({"ns", "a"}, PodUid{"u-a"});
  SetGpus(8, 8);
  while (const auto request = requests.Take()) {
    EXPECT_THAT(*request, Not(HasSubstr("pods")));
    if (*request == "patch nodes/status 200") break;
  }
}

}  // namespace
}  // namespace devmgr::apiserver
