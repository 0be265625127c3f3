// SPDX-License-Identifier: Apache-2.0
//
// When the next request is sent after one that failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "source/api/reflector_fixture.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReflectorFailuresTest : public ReflectorFixture {
 protected:
  /// The delay in milliseconds after each of `count` refusals of a list.
  std::vector<int> DelaysAfter(int count, int code, const std::string& body) {
    std::vector<int> delays;
    for (int i = 0; i < count; ++i) {
      if (Next() == "none") WaitForNext();
      Answer(body, code);
      delays.push_back(static_cast<int>(
          std::chrono::duration_cast<Ms>(*reflector->WakeAt() - now).count()));
      now = *reflector->WakeAt();
    }
    return delays;
  }
};

TEST_F(ReflectorFailuresTest, Api010WaitsLongerAfterEachShortWatch) {
  for (const double factor : {0.0, 0.5}) {
    random = factor;
    Start();
    ListAndWatch({}, "100");
    std::vector<int> delays;
    for (int i = 0; i < 8; ++i) {
      now += Ms(200);
      End();
      EXPECT_THAT(WaitForNext(), HasSubstr("watch=true"));
      delays.push_back(static_cast<int>(waited.count() / (1 + factor)));
      Begin();
    }
    EXPECT_THAT(delays,
                ElementsAre(800, 1600, 3200, 6400, 12800, 25600, 30000, 30000));
    EXPECT_EQ(reflector->last_error(),
              "the watch of /api/v1/pods ended after 200 ms without an event");
  }
}

TEST_F(ReflectorFailuresTest, Api011BeginsAnewAfterTwoGoodMinutes) {
  Start();
  ListAndWatch({}, "100");
  for (int i = 0; i < 5; ++i) {
    Break();
    WaitForNext();
    Begin();
  }
  EXPECT_EQ(waited, Ms(12800));
  now += minutes(2);
  Break();
  WaitForNext();
  EXPECT_EQ(waited, Ms(800));
}

TEST_F(ReflectorFailuresTest, GoesOnWhereItWasAfterAMinuteOfGoodService) {
  Start();
  ListAndWatch({}, "100");
  for (int i = 0; i < 3; ++i) {
    Break();
    WaitForNext();
    Begin();
    now += minutes(1);
  }
  EXPECT_EQ(waited, Ms(3200));
}

TEST_F(ReflectorFailuresTest, Api012WaitsAsLongAsTheServerAsks) {
  Start();
  EXPECT_NE(Next(), "none");
  for (int i = 0; i < 9; ++i) {
    Answer("", 429, seconds(7));
    EXPECT_EQ(Next(), "none");
    EXPECT_THAT(WaitForNext(), HasSubstr("limit=500"));
    EXPECT_EQ(waited, seconds(7));
    EXPECT_EQ(reflector->trouble(), Reflector::Trouble::kNone);
  }
  Answer(StatusText(429, "TooManyRequests", "slow down"), 429, seconds(7));
  EXPECT_EQ(reflector->trouble(), Reflector::Trouble::kThrottled);
  EXPECT_EQ(reflector->last_error(),
            "the list of /api/v1/pods: HTTP 429 TooManyRequests: slow down");
  reflector->Hurry(now);
  EXPECT_NE(WaitForNext(), "none");
  EXPECT_EQ(waited, seconds(7));
  Answer(ListText({}, "1"));
  EXPECT_EQ(reflector->trouble(), Reflector::Trouble::kNone);
}

TEST_F(ReflectorFailuresTest, RepeatsTheSamePageWhenThrottled) {
  Start();
  Next();
  Answer(ListText({PodText("a", "u-a", 7)}, "100", "token"));
  Next();
  Answer("", 429);
  EXPECT_THAT(WaitForNext(), HasSubstr("continue=token"));
  EXPECT_EQ(waited, seconds(1));
  Answer(ListText({}, "100"));
  EXPECT_THAT(Uids(), ElementsAre("u-a"));
}

TEST_F(ReflectorFailuresTest, Api018TriesOnceAtOnceWithOtherCredentials) {
  Start();
  Next();
  Answer(StatusText(401, "Unauthorized"), 401);
  EXPECT_TRUE(reflector->TakeRefused());
  EXPECT_FALSE(reflector->TakeRefused());
  EXPECT_EQ(reflector->trouble(), Reflector::Trouble::kNone);
  EXPECT_NE(Next(), "none");
  Answer(StatusText(401, "Unauthorized"), 401);
  EXPECT_TRUE(reflector->TakeRefused());
  EXPECT_EQ(reflector->trouble(), Reflector::Trouble::kUnauthenticated);
  EXPECT_EQ(Next(), "none");
  WaitForNext();
  EXPECT_EQ(waited, Ms(800));
  Answer(ListText({}, "1"));
  EXPECT_EQ(reflector->trouble(), Reflector::Trouble::kNone);
}

