// SPDX-License-Identifier: Apache-2.0
#include "endpoint/endpoint.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "endpoint/bed.h"

namespace devmgr::endpoint {
namespace {

using apistore::J;
using apistore::Json;
using apistore::MetaText;

constexpr const char* kStreamedList =
    "/apis/resource.k8s.io/v1/resourceslices?allowWatchBookmarks=true&"
    "fieldSelector=spec.driver%3Dgpu.example.com%2Cspec.nodeName%3Dn1&"
    "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&"
    "timeoutSeconds=300&timeout=5m&watch=true";

class EndpointTest : public ::testing::Test, public EndpointBed {
 protected:
  void SetUp() override { Start(); }
  std::string RevisionOf(const std::string& name) {
    return MetaText(Call("GET", std::string(kSlices) + "/" + name).json(),
                    "resourceVersion");
  }
};

// API-038 and 039, over TLS.
TEST_F(EndpointTest, StreamsAListWithItsFinalBookmark) {
  auto client = Client();
  client->Send("GET", kStreamedList, Token());
  const Reply head = client->Head();
  EXPECT_EQ(head.code, 200);
  EXPECT_NE(head.head.find("content-type: application/json"),
            std::string::npos);
  const Json bookmark = client->Event();
  EXPECT_EQ(bookmark["type"], "BOOKMARK");
  EXPECT_EQ(bookmark["object"]["kind"], "ResourceSlice");
  EXPECT_EQ(bookmark["object"]["metadata"]["annotations"]
                    ["k8s.io/initial-events-end"],
            "true");
  EXPECT_EQ(Call("POST", kSlices, Slice("s").dump()).code, 201);
  const Json added = client->Event();
  EXPECT_EQ(added["type"], "ADDED");
  EXPECT_EQ(added["object"]["apiVersion"], "resource.k8s.io/v1");
  EXPECT_EQ(MetaText(added["object"], "name"), "s");
  EXPECT_EQ(endpoint->counts().watches, 1u);
}

// API-052 and 053, as the official client sends it.
TEST_F(EndpointTest, TakesSlicesAsProtobuf) {
  Json slice = Slice("");
  slice["metadata"] = {
      {"generateName", "00000-gpu.example.com-n1-"},
      {"ownerReferences", Json::array({{{"apiVersion", "v1"},
                                        {"kind", "Node"},
                                        {"name", "n1"},
                                        {"uid", "u-n1"},
                                        {"controller", true}}})}};
  const std::string type = "application/vnd.kubernetes.protobuf";
  const Reply reply = Call("POST", kSlices, ProtobufOf(slice), type);
  ASSERT_EQ(reply.code, 201) << reply.body;
  const Json stored = reply.json();
  const std::string name = MetaText(stored, "name");
  EXPECT_EQ(name.substr(0, 25), "00000-gpu.example.com-n1-");
  EXPECT_EQ(name.size(), 30u);
  EXPECT_EQ(stored["spec"], slice["spec"]);
  EXPECT_EQ(stored["metadata"]["generation"], 1);

  Json beta = slice;
  beta["apiVersion"] = "resource.k8s.io/v1beta1";
  beta["spec"]["devices"] = J(R"([{"name": "gpu-0", "basic": {}}])");
  const Reply second =
      Call("POST", "/apis/resource.k8s.io/v1beta1/resourceslices",
           ProtobufOf(beta), type);
  ASSERT_EQ(second.code, 201) << second.body;
  const Json as_v1 =
      Call("GET", std::string(kSlices) + "/" + MetaText(second.json(), "name"))
          .json();
  EXPECT_EQ(as_v1["spec"], stored["spec"]);

  // API-057
  const auto preconditions = [&](const std::string& uid) {
    return ProtobufOf({{"apiVersion", "resource.k8s.io/v1"},
                       {"kind", "DeleteOptions"},
                       {"preconditions", {{"uid", uid}}}});
  };
  const std::string path = std::string(kSlices) + "/" + name;
  EXPECT_EQ(Call("DELETE", path, preconditions("wrong"), type).code, 409);
  EXPECT_EQ(
      Call("DELETE", path, preconditions(MetaText(stored, "uid")), type).code,
      200);
  EXPECT_EQ(Call("DELETE", path, preconditions(""), type).code, 404);
}

// API-061
TEST_F(EndpointTest, RefusesBodiesThatItCannotRead) {
  const std::string type = "application/vnd.kubernetes.protobuf";
  EXPECT_EQ(Call("POST", kSlices, std::string("k8s\0\xFF", 5), type).code, 400);
  EXPECT_EQ(Call("POST", kSlices, "{}", type).code, 400);
  EXPECT_EQ(Call("POST", kSlices, "x", "application/cbor").code, 415);
  EXPECT_EQ(Call("POST", kSlices, "{").code, 400);
}

// API-062
TEST_F(EndpointTest, KeepsDriversApart) {
  Reply reply = Call("POST", kSlices, Slice("s", kOther).dump());
  EXPECT_EQ(reply.code, 403);
  EXPECT_EQ(reply.json()["message"],
            "resourceslices.resource.k8s.io \"s\" is forbidden: driver "
            "\"gpu.example.com\" may not write slices of driver "
            "\"nic.example.com\" (spec.driver)");
  reply = Call("POST", kSlices, Slice("s", kDriver, "n2").dump());
  EXPECT_EQ(reply.code, 403);
  EXPECT_EQ(reply.json()["message"],
            "resourceslices.resource.k8s.io \"s\" is forbidden: driver "
            "\"gpu.example.com\" may write slices of node \"n1\" only, and "
            "spec.nodeName is \"n2\"");

  auto watch = Client();
  watch->Send("GET", std::string(kSlices) + "?watch=true", Token());
  EXPECT_EQ(watch->Head().code, 200);
  const std::string json = "application/json";
  ASSERT_EQ(
      Call("POST", kSlices, Slice("theirs", kOther).dump(), json, kOther).code,
      201);
  const std::string theirs = std::string(kSlices) + "/theirs";
  EXPECT_EQ(Call("GET", theirs).code, 403);
  EXPECT_EQ(Call("DELETE", theirs).code, 403);
  EXPECT_EQ(Call("PUT", theirs, Slice("theirs").dump()).code, 403);
  EXPECT_EQ(Call("PATCH", theirs, R"({"metadata": {"labels": {"a": "b"}}})",
                 "application/merge-patch+json")
                .code,
            403);
  EXPECT_EQ(Call("DELETE", kSlices).code, 403) << "without a selector";
  EXPECT_EQ(
      Call("DELETE", std::string(kSlices) + "?fieldSelector=spec.nodeName%3Dn1")
          .code,
      200);
  EXPECT_EQ(Call("GET", theirs, "", json, kOther).code, 200);
  EXPECT_EQ(Call("GET", kSlices).json()["items"], Json::array());
  ASSERT_EQ(Call("POST", kSlices, Slice("ours").dump()).code, 201);
  EXPECT_EQ(MetaText(watch->Event()["object"], "name"), "ours");

  ASSERT_TRUE(endpoint->PutObject(Claim("c")).ok());
  EXPECT_EQ(Call("GET", kClaim).code, 200);
  EXPECT_EQ(Call("GET", kClaim, "", json, kOther).code, 404);
  EXPECT_EQ(Call("PUT", kClaim, Claim("c")).code, 403);
  EXPECT_EQ(Call("DELETE", kClaim).code, 403);
  EXPECT_EQ(Call("GET", "/api/v1/pods").code, 403);
}

// API-058, 059 and 060
TEST_F(EndpointTest, ValidatesSlices) {
  Json slice = Slice("s");
  slice["spec"]["devices"][0]["attributes"] =
      J(R"({"bad name!": {"string": "x"}})");
  slice["metadata"]["ownerReferences"] = J(R"([{"apiVersion": "v1",
      "kind": "Node", "name": "n1", "uid": "u-x"}])");
  Reply reply = Call("POST", kSlices, slice.dump());
  EXPECT_EQ(reply.code, 422);
  const Json causes = reply.json()["details"]["causes"];
  ASSERT_EQ(causes.size(), 2u) << causes;
  EXPECT_EQ(causes[0]["field"], "metadata.ownerReferences[0]");
  EXPECT_EQ(causes[0]["message"],
            "the owner is node \"n1\" with the UID \"u-x\", and this is node "
            "\"n1\" with the UID \"u-n1\"");
  EXPECT_EQ(causes[1]["field"].get<std::string>().substr(0, 23),
            "spec.devices[0].attribu");

