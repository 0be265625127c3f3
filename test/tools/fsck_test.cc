// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class FsckCommandTest : public CommandLineTest {
 protected:
  void Find(bool error) {
    FsckReport report;
    report.ledger_sequence = 7;
    report.findings = {{error ? "missing-spec" : "absent-driver", error,
                        "claim/default/c", "something is wrong",
                        error ? "prepares again" : "", "start the driver"}};
    node_.fsck = report;
  }
};

TEST_F(FsckCommandTest, NothingFoundIsDone) {
  const Result result = Run({"fsck"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("0 problems and 0 warnings"));
  EXPECT_EQ(RunJson({"fsck"})["findings"].size(), 0u);
}

TEST_F(FsckCommandTest, ProblemsAreShownWithWhatToDo) {
  Find(true);
  const Result result = Run({"fsck"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("something is wrong"), HasSubstr("What to do:"),
                    HasSubstr("claim/default/c: --repair prepares again"),
                    HasSubstr("claim/default/c: by hand: start the driver")));
  EXPECT_THAT(result.err, HasSubstr("1 problem and 0 warnings"));
  EXPECT_EQ(Run({"fsck", "-o", "name"}).out, "claim/default/c\n");
}

TEST_F(FsckCommandTest, WarningsAloneAreNoProblem) {
  Find(false);
  const Result result = Run({"fsck"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("warning"));
  EXPECT_THAT(result.err, HasSubstr("0 problems and 1 warning"));
}

TEST_F(FsckCommandTest, ReportIsADocument) {
  Find(true);
  const Result result = Run({"fsck", "-o", "json"});
  EXPECT_EQ(result.code, 1);
  const auto report = nlohmann::ordered_json::parse(result.out);
  EXPECT_EQ(report["kind"], "FsckReport");
  EXPECT_EQ(report["ledgerSequence"], 7);
  EXPECT_EQ(report["findings"][0]["severity"], "error");
  EXPECT_EQ(report["findings"][0]["check"], "missing-spec");
  EXPECT_EQ(report["findings"][0]["object"], "claim/default/c");
  EXPECT_EQ(report["findings"][0]["repair"], "prepares again");
  EXPECT_EQ(report["repairs"].size(), 0u);
}

TEST_F(FsckCommandTest, RepairWithoutYesOnlyShowsThePlan) {
  Find(true);
  const Result result = Run({"fsck", "--repair"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("prepares again"));
  EXPECT_THAT(result.err, HasSubstr("nothing was changed: add --yes"));
  ASSERT_THAT(node_.fsck_requests, SizeIs(1));
  EXPECT_EQ(node_.fsck_requests[0].mode, FsckMode::kCheck);
  EXPECT_EQ(Run({"fsck", "--yes"}).code, 2);
}

TEST_F(FsckCommandTest, RepairTellsWhatWasDone) {
  node_.fsck->repairs = {{"claim/default/c", "prepares again", ""}};
  const Result result = Run({"fsck", "--repair", "--yes"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(node_.fsck_requests.at(0).mode, FsckMode::kRepair);
  EXPECT_THAT(result.out, AllOf(HasSubstr("prepares again: recorded and begun"),
                                Not(HasSubstr("What remains"))));
  node_.fsck->repairs[0].error = "disk is gone";
  const Result failed = Run({"fsck", "--repair", "--yes"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.out, HasSubstr("FAILED: disk is gone"));
}

// 1 says that something was found, so trouble must not.
TEST_F(FsckCommandTest, TroubleIsMoreThanOne) {
  node_.fsck = absl::DataLossError("history is damaged");
  EXPECT_EQ(Run({"fsck"}).code, 8);
  state_dir_error_ = absl::FailedPreconditionError("held by devmgrd (pid 7)");
  EXPECT_EQ(Run({"fsck", "--state-dir", "/s"}).code, 8);
  connect_error_ = absl::UnavailableError("nobody there");
  EXPECT_EQ(Run({"fsck"}).code, 4);
}

TEST_F(FsckCommandTest, StoppedStoreIsComparedWithDirectories) {
  const Result result = Run({"fsck", "--state-dir", "/s"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("/etc/cdi, /var/run/cdi"));
  Run({"fsck", "--state-dir", "/s", "--cdi-spec-dir", "/a", "--cdi-spec-dir",
       "/b"});
  ASSERT_THAT(node_.fsck_requests, SizeIs(2));
  EXPECT_THAT(node_.fsck_requests[1].cdi_spec_dirs, ElementsAre("/a", "/b"));
}

}  // namespace
}  // namespace devmgr::ctl
