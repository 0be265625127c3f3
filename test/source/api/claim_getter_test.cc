// SPDX-License-Identifier: Apache-2.0
#include "source/api/claim_getter.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "source/api/api_texts.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ObjectName kClaim{"ns", "c"};

std::string ClaimText(const std::string& uid, int version, bool is_allocated,
                      const std::vector<std::string>& pods = {}) {
  std::string consumers;
  for (const std::string& pod : pods) {
    consumers +=
        (consumers.empty() ? "" : ",") +
        fmt::format(R"({{"resource":"pods","name":"p","uid":"{}"}})", pod);
  }
  return fmt::format(
      R"({{"metadata":{{"name":"c","namespace":"ns","uid":"{}",)"
      R"("resourceVersion":"{}"}},"spec":{{}},"status":{{{}"reservedFor":[{}]}})"
      R"(}})",
      uid, version,
      is_allocated ? R"("allocation":{"devices":{"results":[{"request":"r",)"
                     R"("driver":"d.example.com","pool":"n1","device":"g"}]}},)"
                   : "",
      consumers);
}

std::string NotFoundText() {
  return StatusText(404, "NotFound", "not found", R"({"name":"c"})");
}

class ClaimGetterTest : public ::testing::Test {
 protected:
  void Start() {
    getter.SetVersion(now, "v1");
    getter.Want(now, {{kClaim, {"u-p"}}});
  }
  std::string Next() {
    const auto next = getter.Next(now);
    return next ? next->request.target : "none";
  }
  std::string WaitForNext() {
    const auto due = getter.WakeAt();
    if (!due) return "never";
    waited = std::chrono::duration_cast<milliseconds>(*due - now);
    now = std::max(now, *due);
    return Next();
  }
  void Answer(int code, const std::string& body) {
    getter.OnAnswer(now, kClaim, {.code = code}, body);
  }
  std::vector<std::string> TakeChanges() {
    std::vector<std::string> texts;
    for (const ObjectChange& change : getter.TakeChanges()) {
      texts.push_back((change.kind == ObjectChange::Kind::kUpsert ? "+" : "-") +
                      change.object->uid + "@" +
                      change.object->resource_version);
    }
    return texts;
  }

  ClaimGetter::TimePoint now{std::chrono::hours(1)};
  ClaimGetter getter{[] { return 0.0; }};
  milliseconds waited{0};
};

TEST_F(ClaimGetterTest, GetsAClaimThatAPodRefersTo) {
  Start();
  EXPECT_EQ(Next(), "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c");
  EXPECT_EQ(Next(), "none");
  Answer(200, ClaimText("u-c", 7, true, {"u-p"}));
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-c@7"));
  EXPECT_EQ(WaitForNext(), "never");
  ASSERT_EQ(getter.objects().size(), 1u);
  EXPECT_EQ(getter.objects().begin()->second->name, kClaim);
}

TEST_F(ClaimGetterTest, AsksAgainUntilTheClaimIsReservedForThePod) {
  Start();
  Next();
  Answer(200, ClaimText("u-c", 7, false));
  EXPECT_NE(WaitForNext(), "never");
  EXPECT_EQ(waited, seconds(1));
  Answer(200, ClaimText("u-c", 8, true, {"u-other"}));
  EXPECT_NE(WaitForNext(), "never");
  EXPECT_EQ(waited, seconds(2));
  Answer(200, ClaimText("u-c", 9, true, {"u-other", "u-p"}));
  EXPECT_EQ(WaitForNext(), "never");
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-c@7", "+u-c@8", "+u-c@9"));
  EXPECT_THAT(getter.problems(), IsEmpty());
}

TEST_F(ClaimGetterTest, Api034TriesSoonWhenTheServerLagsBehindTheBinding) {
  Start();
  Next();
  for (const int delay : {200, 400, 800}) {
    Answer(403, StatusText(403, "Forbidden",
                           "no relationship found between node 'n1' and this "
                           "object"));
    EXPECT_THAT(getter.problems(), IsEmpty());
    EXPECT_NE(WaitForNext(), "never");
    EXPECT_EQ(waited, milliseconds(delay));
  }
  Answer(200, ClaimText("u-c", 7, true, {"u-p"}));
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-c@7"));
}

TEST_F(ClaimGetterTest, ShowsWhatAnAdministratorHasToChange) {
  Start();
  Next();
  for (int i = 0; i < 12; ++i) {
    Answer(403, StatusText(403, "Forbidden", "may not"));
    WaitForNext();
  }
  EXPECT_EQ(waited, std::chrono::minutes(5));
  EXPECT_EQ(getter.problems().at(kClaim), "HTTP 403 Forbidden: may not");
}

TEST_F(ClaimGetterTest, AClaimThatIsMissingIsGoneAndAskedForAgain) {
  Start();
  Next();
  Answer(200, ClaimText("u-c", 7, false));
  TakeChanges();
  WaitForNext();
  Answer(404, NotFoundText());
  EXPECT_THAT(TakeChanges(), ElementsAre("-u-c@7"));
  EXPECT_THAT(getter.objects(), IsEmpty());
  EXPECT_FALSE(getter.TakeNotServed());
  WaitForNext();
  Answer(200, ClaimText("u-d", 9, true, {"u-p"}));
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-d@9"));
}

TEST_F(ClaimGetterTest, AClaimThatWasCreatedAgainIsAnotherOne) {
  Start();
  Next();
  Answer(200, ClaimText("u-c", 7, false));
  WaitForNext();
  Answer(200, ClaimText("u-d", 9, true, {"u-p"}));
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-c@7", "-u-c@7", "+u-d@9"));
}