  slice = Slice("s");
  for (int i = 1; i <= 128; ++i) {
    slice["spec"]["devices"].push_back({{"name", "d" + std::to_string(i)}});
  }
  reply = Call("POST", kSlices, slice.dump());
  EXPECT_EQ(reply.code, 422);
  EXPECT_EQ(reply.json()["details"]["causes"][0]["field"], "spec.devices");

  slice = Slice("s");
  slice["spec"]["devices"][0]["taints"] =
      J(R"([{"key": "k", "effect": "NoSchedule"}])");
  reply = Call("POST", kSlices, slice.dump());
  ASSERT_EQ(reply.code, 201) << reply.body;
  EXPECT_EQ(reply.json()["spec"]["devices"][0]["taints"][0]["timeAdded"]
                .get<std::string>()
                .size(),
            20u);
}

TEST_F(EndpointTest, DropsFieldsThatItDoesNotKnow) {
  Json slice = Slice("s");
  slice["spec"]["devices"][0]["colour"] = "red";
  const Reply strict = Call(
      "POST", std::string(kSlices) + "?fieldValidation=Strict", slice.dump());
  EXPECT_EQ(strict.code, 400);
  EXPECT_EQ(strict.json()["message"],
            "strict decoding error: unknown field "
            "\"spec.devices[0].colour\"");
  const Reply reply = Call("POST", kSlices, slice.dump());
  ASSERT_EQ(reply.code, 201);
  EXPECT_EQ(reply.json()["spec"], Slice("s")["spec"]);
  EXPECT_NE(reply.head.find("warning: 299 - \"unknown field "
                            "\\\"spec.devices[0].colour\\\"\""),
            std::string::npos)
      << reply.head;
}

