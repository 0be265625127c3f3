// SPDX-License-Identifier: Apache-2.0
#include "source/api/event_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace devmgr::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTwoEvents[] =
    R"({"type":"ADDED","object":{"a":"}{\"","b":[{},[]]}})"
    "\n"
    R"({"type":"MODIFIED","object":{"c":"\\"}})"
    "\n";

/// What the splitter makes of pieces of a text.
class Splitting {
 public:
  explicit Splitting(std::size_t limit = kMaxEventBytes) : splitter(limit) {}

  absl::Status Feed(std::string_view bytes) {
    return splitter.Feed(bytes, [this](std::string_view text) {
      events.emplace_back(text);
      return absl::OkStatus();
    });
  }

  EventSplitter splitter;
  std::vector<std::string> events;
};

auto IsTheTwoEvents() {
  return ElementsAre(R"({"type":"ADDED","object":{"a":"}{\"","b":[{},[]]}})",
                     R"({"type":"MODIFIED","object":{"c":"\\"}})");
}

TEST(EventSplitterTest, Api004TakesEventsInPiecesOfOneByte) {
  Splitting splitting;
  for (const char c : std::string_view(kTwoEvents)) {
    ASSERT_TRUE(splitting.Feed(std::string_view(&c, 1)).ok());
  }
  EXPECT_THAT(splitting.events, IsTheTwoEvents());
  EXPECT_TRUE(splitting.splitter.Finish().ok());
}

TEST(EventSplitterTest, Api004TakesTwoEventsInOnePiece) {
  Splitting splitting;
  ASSERT_TRUE(splitting.Feed(kTwoEvents).ok());
  EXPECT_THAT(splitting.events, IsTheTwoEvents());
}

TEST(EventSplitterTest, TakesTwoPiecesCutAnywhere) {
  const std::string_view text = kTwoEvents;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Splitting splitting;
    ASSERT_TRUE(splitting.Feed(text.substr(0, cut)).ok());
    ASSERT_TRUE(splitting.Feed(text.substr(cut)).ok());
    EXPECT_THAT(splitting.events, IsTheTwoEvents()) << "cut at " << cut;
    EXPECT_EQ(splitting.splitter.buffered(), 0u);
  }
}

TEST(EventSplitterTest, Api013NamesTheObjectOfAnEventThatIsTooLarge) {
  Splitting splitting(200);
  const absl::Status status =
      splitting.Feed(R"({"type":"ADDED","object":{"kind":"Pod","metadata":)"
                     R"({"name":"big","namespace":"ns","annotations":{"x":")" +
                     std::string(300, 'x') + R"("}}}})");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "the event of Pod 'ns/big' exceeds 200 bytes");
  EXPECT_LE(splitting.splitter.buffered(), 201u);
  EXPECT_THAT(splitting.events, ElementsAre());
}

TEST(EventSplitterTest, SaysSoWhenTheNameOfATooLargeObjectWasNotRead) {
  Splitting splitting(20);
  const absl::Status status =
      splitting.Feed(R"({"object":{"spec":"xxxxxxxxxxxxxxxxxxxx"}})");
  EXPECT_EQ(status.message(),
            "the event of an object without a readable name exceeds 20 bytes");
}

TEST(EventSplitterTest, TakesAnEventOfExactlyTheLimit) {
  Splitting splitting(10);
  ASSERT_TRUE(splitting.Feed(R"({"a":"bc"}{"a":)").ok());
  EXPECT_THAT(splitting.events, ElementsAre(R"({"a":"bc"})"));
}

TEST(EventSplitterTest, RefusesWhatIsNoObjectBetweenEvents) {
  Splitting splitting;
  const absl::Status status = splitting.Feed("{}\n<html>");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(),
            "the watch sent '<html>' where an event was to begin");
  EXPECT_THAT(splitting.events, ElementsAre("{}"));
}

TEST(EventSplitterTest, SaysWhichObjectTheStreamEndedIn) {
  Splitting splitting;
  ASSERT_TRUE(
      splitting.Feed(R"({"object":{"metadata":{"name":"p"},"spec":{)").ok());
  const absl::Status status = splitting.splitter.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("object 'p'"));
}

TEST(EventSplitterTest, PassesOnAnErrorOfTheConsumer) {
  EventSplitter splitter;
  const absl::Status status = splitter.Feed(
      "{}{}", [](std::string_view) { return absl::AbortedError("no"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace devmgr::apiserver
