// SPDX-License-Identifier: Apache-2.0
#include "source/api/api_session.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/executor.h"
#include "common/status.h"
#include "source/api/api_session_fixture.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using ApiSessionTest = ApiSessionFixture;

TEST_F(ApiSessionTest, PublishesPodsAndFollowsThem) {
  StartWith({PodText("a", "u-a", 7)});
  EXPECT_TRUE(snapshot->complete);
  EXPECT_THAT(Pods(), ElementsAre("a/u-a"));
  SendEvent("ADDED", PodText("b", "u-b", 101));
  EXPECT_THAT(Pods(), ElementsAre("a/u-a", "b/u-b"));
  SendEvent("DELETED", PodText("a", "u-a", 102));
  EXPECT_THAT(Pods(), ElementsAre("b/u-b"));
  EXPECT_THAT(Gone(), ElementsAre("u-a"));
}

TEST_F(ApiSessionTest, Api001PublishesNoHalfOfAList) {
  Start();
  ASSERT_TRUE(transport.Answer(
      kList, ListText({PodText("a", "u-a", 7)}, "100", "token")));
  executor.RunPending();
  EXPECT_FALSE(snapshot->complete);
  EXPECT_THAT(Pods(), IsEmpty());
  ASSERT_TRUE(transport.Answer("continue=token",
                               ListText({PodText("b", "u-b", 8)}, "100")));
  executor.RunPending();
  EXPECT_TRUE(snapshot->complete);
  EXPECT_THAT(Pods(), ElementsAre("a/u-a", "b/u-b"));
}

TEST_F(ApiSessionTest, KeepsWhatItKnowsWhileTheServerIsAway) {
  StartWith({PodText("a", "u-a", 7)});
  transport.End(transport.Find("/pods?"), absl::UnavailableError("reset"));
  for (int i = 0; i < 20; ++i) {
    executor.Advance(seconds(30));
    if (const auto watch = transport.Find("/pods?")) {
      transport.End(watch, absl::UnavailableError("refused"));
    }
  }
  executor.RunPending();
  EXPECT_TRUE(snapshot->complete);
  EXPECT_THAT(Pods(), ElementsAre("a/u-a"));
  EXPECT_THAT(Gone(), IsEmpty());
  EXPECT_THAT(state, HasSubstr("last error: the "));
  EXPECT_THAT(state, HasSubstr("/api/v1/pods: refused"));
}

TEST_F(ApiSessionTest, Api035ReleasesThePodOfTheOldUidOnly) {
  StartWith({PodText("p", "u-p", 7)});
  transport.End(transport.Find("/pods?"));
  executor.Advance(seconds(1));
  ASSERT_TRUE(transport.Answer(kWatch, StatusText(410, "Expired"), 410));
  ASSERT_TRUE(
      transport.Answer(kList, ListText({PodText("p", "u-q", 120)}, "130")));
  executor.RunPending();
  EXPECT_THAT(Pods(), ElementsAre("p/u-q"));
  EXPECT_TRUE(snapshot->complete);
  // A list may be wrong; it alone names no pod as gone.
  EXPECT_THAT(Gone(), IsEmpty());
  EXPECT_FALSE(snapshot->vouched);
}

TEST_F(ApiSessionTest, ConfirmsAListAfterThirtySeconds) {
  StartWith({PodText("a", "u-a", 7)});
  EXPECT_FALSE(snapshot->vouched);
  const std::uint64_t watch = snapshot->watch;
  executor.Advance(seconds(29));
  EXPECT_EQ(transport.Find("limit=500"), 0u);
  executor.Advance(seconds(1));
  ASSERT_TRUE(
      transport.Answer("limit=500", ListText({PodText("a", "u-a", 7)}, "105")));
  executor.RunPending();
  EXPECT_TRUE(snapshot->vouched);
  EXPECT_NE(snapshot->watch, watch);
  executor.Advance(seconds(60));
  EXPECT_EQ(transport.Find("limit=500"), 0u);
}

TEST_F(ApiSessionTest, DoesNotVouchWhenTheSecondListHasMorePods) {
  StartWith({});
  executor.Advance(seconds(30));
  ASSERT_TRUE(
      transport.Answer("limit=500", ListText({PodText("a", "u-a", 7)}, "105")));
  executor.RunPending();
  EXPECT_FALSE(snapshot->vouched);
  executor.Advance(seconds(30));
  ASSERT_TRUE(
      transport.Answer("limit=500", ListText({PodText("a", "u-a", 7)}, "106")));
  executor.RunPending();
  EXPECT_TRUE(snapshot->vouched);
}

