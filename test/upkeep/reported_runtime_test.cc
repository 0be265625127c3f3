// SPDX-License-Identifier: Apache-2.0
#include <devmgr/runtime_report.h>
#include <devmgr/runtime_source.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/mailbox.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::shared_ptr<RuntimeSnapshot> Runs(const std::vector<std::string>& pods) {
  auto runs = std::make_shared<RuntimeSnapshot>();
  runs->known = true;
  runs->since = std::chrono::system_clock::now();
  runs->runtime = "containerd 1.7.0";
  for (const std::string& uid : pods) {
    PodRun pod;
    pod.name = {"ns", "pod-" + uid};
    pod.sandboxes = {{"s-" + uid, 0, true, {}, {}}};
    runs->pods[PodUid{uid}] = std::make_shared<const PodRun>(std::move(pod));
  }
  return runs;
}

class ReportedRuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override { Make(std::chrono::minutes(10)); }

  void MakeFor(std::vector<std::string> shims) {
    source_ =
        ReportedRuntimeSource::Make(std::move(shims), std::chrono::minutes(10));
    source_->Subscribe([this] { changed_.Put(0); });
    source_->SubscribeLooks([this] { wanted_.Put(0); });
  }
  void TakeNamed(const std::string& name, const std::string& listen,
                 const std::string& session,
                 std::shared_ptr<const RuntimeSnapshot> runs,
                 std::uint64_t look = 0) {
    RuntimeReport report;
    report.name = name;
    report.listen = listen;
    report.session = session;
    report.runs = std::move(runs);
    report.look = look;
    source_->Take(report);
  }
  void Make(std::chrono::milliseconds patience) {
    source_ = ReportedRuntimeSource::Make(patience);
    source_->Subscribe([this] { changed_.Put(0); });
    source_->SubscribeLooks([this] { wanted_.Put(0); });
  }
  void Take(const std::string& listen, const std::string& session,
            std::shared_ptr<const RuntimeSnapshot> runs,
            std::uint64_t look = 0) {
    TakeNamed("", listen, session, std::move(runs), look);
  }
  template <typename Condition>
  bool WaitUntil(const Condition& condition) {
    while (!condition(*source_->Snapshot())) {
      if (!changed_.Take().has_value()) return false;
    }
    return true;
  }
  bool BecomesKnown() {
    return WaitUntil([](const auto& now) { return now.known; });
  }

  Mailbox<int> changed_, wanted_, done_;
  std::unique_ptr<ReportedRuntimeSource> source_;
};

TEST_F(ReportedRuntimeTest, ItIsNotKnownWhatRunsBeforeAShimHasReported) {
  EXPECT_FALSE(source_->Snapshot()->known);
  EXPECT_EQ(source_->Snapshot()->reason,
            "no CRI shim has reported what runs yet");
  EXPECT_NE(source_->Snapshot()->since, WallTime());
  // One that does not follow its runtime says nothing of it.
  Take("/a", "1", nullptr);
  Take("/a", "1", Runs({"p"}));
  ASSERT_TRUE(BecomesKnown());
  EXPECT_TRUE(source_->Snapshot()->pods.at(PodUid{"p"})->IsRunning());
  EXPECT_EQ(source_->Snapshot()->runtime, "containerd 1.7.0");
}

TEST_F(ReportedRuntimeTest, WhatAShimHasReportedStaysUntilItReportsOtherwise) {
  Take("/a", "1", Runs({"p"}));
  ASSERT_TRUE(BecomesKnown());
  Take("/a", "1", nullptr);
  Take("/a", "1", Runs({"q"}));
  EXPECT_TRUE(WaitUntil([](const auto& now) {
    return now.known && now.pods.size() == 1 && now.pods.contains(PodUid{"q"});
  }));
}

TEST_F(ReportedRuntimeTest, AShimThatFollowsAnotherHasToLookFirst) {
  Take("/a", "1", Runs({"p"}));
  ASSERT_TRUE(BecomesKnown());
  Take("/a", "2", nullptr);
  ASSERT_TRUE(WaitUntil([](const auto& now) { return !now.known; }));
  EXPECT_THAT(source_->Snapshot()->reason,
              AllOf(HasSubstr("'/a'"), HasSubstr("begun anew")));
  Take("/a", "2", Runs({}));
  ASSERT_TRUE(BecomesKnown());
  EXPECT_TRUE(source_->Snapshot()->pods.empty());
}

