// SPDX-License-Identifier: Apache-2.0
#include "upkeep/runtime_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status_matchers.h"

namespace devmgr::upkeep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RuntimeBookTest : public ::testing::Test {
 protected:
  static EventInfo EventOf(std::uint64_t number, const std::string& message) {
    EventInfo event;
    event.sequence = number;
    event.warning = true;
    event.reason = "DeviceEdit";
    event.object_kind = "Pod";
    event.object = {"ns", "p"};
    event.message = message;
    return event;
  }
  static RuntimeReport ReportOf(const std::string& session,
                                std::vector<EventInfo> events = {}) {
    RuntimeReport report;
    report.session = session;
    report.listen = "/run/devmgr/cri.sock";
    report.endpoint = "/run/containerd/containerd.sock";
    report.runtime = "containerd 2.0.1";
    report.events = std::move(events);
    return report;
  }
  std::vector<std::string> Messages() const {
    std::vector<std::string> messages;
    for (const EventInfo& event : log_.After(0)) {
      messages.push_back(event.message);
    }
    return messages;
  }

  WallTime now_ = WallTime(std::chrono::hours(1));
  ManualExecutor executor_;
  events::EventLog log_{executor_, 1000, [this] { return now_; },
                        [](const EventInfo&) {}};
  RuntimeBook book_{log_, [this] { return now_; }};
};

TEST_F(RuntimeBookTest, ShowsTheLatestReportOfASession) {
  RuntimeReport report = ReportOf("s1");
  report.counters.injected = 1;
  EXPECT_THAT(book_.Take(report), IsOk());
  const WallTime first = now_;
  now_ += std::chrono::seconds(5);
  report.counters.injected = 2;
  EXPECT_THAT(book_.Take(report), IsOk());
  const auto runtimes = book_.Runtimes();
  ASSERT_THAT(runtimes, SizeIs(1));
  EXPECT_EQ(runtimes[0]->counters.injected, 2U);
  EXPECT_EQ(runtimes[0]->since, first);
  EXPECT_EQ(runtimes[0]->last_report, now_);
  EXPECT_EQ(runtimes[0]->runtime, "containerd 2.0.1");
  EXPECT_EQ(book_.Runtimes(), runtimes);  // the same objects
}

// An answer was lost, and the shim reports again.
TEST_F(RuntimeBookTest, TellsAnEventOnce) {
  EXPECT_THAT(book_.Take(ReportOf("s1", {EventOf(1, "a")})), IsOk());
  EXPECT_THAT(book_.Take(ReportOf("s1", {EventOf(1, "a"), EventOf(2, "b")})),
              IsOk());
  EXPECT_THAT(Messages(), ElementsAre("a", "b"));
  const auto events = log_.After(0);
  EXPECT_TRUE(events[0].warning);
  EXPECT_EQ(events[0].reason, "DeviceEdit");
  EXPECT_EQ(events[0].object.ToString(), "ns/p");
}

TEST_F(RuntimeBookTest, ANewSessionOfTheSameSocketEndsTheOldOne) {
  EXPECT_THAT(book_.Take(ReportOf("s1", {EventOf(7, "old")})), IsOk());
  EXPECT_THAT(book_.Take(ReportOf("s2", {EventOf(1, "new")})), IsOk());
  EXPECT_THAT(Messages(), ElementsAre("old", "new"));
  const auto runtimes = book_.Runtimes();
  ASSERT_THAT(runtimes, SizeIs(1));
  EXPECT_EQ(runtimes[0]->session, "s2");
}

TEST_F(RuntimeBookTest, ASessionEndsWhenItSaysSo) {
  EXPECT_THAT(book_.Take(ReportOf("s1")), IsOk());
  RuntimeReport last = ReportOf("s1", {EventOf(1, "bye")});
  last.over = true;
  EXPECT_THAT(book_.Take(last), IsOk());
  EXPECT_THAT(book_.Runtimes(), IsEmpty());
  EXPECT_THAT(Messages(), ElementsAre("bye"));
}

