// SPDX-License-Identifier: Apache-2.0
#include "source/api/node_status_writer.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "source/api/api_texts.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kRead[] = "/api/v1/nodes/n1";
constexpr char kLook[] = "/api/v1/nodes/n1?resourceVersion=0";
constexpr char kStatus[] = "/api/v1/nodes/n1/status";

/// A node with the members of its status.
std::string NodeText(const std::string& status = "",
                     const std::string& uid = "u-n1") {
  return fmt::format(
      R"({{"kind":"Node","apiVersion":"v1","metadata":{{"name":"n1",)"
      R"("uid":"{}"}},"status":{{{}}}}})",
      uid, status);
}

/// Amounts of v.com/gpu.
std::string GpuStatus(const std::string& capacity,
                      const std::string& allocatable) {
  return fmt::format(R"("capacity":{{"cpu":"8","v.com/gpu":"{}"}},)"
                     R"("allocatable":{{"cpu":"8","v.com/gpu":"{}"}})",
                     capacity, allocatable);
}

NodeDeviceStatus Gpus(std::optional<NodeResourceAmounts> amounts) {
  NodeDeviceStatus status;
  status.resources[ResourceName("v.com/gpu")] = amounts;
  return status;
}

class NodeStatusWriterTest : public ::testing::Test {
 protected:
  void Want(const NodeDeviceStatus& status) { writer.Want(now, status); }
  /// The request that is due now; its target, and what is sent.
  std::string Target() {
    const auto next = writer.Next(now);
    if (!next) return "";
    request = *next;
    return request.target;
  }
  /// Waits until a request is due.
  std::string NextTarget() {
    if (!writer.WakeAt()) return "";
    now = std::max(now, *writer.WakeAt());
    return Target();
  }
  void Answer(const std::string& body, int code = 200) {
    writer.OnAnswer(now, {.code = code, .retry_after = {}}, body);
  }
  /// The node is read, and patched from what it says there to `after`.
  void Settle(const std::string& before, const std::string& after) {
    ASSERT_EQ(NextTarget(), kRead);
    Answer(NodeText(before));
    ASSERT_EQ(NextTarget(), kStatus);
    Answer(NodeText(after));
  }
  /// What the server's cache, and then its store, says of the node.
  void LookAndRead(const std::string& status) {
    ASSERT_EQ(NextTarget(), kLook);
    Answer(NodeText(status));
    ASSERT_EQ(NextTarget(), kRead);
    Answer(NodeText(status));
  }

  NodeStatusWriter::TimePoint now{};
  NodeStatusWriter writer{"n1", [] { return 0.0; }};
  ApiRequest request;
};

TEST_F(NodeStatusWriterTest, AsksForNothingBeforeSomethingIsWanted) {
  EXPECT_EQ(Target(), "");
  EXPECT_FALSE(writer.WakeAt().has_value());
}

// API-025
TEST_F(NodeStatusWriterTest, PatchesExactlyItsOwnKeysWithTheUid) {
  Want(Gpus({{8, 7}}));
  ASSERT_EQ(Target(), kRead);
  Answer(NodeText(R"("capacity":{"cpu":"8"},"allocatable":{"cpu":"8"})"));
  ASSERT_EQ(Target(), kStatus);
  EXPECT_EQ(request.method, ApiRequest::Method::kPatch);
  EXPECT_EQ(request.content_type, "application/strategic-merge-patch+json");
  EXPECT_EQ(request.content, R"({"metadata":{"uid":"u-n1"},"status":{)"
                             R"("allocatable":{"v.com/gpu":"7"},)"
                             R"("capacity":{"v.com/gpu":"8"}}})");
  Answer(NodeText(GpuStatus("8", "7")));
  EXPECT_EQ(writer.last_error(), "");
}

TEST_F(NodeStatusWriterTest, SendsNothingWhenTheNodeSaysItAlready) {
  Want(Gpus({{1000, 1000}}));
  ASSERT_EQ(Target(), kRead);
  Answer(NodeText(GpuStatus("1k", "1k")));
  EXPECT_EQ(Target(), "");
}

