// SPDX-License-Identifier: Apache-2.0
#include <devmgr/testing_api_server.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "testing/api_client.h"

namespace devmgr::testing {
namespace {

using std::chrono::milliseconds;
using FaultAction = ApiFault::Action;
using Json = nlohmann::json;

constexpr const char* kSlices = "/apis/resource.k8s.io/v1/resourceslices";
constexpr const char* kStreamedList =
    "/apis/resource.k8s.io/v1/resourceslices?allowWatchBookmarks=true&"
    "fieldSelector=spec.driver%3DD%2Cspec.nodeName%3Dn1&"
    "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&"
    "timeoutSeconds=400&timeout=6m40s&watch=true";

std::string Slice(const std::string& name) {
  return R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",)"
         R"("metadata":{"name":")" +
         name + R"("},"spec":{"driver":"D","nodeName":"n1"}})";
}

std::string Watch(const std::string& version) {
  return std::string(kSlices) + "?watch=1&resourceVersion=" + version;
}

class ScriptedApiServerTest : public ::testing::Test {
 protected:
  void Start(ScriptedApiServerOptions options = {}) {
    auto server = ScriptedApiServer::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Start(ApiFault fault) {
    ScriptedApiServerOptions options;
    options.objects = Slice("a");
    options.faults = {std::move(fault)};
    Start(std::move(options));
  }
  ApiClient Client() { return ApiClient(server_->port()); }
  ApiClient::Answer Get(const std::string& target) {
    return Client().Do("GET", target);
  }
  std::unique_ptr<ScriptedApiServer> server_;
};

// API-038
TEST_F(ScriptedApiServerTest, AStreamedListEndsWithItsBookmarkAndGoesOn) {
  ScriptedApiServerOptions options;
  options.objects = Slice("a") + "\n" + Slice("b");
  Start(options);
  ApiClient client = Client();
  client.Send("GET", kStreamedList);
  const auto answer = client.Receive();
  EXPECT_EQ(answer.code, 200);
  EXPECT_NE(answer.head.find("Content-Type: application/json\r\n"),
            std::string::npos);
  EXPECT_EQ(client.Brief(), "ADDED a");
  EXPECT_EQ(client.Brief(), "ADDED b");
  const Json bookmark = client.Event().value_or(Json());
  EXPECT_EQ(bookmark["type"], "BOOKMARK");
  EXPECT_EQ(bookmark["object"]["kind"], "ResourceSlice");
  EXPECT_EQ(client.raw().fd() >= 0, true);
  Client().Do("POST", kSlices, Slice("c"));
  EXPECT_EQ(client.Brief(), "ADDED c");
  EXPECT_EQ(server_->watches(), 1u);
}

// API-039
TEST_F(ScriptedApiServerTest, HeadersLeaveBeforeTheFirstEvent) {
  Start();
  ApiClient empty = Client();
  empty.Send("GET", kStreamedList);
  empty.Receive();
  EXPECT_EQ(empty.Brief(), "BOOKMARK");
  ApiClient quiet = Client();
  quiet.Send("GET", Watch("1"));
  EXPECT_EQ(quiet.Receive().code, 200);
}

// API-041, API-045, API-046, API-049
TEST_F(ScriptedApiServerTest, RefusalsAreStatusBodiesAndNoStreams) {
  Start();
  Client().Do("POST", kSlices, Slice("a"));
  server_->Compact();
  const std::string list(kSlices);
  const std::pair<std::string, int> cases[] = {
      {list + "?watch=1&sendInitialEvents=true", 422},
      {Watch("1"), 410},
      {list + "?resourceVersion=99&resourceVersionMatch=NotOlderThan", 504},
      {list + "?fieldSelector=spec.foo%3D1", 400},
      {list + "/none", 404},
      {"/apis/resource.k8s.io/v9/resourceslices", 404}};
  for (const auto& [target, code] : cases) {
    const auto answer = Get(target);
    EXPECT_EQ(answer.code, code) << target;
    EXPECT_EQ(answer.body["kind"], "Status");
    EXPECT_EQ(answer.body["code"], code);
  }
  EXPECT_EQ(server_->watches(), 0u);
}

// API-043
TEST_F(ScriptedApiServerTest, AWatchShowsWhatOthersWrite) {
  Start();
  ApiClient writer = Client();
  EXPECT_EQ(writer.Do("POST", kSlices, Slice("a")).code, 201);
  const std::string version =
      writer.Do("GET", kSlices).body["metadata"]["resourceVersion"];
  ApiClient watcher = Client();
  watcher.Send("GET", Watch(version));
  watcher.Receive();
  const std::string one = std::string(kSlices) + "/a";
  EXPECT_EQ(writer
                .Do("PATCH", one, R"({"metadata":{"labels":{"a":"b"}}})",
                    "Content-Type: application/merge-patch+json\r\n")
                .code,
            200);
  EXPECT_EQ(writer.Do("DELETE", one).code, 200);
  EXPECT_EQ(watcher.Brief(), "MODIFIED a");
  EXPECT_EQ(watcher.Brief(), "DELETED a");
}

// API-047
TEST_F(ScriptedApiServerTest, AWatchEndsInOrderAtItsTimeout) {
  Start();
  ApiClient client = Client();
  client.Send("GET", Watch("1") + "&timeoutSeconds=1");
  client.Receive();
  EXPECT_EQ(client.Brief(), "end");
  // The connection is as good as before.
  EXPECT_EQ(client.Do("GET", "/version").body["minor"], "36");
}

// API-048
TEST_F(ScriptedApiServerTest, AReaderThatStopsIsClosedAndNoOther) {
  ScriptedApiServerOptions options;
  options.watch_events = 50;
  Start(options);
  http::RawClient stalled(server_->port(), /*receive_buffer=*/4096);
  stalled.Get(Watch("1"));
  ApiClient reader = Client();
  reader.Send("GET", Watch("1"));
  reader.Receive();
  ASSERT_TRUE(server_->WaitForWatches(2, kPatience));
  const std::string padding(100'000, 'x');
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(server_
                    ->Do("POST", kSlices,
                         R"({"metadata":{"name":"s)" + std::to_string(i) +
                             R"("},"spec":{"x":")" + padding + R"("}})")
                    .ok());
    ASSERT_EQ(reader.Brief(), "ADDED s" + std::to_string(i));
  }
  const std::string all = stalled.ReadUntil("\r\n0\r\n\r\n");
  EXPECT_LT(all.size(), 200 * padding.size());
}

