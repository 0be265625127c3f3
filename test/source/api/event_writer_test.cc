// SPDX-License-Identifier: Apache-2.0
#include "source/api/event_writer.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "source/api/api_texts.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPath[] = "/api/v1/namespaces/ns/events";

EventInfo Event(const std::string& message, std::uint64_t count = 1) {
  EventInfo event;
  event.first_time = WallTime(std::chrono::seconds(1'700'000'000));
  event.time = event.first_time + std::chrono::seconds(count - 1);
  event.warning = true;
  event.reason = "FailedAllocate";
  event.object_kind = "Pod";
  event.object = {"ns", "a"};
  event.message = message;
  event.count = count;
  return event;
}

InvolvedObject Pod(const std::string& name = "a") {
  return {"v1", "Pod", {"ns", name}, "u-" + name};
}

class EventWriterTest : public ::testing::Test {
 protected:
  void Add(const EventInfo& event, const InvolvedObject& object = Pod()) {
    writer.Add(now, event, object);
  }
  bool Send() {
    const auto next = writer.Next(now);
    if (!next) return false;
    request = *next;
    return true;
  }
  bool SendWhenDue() {
    if (!writer.WakeAt()) return false;
    now = std::max(now, *writer.WakeAt());
    return Send();
  }
  void Answer(int code, const std::string& reason = "") {
    writer.OnAnswer(now, {.code = code, .retry_after = {}},
                    StatusText(code, reason));
  }
  /// Sends what waits; gives the messages of what was created.
  std::vector<std::string> SendAll() {
    std::vector<std::string> messages;
    while (SendWhenDue()) {
      const std::size_t begin = request.content.find("\"message\":\"") + 11;
      messages.push_back(request.content.substr(
          begin, request.content.find('"', begin) - begin));
      Answer(201);
    }
    return messages;
  }

  EventWriter::TimePoint now{};
  EventWriter writer{"n1", [] { return 0.0; }};
  ApiRequest request;
};

TEST_F(EventWriterTest, CreatesAnEventThatIsNew) {
  Add(Event("no devices"));
  ASSERT_TRUE(Send());
  EXPECT_EQ(request.method, ApiRequest::Method::kPost);
  EXPECT_EQ(request.target, kPath);
  EXPECT_EQ(request.content,
            R"({"apiVersion":"v1","count":1,)"
            R"("firstTimestamp":"2023-11-14T22:13:20Z","involvedObject":{)"
            R"("apiVersion":"v1","kind":"Pod","name":"a","namespace":"ns",)"
            R"("uid":"u-a"},"kind":"Event",)"
            R"("lastTimestamp":"2023-11-14T22:13:20Z","message":"no devices",)"
            R"("metadata":{"name":"a.17979cfe362a0000.1","namespace":"ns"},)"
            R"("reason":"FailedAllocate","reportingComponent":"devmgrd",)"
            R"("reportingInstance":"n1","source":{"component":"devmgrd",)"
            R"("host":"n1"},"type":"Warning"})");
  Answer(201);
  EXPECT_FALSE(SendWhenDue());
}

TEST_F(EventWriterTest, EventsOfTheNodeAreInTheDefaultNamespace) {
  Add(Event("x"), {"v1", "Node", {"", "n1"}, "n1"});
  ASSERT_TRUE(Send());
  EXPECT_EQ(request.target, "/api/v1/namespaces/default/events");
  EXPECT_THAT(request.content,
              HasSubstr(R"("involvedObject":{"apiVersion":"v1","kind":"Node",)"
                        R"("name":"n1","uid":"n1"})"));
}

TEST_F(EventWriterTest, ARepeatIsAPatch) {
  Add(Event("no devices"));
  ASSERT_TRUE(Send());
  Answer(201);
  Add(Event("no devices", 5));
  ASSERT_TRUE(SendWhenDue());
  EXPECT_EQ(request.method, ApiRequest::Method::kPatch);
  EXPECT_EQ(request.content_type, "application/strategic-merge-patch+json");
  EXPECT_EQ(request.target, std::string(kPath) + "/a.17979cfe362a0000.1");
  EXPECT_EQ(request.content,
            R"({"count":5,"lastTimestamp":"2023-11-14T22:13:24Z"})");
}

TEST_F(EventWriterTest, ARepeatOfWhatTheServerHasForgottenIsCreatedAnew) {
  Add(Event("no devices"));
  ASSERT_TRUE(Send());
  Answer(201);
  Add(Event("no devices", 2));
  ASSERT_TRUE(SendWhenDue());
  Answer(404, "NotFound");
  ASSERT_TRUE(SendWhenDue());
  EXPECT_EQ(request.method, ApiRequest::Method::kPost);
  EXPECT_THAT(request.content, HasSubstr(R"("count":2)"));
  Answer(201);
  EXPECT_EQ(writer.waiting(), 0u);
  EXPECT_EQ(writer.dropped(), 0u);
}

TEST_F(EventWriterTest, ALostAnswerIsNoSecondEvent) {
  Add(Event("no devices"));
  ASSERT_TRUE(Send());
  const std::string first = request.content;
  writer.OnFailure(now, "the connection was reset");
  EXPECT_FALSE(Send());
  ASSERT_TRUE(SendWhenDue());
  EXPECT_EQ(request.content, first);
  Answer(409, "AlreadyExists");
  EXPECT_EQ(writer.waiting(), 0u);
  EXPECT_EQ(writer.dropped(), 0u);
  EXPECT_EQ(writer.last_error(), "");
}

// API-030, of the events.
TEST_F(EventWriterTest, KeepsTheNewestThousandInOrderWhileTheServerIsAway) {
  for (int i = 0; i < 3'000; ++i) {
    Add(Event(fmt::format("message {}", i)), Pod(fmt::format("p{}", i)));
    if (SendWhenDue()) writer.OnFailure(now, "connection refused");
  }
  EXPECT_EQ(writer.waiting(), EventWriter::kMostWaiting);
  EXPECT_EQ(writer.dropped(), 2'000u);
  const auto messages = SendAll();
  ASSERT_EQ(messages.size(), EventWriter::kMostWaiting);
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_EQ(messages[i], fmt::format("message {}", 2'000 + i));
  }
}

TEST_F(EventWriterTest, TheOneUnderWayIsNotDropped) {
  Add(Event("first"));
  ASSERT_TRUE(Send());
  for (int i = 0; i < 1'500; ++i) {
    Add(Event("later"), Pod(fmt::format("p{}", i)));
  }
  Answer(201);
  EXPECT_EQ(writer.waiting(), EventWriter::kMostWaiting - 1);
}

TEST_F(EventWriterTest, OneThatWaitsCountsOnceMore) {
  Add(Event("first"));
  Add(Event("again"));
  for (int i = 2; i < 100; ++i) Add(Event("again", i));
  EXPECT_EQ(writer.waiting(), 2u);
  ASSERT_TRUE(SendWhenDue());
  Answer(201);
  ASSERT_TRUE(SendWhenDue());
  EXPECT_THAT(request.content, HasSubstr(R"("count":99)"));
}

TEST_F(EventWriterTest, AnAnswerOfTheServerEndsAnEvent) {
  Add(Event("a"));
  Add(Event("b"));
  ASSERT_TRUE(SendWhenDue());
  Answer(403, "Forbidden");
  EXPECT_THAT(writer.last_error(), HasSubstr("403 Forbidden"));
  EXPECT_EQ(writer.dropped(), 1u);
  EXPECT_THAT(SendAll(), ElementsAre("b"));
  EXPECT_EQ(writer.last_error(), "");
}

TEST_F(EventWriterTest, AServerThatAsksForTimeGetsIt) {
  Add(Event("a"));
  ASSERT_TRUE(SendWhenDue());
  writer.OnAnswer(now, {.code = 429, .retry_after = seconds(7)}, "");
  EXPECT_EQ(writer.WakeAt(), now + seconds(7));
  ASSERT_TRUE(SendWhenDue());
  Answer(503);
  EXPECT_THAT(SendAll(), ElementsAre("a"));
}

TEST_F(EventWriterTest, OfOneObjectThereAreNotTooMany) {
  for (int i = 0; i < 40; ++i) Add(Event(fmt::format("m{}", i)));
  Add(Event("of another"), Pod("b"));
  EXPECT_EQ(writer.waiting(), 26u);
  EXPECT_EQ(writer.dropped(), 15u);
  SendAll();
  now += minutes(5);
  Add(Event("one more"));
  Add(Event("two more"));
  EXPECT_THAT(SendAll(), ElementsAre("one more"));
}

TEST_F(EventWriterTest, AMessageIsCut) {
  Add(Event(std::string(5'000, 'x')));
  ASSERT_TRUE(Send());
  EXPECT_LT(request.content.size(), 1'600u);
}

TEST_F(EventWriterTest, ForgetsWhatWasNotUsedForLongest) {
  Add(Event("first"), Pod("first"));
  SendAll();
  for (std::size_t i = 0; i < EventWriter::kMostKnown; ++i) {
    Add(Event("x"), Pod(fmt::format("p{}", i)));
    SendAll();
  }
  Add(Event("first", 2), Pod("first"));
  ASSERT_TRUE(SendWhenDue());
  EXPECT_EQ(request.method, ApiRequest::Method::kPost);
}

}  // namespace
}  // namespace devmgr::apiserver
