// SPDX-License-Identifier: Apache-2.0
#include "device/driver_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "api/quote.h"

namespace devmgr::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const PoolDevice kA{"pool", "a"};
const PoolDevice kB{"pool", "b"};
const PoolDevice kC{"pool", "c"};

constexpr std::int64_t kLease = 5'000;
/// Unix time at the beginning of the steady clock.
constexpr std::int64_t kEpoch = 1'700'000'000'000;

DeviceReport Of(const PoolDevice& device, Health health,
                const std::string& message = "",
                std::int64_t lease_ms = kLease) {
  return {device, health, message, lease_ms};
}

class DriverHealthTest : public ::testing::Test {
 protected:
  DriverHealth::Devices Report(std::int64_t at,
                               const std::vector<DeviceReport>& report) {
    return health_.Report(report, {at, kEpoch + at});
  }
  Health At(const PoolDevice& device, std::int64_t at) {
    return health_.Find(device, at).health;
  }
  DriverHealth health_;
};

TEST_F(DriverHealthTest, WhatNobodyToldIsUnknown) {  // DRA-151
  EXPECT_EQ(health_.Find(kA, 0), EffectiveHealth());
  Report(0, {Of(kA, Health::kHealthy)});
  EXPECT_EQ(At({"other", "a"}, 0), Health::kUnknown);
  EXPECT_EQ(At({"pool", "x"}, 0), Health::kUnknown);
  EXPECT_EQ(At(kA, 0), Health::kHealthy);
}