// API-063, 064, 065 and 066
TEST_F(EndpointTest, TakesTheStatusOfDevices) {
  ASSERT_TRUE(endpoint->PutObject(Claim("c")).ok());
  const std::string status = std::string(kClaim) + "/status";
  Json claim = Call("GET", kClaim).json();
  Json changed = claim;
  changed["status"]["allocation"] = Json::object();
  changed["status"]["devices"] = J(R"([{"driver": "gpu.example.com",
    "pool": "n1", "device": "gpu-0", "data": {"a": 1}}])");
  const Reply put = Call("PUT", status, ProtobufOf(changed),
                         "application/vnd.kubernetes.protobuf");
  ASSERT_EQ(put.code, 200) << put.body;
  EXPECT_EQ(put.json()["status"]["allocation"], claim["status"]["allocation"]);
  EXPECT_EQ(put.json()["status"]["devices"], changed["status"]["devices"]);
  const auto change = changes.Take();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->kind, DriverChange::Kind::kClaimStatus);
  EXPECT_EQ(change->name, "c");
  EXPECT_EQ(J(change->json)["status"], put.json()["status"]);

  const auto apply = [&](const std::string& devices) {
    return Call("PATCH", status + "?fieldManager=gpu.example.com&force=true",
                R"({"apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaim", "metadata": {"name": "c"},
                    "status": {"devices": [)" +
                    devices + "]}}",
                "application/apply-patch+yaml");
  };
  const std::string gpu0 =
      R"({"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"})";
  const std::string gpu1 =
      R"({"driver": "gpu.example.com", "pool": "n1", "device": "gpu-1"})";
  EXPECT_EQ(apply(gpu0 + "," + gpu1).json()["status"]["devices"].size(), 2u);
  const Json left = apply(gpu1).json()["status"]["devices"];
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0]["device"], "gpu-1");
  EXPECT_EQ(
      apply(R"({"driver": "gpu.example.com", "pool": "n1", "device": "x"})")
          .code,
      422);
  EXPECT_EQ(
      apply(R"({"driver": "nic.example.com", "pool": "n1", "device": "x"})")
          .code,
      403);
  // What drivers said stays when the claim is published again.
  ASSERT_TRUE(endpoint->SetObjects("ResourceClaim", {Claim("c")}).ok());
  EXPECT_EQ(Call("GET", kClaim).json()["status"]["devices"], left);
  ASSERT_TRUE(endpoint->SetObjects("ResourceClaim", {}).ok());
  for (const char* version : {"v1", "v1beta1", "v1beta2"}) {
    EXPECT_EQ(Call("GET", std::string("/apis/resource.k8s.io/") + version +
                              "/namespaces/default/resourceclaims/c")
                  .code,
              404);
  }
}