TEST_F(ApiSessionTest, DoesNotVouchWhenTheSecondListHasFewerPods) {
  StartWith({PodText("a", "u-a", 7), PodText("b", "u-b", 8)});
  executor.Advance(seconds(30));
  ASSERT_TRUE(
      transport.Answer("limit=500", ListText({PodText("b", "u-b", 8)}, "50")));
  executor.RunPending();
  EXPECT_FALSE(snapshot->vouched);
  executor.Advance(seconds(30));
  ASSERT_TRUE(
      transport.Answer("limit=500", ListText({PodText("b", "u-b", 8)}, "51")));
  executor.RunPending();
  EXPECT_TRUE(snapshot->vouched);
}

TEST_F(ApiSessionTest, ListsAgainAfterABreak) {
  StartWith({PodText("a", "u-a", 7)});
  executor.Advance(seconds(30));
  ASSERT_TRUE(
      transport.Answer("limit=500", ListText({PodText("a", "u-a", 7)}, "105")));
  executor.RunPending();
  transport.Begin(transport.Find(kWatch));
  executor.Advance(minutes(2));
  transport.End(transport.Find(kWatch), absl::UnavailableError("reset"));
  executor.Advance(seconds(2));
  // The server is back with an older state, and lets the watch start.
  ASSERT_NE(transport.Find("pods?resourceVersion=105"), 0u);
  transport.Begin(transport.Find(kWatch));
  executor.Advance(seconds(29));
  EXPECT_EQ(transport.Find("limit=500"), 0u);
  executor.Advance(seconds(1));
  ASSERT_TRUE(
      transport.Answer("limit=500", ListText({PodText("b", "u-b", 6)}, "60")));
  executor.RunPending();
  EXPECT_THAT(Pods(), ElementsAre("b/u-b"));
  EXPECT_FALSE(snapshot->vouched);
  EXPECT_THAT(Gone(), IsEmpty());
  EXPECT_NE(transport.Find("pods?resourceVersion=60"), 0u);
}

TEST_F(ApiSessionTest, TwoPodsOfOneNameReleaseNone) {
  StartWith({PodText("p", "u-q", 7)});
  SendEvent("ADDED", PodText("p", "u-a", 101));
  EXPECT_FALSE(snapshot->complete);
  EXPECT_THAT(Pods(), ElementsAre("p/u-q"));
  ASSERT_EQ(snapshot->problems.size(), 1u);
  EXPECT_EQ(snapshot->problems[0].message,
            "the server lists two pods 'ns/p', with the UIDs u-a and u-q");
  SendEvent("DELETED", PodText("p", "u-q", 102));
  EXPECT_TRUE(snapshot->complete);
  EXPECT_THAT(Pods(), ElementsAre("p/u-a"));
}

TEST_F(ApiSessionTest, ReadsTheClaimsThatPodsReferTo) {
  StartWith({PodText("p", "u-p", 7, kClaims)});
  ASSERT_TRUE(transport.Answer(kGroup, kV1));
  ASSERT_TRUE(transport.Answer(
      "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c",
      R"({"metadata":{"name":"c","namespace":"ns","uid":"u-c",)"
      R"("resourceVersion":"9"},"spec":{}})"));
  executor.RunPending();
  ASSERT_EQ(snapshot->claims.size(), 1u);
  EXPECT_EQ(snapshot->claims.begin()->second->metadata.uid, "u-c");
  SendEvent("DELETED", PodText("p", "u-p", 101));
  executor.Advance(seconds(1));
  EXPECT_THAT(snapshot->claims, IsEmpty());
}