TEST_F(ReportedRuntimeTest, AShimThatEndsMakesItUnknown) {
  Take("/a", "1", Runs({"p"}));
  ASSERT_TRUE(BecomesKnown());
  RuntimeReport last;
  last.listen = "/a";
  last.session = "1";
  last.over = true;
  source_->Take(last);
  ASSERT_TRUE(WaitUntil([](const auto& now) { return !now.known; }));
  EXPECT_EQ(source_->Snapshot()->reason, "CRI shim at '/a': it has ended");
  EXPECT_TRUE(source_->Snapshot()->pods.contains(PodUid{"p"}));
}

TEST_F(ReportedRuntimeTest, AllShimsTogetherSayWhatRuns) {
  Take("/a", "1", Runs({"p", "both"}));
  ASSERT_TRUE(BecomesKnown());
  auto unknown = Runs({"q", "both"});
  unknown->known = false;
  unknown->reason = "no answer";
  Take("/b", "1", unknown);
  ASSERT_TRUE(WaitUntil([](const auto& now) { return !now.known; }));
  EXPECT_EQ(source_->Snapshot()->reason, "CRI shim at '/b': no answer");
  Take("/b", "1", Runs({"q", "both"}));
  ASSERT_TRUE(BecomesKnown());
  EXPECT_EQ(source_->Snapshot()->pods.size(), 3u);
  // Two shims before one runtime have the same.
  EXPECT_EQ(source_->Snapshot()->pods.at(PodUid{"both"})->sandboxes.size(), 1u);
}

TEST_F(ReportedRuntimeTest, ALookIsOverWhenEachShimHasLookedSince) {
  Take("/a", "1", Runs({"p"}));
  Take("/b", "1", Runs({}));
  ASSERT_TRUE(BecomesKnown());
  const std::uint64_t before = source_->WantedLook();
  ASSERT_TRUE(source_->Refresh([this] { done_.Put(0); }));
  ASSERT_TRUE(wanted_.Take().has_value());
  const std::uint64_t look = source_->WantedLook();
  EXPECT_NE(look, before);
  Take("/a", "1", Runs({}), look);
  Take("/b", "1", nullptr, before);
  ASSERT_TRUE(WaitUntil([](const auto& now) { return now.pods.empty(); }));
  EXPECT_EQ(done_.size(), 0u);
  Take("/b", "1", nullptr, look);
  EXPECT_TRUE(done_.Take().has_value());
}

TEST_F(ReportedRuntimeTest, AShimThatDoesNotLookMakesItUnknown) {
  Make(std::chrono::milliseconds(20));
  Take("/a", "1", Runs({"p"}));
  ASSERT_TRUE(BecomesKnown());
  ASSERT_TRUE(source_->Refresh([this] { done_.Put(0); }));
  ASSERT_TRUE(done_.Take().has_value());
  EXPECT_FALSE(source_->Snapshot()->known);
  EXPECT_EQ(source_->Snapshot()->reason,
            "CRI shim at '/a': it has been asked to look, and has not for "
            "20 ms");
  // It lives, and has what it saw before.
  Take("/a", "1", Runs({}), 0);
  ASSERT_TRUE(source_->Refresh([this] { done_.Put(0); }));
  ASSERT_TRUE(done_.Take().has_value());
  EXPECT_FALSE(source_->Snapshot()->known);
  // It looks late.
  Take("/a", "1", nullptr, source_->WantedLook());
  EXPECT_TRUE(BecomesKnown());
}

// A kill of the shim says nothing; its connection does.
TEST_F(ReportedRuntimeTest, AShimThatIsCutOffHasToLookAgain) {
  Take("/a", "1", Runs({"p"}));
  Take("/b", "2", Runs({}));
  ASSERT_TRUE(BecomesKnown());
  const std::uint64_t before = source_->WantedLook();
  source_->OnCutOff("nobody");
  source_->OnCutOff("1");
  ASSERT_TRUE(wanted_.Take().has_value()) << "it is asked when it is back";
  ASSERT_TRUE(WaitUntil([](const auto& now) { return !now.known; }));
  EXPECT_EQ(source_->Snapshot()->reason,
            "CRI shim at '/a': its connection has ended");
  EXPECT_NE(source_->WantedLook(), before);
  // What it saw before does not count.
  Take("/a", "1", Runs({"old"}), before);
  ASSERT_TRUE(WaitUntil(
      [](const auto& now) { return now.pods.contains(PodUid{"old"}); }));
  EXPECT_FALSE(source_->Snapshot()->known);
  Take("/a", "1", Runs({"new"}), source_->WantedLook());
  EXPECT_TRUE(BecomesKnown());
}