// API-044 and 068
TEST_F(EndpointTest, GoesOnAfterARestartWhereItWas) {
  ASSERT_TRUE(endpoint->SetObjects("ResourceClaim", {Claim("c")}).ok());
  ASSERT_EQ(Call("POST", kSlices, Slice("a").dump()).code, 201);
  ASSERT_EQ(Call("POST", kSlices, Slice("b").dump()).code, 201);
  ASSERT_EQ(Call("DELETE", std::string(kSlices) + "/b").code, 200);
  const Json before = Call("GET", kSlices).json();
  const std::uint16_t port = endpoint->port();
  const std::string token = Token();
  endpoint.reset();
  Start();
  EXPECT_EQ(endpoint->port(), port) << "drivers do not read it again";
  EXPECT_EQ(Token(), token);
  ASSERT_TRUE(endpoint->SetObjects("ResourceClaim", {Claim("c")}).ok());
  EXPECT_EQ(Call("GET", kSlices).json(), before);

  const std::string last = MetaText(before, "resourceVersion");
  auto watch = Client();
  watch->Send("GET",
              std::string(kSlices) + "?watch=true&resourceVersion=" + last,
              Token());
  EXPECT_EQ(watch->Head().code, 200);
  const Json created = Call("POST", kSlices, Slice("b").dump()).json();
  EXPECT_GT(std::stoull(MetaText(created, "resourceVersion")),
            std::stoull(last));
  EXPECT_EQ(watch->Event()["object"], created);
}

