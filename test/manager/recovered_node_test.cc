// SPDX-License-Identifier: Apache-2.0
//
// A node whose ledger was damaged, recovered leniently.
#include "checkpoint/codec.h"
#include "checkpoint/keys.h"
#include "checkpoint/ledger_store.h"
#include "checkpoint/store_support.h"
#include "checkpoint/witness.h"
#include "common/status.h"
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Pod `p` with the claims `c1` and `c2`, Ready when its manager was stopped.
class RecoveredNodeTest : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    node_.open_store = [this] { return Open(); };
    node_.Start();
    node_.Publish(manifests_);
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    node_.Stop();
    calls_before_ = node_.drivers.calls().size();
  }

  std::unique_ptr<checkpoint::LedgerStore> Open() const {
    checkpoint::RocksDbStoreOptions options;
    options.directory = folder_.path();
    options.recovery = Recovery::kLenient;
    auto store = checkpoint::OpenRocksDbStore(options);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  /// Puts records (or removes them, when empty), loses the history, which
  /// would make up for them, and lets the ledger be found damaged.
  void Lose(std::map<std::string, std::string> records) const {
    const auto contents = checkpoint::ReadStoppedStore(folder_.path());
    ASSERT_TRUE(contents.ok()) << contents.status();
    for (const state::Batch& batch : contents->history) {
      records[checkpoint::HistoryKey(batch.seq)] = "";
    }
    records[checkpoint::FirstKey()] =
        checkpoint::EncodeNumber(contents->state.seq + 1);
    checkpoint::PutRaw(folder_.path(), records);
    checkpoint::WriteFile(checkpoint::WitnessPath(folder_.path()), "damaged");
  }

  std::vector<FakeDrivers::Call> NewCalls() {
    auto calls = node_.drivers.calls();
    calls.erase(calls.begin(),
                calls.begin() + static_cast<std::ptrdiff_t>(calls_before_));
    return calls;
  }

  const TempFolder folder_;
  const std::string manifests_ = ClaimYaml("c1", "u-1", {kDriver}, {"u-p"}) +
                                 ClaimYaml("c2", "u-2", {kOther}, {"u-p"}) +
                                 PodYaml("p", "u-p", {"c1", "c2"});
  std::size_t calls_before_ = 0;
};

TEST_F(RecoveredNodeTest, SaysSo) {
  Lose({{"p/odd", "\xff"}});
  node_.Start();
  const RecoveryInfo recovery = node_.manager().View()->Node().recovery;
  EXPECT_TRUE(recovery.damaged);
  EXPECT_EQ(recovery.skipped, 1u);
  EXPECT_THAT(recovery.kept, HasSubstr("db.damaged-"));
  EXPECT_THAT(recovery.message, HasSubstr("witness' is damaged"));
  EXPECT_THAT(node_.manager().Events(0),
              Contains(AllOf(Field(&EventInfo::reason, "LedgerRecovered"),
                             Field(&EventInfo::warning, true),
                             Field(&EventInfo::message, recovery.message))));
}

TEST_F(RecoveredNodeTest, PodThatLostAClaimHasOnlyThatPreparedAgain) {
  const auto before = node_.drivers.prepared(kOther);
  Lose({{checkpoint::ClaimKey({"u-1"}), ""}});
  node_.Start();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), SizeIs(2));
  EXPECT_THAT(NewCalls(), ElementsAre(Prepare(kDriver, {"c1"})));
  EXPECT_EQ(node_.drivers.prepared(kOther), before);
}

TEST_F(RecoveredNodeTest, PodWhoseRecordIsLostKeepsWhatItHolds) {
  Lose({{checkpoint::PodKey({"u-p"}), ""}});
  node_.Start();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), SizeIs(2));
  EXPECT_THAT(NewCalls(), IsEmpty());
}

TEST_F(RecoveredNodeTest, PodWhoseRecordIsLostIsReleasedOnceItIsGone) {
  Lose({{checkpoint::PodKey({"u-p"}), ""}});
  node_.Publish("");
  node_.Start();
  ASSERT_TRUE(node_.WaitUntilGone("recovered-u-p"));
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
  EXPECT_THAT(node_.drivers.prepared(kOther), IsEmpty());
}

