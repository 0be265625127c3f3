// SPDX-License-Identifier: Apache-2.0
//
// Lists, watches, and which versions they have.
#include "source/api/reflector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "source/api/reflector_fixture.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ReflectorTest : public ReflectorFixture {};

constexpr char kFirstPage[] =
    "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500";

TEST_F(ReflectorTest, Api001ListsInPages) {
  Start();
  EXPECT_EQ(Next(), kFirstPage);
  Answer(ListText({PodText("a", "u-a", 7)}, "100", "t/1"));
  EXPECT_EQ(Next(), std::string(kFirstPage) + "&continue=t%2F1");
  Answer(ListText({PodText("b", "u-b", 8)}, "100", "t2"));
  EXPECT_EQ(Next(), std::string(kFirstPage) + "&continue=t2");
  EXPECT_FALSE(reflector->IsComplete());
  EXPECT_THAT(TakeChanges(), IsEmpty());
  Answer(ListText({PodText("c", "u-c", 9)}, "100"));
  EXPECT_TRUE(reflector->IsComplete());
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-a@7", "+u-b@8", "+u-c@9"));
  EXPECT_EQ(last.deadline, seconds(60));
}

TEST_F(ReflectorTest, Api002ListsInFullWhenTheTokenHasExpired) {
  Start();
  ListAndWatch({PodText("a", "u-a", 7), PodText("b", "u-b", 8)}, "100");
  reflector->ListAgain(now);
  EXPECT_EQ(Next(), kFirstPage);
  Answer(ListText({PodText("a", "u-a", 7)}, "200", "token"));
  EXPECT_THAT(Next(), HasSubstr("continue=token"));
  Answer(StatusText(410, "Expired"), 410);
  EXPECT_EQ(Next(), "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1");
  EXPECT_THAT(TakeChanges(), IsEmpty());
  EXPECT_THAT(Uids(), ElementsAre("u-a", "u-b"));
  Answer(ListText({PodText("b", "u-b", 8)}, "201"));
  EXPECT_THAT(TakeChanges(), ElementsAre("-u-a@7"));
  EXPECT_THAT(Next(), HasSubstr("watch=true"));
  reflector->ListAgain(now);
  EXPECT_EQ(Next(), kFirstPage);
}

// A list that is too large for one answer comes in pages after all.
TEST_F(ReflectorTest, Api002ListsInPagesAgainWhenTheListInFullFails) {
  Start();
  Next();
  Answer(ListText({PodText("a", "u-a", 7)}, "100", "token"));
  Next();
  Answer(StatusText(410, "Expired"), 410);
  EXPECT_THAT(Next(), Not(HasSubstr("limit=")));
  Begin();
  reflector->OnEnd(now, absl::ResourceExhaustedError("the page is too large"));
  EXPECT_EQ(WaitForNext(), kFirstPage);
  Answer(ListText({PodText("a", "u-a", 7)}, "200", "token"));
  EXPECT_EQ(Next(), std::string(kFirstPage) + "&continue=token");
  Answer(ListText({PodText("b", "u-b", 8)}, "200"));
  EXPECT_TRUE(reflector->IsComplete());
  EXPECT_THAT(Uids(), ElementsAre("u-a", "u-b"));
}

TEST_F(ReflectorTest, Api003WatchesFromTheVersionOfTheList) {
  random = 0.5;
  Start();
  Next();
  Answer(ListText({}, "100"));
  EXPECT_EQ(Next(),
            "/api/v1/pods?resourceVersion=100&fieldSelector=spec.nodeName%3Dn1"
            "&watch=true&allowWatchBookmarks=true&timeoutSeconds=450");
  EXPECT_EQ(last.kind, ApiRequest::Kind::kWatch);
  EXPECT_EQ(last.deadline, seconds(480));
  EXPECT_EQ(reflector->phase(), Reflector::Phase::kWatching);
}