TEST_F(DriverHealthTest, AReportThatSaysTheSameChangesNothing) {  // DRA-144
  EXPECT_THAT(Report(0, {Of(kA, Health::kHealthy, "fine")}), ElementsAre(kA));
  EXPECT_THAT(Report(4'000, {Of(kA, Health::kHealthy, "fine")}), IsEmpty());
  // It counts from then on, though.
  EXPECT_EQ(health_.Find(kA, 4'000 + kLease),
            (EffectiveHealth{Health::kHealthy, "fine", kLease, kEpoch}));
}

TEST_F(DriverHealthTest, AnotherTextOrLeaseIsAChange) {  // DRA-145
  Report(0, {Of(kA, Health::kHealthy, "fine")});
  EXPECT_THAT(Report(10, {Of(kA, Health::kHealthy, "warm")}), ElementsAre(kA));
  EXPECT_EQ(health_.Find(kA, 10).since_ms, kEpoch + 10);
  EXPECT_THAT(Report(20, {Of(kA, Health::kHealthy, "warm", 60'000)}),
              ElementsAre(kA));
  EXPECT_EQ(health_.Find(kA, 20).since_ms, kEpoch + 10);
  EXPECT_EQ(At(kA, 60'020), Health::kHealthy);
  EXPECT_EQ(At(kA, 60'021), Health::kUnknown);
}

TEST_F(DriverHealthTest, ALeaseEndsAfterItsTime) {  // DRA-150
  Report(100, {Of(kA, Health::kUnhealthy, "broken")});
  EXPECT_EQ(health_.Find(kA, 100 + kLease).message, "broken");
  EXPECT_EQ(health_.Find(kA, 100 + kLease + 1), EffectiveHealth());
  EXPECT_EQ(health_.NextExpiry(), 100 + kLease + 1);
  EXPECT_THAT(health_.Expire(100 + kLease), IsEmpty());
  EXPECT_THAT(health_.Expire(100 + kLease + 1), ElementsAre(kA));
  EXPECT_EQ(health_.size(), 0u);
  EXPECT_EQ(health_.NextExpiry(), std::nullopt);
}

TEST_F(DriverHealthTest, TheFirstLeaseToEndIsTheNextExpiry) {
  Report(0, {Of(kA, Health::kHealthy, "", 9'000),
             Of(kB, Health::kHealthy, "", 7'000)});
  EXPECT_EQ(health_.NextExpiry(), 7'001);
  Report(1'000, {Of(kB, Health::kHealthy, "", 60'000)});
  EXPECT_EQ(health_.NextExpiry(), 9'001);
}

TEST_F(DriverHealthTest, WhatEndedIsTold) {  // DRA-152
  Report(0, {Of(kA, Health::kHealthy)});
  EXPECT_THAT(Report(6'000, {Of(kB, Health::kHealthy)}), ElementsAre(kA, kB));
  EXPECT_EQ(At(kA, 6'000), Health::kUnknown);
}

TEST_F(DriverHealthTest, WhatEndedIsForgottenAndUnknownSilently) {  // DRA-153
  Report(0, {Of(kA, Health::kHealthy), Of(kB, Health::kUnknown),
             Of(kC, Health::kHealthy, "", 60'000)});
  EXPECT_THAT(Report(6'000, {Of(kC, Health::kHealthy, "", 60'000)}),
              ElementsAre(kA));
  EXPECT_EQ(health_.size(), 1u);
}

// The kubelet compares with what was stored, and tells nobody.
TEST_F(DriverHealthTest, AfterItsLeaseTheSameWordIsNews) {
  Report(0, {Of(kA, Health::kHealthy)});
  EXPECT_THAT(Report(6'000, {Of(kA, Health::kHealthy)}), ElementsAre(kA));
  EXPECT_EQ(health_.Find(kA, 6'000).since_ms, kEpoch + 6'000);
}

TEST_F(DriverHealthTest, WithoutALeaseAReportCountsForHalfAMinute) {  // DRA-154
  const std::vector<std::pair<std::int64_t, std::int64_t>> cases = {
      {-5'000, 30'000},
      {0, 30'000},
      {60'000, 60'000},
      {std::numeric_limits<std::int64_t>::max(), DriverHealth::kMaxLeaseMs}};
  for (const auto& [told, lease] : cases) {
    Report(0, {Of(kA, Health::kHealthy, "", told)});
    EXPECT_EQ(health_.Find(kA, 0).lease_ms, lease) << told;
    EXPECT_EQ(At(kA, lease), Health::kHealthy) << told;
    EXPECT_EQ(At(kA, lease + 1), Health::kUnknown) << told;
  }
}

TEST_F(DriverHealthTest, LongTextsAreCut) {  // DRA-156
  const auto kept = [&](const std::string& text) {
    Report(0, {Of(kA, Health::kUnhealthy, text)});
    return health_.Find(kA, 0).message;
  };
  EXPECT_EQ(kept(""), "");
  EXPECT_EQ(kept(std::string(1024, 'x')), std::string(1024, 'x'));
  EXPECT_EQ(kept(std::string(1025, 'x')), std::string(1021, 'x') + "...");
  // Never within a character.
  std::string wide;
  for (int i = 0; i < 400; ++i) wide += "\u20ac";
  const std::string cut = kept(wide);
  EXPECT_EQ(cut.size(), 1020 + 3u);
  EXPECT_EQ(api::FindInvalidUtf8(cut), std::string::npos);
  EXPECT_EQ(kept("bad\xff\x01"), "bad??");
}

TEST_F(DriverHealthTest, OfADeviceThatIsTwiceInAReportTheLastOneCounts) {
  Report(0, {Of(kA, Health::kUnhealthy)});
  EXPECT_THAT(
      Report(10, {Of(kA, Health::kHealthy), Of(kA, Health::kUnhealthy)}),
      IsEmpty());
  EXPECT_EQ(At(kA, 10), Health::kUnhealthy);
}

TEST_F(DriverHealthTest, TheEndOfTheStreamMakesAllUnknown) {
  Report(0, {Of(kA, Health::kHealthy), Of(kB, Health::kUnknown),
             Of(kC, Health::kUnhealthy)});
  EXPECT_THAT(health_.Clear(), ElementsAre(kA, kC));
  EXPECT_EQ(At(kC, 0), Health::kUnknown);
  EXPECT_EQ(health_.size(), 0u);
}

TEST_F(DriverHealthTest, NamesBeyondTheLimitDoNotCount) {
  std::vector<DeviceReport> report;
  for (std::size_t i = 0; i < DriverHealth::kMaxDevices + 1'000; ++i) {
    report.push_back(Of({"a", "d" + std::to_string(i)}, Health::kHealthy));
  }
  EXPECT_EQ(Report(0, report).size(), DriverHealth::kMaxDevices);
  EXPECT_EQ(health_.size(), DriverHealth::kMaxDevices);
  // A name that is known does, and what has ended makes room.
  EXPECT_THAT(Report(10, {Of({"a", "d0"}, Health::kUnhealthy)}),
              ElementsAre(PoolDevice("a", "d0")));
  EXPECT_THAT(Report(20, {Of(kA, Health::kUnhealthy)}), IsEmpty());
  Report(6'000, {Of(kA, Health::kUnhealthy)});
  EXPECT_EQ(At(kA, 6'000), Health::kUnhealthy);
  EXPECT_EQ(health_.size(), 1u);
}

TEST_F(DriverHealthTest, WhatIsRestoredCountsForTheRestOfItsLease) {  // DRA-157
  health_.Restore(kA, {Health::kUnhealthy, "broken", kLease, kEpoch}, 1'000);
  EXPECT_EQ(health_.Find(kA, 1'000 + kLease),
            (EffectiveHealth{Health::kUnhealthy, "broken", kLease, kEpoch}));
  EXPECT_EQ(At(kA, 1'001 + kLease), Health::kUnknown);
  EXPECT_EQ(health_.ToldAt(kA, 1'000 + kLease), 1'000);
  EXPECT_EQ(health_.ToldAt(kA, 1'001 + kLease), std::nullopt);
  EXPECT_EQ(health_.ToldAt(kB, 1'000), std::nullopt);
  EXPECT_THAT(Report(2'000, {Of(kA, Health::kUnhealthy, "broken")}), IsEmpty());
  EXPECT_EQ(health_.ToldAt(kA, 2'000), 2'000);
}

TEST(KeptReportTest, CountsInItsBootAndForTheRestOfItsLease) {
  const KeptReport report{{Health::kUnhealthy, "broken", 1'000, 1}, "b1", 500};
  EXPECT_EQ(WhyOver(report, "b1", 500), "");
  EXPECT_EQ(WhyOver(report, "b1", 1'500), "");
  EXPECT_THAT(WhyOver(report, "b1", 1'501),
              HasSubstr("ran out while the manager was not running"));
  // However short the time since the boot is.
  EXPECT_THAT(WhyOver(report, "b2", 501), HasSubstr("since the node booted"));
}

TEST(KeptReportTest, DoesNotCountWhereItIsNotKnownWhenItWasMade) {
  const EffectiveHealth bad{Health::kUnhealthy, "broken", 1'000, 1};
  EXPECT_NE(WhyOver({bad, "", 0}, "b1", 10), "");
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(WhyOver({bad, "b1", 11}, "b1", 10), "");
  EXPECT_NE(WhyOver({bad, "b1", kMax}, "b1", 10), "");
  EXPECT_NE(WhyOver({bad, "b1", kMin}, "b1", 10), "");
  // A lease without end is none.
  const EffectiveHealth endless{Health::kUnhealthy, "broken", kMax, 1};
  EXPECT_NE(WhyOver({endless, "b1", 0}, "b1", DriverHealth::kMaxLeaseMs + 1),
            "");
}

TEST_F(DriverHealthTest, WhatIsRestoredCountsForALittleWhateverTheLedgerSays) {
  health_.Restore(kA, {Health::kHealthy, "", -7, kEpoch}, 0);
  EXPECT_EQ(At(kA, 1), Health::kHealthy);
  EXPECT_THAT(health_.Expire(2), ElementsAre(kA));
}

}  // namespace
}  // namespace devmgr::device