TEST_F(RecoveredNodeTest, ClaimThatNobodyHoldsIsUnprepared) {
  node_.Publish("");
  const auto contents = checkpoint::ReadStoppedStore(folder_.path());
  state::ClaimRecord claim = *contents->state.FindClaim({"u-1"});
  claim.pods.clear();
  Lose({{checkpoint::PodKey({"u-p"}), ""},
        {checkpoint::ClaimKey({"u-1"}), checkpoint::EncodeClaim(claim)},
        {checkpoint::ClaimKey({"u-2"}), ""}});
  node_.Start();
  ASSERT_TRUE(node_.WaitUntilGone("recovered-c1"));
  EXPECT_THAT(NewCalls(), ElementsAre(Unprepare(kDriver, {"c1"})));
}

/// It used to wait for its own end for ever.
TEST_F(RecoveredNodeTest, PodThatIsBeingReleasedAndWantedIsAdmittedAnew) {
  const auto contents = checkpoint::ReadStoppedStore(folder_.path());
  state::ClaimRecord claim = *contents->state.FindClaim({"u-1"});
  claim.drivers.at(kDriver).phase = state::DriverPhase::kUnpreparing;
  Lose({{checkpoint::ClaimKey({"u-1"}), checkpoint::EncodeClaim(claim)}});
  node_.Start();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), SizeIs(2));
  EXPECT_THAT(node_.drivers.prepared(kDriver), SizeIs(1));
}

/// The same pod, of a manager that answers before it has read all.
class LoadingNodeTest : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    node_.open_store = [this] {
      auto store = checkpoint::OpenRocksDbStore(
          {.directory = folder_.path(), .pods_first = true});
      EXPECT_TRUE(store.ok()) << store.status();
      return store.ok() ? *std::move(store) : nullptr;
    };
    node_.Start();
    node_.Publish(ClaimYaml("c1", "u-1", {kDriver}, {"u-p"}) +
                  PodYaml("p", "u-p", {"c1"}));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    node_.Stop();
  }
  /// What resolve answers for the pod's container.
  absl::Status Resolve() {
    const auto answer = node_.manager().PodDevicesOf({"u-p"});
    if (answer.ok()) {
      EXPECT_THAT((*answer)->containers, SizeIs(1));
    }
    return answer.status();
  }

  const TempFolder folder_;
};

TEST_F(LoadingNodeTest, ResolvesAtOnceAndThenDoesAllElse) {
  for (int i = 0; i < 10; ++i) {
    node_.Start();
    EXPECT_THAT(Resolve(), IsOk());
    node_.Stop();  // Perhaps before it is loaded.
  }
  node_.Start();
  EXPECT_THAT(node_.manager().WaitUntilLoaded(), IsOk());
  EXPECT_THAT(Resolve(), IsOk());
  EXPECT_THAT(node_.manager().EndPod({"u-p"}), IsOk());
  EXPECT_FALSE(node_.drivers.calls().back().prepare);
}

TEST_F(LoadingNodeTest, TakesNoDecisionWithoutARecordThatCannotBeDecoded) {
  checkpoint::PutRaw(folder_.path(), {{checkpoint::ClaimKey({"u-1"}), "\xff"}});
  const std::size_t calls = node_.drivers.calls().size();
  node_.Start();
  DeviceManager& manager = node_.manager();
  const absl::Status loaded = manager.WaitUntilLoaded();
  EXPECT_EQ(loaded.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(loaded),
              AllOf(HasSubstr("record 'c/u-1'"), HasSubstr("lenient")));
  EXPECT_THAT(Resolve(), IsOk());
  EXPECT_EQ(manager.EndPod({"u-p"}), loaded);
  EXPECT_EQ(manager.AdmitPod(Pod()).status(), loaded);
  EXPECT_EQ(manager.BeforeContainerStart({"u-p"}, "main"), loaded);
  EXPECT_EQ(manager.maintenance().History(0).status(), loaded);
  EXPECT_EQ(manager.maintenance().Fsck({}).status(), loaded);
  EXPECT_EQ(manager.maintenance().ForceReleaseClaim({"default", "c1"}, "why"),
            loaded);
  EXPECT_EQ(manager.View()->Node().ledger_error, MessageOf(loaded));
  EXPECT_EQ(node_.drivers.calls().size(), calls);
  node_.Stop();
  EXPECT_EQ(checkpoint::ReadStoppedStore(folder_.path()).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace devmgr