// API-050
TEST_F(ScriptedApiServerTest, JsonIsAnsweredToClientsThatPreferProtobuf) {
  Start();
  const auto answer = Client().Do(
      "GET", kSlices, "",
      "Accept: application/vnd.kubernetes.protobuf,application/json\r\n");
  EXPECT_EQ(answer.code, 200);
  EXPECT_NE(answer.head.find("Content-Type: application/json\r\n"),
            std::string::npos);
  EXPECT_EQ(Client().Do("GET", kSlices, "", "Accept: text/html\r\n").code, 406);
}

// API-051
TEST_F(ScriptedApiServerTest, AClientThatLeavesAQuietWatchIsForgotten) {
  Start();
  ApiClient client = Client();
  client.Send("GET", Watch("1"));
  client.Receive();
  ASSERT_TRUE(server_->WaitForWatches(1, kPatience));
  client.raw().Close();
  EXPECT_TRUE(server_->WaitForWatches(0, kPatience));
}

TEST_F(ScriptedApiServerTest, BodiesThatAreTooLargeAreRefused) {
  Start();
  ApiClient client = Client();
  client.raw().Send(std::string("POST ") + kSlices +
                    " HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n");
  const auto answer = client.Receive();
  EXPECT_EQ(answer.code, 413);
  EXPECT_EQ(answer.body["reason"], "RequestEntityTooLarge");
}

