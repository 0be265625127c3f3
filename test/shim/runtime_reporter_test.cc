// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/status_matchers.h"

namespace devmgr::shim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Takes reports and answers when the test says so.
class SlowSource : public DeviceSource {
 public:
  void DevicesOf(const PodUid&, const ObjectName&, std::chrono::milliseconds,
                 DevicesDone) override {}
  void BeforeContainerStart(const PodUid&, const ContainerName&,
                            std::chrono::milliseconds, Done) override {}
  void WaitForChange(std::uint64_t, VersionDone) override {}
  void WaitForLook(const ShimIdentity&, std::uint64_t, LookDone) override {}
  void Report(const RuntimeReport& report, Done done) override {
    reports.push_back(report);
    open.push_back(std::move(done));
  }

  void Answer(const absl::Status& status) {
    ASSERT_FALSE(open.empty());
    const Done done = std::move(open.front());
    open.erase(open.begin());
    done(status);
  }

  std::vector<RuntimeReport> reports;
  std::vector<Done> open;
};

class RuntimeReporterTest : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeReporter::Parts parts;
    parts.listen = "/run/shim.sock";
    parts.fill_in = [this](RuntimeReport* report) {
      report->counters.calls = calls_;
    };
    parts.on_sent = [this](const absl::Status& status) {
      sent_.push_back(status.ok());
    };
    parts.on_taken = [this](const absl::Status& status) {
      taken_.push_back(status.ok());
    };
    reporter_ =
        std::make_unique<RuntimeReporter>(source_, executor_, std::move(parts));
  }
  void TearDown() override { executor_->Stop(); }

  void Add(std::uint64_t number) {
    EventInfo event;
    event.sequence = number;
    event.reason = "R";
    reporter_->Add(event);
  }
  void Answer(const absl::Status& status) {
    source_.Answer(status);
    executor_->RunPending();
  }
  static std::vector<std::uint64_t> NumbersOf(const RuntimeReport& report) {
    std::vector<std::uint64_t> numbers;
    for (const EventInfo& event : report.events) {
      numbers.push_back(event.sequence);
    }
    return numbers;
  }

  SlowSource source_;
  const std::shared_ptr<ManualExecutor> executor_ =
      std::make_shared<ManualExecutor>();
  std::unique_ptr<RuntimeReporter> reporter_;
  std::uint64_t calls_ = 0;
  std::vector<bool> sent_, taken_;
};

TEST_F(RuntimeReporterTest, HasOneReportUnderWayAndSendsNewsLater) {
  Add(1);
  Add(2);
  ASSERT_THAT(source_.reports, SizeIs(1));
  EXPECT_THAT(NumbersOf(source_.reports[0]), ElementsAre(1));
  Answer(absl::OkStatus());
  EXPECT_THAT(source_.reports, SizeIs(1)) << "there is a pause";
  executor_->Advance(RuntimeReporter::kPause);
  ASSERT_THAT(source_.reports, SizeIs(2));
  EXPECT_THAT(NumbersOf(source_.reports[1]), ElementsAre(2));
  Answer(absl::OkStatus());
  executor_->Advance(std::chrono::hours(1));
  EXPECT_THAT(source_.reports, SizeIs(2)) << "there is no news";
  calls_ = 7;
  reporter_->OnNews();
  ASSERT_THAT(source_.reports, SizeIs(3));
  EXPECT_EQ(source_.reports[2].counters.calls, 7U);
  EXPECT_THAT(taken_, IsEmpty());
  EXPECT_THAT(sent_, ElementsAre(true, true));
}

