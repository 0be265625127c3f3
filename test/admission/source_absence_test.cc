// SPDX-License-Identifier: Apache-2.0
#include "admission/source_absence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace devmgr::admission {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Absence Lacking(std::size_t unexplained, std::size_t held) {
  Absence absence;
  absence.source = "directory /m";
  absence.held = held;
  absence.unexplained = unexplained;
  absence.known_marker = "known";
  return absence;
}

TEST(AbsenceTest, UpToHalfOfThePodsMayBeGone) {
  EXPECT_FALSE(WhyNotBelieved(Lacking(0, 0)).has_value());
  EXPECT_FALSE(WhyNotBelieved(Lacking(0, 4)).has_value());
  EXPECT_FALSE(WhyNotBelieved(Lacking(2, 4)).has_value());
  EXPECT_TRUE(WhyNotBelieved(Lacking(3, 4)).has_value());
  EXPECT_TRUE(WhyNotBelieved(Lacking(1, 1)).has_value());
}

// API-036
TEST(AbsenceTest, AnEmptyListIsNotBelieved) {
  EXPECT_THAT(
      *WhyNotBelieved(Lacking(3, 3)),
      AllOf(HasSubstr("lacks 3 of the 3 pods"), HasSubstr("carries no marker"),
            HasSubstr("devmgrctl confirm source")));
  EXPECT_THAT(*WhyNotBelieved(Lacking(1, 1)), HasSubstr("1 of the 1 pod that"));
}

TEST(AbsenceTest, TheMarkerProvesIt) {
  Absence absence = Lacking(3, 3);
  absence.marker = "known";
  EXPECT_FALSE(WhyNotBelieved(absence).has_value());
  absence.marker = "other";
  EXPECT_THAT(*WhyNotBelieved(absence),
              HasSubstr("'other' instead of 'known'"));
  absence.marker = "";
  absence.known_marker = "";
  EXPECT_TRUE(WhyNotBelieved(absence).has_value());
  absence.marker_problem = "its marker cannot be written: Read-only";
  EXPECT_THAT(*WhyNotBelieved(absence), HasSubstr("Read-only"));
}

// New pods in a directory that is not the right one do not make it that.
TEST(AbsenceTest, StaysInDoubtForTheSamePods) {
  Absence absence = Lacking(2, 6);
  absence.doubted = true;
  EXPECT_TRUE(WhyNotBelieved(absence).has_value());
  absence.unexplained = 0;
  EXPECT_FALSE(WhyNotBelieved(absence).has_value());
}

}  // namespace
}  // namespace devmgr::admission
