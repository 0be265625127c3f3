// SPDX-License-Identifier: Apache-2.0
//
// What a session remembers over a restart, and the UID of its node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "source/api/api_session_fixture.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kNodePath[] = "/api/v1/nodes/n1";

std::string NodeWithUid(const std::string& uid) {
  return R"({"kind":"Node","metadata":{"name":"n1","uid":")" + uid + R"("}})";
}

class ApiSessionNodeTest : public ApiSessionFixture {
 protected:
  static ApiSession::Options Remembering(const SourceMemory& memory = {}) {
    ApiSession::Options options;
    options.reads_node = true;
    options.memory = memory;
    return options;
  }
};

TEST_F(ApiSessionNodeTest, DoesNotReadTheNodeUnlessItRemembersIt) {
  StartWith({});
  EXPECT_EQ(transport.Find(kNodePath), 0u);
}

TEST_F(ApiSessionNodeTest, RemembersTheNodeOnceItIsKnown) {
  StartWith({PodText("a", "u-a", 7)}, Remembering());
  // There is nothing to compare it with.
  EXPECT_TRUE(snapshot->complete);
  EXPECT_EQ(remembered, (SourceMemory{"n1", "100", ""}));
  ASSERT_TRUE(transport.Answer(kNodePath, NodeWithUid("u-n1")));
  executor.RunPending();
  EXPECT_EQ(remembered, (SourceMemory{"n1", "100", "u-n1"}));
}

// API-009
TEST_F(ApiSessionNodeTest, AsksForNothingOlderThanWhatItRemembers) {
  Start(Remembering({"n1", "500", "u-n1"}));
  EXPECT_NE(transport.Find("resourceVersion=500&resourceVersionMatch="
                           "NotOlderThan"),
            0u);
}

TEST_F(ApiSessionNodeTest, IsIncompleteUntilTheNodeIsKnownToBeTheSame) {
  Start(Remembering({"n1", "500", "u-n1"}));
  ASSERT_TRUE(transport.Answer(kList, ListText({}, "500")));
  executor.RunPending();
  EXPECT_FALSE(snapshot->complete);
  ASSERT_TRUE(
      transport.Answer(kNodePath, StatusText(500, "InternalError"), 500));
  executor.RunPending();
  EXPECT_FALSE(snapshot->complete);
  ASSERT_EQ(snapshot->problems.size(), 1u);
  EXPECT_THAT(snapshot->problems[0].message, HasSubstr("/api/v1/nodes/n1"));
  executor.Advance(seconds(1));
  ASSERT_TRUE(transport.Answer(kNodePath, NodeWithUid("u-n1")));
  executor.RunPending();
  EXPECT_TRUE(snapshot->complete);
  EXPECT_THAT(snapshot->problems, IsEmpty());
}

TEST_F(ApiSessionNodeTest, GoesOnWhereItMayNotReadTheNode) {
  Start(Remembering({"n1", "500", "u-n1"}));
  ASSERT_TRUE(transport.Answer(kNodePath, StatusText(403, "Forbidden"), 403));
  ASSERT_TRUE(transport.Answer(kList, ListText({}, "501")));
  executor.RunPending();
  EXPECT_TRUE(snapshot->complete);
  EXPECT_EQ(remembered, (SourceMemory{"n1", "501", "u-n1"}));
}

TEST_F(ApiSessionNodeTest, VouchesForNothingOfAnotherNode) {
  Start(Remembering({"n1", "500", "u-n1"}));
  ASSERT_TRUE(transport.Answer(kNodePath, NodeWithUid("u-n2")));
  ASSERT_TRUE(transport.Answer(kList, ListText({}, "20")));
  executor.RunPending();
  // The second list changes nothing about it.
  executor.Advance(ApiSession::kConfirmAfter);
  ASSERT_TRUE(transport.Answer(kList, ListText({}, "21")));
  executor.RunPending();
  EXPECT_TRUE(snapshot->complete);
  EXPECT_FALSE(snapshot->vouched);
  ASSERT_EQ(snapshot->problems.size(), 1u);
  EXPECT_THAT(snapshot->problems[0].message,
              HasSubstr("the node has the UID u-n2, and had u-n1"));
  EXPECT_EQ(remembered.node_uid, "u-n1");
}