TEST_F(ReportedRuntimeTest, NamedShimsHaveAllToHaveReported) {
  MakeFor({"a", "b"});
  EXPECT_EQ(source_->Describe(), "runtime behind CRI shims a, b");
  EXPECT_TRUE(source_->Wants("a"));
  EXPECT_FALSE(source_->Wants(""));
  EXPECT_FALSE(source_->Snapshot()->known);
  TakeNamed("a", "/a", "1", Runs({"p"}));
  ASSERT_TRUE(WaitUntil(
      [](const auto& now) { return now.pods.contains(PodUid{"p"}); }));
  EXPECT_FALSE(source_->Snapshot()->known);
  EXPECT_EQ(source_->Snapshot()->reason,
            "CRI shim 'b' has not reported what runs yet");
  TakeNamed("b", "/b", "2", Runs({"q"}));
  ASSERT_TRUE(BecomesKnown());
  EXPECT_EQ(source_->Snapshot()->pods.size(), 2u);
  source_->OnCutOff("2");
  ASSERT_TRUE(WaitUntil([](const auto& now) { return !now.known; }));
  EXPECT_EQ(source_->Snapshot()->reason,
            "CRI shim 'b' at '/b': its connection has ended");
}

// A name that is mistyped on one of the two sides.
TEST_F(ReportedRuntimeTest, ShimsOfOtherNamesAreListedAndDoNotCount) {
  MakeFor({"a"});
  TakeNamed("", "/x", "1", nullptr);
  TakeNamed("A", "/y", "2", Runs({"p"}));
  ASSERT_TRUE(WaitUntil([](const auto& now) {
    return now.reason ==
           "CRI shim 'a' has not reported what runs yet (others have: one "
           "without a name at '/x', 'A' at '/y')";
  })) << source_->Snapshot()->reason;
  EXPECT_TRUE(source_->Snapshot()->pods.empty());
  for (int i = 0; i < 100; ++i) {
    TakeNamed("", "/" + std::to_string(i), "s", nullptr);
  }
  TakeNamed("a", "/a", "3", Runs({}));
  ASSERT_TRUE(BecomesKnown());
  // Another shim has the socket of the one that counts.
  TakeNamed("A", "/a", "4", nullptr);
  ASSERT_TRUE(WaitUntil([](const auto& now) { return !now.known; }));
  EXPECT_EQ(source_->Snapshot()->reason,
            "CRI shim 'a' at '/a': another shim has its socket");
}

// It was killed, and its unit has another --listen now.
TEST_F(ReportedRuntimeTest, ANamedShimMayMoveToAnotherSocket) {
  MakeFor({"a"});
  TakeNamed("a", "/old", "1", Runs({"p"}));
  ASSERT_TRUE(BecomesKnown());
  // Both are there: both count.
  TakeNamed("a", "/new", "2", Runs({"q"}));
  ASSERT_TRUE(WaitUntil(
      [](const auto& now) { return now.known && now.pods.size() == 2; }));
  source_->OnCutOff("1");
  ASSERT_TRUE(WaitUntil([](const auto& now) { return !now.known; }));
  TakeNamed("a", "/new", "2", nullptr, source_->WantedLook());
  ASSERT_TRUE(BecomesKnown());
  EXPECT_EQ(source_->Snapshot()->pods.size(), 1u);
  EXPECT_TRUE(source_->Snapshot()->pods.contains(PodUid{"q"}));
}

TEST_F(ReportedRuntimeTest, ALookWaitsForANamedShimThatIsYetToCome) {
  MakeFor({"a", "b"});
  TakeNamed("a", "/a", "1", Runs({}));
  ASSERT_TRUE(source_->Refresh([this] { done_.Put(0); }));
  ASSERT_TRUE(wanted_.Take().has_value());
  TakeNamed("a", "/a", "1", nullptr, source_->WantedLook());
  TakeNamed("b", "/b", "2", Runs({}), source_->WantedLook());
  EXPECT_TRUE(done_.Take().has_value());
  EXPECT_TRUE(source_->Snapshot()->known);
}

TEST_F(ReportedRuntimeTest, WithoutAShimALookEndsWithoutAnAnswer) {
  Make(std::chrono::milliseconds(20));
  ASSERT_TRUE(source_->Refresh([this] { done_.Put(0); }));
  ASSERT_TRUE(done_.Take().has_value());
  EXPECT_FALSE(source_->Snapshot()->known);
}

}  // namespace
}  // namespace devmgr
