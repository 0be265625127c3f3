// SPDX-License-Identifier: Apache-2.0
#include "claim/kept_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace devmgr::claim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class KeptHealthTest : public testing::Test {
 protected:
  /// A claim holds the device `held`.
  KeptHealthTest() {
    auto claim = std::make_shared<state::ClaimRecord>();
    claim->uid = {"u-c"};
    claim->name = {"default", "c"};
    state::PreparedDevice device;
    device.pool = "pool";
    device.device = "held";
    claim->drivers["d"].devices = {device};
    state_.Put(std::shared_ptr<const state::ClaimRecord>(claim));
  }

  static state::HealthRecord Record(const std::string& device) {
    state::HealthRecord record;
    record.driver = "d";
    record.pool = "pool";
    record.device = device;
    record.health = device::Health::kHealthy;
    record.lease_ms = 30'000;
    record.boot_id = "boot";
    record.told_ms = 1'000;
    return record;
  }
  static HealthRecords Of(const state::HealthRecord& record) {
    return {
        {record.Key(), std::make_shared<const state::HealthRecord>(record)}};
  }
  std::size_t Changes(const state::HealthRecord& record,
                      Leases leases = Leases::kWithNews) const {
    return KeepHealth(state_, Of(record), leases).changes.size();
  }
  void Keep(const state::HealthRecord& record) {
    state_.Put(std::make_shared<const state::HealthRecord>(record));
  }

  state::State state_;
};

TEST_F(KeptHealthTest, WhatIsHeldIsKept) {
  const state::Decision decision =
      KeepHealth(state_, Of(Record("held")), Leases::kWithNews);
  EXPECT_EQ(decision.kind, state::DecisionKind::kHealth);
  EXPECT_THAT(decision.changes, SizeIs(1));
  EXPECT_THAT(decision.claims, ElementsAre(ObjectName{"default", "c"}));
  EXPECT_EQ(decision.message, "health of 1 device");
  EXPECT_EQ(Changes(Record("free")), 0U);
}

TEST_F(KeptHealthTest, TheSameAgainIsNotWritten) {
  Keep(Record("held"));
  EXPECT_EQ(Changes(Record("held")), 0U);
  state::HealthRecord again = Record("held");
  again.told_ms += again.lease_ms;
  EXPECT_EQ(Changes(again), 0U);
  EXPECT_EQ(Changes(again, Leases::kAll), 1U);
  ++again.told_ms;  // The next process would take the old one for over.
  EXPECT_EQ(Changes(again), 1U);
}

TEST_F(KeptHealthTest, NewsIsWritten) {
  Keep(Record("held"));
  state::HealthRecord record = Record("held");
  record.health = device::Health::kUnhealthy;
  EXPECT_EQ(Changes(record), 1U);
  record = Record("held");
  record.message = "hot";
  EXPECT_EQ(Changes(record), 1U);
  record = Record("held");
  record.boot_id = "next boot";
  EXPECT_EQ(Changes(record), 1U);
}

TEST_F(KeptHealthTest, WhatIsHeldNoLongerIsErased) {
  Keep(Record("free"));
  Keep(Record("held"));
  EXPECT_EQ(Changes(Record("free")), 1U);
  const HealthRecords nothing = {{Record("held").Key(), nullptr}};
  EXPECT_THAT(KeepHealth(state_, nothing, Leases::kWithNews).changes,
              SizeIs(1));
  const HealthRecords unknown = {{Record("other").Key(), nullptr}};
  EXPECT_THAT(KeepHealth(state_, unknown, Leases::kWithNews).changes,
              IsEmpty());
}

}  // namespace
}  // namespace devmgr::claim