TEST_F(ScriptedApiServerTest, RequestsAreRecorded) {
  Start();
  Client().Do("PUT", "/api/v1/namespaces/x/pods/p/status", "{}",
              "Content-Type: application/json\r\nAuthorization: Bearer t\r\n"
              "User-Agent: me\r\n");
  ASSERT_TRUE(server_->WaitForCalls(1, kPatience));
  const ScriptedApiServer::Call call = server_->Calls().at(0);
  EXPECT_EQ(call.verb, "update");
  EXPECT_EQ(call.resource, "pods/status");
  EXPECT_EQ(call.ns, "x");
  EXPECT_EQ(call.name, "p");
  EXPECT_EQ(call.method, "PUT");
  EXPECT_EQ(call.target, "/api/v1/namespaces/x/pods/p/status");
  EXPECT_EQ(call.body, "{}");
  EXPECT_EQ(call.authorization, "Bearer t");
  EXPECT_EQ(call.user_agent, "me");
  EXPECT_FALSE(server_->WaitForCalls(2, milliseconds(1)));
}

TEST_F(ScriptedApiServerTest, ATokenThatIsNotTheOneIsUnauthorized) {
  ScriptedApiServerOptions options;
  options.token = "new";
  Start(options);
  const auto code = [this](const std::string& token) {
    return Client()
        .Do("GET", kSlices, "", "Authorization: Bearer " + token + "\r\n")
        .code;
  };
  EXPECT_EQ(code("old"), 401);
  EXPECT_EQ(code("new"), 200);
  server_->SetToken("newer");
  EXPECT_EQ(code("new"), 401);
}

TEST_F(ScriptedApiServerTest, ObjectsOfManifestsAreStoredAsTheyAre) {
  ScriptedApiServerOptions options;
  options.objects = R"(
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: x, uid: u-p}
spec: {nodeName: n1}
status: {phase: Running}
---
apiVersion: v1
kind: Node
metadata: {name: n1, uid: u-n1}
)";
  Start(options);
  const Json pod = Get("/api/v1/namespaces/x/pods/p").body;
  EXPECT_EQ(pod["metadata"]["uid"], "u-p");
  EXPECT_EQ(pod["status"]["phase"], "Running");
  EXPECT_TRUE(server_->Do("GET", "/api/v1/nodes/n1").ok());
  EXPECT_TRUE(
      absl::IsNotFound(server_->Do("GET", "/api/v1/nodes/n2").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(server_->Apply("kind: Pod")));
  EXPECT_TRUE(absl::IsInvalidArgument(server_->Apply("{")));
}

TEST_F(ScriptedApiServerTest, AFailureIsAnsweredSoManyTimes) {
  ApiFault fault;
  fault.action = FaultAction::kFail;
  fault.verb = "list";
  fault.resource = "resourceslices";
  fault.skip = 1;
  fault.times = 2;
  fault.code = 429;
  fault.retry_after = 7;
  Start(fault);
  EXPECT_EQ(Get(std::string(kSlices) + "/a").code, 200);
  EXPECT_EQ(Get("/api/v1/pods").code, 200);
  EXPECT_EQ(Get(kSlices).code, 200);
  const auto refused = Get(kSlices);
  EXPECT_EQ(refused.code, 429);
  EXPECT_NE(refused.head.find("Retry-After: 7\r\n"), std::string::npos);
  EXPECT_EQ(refused.body["details"]["retryAfterSeconds"], 7);
  EXPECT_EQ(Get(kSlices).code, 429);
  EXPECT_EQ(Get(kSlices).code, 200);
}

TEST_F(ScriptedApiServerTest, AFailureMayLastForOneObject) {
  ApiFault fault;
  fault.action = FaultAction::kFail;
  fault.name = "a";
  fault.times = 0;
  fault.code = 403;
  fault.message = "no relationship found between node 'n1' and this object";
  Start(fault);
  for (int i = 0; i < 3; ++i) {
    const auto answer = Get(std::string(kSlices) + "/a");
    EXPECT_EQ(answer.code, 403);
    EXPECT_EQ(answer.body["message"], fault.message);
  }
  EXPECT_EQ(Get(kSlices).code, 200);
  server_->ClearFaults();
  EXPECT_EQ(Get(std::string(kSlices) + "/a").code, 200);
}