/// Pods do not wait for the disk when their claims are shown.
TEST_F(EndpointTest, ClaimsOfItsOwnerAreNotMadeDurableOneByOne) {
  const auto claims_on_disk = [&] {
    const auto content = journal.Replay();
    return std::count_if(content->entries.begin(), content->entries.end(),
                         [](const JournalEntry& entry) {
                           return entry.key.find("resourceclaims") !=
                                      std::string::npos &&
                                  !entry.is_later;
                         });
  };
  for (int i = 0; i < 900; ++i) {
    ASSERT_TRUE(endpoint->PutObject(Claim(fmt::format("c-{}", i))).ok());
  }
  EXPECT_EQ(journal.reserved, 1);
  EXPECT_EQ(claims_on_disk(), 0);
  ASSERT_TRUE(endpoint->PutObject(Claim("c")).ok());
  // What a driver says is on disk, with the claim, until that is gone.
  const Json status = J(R"({"apiVersion": "resource.k8s.io/v1",
      "kind": "ResourceClaim", "metadata": {"name": "c"}, "status": {"devices":
      [{"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]}})");
  ASSERT_EQ(Call("PATCH",
                 std::string(kClaim) +
                     "/status?fieldManager=gpu.example.com&force=true",
                 status.dump(), "application/apply-patch+yaml")
                .code,
            200);
  EXPECT_EQ(claims_on_disk(), 1);
  ASSERT_TRUE(endpoint->SetObjects("ResourceClaim", {Claim("c-1")}).ok());
  EXPECT_EQ(claims_on_disk(), 0);
  journal.fails = true;
  EXPECT_FALSE(endpoint->PutObject(Claim("other")).ok());
}

/// API-044: no version that was seen is given again, after kills and power
/// failures.
TEST_F(EndpointTest, VersionsOfClaimsRiseOverKillsAndPowerFailures) {
  journal.is_killed = true;
  std::uint64_t last = 0;
  const auto revision = [&] {
    return std::stoull(
        MetaText(Call("GET", kSlices).json(), "resourceVersion"));
  };
  for (int run = 0; run < 20; ++run) {
    const std::uint64_t first = revision();
    EXPECT_GE(first, last);
    const int claims = 1 + run % 4;
    for (int i = 0; i < claims; ++i) {
      ASSERT_TRUE(
          endpoint->PutObject(Claim(fmt::format("c-{}-{}", run, i))).ok());
    }
    last = revision();
    EXPECT_GE(last, first + claims);
    endpoint.reset();
    const bool power_fails = run % 2 == 1;
    if (power_fails) {
      std::filesystem::remove_all(folder.path() / "journal-later");
    }
    Start();
    // A kill takes no claim away, before its owner shows anything.
    EXPECT_EQ(endpoint->Objects("ResourceClaim").empty(), power_fails);

    EXPECT_GT(revision(), last) << "a watch begins anew";
  }
}

TEST_F(EndpointTest, AnswersNothingThatIsNotDurable) {
  ASSERT_EQ(Call("POST", kSlices, Slice("a").dump()).code, 201);
  const std::string list = Call("GET", kSlices).body;
  journal.fails = true;
  const Reply reply = Call("POST", kSlices, Slice("b").dump());
  EXPECT_EQ(reply.code, 503);
  EXPECT_NE(reply.head.find("retry-after: 1"), std::string::npos);
  EXPECT_EQ(Call("DELETE", std::string(kSlices) + "/a").code, 503);
  EXPECT_EQ(Call("GET", kSlices).json()["items"], J(list)["items"]);
  journal.fails = false;
  const Json later = Call("POST", kSlices, Slice("b").dump()).json();
  EXPECT_EQ(MetaText(later, "resourceVersion"), "5") << "none is used twice";
}

/// Every name that an object may have, also where it is none of a file.
TEST_F(EndpointTest, KeepsObjectsOfAnyNameOverARestart) {
  std::string longest(253, 'x');
  longest[126] = '.';
  for (const std::string& name : {std::string("x.tmp"), longest}) {
    EXPECT_TRUE(endpoint->PutObject(Claim(name)).ok()) << name;
    EXPECT_EQ(Call("POST", kSlices, Slice(name).dump()).code, 201) << name;
  }
  journal.is_killed = true;
  endpoint.reset();
  Start();
  EXPECT_EQ(endpoint->Objects("ResourceClaim").size(), 2u);
  EXPECT_EQ(endpoint->Objects("ResourceSlice").size(), 2u);
}

/// As after a restore from a backup: the version has never been here.
TEST_F(EndpointTest, AWatchFromAVersionThatIsTooHighListsAgain) {
  const auto watch = [&](std::uint64_t since) {
    return Call("GET", fmt::format("{}?watch=true&timeoutSeconds=1&"
                                   "resourceVersion={}",
                                   kSlices, since));
  };
  ASSERT_EQ(Call("POST", kSlices, Slice("a").dump()).code, 201);
  const std::uint64_t last = std::stoull(RevisionOf("a"));
  const Reply expired = watch(last + 1);
  EXPECT_EQ(expired.code, 410);
  EXPECT_EQ(expired.json()["reason"], "Expired");
  EXPECT_EQ(endpoint->counts().watches, 0u);
  EXPECT_EQ(watch(last).code, 200);
}

TEST_F(EndpointTest, WantsATokenAndNoOther) {
  EXPECT_EQ(Client()->Call("GET", kSlices, "").code, 401);
  EXPECT_EQ(Client()->Call("GET", kSlices, Token() + "x").code, 401);
  EXPECT_EQ(Client()->Call("GET", "/readyz", "").body, "ok");
  const std::string old = Token();
  ASSERT_TRUE(endpoint->RotateToken(kDriver).ok());
  EXPECT_NE(Token(), old);
  EXPECT_EQ(Call("GET", kSlices).code, 200);
  EXPECT_EQ(Client()->Call("GET", kSlices, old).code, 200);
  EXPECT_EQ(endpoint->counts().unauthorized, 2u);
  EXPECT_EQ(endpoint->AddDriver("Not A Name").code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(endpoint->AddDriver("new.example.com").ok());
  EXPECT_EQ(Call("GET", "/version", "", "application/json", "new.example.com")
                .json()["gitVersion"],
            "v1.36.0+devmgr");
}

TEST_F(EndpointTest, KeepsSecretsToTheOwnerOfTheFiles) {
  const std::filesystem::path dir = options.kubeconfig_dir;
  for (const char* file : {"gpu.example.com", ".tls/tls.key", ".tls/ca.key",
                           ".serviceaccount/gpu.example.com/token"}) {
    struct stat status {};
    ASSERT_EQ(::stat((dir / file).c_str(), &status), 0) << file;
    EXPECT_EQ(status.st_mode & 07777, 0600u) << file;
  }
  EXPECT_NE(TextOf(dir / kDriver).find("server: " + endpoint->server()),
            std::string::npos);
  EXPECT_EQ(TextOf(dir / kDriver).find(Token()), std::string::npos);
}

/// A driver that is started again trusts the authority that there is now.
TEST_F(EndpointTest, DriversGetANewAuthority) {
  endpoint.reset();
  options.certificate_check = std::chrono::milliseconds(1);
  Start();
  ASSERT_TRUE(endpoint->AddDriver("new.example.com").ok());
  const std::filesystem::path dir = options.kubeconfig_dir;
  const std::string old = TextOf(dir / ".tls/ca.crt");
  std::filesystem::remove(dir / ".tls/ca.key");
  for (const char* driver : {kDriver, kOther, "new.example.com"}) {
    const auto has_it = [&] {
      const std::string now = TextOf(dir / ".tls/ca.crt");
      return now != old && TextOf(dir / driver).find(absl::Base64Escape(now)) !=
                               std::string::npos;
    };
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    // The call waits for its turn on the thread that does it.
    while (!has_it() && std::chrono::steady_clock::now() < deadline) {
      endpoint->counts();
    }
    EXPECT_TRUE(has_it()) << driver;
    EXPECT_EQ(TextOf(dir / ".serviceaccount" / driver / "ca.crt"),
              TextOf(dir / ".tls/ca.crt"));
  }
  EXPECT_EQ(Call("GET", "/version").code, 200);
}

TEST_F(EndpointTest, BoundsWatchesAndEndsThemInOrder) {
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (std::size_t i = 0; i < options.max_watches; ++i) {
    clients.push_back(Client());
    clients.back()->Send("GET", kStreamedList, Token());
    EXPECT_EQ(clients.back()->Head().code, 200);
    EXPECT_EQ(clients.back()->Event()["type"], "BOOKMARK");
  }
  const Reply refused = Call("GET", kStreamedList);
  EXPECT_EQ(refused.code, 429);
  EXPECT_NE(refused.head.find("retry-after: 1"), std::string::npos);
  EXPECT_EQ(Call("GET", std::string(kSlices) + "?watch=1&timeoutSeconds=1", "",
                 "application/json", kOther)
                .code,
            200)
      << "another driver has its own";
  endpoint.reset();
  for (const auto& client : clients) {
    EXPECT_EQ(client->Event()["type"], "BOOKMARK");
    EXPECT_EQ(client->Event(), nullptr);
    EXPECT_TRUE(client->ended());
  }
}

TEST_F(EndpointTest, BoundsRequests) {
  auto client = Client();
  int limited = 0;
  for (int i = 0; i < 200 && limited == 0; ++i) {
    limited += client->Call("GET", "/version", Token()).code == 429 ? 1 : 0;
  }
  // A machine may be too slow for more than fifty requests in a second.
  EXPECT_EQ(endpoint->counts().limited, static_cast<std::size_t>(limited));
  EXPECT_EQ(Call("GET", "/version", "", "application/json", kOther).code, 200);
}

TEST_F(EndpointTest, TakesEventsAndReviews) {
  ASSERT_TRUE(endpoint->PutObject(Claim("c")).ok());
  const std::string events = "/api/v1/namespaces/default/events";
  Json event = J(R"({"apiVersion": "v1", "kind": "Event",
    "metadata": {"name": "c.1", "namespace": "default"}, "reason": "Fine",
    "involvedObject": {"kind": "ResourceClaim", "namespace": "default",
                       "name": "c"}, "count": 1})");
  EXPECT_EQ(Call("POST", events, ProtobufOf(event),
                 "application/vnd.kubernetes.protobuf")
                .code,
            201);
  EXPECT_EQ(Call("PATCH", events + "/c.1", R"({"count": 2})",
                 "application/strategic-merge-patch+json")
                .json()["count"],
            2);
  EXPECT_EQ(Call("PATCH", events + "/none", R"({"count": 2})",
                 "application/strategic-merge-patch+json")
                .code,
            404);
  event["involvedObject"]["name"] = "other";
  EXPECT_EQ(Call("POST", events, event.dump()).code, 403);
  EXPECT_EQ(changes.Take()->kind, DriverChange::Kind::kEvent);

  const auto allowed = [&](const std::string& verb) {
    return Call("POST",
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                R"({"kind": "SelfSubjectAccessReview",
      "apiVersion": "authorization.k8s.io/v1", "spec": {"resourceAttributes":
      {"group": "resource.k8s.io", "resource": "resourceclaims", "verb": ")" +
                    verb + "\"}}}")
        .json()["status"]["allowed"];
  };
  EXPECT_EQ(allowed("get"), true);
  EXPECT_EQ(allowed("delete"), false);
}

TEST_F(EndpointTest, ShowsWhatItsOwnerPublishes) {
  const std::string node =
      R"({"apiVersion": "v1", "kind": "Node",
          "metadata": {"name": "n1", "uid": "u-n1"}})";
  ASSERT_TRUE(endpoint->SetObjects("Node", {node}).ok());
  const Json first = Call("GET", "/api/v1/nodes/n1").json();
  EXPECT_EQ(MetaText(first, "uid"), "u-n1");
  ASSERT_TRUE(endpoint->SetObjects("Node", {node}).ok());
  EXPECT_EQ(Call("GET", "/api/v1/nodes/n1").json(), first);
  EXPECT_EQ(endpoint->SetObjects("ResourceSlice", {}).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(endpoint->PutObject(Claim("c")).ok());
  EXPECT_EQ(
      Call("GET", "/api/v1/namespaces").json()["items"][0]["metadata"]["name"],
      "default");
  ASSERT_EQ(Call("POST", kSlices, Slice("s").dump()).code, 201);
  EXPECT_EQ(endpoint->Objects("ResourceSlice").size(), 1u);
  EXPECT_EQ(*endpoint->DeleteSlices(kDriver), 1u);
  EXPECT_EQ(endpoint->Objects("ResourceSlice").size(), 0u);
}

TEST_F(EndpointTest, PublishesTheOthersWhenOneIsRefused) {
  ASSERT_TRUE(endpoint
                  ->SetObjects("ResourceClaim",
                               {Claim("gone"), Claim("refused"), Claim("c")})
                  .ok());
  std::string refused = Claim("refused");
  refused.replace(refused.find("k8s.io/v1"), 9, "k8s.io/v9");
  const absl::Status status = endpoint->SetObjects(
      "ResourceClaim", {Claim("a"), refused, Claim("b"), Claim("c")});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("v9"), std::string::npos) << status;
  const auto all = [&] {
    std::string names;
    for (const std::string& claim : endpoint->Objects("ResourceClaim")) {
      names += MetaText(J(claim), "name") + " ";
    }
    return names;
  };
  EXPECT_EQ(all(), "a b c refused ");
  // Which one is meant is not known.
  EXPECT_EQ(endpoint->SetObjects("ResourceClaim", {"{}", Claim("d")}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(all(), "a b c d refused ");
}

}  // namespace
}  // namespace devmgr::endpoint