TEST_F(ReflectorTest, Api003AsksForWatchesOfFiveToTenMinutes) {
  for (const auto& [number, text] :
       {std::pair{0.0, "=300"}, std::pair{0.999, "=599"}}) {
    random = number;
    Start();
    Next();
    Answer(ListText({}, "1"));
    EXPECT_THAT(Next(), HasSubstr(std::string("timeoutSeconds") + text));
  }
}

TEST_F(ReflectorTest, Api004AppliesEventsOnceAndInOrder) {
  Start();
  ListAndWatch({PodText("a", "u-a", 7)}, "100");
  for (const char c : EventText("ADDED", PodText("b", "u-b", 101))) {
    ASSERT_TRUE(Data(std::string(1, c)));
  }
  ASSERT_TRUE(Data(EventText("MODIFIED", PodText("a", "u-a", 102)) +
                   EventText("DELETED", PodText("b", "u-b", 103))));
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-b@101", "+u-a@102", "-u-b@101"));
  EXPECT_EQ(reflector->resource_version(), "103");
}

TEST_F(ReflectorTest, Api005GoesOnFromABookmark) {
  Start();
  ListAndWatch({PodText("a", "u-a", 7)}, "100");
  now += minutes(1);
  ASSERT_TRUE(Data(BookmarkText("150")));
  End();
  EXPECT_THAT(WaitForNext(), HasSubstr("?resourceVersion=150&"));
  EXPECT_EQ(last.kind, ApiRequest::Kind::kWatch);
  EXPECT_EQ(reflector->errors(), 0u);
  EXPECT_THAT(TakeChanges(), IsEmpty());
}

TEST_F(ReflectorTest, Api006ListsAgainWhenTheVersionExpiresAmidTheWatch) {
  Start();
  ListAndWatch({PodText("a", "u-a", 7)}, "100");
  EXPECT_FALSE(Data(EventText("ERROR", StatusText(410, "Expired"))));
  EXPECT_EQ(Next(), std::string(kFirstPage) +
                        "&resourceVersion=100&resourceVersionMatch="
                        "NotOlderThan");
  Answer(StatusText(410, "Expired"), 410);
  EXPECT_EQ(Next(), kFirstPage);
  EXPECT_THAT(TakeChanges(), IsEmpty());
}

TEST_F(ReflectorTest, Api007ListsAgainWhenTheWatchIsRefusedAsExpired) {
  Start();
  ListAndWatch({}, "100");
  Answer(StatusText(410, "Expired"), 410);
  EXPECT_THAT(Next(), HasSubstr("resourceVersion=100&resourceVersionMatch"));
  Answer(StatusText(410, "Gone"), 410);
  EXPECT_EQ(Next(), kFirstPage);
}

TEST_F(ReflectorTest, ListsNoFasterThanItsBackOffWhenEachWatchIsExpired) {
  Start();
  ListAndWatch({}, "100");
  Answer(StatusText(410, "Expired"), 410);
  EXPECT_NE(Next(), "none");
  Answer(ListText({}, "101"));
  EXPECT_THAT(Next(), HasSubstr("watch=true"));
  Answer(EventText("ERROR", StatusText(410, "Expired")));
  EXPECT_EQ(Next(), "none");
  EXPECT_THAT(WaitForNext(), HasSubstr("resourceVersion=101&resource"));
  EXPECT_EQ(waited, Ms(800));
}

TEST_F(ReflectorTest, Api008ListsTheLatestWhenTheVersionIsTooLarge) {
  Start({.resource_version = "900"});
  EXPECT_THAT(Next(), HasSubstr("resourceVersion=900"));
  Answer(TooLargeVersionText(), 504, seconds(1));
  EXPECT_EQ(Next(), kFirstPage);
  EXPECT_FALSE(reflector->IsComplete());
  EXPECT_THAT(TakeChanges(), IsEmpty());
}

