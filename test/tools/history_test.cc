// SPDX-License-Identifier: Apache-2.0
//
// history, state and diff.
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using std::chrono::minutes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class HistoryTest : public CommandLineTest {
 protected:
  HistoryTest() {
    node_.history = {
        Decision(7, DecisionKind::kPrepareIntent, {"default/a"}, {"default/c"}),
        Decision(8, DecisionKind::kPrepareResult, {"default/c"}, {"default/a"}),
        Decision(9, DecisionKind::kRelease, {"other/b"}, {})};
    node_.history[0].time = now_ - minutes(10);
    node_.history[0].uids = {"uid-a", "uid-c"};
  }

  DecisionInfo Decision(std::uint64_t sequence, OpenDecisionKind kind,
                        std::vector<std::string> pods,
                        std::vector<std::string> claims) {
    DecisionInfo decision;
    decision.sequence = sequence;
    decision.time = now_ - minutes(1);
    decision.kind = std::move(kind);
    decision.pods = std::move(pods);
    decision.claims = std::move(claims);
    return decision;
  }

  /// The names that `history` prints for these arguments.
  std::string Names(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"history", "-o", "name"});
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }
};

TEST_F(HistoryTest, ListsDecisions) {
  EXPECT_THAT(Run({"history"}).out,
              AllOf(StartsWith("SEQUENCE   TIME"), HasSubstr("PrepareIntent"),
                    HasSubstr("Release"), HasSubstr("default/c"),
                    Not(HasSubstr("uid-a"))));
  EXPECT_THAT(Run({"history", "-o", "wide"}).out, HasSubstr("uid-a,uid-c"));
  EXPECT_THAT(Run({"history", "-o", "yaml"}).out,
              HasSubstr("kind: DecisionList"));
  const auto list = RunJson({"history"});
  EXPECT_EQ(list["kind"], "DecisionList");
  EXPECT_EQ(list["items"][0]["sequence"], 7);
  EXPECT_EQ(list["items"][0]["pods"][0], "default/a");
  EXPECT_EQ(list["items"][0]["uids"][1], "uid-c");
  // The ledger's, so a stopped store tells it too.
  EXPECT_EQ(Run({"history", "--state-dir", "/s"}).code, 0);
}

TEST_F(HistoryTest, SinceIsANumberOrATime) {
  EXPECT_EQ(Names({}), "decision/7\ndecision/8\ndecision/9\n");
  EXPECT_EQ(Names({"--since", "5m"}), "decision/8\ndecision/9\n");
  EXPECT_EQ(Names({"--since", "8"}), "decision/9\n");
  EXPECT_EQ(Names({"--since", "2019-12-19T23:55:00Z"}),
            "decision/8\ndecision/9\n");
}

TEST_F(HistoryTest, KeepsWhatIsAboutAPodOrClaim) {
  EXPECT_EQ(Names({"a"}), "decision/7\ndecision/8\n");
  EXPECT_EQ(Names({"pod/a"}), "decision/7\n");
  EXPECT_EQ(Names({"pods/default/a"}), "decision/7\n");
  EXPECT_EQ(Names({"claim/a"}), "decision/8\n");
  EXPECT_EQ(Names({"claims/a", "-n", "default"}), "decision/8\n");
  EXPECT_EQ(Names({"other/b"}), "decision/9\n");
  EXPECT_EQ(Names({"b", "-n", "other"}), "decision/9\n");
  EXPECT_EQ(Names({"uid-c"}), "decision/7\n");
  EXPECT_EQ(Names({"claim/uid-c"}), "decision/7\n");
  EXPECT_EQ(Names({"a", "--since", "7"}), "decision/8\n");
  EXPECT_EQ(Names({"-n", "other"}), "decision/9\n");
}