TEST_F(ApiSessionTest, ReadsNoMoreClaimsThanTheClientMaySend) {
  rate.emplace(/*per_second=*/1, /*burst=*/2);
  std::string others = kClaims;
  others.replace(others.find("\"c\"}"), 3, "\"d\"");
  StartWith({PodText("p", "u-p", 7, kClaims), PodText("q", "u-q", 8, others)});
  ASSERT_TRUE(rate->Take(executor.Now()));  // for something else
  ASSERT_TRUE(transport.Answer(kGroup, kV1));
  const std::string claims =
      "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/";
  EXPECT_NE(transport.Find(claims + "c"), 0u);
  EXPECT_EQ(transport.Find(claims + "d"), 0u);
  // The watch goes on meanwhile.
  SendEvent("MODIFIED", PodText("p", "u-p", 101, kClaims));
  EXPECT_EQ(snapshot->pods.size(), 2u);
  executor.Advance(seconds(1));
  EXPECT_NE(transport.Find(claims + "d"), 0u);
}

TEST_F(ApiSessionTest, LeavesOutWhatAKubeletShowsOfPodsOfItsFiles) {
  StartWith({PodText("p", "u-p", 7)});
  SendEvent("ADDED",
            R"({"metadata":{"name":"m","namespace":"ns","uid":"u-m",)"
            R"("resourceVersion":"101","annotations":)"
            R"({"kubernetes.io/config.mirror":"h"}},)"
            R"("spec":{"nodeName":"n1","containers":[{"name":"c"}]}})");
  EXPECT_THAT(Pods(), ElementsAre("p/u-p"));
  EXPECT_THAT(snapshot->malformed_pods, IsEmpty());
}

class ApiRefreshTest : public ApiSessionTest {
 protected:
  void Refresh(const ObjectName& claim = {"ns", "c"}) {
    EXPECT_TRUE(session->Refresh(ObjectKind::kResourceClaim, claim,
                                 [this](const absl::Status& status) {
                                   answers.push_back(status.ToString());
                                   claims_then = snapshot->claims;
                                 }));
    executor.RunPending();
  }
  void StartWithClaim() {
    StartWith({PodText("p", "u-p", 7, kClaims)});
    ASSERT_TRUE(transport.Answer(kGroup, kV1));
    AnswerClaim("9");
  }
  /// Allocated, and reserved for the pod.
  void AnswerClaim(const std::string& version) {
    ASSERT_TRUE(transport.Answer(
        "resourceclaims/c",
        fmt::format(R"({{"metadata":{{"name":"c","namespace":"ns","uid":"u-c",)"
                    R"("resourceVersion":"{0}","labels":{{"version":"{0}"}}}},)"
                    R"("spec":{{}},"status":{{"allocation":)"
                    R"({{"devices":{{}}}},"reservedFor":[{{"resource":"pods",)"
                    R"("name":"p","uid":"u-p"}}]}}}})",
                    version)));
    executor.RunPending();
  }
  std::string VersionThen() const {
    return claims_then.empty()
               ? "none"
               : claims_then.begin()->second->metadata.labels.at("version");
  }

  std::vector<std::string> answers;
  ObjectMap<ResourceClaim> claims_then;  ///< When the answer came.
};

TEST_F(ApiRefreshTest, AClaimIsReadAnewAndPublishedBeforeTheAnswer) {
  StartWithClaim();
  executor.Advance(seconds(10));
  Refresh();
  EXPECT_THAT(answers, IsEmpty());
  AnswerClaim("10");
  EXPECT_THAT(answers, ElementsAre("OK"));
  EXPECT_EQ(VersionThen(), "10");
  // As it was: there is nothing to publish.
  executor.Advance(seconds(10));
  Refresh();
  AnswerClaim("10");
  EXPECT_THAT(answers, ElementsAre("OK", "OK"));
}

TEST_F(ApiRefreshTest, WhatWasAskedForJustNowIsNotAskedForAgain) {
  StartWithClaim();
  executor.Advance(seconds(2));
  Refresh();
  EXPECT_THAT(answers, ElementsAre("OK"));
  EXPECT_EQ(transport.Find("resourceclaims/c"), 0u);
}

TEST_F(ApiRefreshTest, AClaimThatIsGoneIsPublishedAsGone) {
  StartWithClaim();
  executor.Advance(seconds(10));
  Refresh();
  ASSERT_TRUE(transport.Answer(
      "resourceclaims/c",
      StatusText(404, "NotFound", "not found", R"({"name":"c"})"), 404));
  executor.RunPending();
  EXPECT_THAT(answers, ElementsAre("NOT_FOUND: there is no such claim"));
  EXPECT_EQ(VersionThen(), "none");
}