TEST_F(ClaimGetterTest, ANotFoundOfTheVersionSaysNothingOfTheClaim) {
  Start();
  Next();
  Answer(200, ClaimText("u-c", 7, false));
  TakeChanges();
  WaitForNext();
  Answer(404, "404 page not found");
  EXPECT_TRUE(getter.TakeNotServed());
  EXPECT_THAT(TakeChanges(), IsEmpty());
  EXPECT_EQ(getter.objects().size(), 1u);
}

TEST_F(ClaimGetterTest, Api037ReadsTheClaimInTheVersionThatIsServed) {
  getter.Want(now, {{kClaim, {"u-p"}}});
  EXPECT_EQ(WaitForNext(), "never");
  getter.SetVersion(now, "v1beta1");
  EXPECT_EQ(Next(),
            "/apis/resource.k8s.io/v1beta1/namespaces/ns/resourceclaims/c");
}

TEST_F(ClaimGetterTest, AsksAgainWhenAnotherPodRefersToTheClaim) {
  Start();
  Next();
  Answer(200, ClaimText("u-c", 7, true, {"u-p"}));
  EXPECT_EQ(WaitForNext(), "never");
  getter.Want(now, {{kClaim, {"u-p", "u-q"}}});
  EXPECT_NE(Next(), "none");
  Answer(200, ClaimText("u-c", 8, true, {"u-p", "u-q"}));
  getter.Want(now, {{kClaim, {"u-q"}}});
  EXPECT_EQ(WaitForNext(), "never");
}

TEST_F(ClaimGetterTest, ForgetsWhatNoPodRefersTo) {
  Start();
  Next();
  getter.Want(now, {});
  Answer(200, ClaimText("u-c", 7, true, {"u-p"}));
  EXPECT_THAT(getter.objects(), IsEmpty());
  EXPECT_THAT(TakeChanges(), IsEmpty());
  EXPECT_EQ(WaitForNext(), "never");
}

TEST_F(ClaimGetterTest, HasFourRequestsUnderWayAtMost) {
  WantedClaims wanted;
  for (int i = 0; i < 6; ++i) {
    wanted[{"ns", "c" + std::to_string(i)}] = {"u-p"};
  }
  getter.SetVersion(now, "v1");
  getter.Want(now, wanted);
  for (int i = 0; i < 4; ++i) EXPECT_NE(Next(), "none");
  EXPECT_EQ(WaitForNext(), "never");
  getter.OnFailure(now, {"ns", "c0"}, "connection reset");
  EXPECT_THAT(Next(), HasSubstr("c4"));
}

TEST_F(ClaimGetterTest, TriesOnceAtOnceWithOtherCredentials) {
  Start();
  Next();
  Answer(401, "");
  EXPECT_TRUE(getter.TakeRefused());
  EXPECT_NE(Next(), "none");
  Answer(401, "");
  EXPECT_EQ(Next(), "none");
  EXPECT_NE(WaitForNext(), "never");
}

TEST_F(ClaimGetterTest, ReportsAnAnswerThatIsNoClaim) {
  Start();
  Next();
  Answer(200, R"({"kind":"Pod","metadata":{"uid":"u","name":"c"}})");
  EXPECT_EQ(getter.problems().at(kClaim), "it is no ResourceClaim");
}

TEST_F(ClaimGetterTest, SaysThatAnExpressionDoesNotCompileUntilItIsAllocated) {
  const auto claim = [](int version, const char* status) {
    return fmt::format(
        R"({{"metadata":{{"name":"c","namespace":"ns","uid":"u-c",)"
        R"("resourceVersion":"{}"}},"spec":{{"devices":{{"requests":[)"
        R"({{"name":"r","exactly":{{"deviceClassName":"d","selectors":[)"
        R"({{"cel":{{"expression":"device.drivr"}}}}]}}}}]}}}},)"
        R"("status":{}}})",
        version, status);
  };
  Start();
  Next();
  Answer(200, claim(7, "{}"));
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-c@7"));
  ASSERT_EQ(getter.problems().count(kClaim), 1u);
  EXPECT_THAT(getter.problems().at(kClaim),
              HasSubstr("undefined field 'drivr'"));
  WaitForNext();
  Answer(200, claim(8, R"({"allocation":{},"reservedFor":)"
                       R"([{"resource":"pods","name":"p","uid":"u-p"}]})"));
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-c@8"));
  EXPECT_THAT(getter.problems(), IsEmpty());
}

TEST(ClaimsOfPodTest, AreThoseOfItsSpecAndStatus) {
  Pod pod;
  pod.metadata.ns = "ns";
  pod.metadata.uid = "u-p";
  pod.spec.resource_claims = {{"a", "direct", {}}, {"b", {}, "template"}};
  pod.status.resource_claim_statuses = {{"b", "made"}, {"c", {}}};
  pod.status.extended_resource_claim_status.emplace().resource_claim_name =
      "special";
  WantedClaims wanted;
  AddClaimsOf(pod, &wanted);
  ASSERT_EQ(wanted.size(), 3u);
  EXPECT_THAT((wanted[{"ns", "direct"}]), ElementsAre("u-p"));
  EXPECT_THAT((wanted[{"ns", "made"}]), ElementsAre("u-p"));
  EXPECT_THAT((wanted[{"ns", "special"}]), ElementsAre("u-p"));
}

}  // namespace
}  // namespace devmgr::apiserver