TEST_F(RuntimeBookTest, TakesNothingOfAReportThatCannotBeMeant) {
  const auto refuses = [&](const RuntimeReport& report, const char* why) {
    EXPECT_THAT(book_.Take(report),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refuses(ReportOf(""), "no session");
  refuses(ReportOf("a\nb"), "no session");
  RuntimeReport report = ReportOf("s1");
  report.listen.clear();
  refuses(report, "the shim's socket");
  refuses(ReportOf("s1", {EventOf(2, "a"), EventOf(2, "b")}), "comes after");
  EventInfo event = EventOf(3, "c");
  event.reason = "no word";
  refuses(ReportOf("s1", {EventOf(2, "a"), event}), "no reason");
  event = EventOf(3, "c");
  event.object.name = "\x1b[2J";
  refuses(ReportOf("s1", {event}), "an object that cannot exist");
  std::vector<EventInfo> many;
  for (std::uint64_t i = 1; i <= kMaxReportedEvents + 1; ++i) {
    many.push_back(EventOf(i, "x"));
  }
  refuses(ReportOf("s1", many), "at most 256");
  EXPECT_THAT(book_.Runtimes(), IsEmpty());
  EXPECT_THAT(Messages(), IsEmpty());
}

TEST_F(RuntimeBookTest, IsBounded) {
  RuntimeReport report = ReportOf("s1");
  for (std::size_t i = 0; i < RuntimeBook::kMaxSessions; ++i) {
    report.listen = "/run/" + std::to_string(i);
    EXPECT_THAT(book_.Take(report), IsOk());
  }
  report.listen = "/run/another";
  EXPECT_THAT(book_.Take(report), StatusIs(absl::StatusCode::kResourceExhausted,
                                           HasSubstr("/run/another")));
  report.listen = "/run/0";
  EXPECT_THAT(book_.Take(report), IsOk());
  EXPECT_THAT(book_.Take(ReportOf("s1", {EventOf(1, std::string(9000, 'x'))})),
              StatusIs(absl::StatusCode::kResourceExhausted));
  report.events = {EventOf(1, std::string(9000, 'x') + "\x1b")};
  EXPECT_THAT(book_.Take(report), IsOk());
  ASSERT_THAT(Messages(), SizeIs(1));
  EXPECT_LE(Messages()[0].size(), 4200U);
}

TEST_F(RuntimeBookTest, RefusesHoldersThatThereCannotBe) {
  const auto refused = [&](const std::function<void(ForeignHolder&)>& edit,
                           const std::string& why) {
    RuntimeReport report = ReportOf("s1");
    ForeignHolder& holder = report.holders.emplace_back();
    holder.container_id = "c1";
    holder.resources = {{"example.com/gpu", {"0"}}};
    edit(holder);
    EXPECT_THAT(book_.Take(report),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused([](auto& holder) { holder.container_id = ""; }, "has no ID");
  refused([](auto& holder) { holder.container_id = std::string(257, 'x'); },
          "has no ID");
  refused([](auto& holder) { holder.container_id = "a\nb"; }, "has no ID");
  refused([](auto& holder) { holder.pod.name = "a\nb"; }, "container 'c1'");
  refused([](auto& holder) { holder.why = "a\nb"; }, "container 'c1'");
  refused([](auto& holder) { holder.resources[0].name = ""; },
          "a device that cannot exist");
  refused([](auto& holder) { holder.resources[0].devices = {""}; },
          "a device that cannot exist");
  refused([](auto& holder) { holder.cdi_devices = {"a\nb"}; },
          "a device that cannot exist");
  refused(
      [](auto& holder) {
        holder.cdi_devices.assign(kMaxHeldDevices, "v.com/c=1");
      },
      "holds 1025 devices; at most 1024");
  RuntimeReport report = ReportOf("s1");
  report.holders.resize(kMaxReportedHolders + 1);
  EXPECT_THAT(book_.Take(report),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 1025 holders; at most 1024")));
  EXPECT_THAT(book_.Runtimes(), IsEmpty());
}

}  // namespace
}  // namespace devmgr::upkeep
