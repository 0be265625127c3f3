// SPDX-License-Identifier: Apache-2.0
//
// A node whose version is taken back and forth while its pods run: what they
// have, and what their containers get, stays, without a call to a plugin or a
// driver.
#include <devmgr/runtime_report.h>

#include "checkpoint/convert.h"
#include "checkpoint/rocksdb_store.h"
#include "manager/device_fixture.h"
#include "manager/manager_fixture.h"
#include "support/read_all.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class FormatStepsTest : public DeviceNodeTest {
 protected:
  FormatStepsTest() {
    node_.open_store = [this] {
      auto store = checkpoint::OpenRocksDbStore({folder_.path(), {}});
      EXPECT_TRUE(store.ok()) << store.status();
      return store.ok() ? *std::move(store) : nullptr;
    };
    node_.drivers.Register(kDriver);
  }

  std::vector<std::string> ConvertTo2() {
    const auto shown = checkpoint::ConvertStoppedStore(folder_.path(), 2,
                                                       /*apply=*/false);
    EXPECT_TRUE(shown.ok()) << shown.status();
    EXPECT_THAT(ReadAll(folder_.path() / "format"), HasSubstr("format 3"));
    const auto done = checkpoint::ConvertStoppedStore(folder_.path(), 2,
                                                      /*apply=*/true);
    EXPECT_TRUE(done.ok()) << done.status();
    EXPECT_THAT(ReadAll(folder_.path() / "format"), HasSubstr("format 2"));
    if (!shown.ok() || !done.ok()) return {};
    EXPECT_EQ(shown->lost, done->lost);
    return done->lost;
  }
  void ExpectRuns() {
    EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
    EXPECT_THAT(node_.Resolve("p", "c"),
                ElementsAre("d.example.com/x=c1", "example.com/gpu=0",
                            "example.com/gpu=1"));
  }
  /// A record of a kind that format 2 lacks: a container that no pod explains.
  void FindStray() {
    RuntimeReport report;
    report.session = "s";
    report.listen = "/run/shim.sock";
    report.endpoint = "/run/runtime.sock";
    ForeignHolder& holder = report.holders.emplace_back();
    holder.container_id = "c0ffee";
    holder.resources = {{kGpu, {"2"}}};
    holder.why = "its pod is not known";
    report.all_holders = true;
    ASSERT_THAT(node_.manager().ReportRuntime(report), IsOk());
    ASSERT_TRUE(node_.WaitUntil("it is recorded", [&] {
      return node_.manager().View()->ForeignHolders().size() == 1;
    }));
  }

  const std::string pod_ =
      ClaimYaml("c1", "u-1", {kDriver}, {"u-p"}) +
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  containers:\n  - name: c\n    resources: {claims: [{name: c1}], "
      "limits: {example.com/gpu: \"2\"}}\n"
      "  resourceClaims: [{name: c1, resourceClaimName: c1}]\n---\n";
  const TempFolder folder_;
};

TEST_F(FormatStepsTest, PodsRunOnUpDownAndUp) {
  node_.Start();
  node_.plugins.Serve(kGpu, 3);
  node_.Publish(pod_);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_NO_FATAL_FAILURE(ExpectRuns());
  const auto calls = node_.plugins.calls().size();
  ASSERT_THAT(node_.drivers.calls(), SizeIs(1));
  for (int step = 0; step < 2; ++step) {
    ASSERT_NO_FATAL_FAILURE(FindStray());
    node_.Stop();
    EXPECT_THAT(ConvertTo2(), Contains(HasSubstr("foreign container c0ffee")));
    node_.Start();
    ASSERT_NO_FATAL_FAILURE(ExpectRuns());
    EXPECT_TRUE(node_.manager().View()->ForeignHolders().empty());
    node_.plugins.Serve(kGpu, 3);
    // Two of them are held still.
    node_.Publish(pod_ + DevicePod("q", {{kGpu, 2}}));
    ASSERT_TRUE(node_.WaitFor("q", PodState::kWaiting));
    node_.Sync();
    EXPECT_EQ(node_.plugins.calls().size(), calls);
    EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
    node_.Publish(pod_);
    ASSERT_TRUE(node_.WaitUntilGone("q"));
  }
  // What it holds is given back as ever.
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"}),
                                                 Unprepare(kDriver, {"c1"})));
}

// DRA-141: one write before the call and one after it, whatever the number of
// claims.
TEST_F(FormatStepsTest, ClaimsOfAPodArePreparedWithTwoWrites) {
  node_.Start();
  std::string objects;
  for (const char* claim : {"c1", "c2", "c3"}) {
    objects += ClaimYaml(claim, std::string("u-") + claim, {kDriver}, {"u-p"});
  }
  node_.Publish(objects + PodYaml("p", "u-p", {"c1", "c2", "c3"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(),
              ElementsAre(Prepare(kDriver, {"c1", "c2", "c3"})));
  node_.Stop();
  const auto contents = checkpoint::ReadStoppedStore(folder_.path());
  ASSERT_TRUE(contents.ok()) << contents.status();
  std::vector<state::DecisionKind> kinds;
  for (const state::Batch& batch : contents->history) {
    if (batch.decision.pods.empty()) continue;  // Of the source.
    kinds.push_back(batch.decision.kind);
  }
  EXPECT_THAT(kinds, ElementsAre(state::DecisionKind::kPrepareIntent,
                                 state::DecisionKind::kPrepareResult));
}

}  // namespace
}  // namespace devmgr