// API-026
TEST_F(NodeStatusWriterTest, TakesNamesAwayByNull) {
  Want(Gpus({{8, 8}}));
  Settle("", GpuStatus("8", "8"));
  Want(Gpus(std::nullopt));
  ASSERT_EQ(NextTarget(), kRead);
  Answer(NodeText(GpuStatus("8", "8")));
  ASSERT_EQ(NextTarget(), kStatus);
  EXPECT_EQ(request.content, R"({"metadata":{"uid":"u-n1"},"status":{)"
                             R"("allocatable":{"v.com/gpu":null},)"
                             R"("capacity":{"v.com/gpu":null}}})");
  Answer(NodeText(R"("capacity":{"cpu":"8"})"));
  // It is not ours any more, and nothing is left to look after.
  EXPECT_FALSE(writer.WakeAt().has_value());
}

TEST_F(NodeStatusWriterTest, TakesAwayWhatIsWantedNoMore) {
  Want(Gpus({{8, 8}}));
  Settle("", GpuStatus("8", "8"));
  Want({});
  ASSERT_EQ(NextTarget(), kRead);
  Answer(NodeText(GpuStatus("8", "8")));
  ASSERT_EQ(NextTarget(), kStatus);
  EXPECT_THAT(request.content, HasSubstr(R"("capacity":{"v.com/gpu":null})"));
}

// API-027
TEST_F(NodeStatusWriterTest, ANodeThatWasMadeAnewIsReadBeforeItIsPatched) {
  Want(Gpus({{8, 8}}));
  Settle("", GpuStatus("8", "8"));
  Want(Gpus({{8, 0}}));
  ASSERT_EQ(NextTarget(), kRead);
  Answer(NodeText(GpuStatus("8", "8")));
  ASSERT_EQ(NextTarget(), kStatus);
  EXPECT_THAT(request.content, HasSubstr("u-n1"));
  Answer(StatusText(409, "Conflict"), 409);
  ASSERT_EQ(NextTarget(), kRead);
  Answer(NodeText("", "u-n2"));
  ASSERT_EQ(NextTarget(), kStatus);
  EXPECT_THAT(request.content, HasSubstr("u-n2"));
  EXPECT_THAT(request.content, HasSubstr(R"("allocatable":{"v.com/gpu":"0"})"));
  EXPECT_THAT(request.content, HasSubstr(R"("capacity":{"v.com/gpu":"8"})"));
}

// API-028
TEST_F(NodeStatusWriterTest, ReadsAgainAfterEachConflict) {
  Want(Gpus({{8, 8}}));
  const auto begin = now;
  int patches = 0;
  for (const int code : {409, 409, 200}) {
    ASSERT_EQ(NextTarget(), kRead);
    Answer(NodeText());
    ASSERT_EQ(NextTarget(), kStatus);
    ++patches;
    Answer(code == 200 ? NodeText(GpuStatus("8", "8"))
                       : StatusText(code, "Conflict"),
           code);
  }
  EXPECT_EQ(patches, 3);
  EXPECT_LE(now - begin, milliseconds(25));
  EXPECT_EQ(writer.last_error(), "");
}

// API-029
TEST_F(NodeStatusWriterTest,
       LeavesAKeyToAnotherAgentThatWritesItAgainAndAgain) {
  Want(Gpus({{8, 8}}));
  Settle("", GpuStatus("8", "8"));
  for (int i = 1; i < 3; ++i) {
    LookAndRead(GpuStatus("8", "4"));
    ASSERT_EQ(NextTarget(), kStatus);
    EXPECT_THAT(request.content,
                HasSubstr(R"("allocatable":{"v.com/gpu":"8"})"));
    Answer(NodeText(GpuStatus("8", "8")));
    EXPECT_THAT(writer.TakeProblems(), SizeIs(0));
  }
  LookAndRead(GpuStatus("8", "4"));
  const auto problems = writer.TakeProblems();
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].reason, "ResourceOwnerConflict");
  EXPECT_EQ(problems[0].message,
            "another agent has set status.allocatable[v.com/gpu] to '4' 3 "
            "times within 10 minutes, where this node has '8': it is left to "
            "that agent");
  // No patch, however often it looks.
  ASSERT_EQ(NextTarget(), kLook);
  Answer(NodeText(GpuStatus("8", "4")));
  EXPECT_EQ(NextTarget(), kLook);
}