TEST_F(ApiRefreshTest, SaysWhyAClaimCannotBeRead) {
  StartWithClaim();
  executor.Advance(seconds(10));
  Refresh();
  transport.End(transport.Find("resourceclaims/c"),
                absl::UnavailableError("connection refused"));
  executor.RunPending();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_THAT(answers[0], HasSubstr("UNAVAILABLE: "));
  EXPECT_THAT(answers[0], HasSubstr("connection refused"));
  EXPECT_EQ(VersionThen(), "9");
  Refresh({"ns", "other"});
  EXPECT_THAT(answers.back(), HasSubstr("no pod of this node refers to it"));
}

TEST_F(ApiRefreshTest, SaysThatThereAreNoCredentials) {
  token = "";
  Start();
  Refresh();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_THAT(answers[0], HasSubstr("the token file '/token' cannot be used"));
}

TEST_F(ApiSessionTest, ShowsClaimsThatWereNeverReadAndSinceWhen) {
  StartWith({PodText("p", "u-p", 7, kClaims)});
  ASSERT_TRUE(transport.Answer(kGroup, kV1));
  const auto began = snapshot->unread_claims.at({"ns", "c"});
  EXPECT_EQ(began.reason, "the server has not answered yet");
  executor.Advance(seconds(1));
  ASSERT_TRUE(transport.Answer(
      "resourceclaims/c",
      StatusText(403, "Forbidden", "no relationship found between"), 403));
  executor.RunPending();
  const auto unrelated = snapshot->unread_claims.at({"ns", "c"});
  EXPECT_EQ(unrelated.since, began.since);
  EXPECT_THAT(unrelated.reason, HasSubstr("does not know yet that a pod"));
  executor.Advance(seconds(1));
  ASSERT_TRUE(transport.Answer(
      "resourceclaims/c",
      StatusText(404, "NotFound", "not found", R"({"name":"c"})"), 404));
  executor.RunPending();
  EXPECT_THAT(snapshot->unread_claims, IsEmpty());
}

TEST_F(ApiSessionTest, IsCompleteForKindsThatAreListed) {
  StartWith({}, {.watched_kinds = {"ResourceClaim"}});
  EXPECT_TRUE(snapshot->IsComplete(ObjectKind::kPod));
  EXPECT_FALSE(snapshot->IsComplete(ObjectKind::kResourceClaim));
  ASSERT_TRUE(transport.Answer(kGroup, kV1));
  ASSERT_TRUE(
      transport.Answer("resourceclaims?limit=500", ListText({}, "100")));
  executor.RunPending();
  EXPECT_TRUE(snapshot->IsComplete(ObjectKind::kResourceClaim));
  EXPECT_FALSE(snapshot->IsComplete(ObjectKind::kDeviceClass));
}

TEST_F(ApiSessionTest, Api037FollowsTheGroupWhenItIsServedLater) {
  StartWith({PodText("p", "u-p", 7, kClaims)});
  ASSERT_TRUE(transport.Answer(kGroup, "404 page not found", 404));
  EXPECT_TRUE(snapshot->complete);
  EXPECT_THAT(state, HasSubstr("resource.k8s.io is not served"));
  executor.Advance(minutes(10));
  ASSERT_TRUE(transport.Answer(
      kGroup, R"({"kind":"APIGroup","versions":[{"version":"v1beta1"}]})"));
  EXPECT_NE(transport.Find("resource.k8s.io/v1beta1/namespaces/ns/"), 0u);
  EXPECT_THAT(state, HasSubstr("resource.k8s.io/v1beta1"));
}

TEST_F(ApiSessionTest, WatchesClaimsWhereTheAccountMay) {
  StartWith({PodText("p", "u-p", 7, kClaims)},
            {.watched_kinds = {"ResourceClaim", "ResourceSlice"}});
  ASSERT_TRUE(transport.Answer(kGroup, kV1));
  EXPECT_EQ(transport.Find("/namespaces/"), 0u);
  EXPECT_NE(transport.Find("/apis/resource.k8s.io/v1/resourceslices?"
                           "fieldSelector=spec.nodeName%3Dn1&limit=500"),
            0u);
  ASSERT_TRUE(transport.Answer(
      "/apis/resource.k8s.io/v1/resourceclaims?limit=500",
      ListText({R"({"metadata":{"name":"c","namespace":"ns","uid":"u-c",)"
                R"("resourceVersion":"9"},"spec":{}})"},
               "100")));
  executor.RunPending();
  EXPECT_EQ(snapshot->claims.size(), 1u);
}

