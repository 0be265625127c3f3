// SPDX-License-Identifier: Apache-2.0
#include "pods/source_problems.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace devmgr::pods {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class SourceProblemsTest : public ::testing::Test {
 protected:
  void Show(std::vector<ManifestProblem> problems) {
    ObjectSnapshot snapshot;
    snapshot.problems = std::move(problems);
    problems_.OnObjects(snapshot);
  }
  void Pass() { executor_.Advance(SourceProblems::kDelay); }

  /// `object: message xcount`, oldest first.
  std::vector<std::string> Events() const {
    std::vector<std::string> texts;
    for (const EventInfo& event : events_.After(0)) {
      const bool of_source = event.object_kind == "Source";
      EXPECT_EQ(event.reason, of_source ? "SourceProblem" : "ManifestProblem");
      EXPECT_EQ(event.object_kind, of_source ? "Source" : "Manifest");
      EXPECT_TRUE(event.warning);
      texts.push_back((of_source ? "source " : "") + event.object.name + ": " +
                      event.message + " x" + std::to_string(event.count));
    }
    return texts;
  }

  const ManifestProblem kUnused{"/m/a.yaml", 12, "", "'Job' is not used"};
  const ManifestProblem kTwice{"", 0, "metadata.uid", "belongs to 'b'"};

  ManualExecutor executor_;
  events::EventLog events_{executor_, 1'000, [] { return WallTime(); },
                           [](const EventInfo&) {}};
  SourceProblems problems_{executor_, events_, "directory /m"};
};

TEST_F(SourceProblemsTest, AProblemThatLastsIsAnEventWithFileAndLine) {
  Show({kUnused, kTwice});
  EXPECT_THAT(Events(), IsEmpty());
  Pass();
  EXPECT_THAT(Events(),
              ElementsAre("/m/a.yaml: line 12: 'Job' is not used x1",
                          "directory /m: metadata.uid: belongs to 'b' x1"));
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(SourceProblemsTest, TroubleWithTheSourceItselfIsAnotherEvent) {
  ManifestProblem refused{"/api/v1/pods", 0, "", "403 Forbidden"};
  refused.of_source = true;
  for (int i = 0; i < 2; ++i) {
    Show({refused, kUnused});
    Pass();
    Show({kUnused});
    Pass();
  }
  EXPECT_THAT(Events(),
              UnorderedElementsAre(
                  "/m/a.yaml: line 12: 'Job' is not used x1",
                  "source directory /m: /api/v1/pods: 403 Forbidden x2"));
}

TEST_F(SourceProblemsTest, WhatEndsAtOnceIsNone) {
  Show({{"/m", 0, "", "not read yet"}});
  Show({});
  Pass();
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(SourceProblemsTest, AProblemThatStaysIsNotRepeated) {
  for (int i = 0; i < 5; ++i) {
    Show({kUnused});
    Pass();
  }
  EXPECT_THAT(Events(),
              ElementsAre("/m/a.yaml: line 12: 'Job' is not used x1"));
}

TEST_F(SourceProblemsTest, AProblemThatComesAgainIsCounted) {
  for (int i = 0; i < 3; ++i) {
    Show({kUnused});
    Pass();
    Show({});
    Pass();
  }
  EXPECT_THAT(Events(),
              ElementsAre("/m/a.yaml: line 12: 'Job' is not used x3"));
}

}  // namespace
}  // namespace devmgr::pods