TEST_F(NodeStatusWriterTest, AnotherAgentThatWritesOnceIsCorrected) {
  Want(Gpus({{8, 8}}));
  Settle("", GpuStatus("8", "8"));
  for (int i = 0; i < 5; ++i) {
    now += minutes(6);
    LookAndRead(GpuStatus("0", "0"));
    ASSERT_EQ(NextTarget(), kStatus);
    Answer(NodeText(GpuStatus("8", "8")));
  }
  EXPECT_THAT(writer.TakeProblems(), SizeIs(0));
}

TEST_F(NodeStatusWriterTest, ALateCacheIsNoOtherAgent) {
  Want(Gpus({{8, 8}}));
  Settle("", GpuStatus("8", "8"));
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(NextTarget(), kLook);
    Answer(NodeText());
    ASSERT_EQ(NextTarget(), kRead);
    Answer(NodeText(GpuStatus("8", "8")));
  }
  EXPECT_THAT(writer.TakeProblems(), SizeIs(0));
}

TEST_F(NodeStatusWriterTest, ALostAnswerIsReadBack) {
  Want(Gpus({{8, 8}}));
  ASSERT_EQ(NextTarget(), kRead);
  Answer(NodeText());
  ASSERT_EQ(NextTarget(), kStatus);
  writer.OnFailure(now, "the connection was reset");
  EXPECT_EQ(writer.last_error(), "the connection was reset");
  EXPECT_EQ(Target(), "");
  const auto before = now;
  ASSERT_EQ(NextTarget(), kRead);
  EXPECT_EQ(now - before, milliseconds(800));
  // It was done.
  Answer(NodeText(GpuStatus("8", "8")));
  ASSERT_EQ(NextTarget(), kLook);
  EXPECT_EQ(writer.last_error(), "");
}

// API-030, of the status: the latest counts.
TEST_F(NodeStatusWriterTest, OfManyChangesWhileTheServerIsAwayTheLastIsSent) {
  Want(Gpus({{8, 8}}));
  const auto back = now + std::chrono::hours(1);
  int tries = 0;
  for (int i = 0; now < back; ++i) {
    Want(Gpus({{8, i % 8}}));
    ASSERT_EQ(NextTarget(), kRead);
    writer.OnFailure(now, "connection refused");
    ++tries;
  }
  EXPECT_LT(tries, 130);
  Want(Gpus({{8, 3}}));
  Settle("", GpuStatus("8", "3"));
  EXPECT_THAT(request.content, HasSubstr(R"("allocatable":{"v.com/gpu":"3"})"));
  EXPECT_EQ(NextTarget(), kLook);
}

TEST_F(NodeStatusWriterTest, WhatIsWantedWhileAPatchIsUnderWayFollowsIt) {
  Want(Gpus({{8, 8}}));
  ASSERT_EQ(NextTarget(), kRead);
  Answer(NodeText());
  ASSERT_EQ(NextTarget(), kStatus);
  Want(Gpus({{8, 5}}));
  EXPECT_EQ(Target(), "");
  Answer(NodeText(GpuStatus("8", "8")));
  Settle(GpuStatus("8", "8"), GpuStatus("8", "5"));
  EXPECT_THAT(request.content, HasSubstr(R"("status":{"allocatable":{)"
                                         R"("v.com/gpu":"5"}})"));
}