TEST_F(ReflectorFailuresTest, WaitsUpToFiveMinutesWhereItMayNot) {
  Start();
  EXPECT_THAT(DelaysAfter(11, 403, StatusText(403, "Forbidden", "may not")),
              ElementsAre(800, 1600, 3200, 6400, 12800, 25600, 51200, 102400,
                          204800, 300000, 300000));
  EXPECT_EQ(reflector->trouble(), Reflector::Trouble::kForbidden);
  EXPECT_EQ(reflector->last_error(),
            "the list of /api/v1/pods: HTTP 403 Forbidden: may not");
}

TEST_F(ReflectorFailuresTest, WaitsUpToThirtySecondsForAServerThatFails) {
  Start();
  EXPECT_THAT(DelaysAfter(8, 500, "<html>"),
              ElementsAre(800, 1600, 3200, 6400, 12800, 25600, 30000, 30000));
  EXPECT_EQ(reflector->last_error(),
            "the list of /api/v1/pods: HTTP 500: <html>");
}

TEST_F(ReflectorFailuresTest, WaitsAsLongAsAFailingServerAsks) {
  Start();
  Next();
  Answer("", 503, seconds(20));
  WaitForNext();
  EXPECT_EQ(waited, seconds(20));
}

TEST_F(ReflectorFailuresTest, SaysThatTheCollectionIsNotServed) {
  Start();
  Next();
  Answer("404 page not found", 404);
  EXPECT_EQ(reflector->trouble(), Reflector::Trouble::kNotServed);
}

TEST_F(ReflectorFailuresTest,
       WatchesAgainFromItsVersionWhenTheConnectionBreaks) {
  Start();
  ListAndWatch({PodText("a", "u-a", 7)}, "100");
  ASSERT_TRUE(Data(EventText("ADDED", PodText("b", "u-b", 101))));
  ASSERT_TRUE(Data(R"({"type":"ADDED","obj)"));
  Break();
  EXPECT_EQ(reflector->last_error(),
            "the watch of /api/v1/pods: connection reset");
  EXPECT_THAT(WaitForNext(), HasSubstr("?resourceVersion=101&"));
  Begin();
  ASSERT_TRUE(Data(EventText("ADDED", PodText("c", "u-c", 102))));
  EXPECT_THAT(Uids(), ElementsAre("u-a", "u-b", "u-c"));
}

TEST_F(ReflectorFailuresTest, BeginsAListAnewWhenTheConnectionBreaks) {
  Start();
  Next();
  Answer(ListText({PodText("a", "u-a", 7)}, "100", "token"));
  Next();
  Begin();
  ASSERT_TRUE(Data(R"({"items":[)"));
  Break();
  EXPECT_EQ(WaitForNext(),
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500");
  Answer(ListText({PodText("b", "u-b", 7)}, "100"));
  EXPECT_THAT(Uids(), ElementsAre("u-b"));
}

TEST_F(ReflectorFailuresTest, ACutListIsNoList) {
  Start();
  ListAndWatch({PodText("a", "u-a", 7)}, "100");
  reflector->ListAgain(now);
  Next();
  Answer(R"({"metadata":{"resourceVersion":"101"},"items":[)");
  EXPECT_THAT(Uids(), ElementsAre("u-a"));
  EXPECT_THAT(reflector->last_error(), HasSubstr("ended in the middle"));
}

TEST_F(ReflectorFailuresTest, HurriesWhenSomethingHasChanged) {
  Start();
  DelaysAfter(5, 500, "");
  Next();
  Answer("", 500);
  EXPECT_EQ(Next(), "none");
  reflector->Hurry(now);
  EXPECT_NE(Next(), "none");
}

TEST_F(ReflectorFailuresTest, DoesNotAskFasterThanOnceASecondForWatches) {
  Start();
  ListAndWatch({}, "100");
  now += Ms(10);
  ASSERT_TRUE(Data(BookmarkText("101")));
  End();
  EXPECT_EQ(Next(), "none");
  WaitForNext();
  EXPECT_EQ(waited, Ms(990));
  EXPECT_EQ(reflector->errors(), 0u);
}

}  // namespace
}  // namespace devmgr::apiserver
