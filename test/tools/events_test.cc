// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class EventsTest : public CommandLineTest {
 protected:
  EventInfo MakeEvent(std::uint64_t sequence, const std::string& pod,
                      const std::string& ns = "default") {
    return {sequence, now_ - minutes(10), false,         "Prepared",
            "Pod",    {ns, pod},          "pod is ready"};
  }

  /// Ends a stream, which else would go on for good.
  void EndStream() { node_.health = absl::InternalError("end of test"); }
};

TEST_F(EventsTest, ListsWhatTheDaemonRemembers) {
  node_.events = {MakeEvent(1, "a"), MakeEvent(2, "b", "other")};
  node_.events[1].warning = true;
  const Result result = Run({"events"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("Pod/default/a"), HasSubstr("Pod/other/b"),
                    HasSubstr("Warning")));
  EXPECT_THAT(Run({"events", "-n", "other"}).out,
              AllOf(Not(HasSubstr("default/a")), HasSubstr("other/b")));
  const auto list = RunJson({"events"});
  EXPECT_EQ(list["kind"], "EventList");
  EXPECT_EQ(list["items"][1]["type"], "Warning");
  EXPECT_EQ(list["items"][0]["object"]["name"], "a");
  EXPECT_EQ(Run({"events", "-o", "name"}).out, "event/1\nevent/2\n");
}

TEST_F(EventsTest, ARepeatedEventIsShownOnceWithItsCount) {
  node_.events = {MakeEvent(1, "a"), MakeEvent(2, "b")};
  node_.events[0].count = 313;
  node_.events[0].first_time = now_ - minutes(20);
  node_.events[1].count = 2;
  const Result result = Run({"events"});
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("pod is ready (repeated 312 times since 20"),
                    HasSubstr("pod is ready (repeated 1 time)")));
  const auto list = RunJson({"events"});
  EXPECT_EQ(list["items"][0]["count"], 313);
  EXPECT_EQ(list["items"][0]["message"], "pod is ready");
  EXPECT_NE(list["items"][0]["firstTime"], list["items"][0]["time"]);
}

TEST_F(EventsTest, FollowTellsARepeatFromANewEvent) {
  node_.events = {MakeEvent(1, "a")};
  int waits = 0;
  node_.on_wait = [&](milliseconds) {
    if (++waits > 1) return EndStream();
    node_.events[0].sequence = 2;
    node_.events[0].count = 40;
  };
  const Result result = Run({"events", "-f", "-o", "json"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("ADDED"), HasSubstr("MODIFIED")));
}

TEST_F(EventsTest, NothingIsANote) {
  const Result result = Run({"events"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_EQ(result.err, "No resources found\n");
  EXPECT_EQ(RunJson({"events"})["items"].size(), 0u);
}

TEST_F(EventsTest, SinceKeepsTheRecentOnes) {
  node_.events = {MakeEvent(1, "old"), MakeEvent(2, "new")};
  node_.events[1].time = now_ - minutes(1);
  EXPECT_THAT(Run({"events", "--since", "5m"}).out,
              AllOf(Not(HasSubstr("/old")), HasSubstr("/new")));
  EXPECT_EQ(
      Run({"events", "--since", "2019-12-19T23:57:00Z", "-o", "name"}).out,
      "event/2\n");
}

TEST_F(EventsTest, FollowPrintsEachEventOnceAsItComes) {
  node_.events = {MakeEvent(1, "a")};
  int waits = 0;
  node_.on_wait = [&](milliseconds) {
    if (++waits == 1) {
      EXPECT_EQ(printed_, 1);
      node_.events.push_back(MakeEvent(2, "b"));
    } else {
      EXPECT_EQ(printed_, 2);
      EndStream();
    }
  };
  const Result result = Run({"events", "-f", "-o", "json"});
  EXPECT_EQ(result.code, 1);
  std::istringstream lines(result.out);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    EXPECT_EQ(event["type"], "ADDED");
    EXPECT_EQ(event["object"]["kind"], "Event");
    names.push_back(event["object"]["object"]["name"]);
  }
  EXPECT_THAT(names, ElementsAre("a", "b"));
}

TEST_F(EventsTest, FollowSurvivesARestartOfTheDaemon) {
  node_.events = {MakeEvent(1, "before"), MakeEvent(2, "before-too")};
  int waits = 0;
  node_.on_wait = [&](milliseconds) {
    if (++waits == 1) {
      node_.health = absl::UnavailableError("gone");
    } else {
      EndStream();
    }
  };
  on_pause_ = [&] {
    // Another daemon, whose events begin with 1 again.
    node_.health = absl::OkStatus();
    node_.node.started = now_;
    node_.events = {MakeEvent(1, "after")};
  };
  const Result result = Run({"events", "--follow"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("before-too"), HasSubstr("/after")));
  EXPECT_THAT(result.err, AllOf(HasSubstr("connection lost"),
                                HasSubstr("connected again")));
}

TEST_F(EventsTest, FollowNeedsADaemonAtFirst) {
  connect_error_ = absl::UnavailableError("down");
  EXPECT_EQ(Run({"events", "-f"}).code, 4);
}

}  // namespace
}  // namespace devmgr::ctl
