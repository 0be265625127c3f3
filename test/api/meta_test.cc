// SPDX-License-Identifier: Apache-2.0
#include "api/meta.h"

#include <gtest/gtest.h>

#include <optional>

namespace devmgr::api {
namespace {

TEST(MetaTest, TimestampsAreSecondsOfUnixTime) {
  EXPECT_EQ(UnixSecondsOf("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(UnixSecondsOf("2000-02-29T12:34:56Z"), 951'827'696);
  EXPECT_EQ(UnixSecondsOf("2026-01-31T12:00:00Z"), 1'769'860'800);
  EXPECT_EQ(UnixSecondsOf("1969-12-31T23:59:59Z"), -1);
}

TEST(MetaTest, ATimestampOfAnotherZoneIsTheSameMoment) {
  EXPECT_EQ(UnixSecondsOf("2026-01-31T13:30:00.5+01:30"), 1'769'860'800);
  EXPECT_EQ(UnixSecondsOf("2026-01-31T07:00:00-05:00"), 1'769'860'800);
}

TEST(MetaTest, WhatIsNoTimestampHasNoSeconds) {
  for (const char* text : {"", "today", "2026-01-31", "2026-13-01T00:00:00Z",
                           "2026-01-31T12:00:00", "2026-01-31T12:00:00.Z"}) {
    EXPECT_EQ(UnixSecondsOf(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace devmgr::api