TEST_F(ApiSessionTest, NamesClassesWithExpressionsThatDoNotCompile) {
  StartWith({}, {.watched_kinds = {"DeviceClass"}});
  ASSERT_TRUE(transport.Answer(kGroup, kV1));
  ASSERT_TRUE(transport.Answer(
      "deviceclasses?limit=500",
      ListText({R"({"metadata":{"name":"gpu","uid":"u-1",)"
                R"("resourceVersion":"9"},"spec":{"selectors":[)"
                R"({"cel":{"expression":"device.drivr"}}]}})"},
               "100")));
  executor.RunPending();
  EXPECT_EQ(snapshot->device_classes.size(), 1u);
  EXPECT_TRUE(snapshot->IsComplete(ObjectKind::kDeviceClass));
  ASSERT_EQ(snapshot->object_problems.size(), 1u);
  EXPECT_EQ(snapshot->object_problems[0].object_kind, "DeviceClass");
  EXPECT_EQ(snapshot->object_problems[0].object.name, "gpu");
  EXPECT_THAT(snapshot->object_problems[0].problem,
              HasSubstr("undefined field 'drivr'"));
  EXPECT_EQ(snapshot->problems.size(), 1u);
}

TEST_F(ApiSessionTest, Api018ReadsTheTokenAgainWhenItIsRefused) {
  Start();
  const auto sent = [this] {
    return transport.transfers.at(transport.Find(kList))
        .credentials->token.Reveal();
  };
  EXPECT_EQ(sent(), "sesame");
  token = "other";
  ASSERT_TRUE(transport.Answer(kList, "", 401));
  EXPECT_EQ(sent(), "other");
}

TEST_F(ApiSessionTest, WaitsForCredentials) {
  token = "";
  Start();
  EXPECT_THAT(transport.transfers, IsEmpty());
  EXPECT_THAT(state, HasSubstr("the token file '/token' cannot be used"));
  token = "sesame";
  executor.Advance(minutes(3));
  EXPECT_NE(transport.Find(kList), 0u);
}

TEST_F(ApiSessionTest, ShowsTroubleAsLongAsThereIsSome) {
  StartWith({PodText("p", "u-p", 7, kClaims)});
  EXPECT_THAT(snapshot->problems, IsEmpty());
  transport.End(transport.Find("/pods?"), absl::UnavailableError("reset"));
  ASSERT_TRUE(transport.Answer(kGroup, kV1));
  ASSERT_TRUE(transport.Answer("resourceclaims/c",
                               StatusText(403, "Forbidden", "may not"), 403));
  executor.RunPending();
  ASSERT_EQ(snapshot->problems.size(), 2u);
  EXPECT_EQ(snapshot->problems[0].message, "the watch of /api/v1/pods: reset");
  EXPECT_EQ(snapshot->problems[1].message, "ns/c: HTTP 403 Forbidden: may not");
  executor.Advance(std::chrono::milliseconds(800));
  transport.Begin(transport.Find("/pods?"));
  ASSERT_TRUE(transport.Answer(
      "resourceclaims/c",
      StatusText(403, "Forbidden", "no relationship found between"), 403));
  executor.RunPending();
  EXPECT_THAT(snapshot->problems, IsEmpty());
}

TEST_F(ApiSessionTest, RemembersTheVersionOfThePods) {
  StartWith({});
  SendEvent("ADDED", PodText("a", "u-a", 101));
  EXPECT_THAT(versions, ElementsAre("100"));
  executor.Advance(seconds(10));
  SendEvent("ADDED", PodText("b", "u-b", 102));
  EXPECT_THAT(versions, ElementsAre("100", "102"));
}

TEST_F(ApiSessionTest, CancelsItsRequestsAtTheEnd) {
  StartWith({PodText("p", "u-p", 7)});
  EXPECT_THAT(transport.transfers, ::testing::Not(IsEmpty()));
  session.reset();
  EXPECT_THAT(transport.transfers, IsEmpty());
  EXPECT_EQ(executor.timers(), 0u);
}

}  // namespace
}  // namespace devmgr::apiserver