TEST_F(RuntimeReporterTest, WhatTheSourceWaitsForHasNoPause) {
  Add(1);
  reporter_->OnAwaitedNews();
  ASSERT_THAT(source_.reports, SizeIs(1)) << "one is under way";
  Answer(absl::OkStatus());
  executor_->Advance(std::chrono::milliseconds(0));
  ASSERT_THAT(source_.reports, SizeIs(2));
  Answer(absl::OkStatus());
  reporter_->OnNews();
  ASSERT_THAT(source_.reports, SizeIs(2)) << "there is a pause";
  reporter_->OnAwaitedNews();
  ASSERT_THAT(source_.reports, SizeIs(3));
  Answer(absl::UnavailableError("away"));
  reporter_->OnAwaitedNews();
  executor_->Advance(RuntimeReporter::kPause / 2);
  EXPECT_THAT(source_.reports, SizeIs(3)) << "it takes none";
}

TEST_F(RuntimeReporterTest, RepeatsWhatWasNotTakenEverMoreSeldom) {
  Add(1);
  for (int i = 0; i < 10; ++i) {
    Answer(absl::UnavailableError("away"));
    const std::size_t before = source_.reports.size();
    executor_->Advance(RuntimeReporter::kLastRetry);
    ASSERT_THAT(source_.reports, SizeIs(before + 1));
    EXPECT_THAT(NumbersOf(source_.reports.back()), ElementsAre(1));
  }
  Answer(absl::UnavailableError("away"));
  const std::size_t before = source_.reports.size();
  executor_->Advance(RuntimeReporter::kLastRetry / 2);
  EXPECT_THAT(source_.reports, SizeIs(before));
  executor_->Advance(RuntimeReporter::kLastRetry / 2);
  Answer(absl::OkStatus());
  EXPECT_THAT(taken_, ElementsAre(false, true)) << "each change is told once";
}

TEST_F(RuntimeReporterTest, CountsEventsForWhichThereIsNoRoom) {
  constexpr std::uint64_t kMost = RuntimeReporter::kMaxWaiting;
  for (std::uint64_t number = 1; number <= kMost + 5; ++number) Add(number);
  Answer(absl::UnavailableError("away"));
  executor_->Advance(RuntimeReporter::kPause);
  ASSERT_THAT(source_.reports, SizeIs(2));
  EXPECT_LE(source_.reports[1].events.size(), kMaxReportedEvents);
  const EventInfo& last = source_.reports[1].events.back();
  EXPECT_EQ(last.reason, "EventsLeftOut");
  EXPECT_EQ(last.sequence, kMost + 5);
  EXPECT_THAT(last.message, HasSubstr("left out: 5"));
  // One more is left out while the report is under way, and one comes later.
  Add(kMost + 6);
  Answer(absl::OkStatus());
  Add(kMost + 7);
  executor_->Advance(RuntimeReporter::kPause);
  ASSERT_THAT(source_.reports, SizeIs(3));
  EXPECT_THAT(NumbersOf(source_.reports[2]), ElementsAre(kMost + 6, kMost + 7));
  EXPECT_THAT(source_.reports[2].events[0].message, HasSubstr("left out: 1"));
  Answer(absl::OkStatus());
  Add(kMost + 8);
  executor_->Advance(RuntimeReporter::kPause);
  EXPECT_THAT(NumbersOf(source_.reports.back()), ElementsAre(kMost + 8));
}

TEST_F(RuntimeReporterTest, ReportsItsEndAndNothingAfterIt) {
  Add(1);
  bool ended = false;
  reporter_->End([&] { ended = true; });
  EXPECT_THAT(source_.reports, SizeIs(1)) << "one at a time";
  Answer(absl::UnavailableError("away"));
  ASSERT_THAT(source_.reports, SizeIs(2));
  EXPECT_TRUE(source_.reports[1].over);
  EXPECT_THAT(NumbersOf(source_.reports[1]), ElementsAre(1));
  EXPECT_FALSE(ended);
  Answer(absl::OkStatus());
  EXPECT_TRUE(ended);
  Add(2);
  reporter_->OnNews();
  executor_->Advance(std::chrono::hours(1));
  EXPECT_THAT(source_.reports, SizeIs(2));
}

}  // namespace
}  // namespace devmgr::shim