TEST_F(ApiSessionNodeTest, TakesAnotherNodeOnceItIsBelieved) {
  Start(Remembering({"n1", "500", "u-n1"}));
  ASSERT_TRUE(transport.Answer(kNodePath, NodeWithUid("u-n2")));
  ASSERT_TRUE(
      transport.Answer(kList, ListText({PodText("b", "u-b", 9)}, "20")));
  executor.RunPending();
  session->AcceptNode(snapshot->watch + 1);
  executor.RunPending();
  EXPECT_EQ(remembered.node_uid, "u-n1");
  session->AcceptNode(snapshot->watch);
  executor.RunPending();
  EXPECT_EQ(remembered, (SourceMemory{"n1", "20", "u-n2"}));
  EXPECT_THAT(snapshot->problems, IsEmpty());
  executor.Advance(ApiSession::kConfirmAfter);
  ASSERT_TRUE(
      transport.Answer(kList, ListText({PodText("b", "u-b", 9)}, "20")));
  executor.RunPending();
  EXPECT_TRUE(snapshot->vouched);
}

TEST_F(ApiSessionNodeTest, LooksAtTheNodeAgainAfterABreak) {
  StartWith({PodText("a", "u-a", 7)}, Remembering());
  ASSERT_TRUE(transport.Answer(kNodePath, NodeWithUid("u-n1")));
  const auto watch = transport.Find("/pods?");
  transport.Send(watch, EventText("ERROR", StatusText(410, "Expired")));
  EXPECT_NE(transport.Find(kNodePath), 0u);
}

TEST_F(ApiSessionNodeTest, CountsWhatItAsksFor) {
  StartWith({PodText("a", "u-a", 7)});
  ASSERT_TRUE(transport.Answer(kGroup, "", 404));
  transport.End(transport.Find("/pods?"), absl::UnavailableError("reset"));
  executor.Advance(seconds(1));
  transport.End(transport.Find("/pods?"), absl::UnavailableError("refused"));
  using Counts = std::map<Activity::Request, std::uint64_t>;
  EXPECT_EQ(activity.requests, (Counts{{{"get", "resource.k8s.io", 404}, 1},
                                       {{"list", "pods", 200}, 1},
                                       {{"watch", "pods", 0}, 1},
                                       {{"watch", "pods", 200}, 1}}));
  EXPECT_EQ(activity.watch_restarts, 1u);
  EXPECT_FALSE(activity.is_watched);
}

TEST_F(ApiSessionNodeTest, SaysHowItIs) {
  StartWith({PodText("p", "u-p", 7, kClaims)});
  ASSERT_TRUE(transport.Answer(kGroup, kV1));
  executor.Advance(seconds(5));
  SendEvent("ADDED", PodText("b", "u-b", 101));
  EXPECT_TRUE(activity.is_watched);
  EXPECT_EQ(activity.last_event, executor.Now());
  EXPECT_EQ(activity.known_at, executor.Now());
  EXPECT_EQ(activity.last_list, executor.Now() - seconds(5));
  SourceInfo info;
  session->Fill(&info);
  EXPECT_EQ(info.state, "Watching");
  EXPECT_EQ(info.api_version, "resource.k8s.io/v1");
  EXPECT_EQ(info.resource_version, "101");
  EXPECT_EQ(info.queued, 1u);
  EXPECT_EQ(info.last_error, "");
  EXPECT_TRUE(info.complete);
  transport.End(transport.Find("/pods?"), absl::UnavailableError("reset"));
  session->Fill(&info);
  EXPECT_EQ(info.state, "Failing");
  EXPECT_EQ(info.last_error, "the watch of /api/v1/pods: reset");
}

TEST_F(ApiSessionNodeTest, ShowsWhatTheSessionBeforeKnewUntilItHasListed) {
  StartWith({PodText("a", "u-a", 7)});
  ApiSession::Options options;
  options.before = snapshot;
  session.reset();
  Start(options);
  ASSERT_TRUE(transport.Answer(kList, StatusText(503, "Unavailable"), 503));
  executor.RunPending();
  EXPECT_THAT(Pods(), ElementsAre("a/u-a"));
  EXPECT_EQ(snapshot->problems.size(), 1u);
  session->SetConfigProblem("no such file");
  executor.RunPending();
  EXPECT_EQ(snapshot->problems.size(), 2u);
  executor.Advance(seconds(1));
  ASSERT_TRUE(transport.Answer(kList, ListText({}, "100")));
  executor.RunPending();
  EXPECT_THAT(Pods(), IsEmpty());
  EXPECT_FALSE(snapshot->vouched);
  EXPECT_EQ(snapshot->watch, options.before->watch + 1);
}

}  // namespace
}  // namespace devmgr::apiserver
