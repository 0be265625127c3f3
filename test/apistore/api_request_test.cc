// SPDX-License-Identifier: Apache-2.0
#include "apistore/api_request.h"

#include "apistore/bed.h"

namespace devmgr::apistore {
namespace {

class ApiRequests : public ::testing::Test {
 protected:
  /// `verb resource[/status] v:version ns/name`, or the code of the refusal.
  std::string Read(std::string_view method, std::string_view target) {
    const auto result = ReadApiRequest(*bed_.store, method, target);
    if (const auto* error = std::get_if<ApiError>(&result)) {
      return std::to_string(error->code);
    }
    const auto& request = std::get<ApiRequest>(result);
    std::string text(VerbName(request.verb));
    text += " " + request.target.type->resource;
    if (!request.subresource.empty()) text += "/" + request.subresource;
    text += " " + request.target.type->ApiVersion(request.target.version);
    return text + " " + request.target.ns + "/" + request.target.name;
  }
  Answer Serve(std::string_view method, std::string_view target,
               std::string_view body = "",
               std::string_view type = "application/json") {
    const auto result = ReadApiRequest(*bed_.store, method, target);
    if (const auto* error = std::get_if<ApiError>(&result)) {
      return Refuse(*error);
    }
    return ServeRequest(*bed_.store, std::get<ApiRequest>(result), {type, body},
                        kNow);
  }
  Bed bed_;
};

constexpr const char* kSlices = "/apis/resource.k8s.io/v1/resourceslices";

TEST_F(ApiRequests, PathsNameTypesObjectsAndVerbs) {
  EXPECT_EQ(Read("GET", "/api/v1/pods?watch=false"), "list pods v1 /");
  EXPECT_EQ(Read("GET", "/api/v1/pods?watch=1"), "watch pods v1 /");
  EXPECT_EQ(Read("GET", "/api/v1/namespaces/x/pods/p"), "get pods v1 x/p");
  EXPECT_EQ(Read("PATCH", "/api/v1/namespaces/x/pods/p/status"),
            "patch pods/status v1 x/p");
  EXPECT_EQ(Read("POST", "/api/v1/namespaces/x/events"), "create events v1 x/");
  EXPECT_EQ(Read("PUT", "/api/v1/nodes/n%31"), "update nodes v1 /n1");
  EXPECT_EQ(Read("DELETE", kSlices),
            "deletecollection resourceslices resource.k8s.io/v1 /");
  EXPECT_EQ(Read("DELETE", "/apis/resource.k8s.io/v1beta1/resourceslices/s"),
            "delete resourceslices resource.k8s.io/v1beta1 /s");
  EXPECT_EQ(Read("GET",
                 "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/"
                 "leases/n1"),
            "get leases coordination.k8s.io/v1 kube-node-lease/n1");
}

TEST_F(ApiRequests, WhatIsNotServedIsNotFound) {
  for (const char* target :
       {"/", "/api", "/api/v1", "/api/v2/pods", "/api/v1/secrets",
        "/apis/resource.k8s.io/v9/resourceslices", "/apis/x/v1/pods",
        "/other/v1/pods", "/api/v1/pods/p", "/api/v1/namespaces/x/nodes",
        "/api/v1/namespaces/x/pods/p/log",
        "/api/v1/namespaces/x/pods/p/status/x",
        "/apis/resource.k8s.io/v1/resourceslices/s/status"}) {
    EXPECT_EQ(Read("GET", target), "404") << target;
  }
  EXPECT_EQ(Read("POST", "/api/v1/pods"), "405");
  EXPECT_EQ(Read("POST", "/api/v1/nodes/n1"), "405");
  EXPECT_EQ(Read("PUT", "/api/v1/nodes"), "405");
  EXPECT_EQ(Read("DELETE", "/api/v1/nodes/n1/status"), "405");
  EXPECT_EQ(Read("TRACE", "/api/v1/nodes"), "405");
}

TEST_F(ApiRequests, AnObjectLives) {
  EXPECT_EQ(Serve("POST", kSlices, Bed::SliceBody("a").dump()).code, 201);
  const std::string one = std::string(kSlices) + "/a";
  Json slice = Serve("GET", one).body;
  slice["metadata"]["labels"] = {{"a", "b"}};
  EXPECT_EQ(Serve("PUT", one, slice.dump()).code, 200);
  EXPECT_EQ(Serve("PATCH", one, R"({"metadata":{"labels":{"c":"d"}}})",
                  "application/merge-patch+json")
                .body["metadata"]["labels"]
                .size(),
            2u);
  EXPECT_EQ(Names(Serve("GET", std::string(kSlices) +
                                   "?fieldSelector=spec.nodeName%3Dn1&limit=5&"
                                   "labelSelector=a+in+(b)")
                      .body),
            std::vector<std::string>{"a"});
  EXPECT_EQ(Serve("DELETE", one, R"({"preconditions":{"uid":"u-x"}})").code,
            409);
  EXPECT_EQ(Serve("DELETE", one, R"({"dryRun":["All"]})").code, 200);
  EXPECT_EQ(Serve("DELETE", one).code, 200);
  EXPECT_EQ(Serve("GET", one).code, 404);
}

TEST_F(ApiRequests, QueriesReachTheStore) {
  EXPECT_EQ(Serve("POST", std::string(kSlices) + "?dryRun=All",
                  Bed::SliceBody("a").dump())
                .code,
            201);
  EXPECT_EQ(Serve("GET", std::string(kSlices) + "/a").code, 404);
  EXPECT_EQ(Serve("POST", std::string(kSlices) + "?dryRun=Some",
                  Bed::SliceBody("a").dump())
                .code,
            400);
  EXPECT_EQ(Serve("GET", std::string(kSlices) + "?sendInitialEvents=true").code,
            422);
  bed_.MustCreate(bed_.At("pods", "x"),
                  J(R"({"metadata":{"name":"p"},"spec":{"nodeName":"n"}})"));
  const char* const pod = "/api/v1/namespaces/x/pods/p";
  EXPECT_EQ(Serve("DELETE", pod, R"({"gracePeriodSeconds":7})")
                .body["metadata"]["deletionGracePeriodSeconds"],
            7);
  EXPECT_EQ(Serve("DELETE", std::string(pod) + "?gracePeriodSeconds=0").code,
            200);
  EXPECT_EQ(Serve("GET", pod).code, 404);
}

// API-061, as far as it is about JSON.
TEST_F(ApiRequests, BodiesThatAreNoneAreRefused) {
  EXPECT_EQ(Serve("POST", kSlices, "{").code, 400);
  EXPECT_EQ(Serve("POST", kSlices, "").code, 400);
  EXPECT_EQ(Serve("POST", kSlices, "{}", "application/cbor").code, 415);
  EXPECT_EQ(
      Serve("POST", kSlices, "k8s", "application/vnd.kubernetes.protobuf").code,
      415);
  EXPECT_EQ(Serve("PATCH", std::string(kSlices) + "/a", "{}").code, 415);
  EXPECT_EQ(Serve("DELETE", std::string(kSlices) + "/a", "[]").code, 400);
  EXPECT_EQ(Serve("DELETE", std::string(kSlices) + "/a", "{").code, 400);
}

// API-050
TEST_F(ApiRequests, JsonIsAnsweredWhereItIsAccepted) {
  for (const char* accept :
       {"", "*/*", "application/json", "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf,application/json",
        "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"}) {
    EXPECT_FALSE(CheckAccept(accept).has_value()) << accept;
  }
  for (const char* accept :
       {"application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf", "text/html"}) {
    EXPECT_EQ(CheckAccept(accept).value_or(ApiError{}).code, 406) << accept;
  }
}

TEST_F(ApiRequests, ParametersOfAWatch) {
  const auto result = ReadApiRequest(
      *bed_.store, "GET",
      std::string(kSlices) +
          "?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&"
          "sendInitialEvents=true&timeoutSeconds=5&timeout=5s&watch=true&"
          "resourceVersion=7");
  const auto& request = std::get<ApiRequest>(result);
  const WatchOptions options = WatchOptionsOf(request);
  EXPECT_TRUE(options.bookmarks);
  EXPECT_EQ(options.send_initial_events, true);
  EXPECT_EQ(options.version_match, "NotOlderThan");
  EXPECT_EQ(options.resource_version, "7");
  EXPECT_EQ(WatchTimeoutOf(request), 5);
}

// Else its end, in a finer unit, would be no number any more.
TEST_F(ApiRequests, AWatchLastsADayAtMost) {
  const auto timeout = [this](const std::string& seconds) {
    const auto result = ReadApiRequest(
        *bed_.store, "GET",
        std::string(kSlices) + "?watch=true&timeoutSeconds=" + seconds);
    return WatchTimeoutOf(std::get<ApiRequest>(result));
  };
  EXPECT_EQ(timeout("86400"), 86'400);
  EXPECT_EQ(timeout("86401"), 86'400);
  EXPECT_EQ(timeout("9223372036854775807"), 86'400);
  for (const char* none : {"", "0", "-1", "x"}) {
    EXPECT_EQ(timeout(none), std::nullopt) << none;
  }
}

TEST_F(ApiRequests, Discovery) {
  const auto discover = [this](std::string_view path) {
    const auto answer = Discover(*bed_.store, path, "v1.36.0+devmgr");
    return answer.has_value() ? answer->body : Json();
  };
  EXPECT_EQ(discover("/version")["minor"], "36");
  EXPECT_EQ(discover("/version")["major"], "1");
  EXPECT_EQ(discover("/healthz"), "ok");
  EXPECT_EQ(discover("/api/")["versions"][0], "v1");
  EXPECT_EQ(discover("/apis")["groups"].size(), 2u);
  const Json group = discover("/apis/resource.k8s.io");
  EXPECT_EQ(group["preferredVersion"]["groupVersion"], "resource.k8s.io/v1");
  EXPECT_EQ(group["versions"].size(), 3u);
  const Json types = discover("/apis/resource.k8s.io/v1beta1?timeout=32s");
  EXPECT_EQ(types["groupVersion"], "resource.k8s.io/v1beta1");
  EXPECT_EQ(types["resources"][0]["name"], "resourceclaims");
  EXPECT_EQ(types["resources"][1]["name"], "resourceclaims/status");
  EXPECT_EQ(discover("/api/v1")["resources"][0]["name"], "pods");
  for (const char* none :
       {"/", "/apis/none", "/apis/resource.k8s.io/v9", "/apis/a/b/c", "/x"}) {
    EXPECT_TRUE(discover(none).is_null()) << none;
  }
}

}  // namespace
}  // namespace devmgr::apistore