TEST_F(HistoryTest, NothingIsANote) {
  const Result result = Run({"history", "nobody"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_EQ(result.err, "No resources found\n");
}

/// Two states: pod `a` and claim `c` change between decisions 1 and 2.
class EarlierStatesTest : public CommandLineTest {
 protected:
  EarlierStatesTest() {
    node_.state_at = [this](const LedgerPoint& at) { return View(at); };
  }

  absl::StatusOr<LedgerView> View(const LedgerPoint& at) {
    asked_.push_back(at);
    LedgerView view;
    view.sequence = 2;
    view.time = now_;
    if (const auto* sequence = std::get_if<std::uint64_t>(&at)) {
      if (*sequence > 2) return absl::OutOfRangeError("yet to come");
      view.sequence = *sequence;
    }
    if (view.sequence == 0) return view;
    view.pods = {
        MakePod("default", "p10", PodState::kReady),
        MakePod("default", "p2",
                view.sequence == 1 ? PodState::kPreparing : PodState::kReady)};
    if (view.sequence == 1) return view;
    ClaimInfo claim;
    claim.name = {"other", "c"};
    claim.uid.value = "uid-c";
    claim.state = ClaimState::kPrepared;
    view.claims = {claim};
    view.devices = {{"d.example.com", "pool", "gpu-0", {"default/p2"}, {}}};
    return view;
  }

  std::vector<LedgerPoint> asked_;
};

TEST_F(EarlierStatesTest, StateShowsWhatTheLedgerHeld) {
  const Result result = Run({"state", "--at", "2"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("Sequence:   2\n"), HasSubstr("2019-12-20T00:00:00.000Z"),
            HasSubstr("NAMESPACE   NAME"), HasSubstr("DRIVER"),
            HasSubstr("d.example.com")));
  EXPECT_LT(result.out.find("p2 "), result.out.find("p10 "));
  EXPECT_EQ(Run({"state", "--at", "2", "-o", "name"}).out,
            "pod/p2\npod/p10\nclaim/c\ndevice/d.example.com/pool/gpu-0\n");
  EXPECT_EQ(Run({"state", "--at", "2", "-o", "name", "-n", "other"}).out,
            "claim/c\ndevice/d.example.com/pool/gpu-0\n");
  const auto state = RunJson({"state", "--at", "1"});
  EXPECT_EQ(state["kind"], "State");
  EXPECT_EQ(state["sequence"], 1);
  EXPECT_EQ(state["pods"][0]["metadata"]["name"], "p2");
  EXPECT_EQ(state["pods"][0]["status"]["state"], "Preparing");
  EXPECT_TRUE(state["claims"].empty());
  EXPECT_EQ(Run({"state", "--at", "2", "--state-dir", "/s"}).code, 0);
}

TEST_F(EarlierStatesTest, MomentsAreNumbersTimesOrNow) {
  Run({"state"});
  Run({"state", "--at", "0"});
  Run({"state", "--at", "10m"});
  Run({"diff", "--from", "2019-12-20T00:00:00Z"});
  EXPECT_THAT(asked_, ::testing::ElementsAre(LedgerPoint(),
                                             LedgerPoint(std::uint64_t{0}),
                                             LedgerPoint(now_ - minutes(10)),
                                             LedgerPoint(now_), LedgerPoint()));
}

TEST_F(EarlierStatesTest, WhatIsNotKnownFails) {
  const Result state = Run({"state", "--at", "3"});
  EXPECT_EQ(state.code, 1);
  EXPECT_THAT(state.out, IsEmpty());
  EXPECT_THAT(state.err, HasSubstr("yet to come"));
  node_.health = absl::UnavailableError("gone");
  EXPECT_EQ(Run({"state"}).code, 4);
}

TEST_F(EarlierStatesTest, DiffTellsFieldsBeforeAndAfter) {
  const Result result = Run({"diff", "--from", "1", "--to", "2"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out,
            "--- after decision 1 of 2019-12-20T00:00:00.000Z\n"
            "+++ after decision 2 of 2019-12-20T00:00:00.000Z\n"
            "~ pod/default/p2   uid uid-p2\n"
            "    state: Preparing -> Ready\n"
            "+ claim/other/c   uid uid-c\n"
            "    state: Prepared\n");
  EXPECT_EQ(result.err, "devmgrctl: 2 pods and claims differ\n");
  const Result back = Run({"diff", "--from", "2", "--to", "1", "--no-headers"});
  EXPECT_EQ(back.out,
            "~ pod/default/p2   uid uid-p2\n"
            "    state: Ready -> Preparing\n"
            "- claim/other/c   uid uid-c\n"
            "    state: Prepared\n");
  EXPECT_EQ(Run({"diff", "--from", "1", "-o", "name"}).out,
            "pod/default/p2\nclaim/other/c\n");
}

TEST_F(EarlierStatesTest, DiffForPrograms) {
  const Result result = Run({"diff", "--from", "1", "-o", "json"});
  EXPECT_EQ(result.code, 1);
  const auto diff = nlohmann::json::parse(result.out);
  EXPECT_EQ(diff["kind"], "Diff");
  EXPECT_EQ(diff["from"]["sequence"], 1);
  EXPECT_EQ(diff["to"]["sequence"], 2);
  ASSERT_EQ(diff["items"].size(), 2u);
  EXPECT_EQ(diff["items"][0]["change"], "Changed");
  EXPECT_EQ(diff["items"][0]["fields"][0]["before"], "Preparing");
  EXPECT_EQ(diff["items"][1]["change"], "Added");
  EXPECT_EQ(diff["items"][1]["kind"], "Claim");
}

// kubectl's exit codes: 0 the same, 1 different, more than 1 trouble.
TEST_F(EarlierStatesTest, DiffExitCodesTellDifferencesFromTrouble) {
  const Result same = Run({"diff", "--from", "2"});
  EXPECT_EQ(same.code, 0);
  EXPECT_THAT(same.out, IsEmpty());
  EXPECT_EQ(RunJson({"diff", "--from", "2"})["items"].size(), 0u);
  EXPECT_EQ(Run({"diff", "--from", "1", "-n", "default"}).code, 1);
  EXPECT_EQ(Run({"diff", "--from", "1", "-n", "nowhere"}).code, 0);
  EXPECT_EQ(Run({"diff", "--from", "3"}).code, 8);
  EXPECT_EQ(Run({"diff", "--from", "1", "--to", "3"}).code, 8);
  state_dir_error_ = absl::DataLossError("damaged");
  EXPECT_EQ(Run({"diff", "--from", "1", "--state-dir", "/s"}).code, 8);
  connect_error_ = absl::UnavailableError("gone");
  EXPECT_EQ(Run({"diff", "--from", "1"}).code, 4);
}

}  // namespace
}  // namespace devmgr::ctl