TEST_F(ScriptedApiServerTest, EachCodeHasItsReason) {
  Start();
  const std::pair<int, const char*> cases[] = {
      {400, "BadRequest"},    {401, "Unauthorized"},
      {404, "NotFound"},      {409, "Conflict"},
      {410, "Expired"},       {422, "Invalid"},
      {500, "InternalError"}, {503, "ServiceUnavailable"},
      {504, "Timeout"},       {502, "InternalError"}};
  for (const auto& [code, reason] : cases) {
    ApiFault fault;
    fault.action = FaultAction::kFail;
    fault.code = code;
    server_->AddFault(fault);
    const auto answer = Get(kSlices);
    EXPECT_EQ(answer.code, code);
    EXPECT_EQ(answer.body["reason"], reason);
  }
}

TEST_F(ScriptedApiServerTest, ADelayedAnswerComesLater) {
  ApiFault fault;
  fault.delay = milliseconds(100);
  Start(fault);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Get(kSlices).code, 200);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(100));
}

TEST_F(ScriptedApiServerTest, AnAnswerIsCut) {
  ApiFault fault;
  fault.action = FaultAction::kCut;
  fault.bytes = 20;
  Start(fault);
  ApiClient client = Client();
  client.Send("GET", kSlices);
  EXPECT_EQ(client.raw().ReadAll().size(), 20u);
}

TEST_F(ScriptedApiServerTest, ALostAnswerWasStored) {
  ApiFault fault;
  fault.action = FaultAction::kLoseAnswer;
  fault.verb = "create";
  Start(fault);
  ApiClient client = Client();
  client.Send("POST", kSlices, Slice("b"));
  EXPECT_EQ(client.raw().ReadAll(), "");
  EXPECT_EQ(Get(std::string(kSlices) + "/b").code, 200);
}

TEST_F(ScriptedApiServerTest, ALieAboutTheVersion) {
  ApiFault fault;
  fault.action = FaultAction::kLie;
  fault.resource_version = "1";
  Start(fault);
  EXPECT_EQ(Get(kSlices).body["metadata"]["resourceVersion"], "1");
  EXPECT_EQ(Get(kSlices).body["metadata"]["resourceVersion"], "2");
}

TEST_F(ScriptedApiServerTest, SilenceKeepsTheConnectionAndSaysNothing) {
  ApiFault fault;
  fault.action = FaultAction::kSilence;
  Start(fault);
  ApiClient silent = Client();
  silent.Send("GET", kSlices);
  ASSERT_TRUE(server_->WaitForCalls(1, kPatience));
  EXPECT_EQ(Get(kSlices).code, 200);
  server_.reset();
  EXPECT_EQ(silent.raw().ReadAll(), "");
}

// API-014, the server's part.
TEST_F(ScriptedApiServerTest, AWatchFallsSilentAfterSoManyBytes) {
  ApiFault fault;
  fault.action = FaultAction::kSilence;
  fault.verb = "watch";
  fault.bytes = 10;
  Start(fault);
  ApiClient client = Client();
  client.Send("GET", Watch("0"));
  client.Receive();
  EXPECT_EQ(client.raw().ReadUntil("a\r\n"), "a\r\n");
  EXPECT_EQ(client.raw().ReadBytes(10), R"({"type":"A)");
  server_.reset();
  EXPECT_EQ(client.raw().ReadAll(), "\r\n");
}

TEST_F(ScriptedApiServerTest, HalfAnEventAndTheConnectionIsGone) {
  ApiFault fault;
  fault.action = FaultAction::kHalfEvent;
  Start(fault);
  ApiClient client = Client();
  client.Send("GET", Watch("0"));
  client.Receive();
  const std::string rest = client.raw().ReadAll();
  EXPECT_NE(rest.find(R"({"type":"ADDED")"), std::string::npos);
  EXPECT_EQ(rest.find("}\n"), std::string::npos);
}