TEST_F(NodeStatusWriterTest, WhatIsInvalidWaitsForSomethingElseToBeWanted) {
  Want(Gpus({{8, 8}}));
  ASSERT_EQ(NextTarget(), kRead);
  Answer(NodeText());
  ASSERT_EQ(NextTarget(), kStatus);
  Answer(StatusText(422, "Invalid", "must be a quantity"), 422);
  EXPECT_FALSE(writer.WakeAt().has_value());
  const auto problems = writer.TakeProblems();
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].reason, "NodeStatusRefused");
  EXPECT_THAT(problems[0].message, HasSubstr("must be a quantity"));
  Want(Gpus({{8, 7}}));
  EXPECT_EQ(NextTarget(), kRead);
}

TEST_F(NodeStatusWriterTest, TheSameRequestFollowsWhenTheServerWantsTime) {
  Want(Gpus({{8, 8}}));
  ASSERT_EQ(NextTarget(), kRead);
  Answer(NodeText());
  ASSERT_EQ(NextTarget(), kStatus);
  const auto before = now;
  writer.OnAnswer(now, {.code = 429, .retry_after = seconds(7)}, "");
  ASSERT_EQ(NextTarget(), kStatus);
  EXPECT_EQ(now - before, seconds(7));
}

TEST_F(NodeStatusWriterTest, ANodeThatIsNotThereYetIsAwaited) {
  Want(Gpus({{8, 8}}));
  ASSERT_EQ(NextTarget(), kRead);
  Answer(StatusText(404, "NotFound", "nodes 'n1' not found"), 404);
  EXPECT_THAT(writer.last_error(), HasSubstr("nodes 'n1' not found"));
  EXPECT_EQ(NextTarget(), kRead);
}

TEST_F(NodeStatusWriterTest, ARefusalOfCredentialsIsFollowedAtOnce) {
  Want(Gpus({{8, 8}}));
  ASSERT_EQ(NextTarget(), kRead);
  Answer(StatusText(401, "Unauthorized"), 401);
  EXPECT_TRUE(writer.TakeRefused());
  EXPECT_EQ(Target(), kRead);
}

TEST_F(NodeStatusWriterTest, DeclaresItsFeaturesAmongThoseOfOthers) {
  NodeDeviceStatus status;
  status.declared_features = {"DRAOptionalNodeOperations"};
  Want(status);
  ASSERT_EQ(NextTarget(), kRead);
  Answer(NodeText(R"("declaredFeatures":["A","UserNamespaces"])"));
  ASSERT_EQ(NextTarget(), kStatus);
  EXPECT_EQ(request.content,
            R"({"metadata":{"uid":"u-n1"},"status":{"declaredFeatures":)"
            R"(["A","DRAOptionalNodeOperations","UserNamespaces"]}})");
}

TEST_F(NodeStatusWriterTest, TakesBackAFeatureThatTheNodeDoesNotHave) {
  Want({});
  ASSERT_EQ(NextTarget(), kRead);
  Answer(NodeText(R"("declaredFeatures":["A","DRAOptionalNodeOperations"])"));
  ASSERT_EQ(NextTarget(), kStatus);
  EXPECT_THAT(request.content, HasSubstr(R"("declaredFeatures":["A"])"));
}

TEST_F(NodeStatusWriterTest, AServerThatDropsTheFieldIsAskedOnce) {
  NodeDeviceStatus status;
  status.declared_features = {"DRAOptionalNodeOperations"};
  Want(status);
  Settle("", "");
  ASSERT_EQ(NextTarget(), kLook);
  Answer(NodeText());
  EXPECT_EQ(NextTarget(), kLook);
}

TEST_F(NodeStatusWriterTest, SaysWhatIsNoNode) {
  Want(Gpus({{8, 8}}));
  ASSERT_EQ(NextTarget(), kRead);
  Answer("<html>");
  EXPECT_THAT(writer.last_error(), HasSubstr("is no node"));
  EXPECT_EQ(NextTarget(), kRead);
}

}  // namespace
}  // namespace devmgr::apiserver