TEST_F(ReflectorTest, Api009ListsNothingOlderThanWhatItSawBeforeARestart) {
  Start({.resource_version = "500"});
  EXPECT_EQ(Next(), std::string(kFirstPage) +
                        "&resourceVersion=500&resourceVersionMatch="
                        "NotOlderThan");
}

TEST_F(ReflectorTest, NeverListsFromTheCacheAsItIs) {
  Start();
  EXPECT_THAT(Next(), Not(HasSubstr("resourceVersion=0")));
}

TEST_F(ReflectorTest, Api013NamesAnEventThatIsTooLargeAndListsAgain) {
  Start();
  ListAndWatch({PodText("a", "u-a", 7)}, "100");
  const std::string piece(1 << 20, 'x');
  ASSERT_TRUE(Data(R"({"type":"ADDED","object":{"kind":"Pod","metadata":)"
                   R"({"name":"big","namespace":"ns","annotations":{"x":")"));
  int pieces = 0;
  while (Data(piece)) ASSERT_LT(++pieces, 5);
  EXPECT_EQ(reflector->last_error(),
            "the watch of /api/v1/pods: the event of Pod 'ns/big' exceeds "
            "4194304 bytes");
  EXPECT_THAT(WaitForNext(), HasSubstr("resourceVersion=100&resourceVersionM"));
  EXPECT_EQ(waited, Ms(800));
  EXPECT_THAT(Uids(), ElementsAre("u-a"));
  EXPECT_TRUE(reflector->IsComplete());
}

TEST_F(ReflectorTest, Api017ListsWhenTheServerDoesNotStreamLists) {
  Start({.stream_list = true});
  EXPECT_THAT(Next(), HasSubstr("sendInitialEvents=true"));
  Answer(StatusText(422, "Invalid"), 422);
  EXPECT_EQ(Next(), kFirstPage);
  EXPECT_EQ(reflector->errors(), 0u);
}

TEST_F(ReflectorTest, TakesAStreamedListUpToItsBookmark) {
  Start({.stream_list = true});
  EXPECT_EQ(Next(),
            "/api/v1/pods?resourceVersionMatch=NotOlderThan&sendInitialEvents="
            "true&fieldSelector=spec.nodeName%3Dn1&watch=true"
            "&allowWatchBookmarks=true&timeoutSeconds=300");
  Begin();
  ASSERT_TRUE(Data(EventText("ADDED", PodText("a", "u-a", 7))));
  ASSERT_TRUE(Data(BookmarkText("90")));
  EXPECT_FALSE(reflector->IsComplete());
  EXPECT_THAT(TakeChanges(), IsEmpty());
  ASSERT_TRUE(Data(BookmarkText("100", /*ends_list=*/true)));
  EXPECT_TRUE(reflector->IsComplete());
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-a@7"));
  ASSERT_TRUE(Data(EventText("DELETED", PodText("a", "u-a", 101))));
  EXPECT_THAT(TakeChanges(), ElementsAre("-u-a@7"));
  EXPECT_EQ(reflector->WakeAt(), std::nullopt);
}

TEST_F(ReflectorTest, ListsWhenAStreamedListDoesNotEnd) {
  Start({.stream_list = true});
  Next();
  Begin();
  ASSERT_TRUE(Data(EventText("ADDED", PodText("a", "u-a", 7))));
  EXPECT_EQ(*reflector->WakeAt(), now + seconds(60));
  now += seconds(59);
  EXPECT_FALSE(reflector->IsOverdue(now));
  now += seconds(1);
  EXPECT_TRUE(reflector->IsOverdue(now));
  EXPECT_EQ(WaitForNext(), kFirstPage);
}

TEST_F(ReflectorTest, Api035TakesAPodThatWasCreatedAgainForAnotherOne) {
  Start();
  ListAndWatch({PodText("p", "u-p", 7)}, "100");
  Break();
  EXPECT_THAT(WaitForNext(), HasSubstr("watch=true"));
  Answer(StatusText(410, "Expired"), 410);
  EXPECT_THAT(WaitForNext(), HasSubstr("NotOlderThan"));
  Answer(ListText({PodText("p", "u-q", 120)}, "130"));
  EXPECT_THAT(TakeChanges(), ElementsAre("-u-p@7", "+u-q@120"));
}

TEST_F(ReflectorTest, KeepsTwoPodsOfOneNameApart) {
  Start();
  ListAndWatch({PodText("p", "u-p", 7), PodText("p", "u-q", 8)}, "100");
  EXPECT_THAT(Uids(), ElementsAre("u-p", "u-q"));
}

TEST_F(ReflectorTest, KeepsAnObjectThatTurnsUndecodable) {
  Start();
  ListAndWatch({PodText("a", "u-a", 7)}, "100");
  ASSERT_TRUE(Data(EventText(
      "MODIFIED", PodText("a", "u-a", 101, R"(,"resourceClaims":7)"))));
  EXPECT_THAT(TakeChanges(), IsEmpty());
  EXPECT_TRUE(reflector->IsComplete());
  EXPECT_THAT(reflector->store().problems().at("u-a").problem,
              HasSubstr("Pod 'ns/a': "));
  EXPECT_EQ(reflector->resource_version(), "101");
  ASSERT_TRUE(Data(EventText("MODIFIED", PodText("a", "u-a", 102))));
  EXPECT_THAT(reflector->store().problems(), IsEmpty());
  EXPECT_THAT(TakeChanges(), ElementsAre("+u-a@102"));
}

TEST_F(ReflectorTest, IsIncompleteWhileAnObjectWasNeverDecoded) {
  Start();
  Next();
  Answer(ListText({PodText("a", "u-a", 7, R"(,"resourceClaims":7)")}, "100"));
  EXPECT_FALSE(reflector->IsComplete());
  EXPECT_THAT(WaitForNext(), HasSubstr("watch=true"));
  Begin();
  ASSERT_TRUE(Data(EventText("DELETED", PodText("a", "u-a", 101))));
  EXPECT_TRUE(reflector->IsComplete());
}

TEST_F(ReflectorTest, EndsAWatchWithOldCredentialsAfterFiveMinutes) {
  Start();
  ListAndWatch({}, "100");
  EXPECT_EQ(reflector->WakeAt(), std::nullopt);
  reflector->CredentialsChanged(now);
  now += minutes(5);
  EXPECT_TRUE(reflector->IsOverdue(now));
  EXPECT_THAT(Next(), HasSubstr("resourceVersion=100&"));
  EXPECT_EQ(reflector->errors(), 0u);
}

TEST_F(ReflectorTest, ListsAgainAfterAnEventOfAnotherKindOrType) {
  for (const std::string& event :
       {EventText("ADDED", R"({"kind":"Node","metadata":{}})"),
        EventText("PATCHED", PodText("a", "u-a", 7)), std::string("<html>")}) {
    Start();
    ListAndWatch({}, "100");
    EXPECT_FALSE(Data(event));
    EXPECT_THAT(WaitForNext(), HasSubstr("limit=500"));
    EXPECT_EQ(reflector->errors(), 1u);
  }
}

TEST_F(ReflectorTest, Api015LeavesAQuietWatchAlone) {
  Start();
  ListAndWatch({PodText("a", "u-a", 7)}, "100");
  // Nothing is due but the deadline of the transport.
  EXPECT_EQ(reflector->WakeAt(), std::nullopt);
  now += std::chrono::minutes(9);
  EXPECT_FALSE(reflector->IsOverdue(now));
  EXPECT_EQ(Next(), "none");
  EXPECT_EQ(last.deadline, std::chrono::seconds(330));
  random = 0.999;
  End();
  ASSERT_NE(WaitForNext(), "never");
  EXPECT_GT(last.deadline, std::chrono::minutes(10));
}

}  // namespace
}  // namespace devmgr::apiserver