// API-006, the server's part.
TEST_F(ScriptedApiServerTest, AnErrorEventEndsTheWatch) {
  ApiFault fault;
  fault.action = FaultAction::kErrorEvent;
  fault.code = 410;
  Start(fault);
  ApiClient client = Client();
  client.Send("GET", Watch("0"));
  client.Receive();
  EXPECT_EQ(client.Brief(), "ADDED a");
  const Json event = client.Event().value_or(Json());
  EXPECT_EQ(event["type"], "ERROR");
  EXPECT_EQ(event["object"]["code"], 410);
  EXPECT_EQ(event["object"]["reason"], "Expired");
  EXPECT_EQ(client.Brief(), "end");
}

// API-010, the server's part.
TEST_F(ScriptedApiServerTest, AWatchEndsAtOnce) {
  ApiFault fault;
  fault.action = FaultAction::kEnd;
  Start(fault);
  ApiClient client = Client();
  client.Send("GET", Watch("2"));
  client.Receive();
  EXPECT_EQ(client.Brief(), "end");
}

TEST_F(ScriptedApiServerTest, WatchesAreEndedFromOutside) {
  Start();
  using End = ScriptedApiServer::WatchEnd;
  for (const End how : {End::kInOrder, End::kCut, End::kSilence}) {
    ApiClient client = Client();
    client.Send("GET", Watch("1") + "&allowWatchBookmarks=true");
    client.Receive();
    ASSERT_TRUE(server_->WaitForWatches(1, kPatience));
    server_->SendBookmarks();
    EXPECT_EQ(client.Brief(), "BOOKMARK");
    server_->EndWatches(how);
    if (how == End::kInOrder) {
      EXPECT_EQ(client.Brief(), "end");
    } else if (how == End::kCut) {
      EXPECT_EQ(client.raw().ReadAll(), "");
    }
    EXPECT_TRUE(server_->WaitForWatches(0, kPatience));
  }
}

TEST_F(ScriptedApiServerTest, OptionsThatCannotBeUsedAreRefused) {
  ScriptedApiServerOptions options;
  options.objects = "kind: Pod";
  EXPECT_TRUE(
      absl::IsInvalidArgument(ScriptedApiServer::Start(options).status()));
  options = {};
  options.certificate = "/nonexistent";
  EXPECT_TRUE(
      absl::IsInvalidArgument(ScriptedApiServer::Start(options).status()));
}

TEST(ApiFaults, AreReadFromYaml) {
  const auto faults = ReadApiFaults(R"(
faults:
- {action: fail, verb: get, resource: pods/status, namespace: x, name: p,
   skip: 1, times: 2, code: 429, retryAfter: 7, message: no}
- {action: half-event, delay: 250ms, bytes: 12, resourceVersion: "5"}
)");
  ASSERT_TRUE(faults.ok()) << faults.status();
  ASSERT_EQ(faults->size(), 2u);
  const ApiFault& fail = faults->at(0);
  EXPECT_EQ(fail.action, FaultAction::kFail);
  EXPECT_EQ(fail.verb, "get");
  EXPECT_EQ(fail.resource, "pods/status");
  EXPECT_EQ(fail.ns, "x");
  EXPECT_EQ(fail.name, "p");
  EXPECT_EQ(fail.skip, 1);
  EXPECT_EQ(fail.times, 2);
  EXPECT_EQ(fail.code, 429);
  EXPECT_EQ(fail.retry_after, 7);
  EXPECT_EQ(fail.message, "no");
  EXPECT_EQ(faults->at(1).action, FaultAction::kHalfEvent);
  EXPECT_EQ(faults->at(1).delay, milliseconds(250));
  EXPECT_EQ(faults->at(1).bytes, 12u);
  EXPECT_EQ(faults->at(1).resource_version, "5");
}

TEST(ApiFaults, MistakesHaveTheirLine) {
  for (const char* text :
       {"{", "faults: 1", "faults: [{verb: get}]", "faults: [{action: dance}]",
        "faults: [{action: fail, color: red}]",
        "faults: [{action: fail, times: many}]",
        "faults: [{action: delay, delay: soon}]"}) {
    const auto status = ReadApiFaults(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_NE(status.message().find("line 1"), absl::string_view::npos)
        << status;
  }
}

}  // namespace
}  // namespace devmgr::testing
