// SPDX-License-Identifier: Apache-2.0
//
// Containers that hold devices which no pod was given: their devices go to no
// other pod, until they are gone, their pod is given just these, or an operator
// frees them.
#include <devmgr/runtime_report.h>

#include "manager/device_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kId[] = "0123456789abcdef";
constexpr char kText[] = "foreign container 0123456789abc (pod default/stray)";

class ForeignHoldersTest : public DeviceNodeTest {
 protected:
  static ForeignHolder Holder(const std::vector<DeviceId>& devices,
                              const std::string& pod = "stray",
                              const std::string& id = kId) {
    ForeignHolder holder;
    holder.container_id = id;
    holder.pod_uid.value = "u-" + pod;
    holder.pod = {"default", pod};
    holder.container = "c";
    if (!devices.empty()) holder.resources = {{kGpu, devices}};
    holder.why = "its pod is not known";
    return holder;
  }
  static RuntimeReport ReportOf(std::vector<ForeignHolder> holders,
                                bool all = true) {
    RuntimeReport report;
    report.session = "s";
    report.listen = "/run/shim.sock";
    report.endpoint = "/run/runtime.sock";
    report.holders = std::move(holders);
    report.all_holders = all;
    return report;
  }
  void Report(std::vector<ForeignHolder> holders, bool all = true) {
    ASSERT_THAT(
        node_.manager().ReportRuntime(ReportOf(std::move(holders), all)),
        IsOk());
  }
  ::testing::AssertionResult WaitForHolders(std::size_t count) {
    return node_.WaitUntil("foreign holders", [&] {
      return node_.manager().View()->ForeignHolders().size() == count;
    });
  }
  /// After what was reported until now has been decided.
  void Settle() {
    ASSERT_FALSE(
        node_.manager().maintenance().FreeHolder("none", "to wait").ok());
  }
  /// The users that `get devices` shows of a device.
  std::vector<std::string> UsersOf(const std::string& id) {
    for (const DeviceInfo& device : node_.manager().View()->Devices()) {
      if (device.resource == kGpu && device.device == id) return device.used_by;
    }
    return {"no such device"};
  }
};

TEST_F(ForeignHoldersTest, TheirDevicesGoToNoPodUntilTheyAreGone) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  Report({Holder({"0"})});
  ASSERT_TRUE(WaitForHolders(1));
  EXPECT_THAT(UsersOf("0"), ElementsAre(kText));
  EXPECT_THAT(MessagesOf("ForeignHolder"),
              ElementsAre(AllOf(
                  HasSubstr("container 'c' (0123456789abc) holds device '0' of "
                            "'example.com/gpu': its pod is not known"),
                  HasSubstr("no other pod gets"))));

  node_.Publish(DevicePod("p", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitForReason("p", "NotEnoughFreeDevices"));
  EXPECT_THAT(node_.PodNamed("p").message,
              HasSubstr("others are held by '" + std::string(kText) + "'"));

  Report({});
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0", "1"));
  EXPECT_THAT(MessagesOf("ForeignHolderGone"), SizeIs(1));
  EXPECT_THAT(node_.manager().View()->ForeignHolders(), IsEmpty());
}

TEST_F(ForeignHoldersTest, TheLedgerKeepsThemOverARestart) {
  node_.Start();
  node_.plugins.Serve(kGpu, 3);
  ForeignHolder holder = Holder({"0", "1"});
  holder.cdi_devices = {"v.com/c=1"};
  Report({holder});
  ASSERT_TRUE(WaitForHolders(1));
  node_.Restart();
  node_.plugins.Serve(kGpu, 3);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("2"));
  ASSERT_THAT(node_.manager().View()->ForeignHolders(), SizeIs(1));
  const ForeignHolderInfo info =
      node_.manager().View()->ForeignHolders().front();
  EXPECT_EQ(info.holder, holder);
  EXPECT_EQ(info.endpoint, "/run/runtime.sock");
  EXPECT_EQ(info.freed, "");
}

// Without a shim no report would end them.
TEST_F(ForeignHoldersTest, NoContainerOutlivesItsBoot) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  Report({Holder({"0"}), Holder({"0"}, "other", "other")});
  ASSERT_TRUE(WaitForHolders(2));
  ASSERT_THAT(node_.manager().maintenance().FreeHolder("other", "it hangs"),
              IsOk());
  node_.Reboot();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.manager().View()->ForeignHolders(), IsEmpty());
}

// As after a ledger was lost: the pods are known again, their devices are not.
TEST_F(ForeignHoldersTest, APodIsGivenWhatItsContainerHasAlready) {
  node_.Start();
  node_.plugins.Serve(kGpu, 4);
  Report({Holder({"2"}, "p"), Holder({"0"}, "other", "other")});
  ASSERT_TRUE(WaitForHolders(2));
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("2"));
  ASSERT_TRUE(WaitForHolders(1));
  EXPECT_THAT(MessagesOf("ForeignHolderGone"),
              ElementsAre(HasSubstr("its pod was given them")));
  EXPECT_THAT(UsersOf("2"), ElementsAre("default/p"));
  // The report goes on to name it, until the shim has asked about its pod.
  Report({Holder({"2"}, "p"), Holder({"0"}, "other", "other")});
  Settle();
  EXPECT_THAT(node_.manager().View()->ForeignHolders(), SizeIs(1));
}

// One of its devices changes hands: the others stay with it.
TEST_F(ForeignHoldersTest, APodIsGivenSomeOfWhatItsContainerHas) {
  node_.Start();
  node_.plugins.Serve(kGpu, 4);
  Report({Holder({"0", "1"}, "p"), Holder({"2"}, "stray", "fedcba")});
  ASSERT_TRUE(WaitForHolders(2));
  const std::string p = DevicePod("p", {{kGpu, 1}});
  node_.Publish(p);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
  node_.Publish(p + DevicePod("q", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(Held("q", kGpu), ElementsAre("3"));
  node_.Publish(p + DevicePod("r", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  EXPECT_TRUE(node_.WaitForReason("r", "NotEnoughFreeDevices"));
}

TEST_F(ForeignHoldersTest, APodDoesNotStandInLineForWhatItHas) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  Report({Holder({"1"}, "p")});
  ASSERT_TRUE(WaitForHolders(1));
  const std::string first = DevicePod("first", {{kGpu, 2}});
  node_.Publish(first);
  ASSERT_TRUE(node_.WaitForReason("first", "NotEnoughFreeDevices"));
  node_.Publish(first + DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1"));
}

TEST_F(ForeignHoldersTest, APodKeepsWhatTheLedgerAssignedToIt) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const std::size_t batches = node_.store.batches();
  for (int i = 0; i < 2; ++i) Report({Holder({"0"})});
  Settle();
  EXPECT_THAT(
      MessagesOf("ForeignHolderConflict"),
      ElementsAre(HasSubstr("container 'c' (0123456789abc) uses device '0' of "
                            "'example.com/gpu', which the ledger assigned to "
                            "pod 'default/p'")));
  EXPECT_THAT(node_.manager().View()->ForeignHolders(), IsEmpty());
  EXPECT_EQ(node_.store.batches(), batches);
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
  // It is found with the next report once the pod has gone.
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  Report({Holder({"0"})});
  EXPECT_TRUE(WaitForHolders(1));
}

TEST_F(ForeignHoldersTest, AReportIsOneWriteAndTheSameAgainIsNone) {
  node_.Start();
  node_.plugins.Serve(kGpu, 4);
  Settle();
  const std::size_t batches = node_.store.batches();
  const std::vector<ForeignHolder> holders = {
      Holder({"0"}), Holder({"1"}, "b", "b"), Holder({"1"}, "c", "c")};
  Report(holders);
  ASSERT_TRUE(WaitForHolders(3));
  EXPECT_EQ(node_.store.batches(), batches + 1);
  EXPECT_THAT(UsersOf("1"), SizeIs(2));
  Report(holders);
  Settle();
  EXPECT_EQ(node_.store.batches(), batches + 1);
  // One of two holders of a device goes: the other one has it.
  Report({holders[0], holders[2]});
  ASSERT_TRUE(WaitForHolders(2));
  node_.Publish(DevicePod("p", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("2", "3"));
}

TEST_F(ForeignHoldersTest, OnlyACompleteListOfItsRuntimeEndsAHolder) {
  node_.Start();
  Report({Holder({"0"})});
  ASSERT_TRUE(WaitForHolders(1));
  Report({}, /*all=*/false);
  RuntimeReport other = ReportOf({});
  other.listen = "/run/other-shim.sock";
  other.endpoint = "/run/other.sock";
  ASSERT_THAT(node_.manager().ReportRuntime(other), IsOk());
  RuntimeReport over = ReportOf({}, /*all=*/false);
  over.over = true;
  ASSERT_THAT(node_.manager().ReportRuntime(over), IsOk());
  Settle();
  EXPECT_THAT(node_.manager().View()->ForeignHolders(), SizeIs(1));
  Report({});
  EXPECT_TRUE(WaitForHolders(0));
}

TEST_F(ForeignHoldersTest, AnOperatorMayFreeWhatAContainerHas) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  Report({Holder({"0"})});
  ASSERT_TRUE(WaitForHolders(1));
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "NotEnoughFreeDevices"));

  EXPECT_THAT(node_.manager().maintenance().FreeHolder(kId, ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a reason is required")));
  EXPECT_THAT(node_.manager().maintenance().FreeHolder("ffff", "why"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'ffff'")));
  ASSERT_THAT(node_.manager().maintenance().FreeHolder("0123", "it hangs"),
              IsOk());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
  EXPECT_THAT(
      MessagesOf("ForeignHolderFreed"),
      ElementsAre(AllOf(HasSubstr("device '0'"), HasSubstr("it hangs"))));
  const auto history = node_.manager().maintenance().History(0, 100);
  ASSERT_THAT(history, IsOk());
  const auto freed = std::find_if(
      history->begin(), history->end(), [](const DecisionInfo& info) {
        return info.kind == DecisionKind::kHolderFreed;
      });
  ASSERT_NE(freed, history->end());
  EXPECT_THAT(freed->message, AllOf(HasSubstr(kText), HasSubstr("it hangs")));
  EXPECT_THAT(freed->pods, ElementsAre("default/stray"));
  EXPECT_THAT(node_.manager().maintenance().FreeHolder(kId, "again"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("are free already: it hangs")));

  // It still runs, and is not taken for a new one, not after a restart either.
  node_.Restart();
  Report({Holder({"0"})});
  Settle();
  ASSERT_THAT(node_.manager().View()->ForeignHolders(), SizeIs(1));
  EXPECT_EQ(node_.manager().View()->ForeignHolders().front().freed, "it hangs");
  EXPECT_THAT(UsersOf("0"), ElementsAre("default/p"));
  // Once it is gone it is forgotten.
  Report({});
  EXPECT_TRUE(WaitForHolders(0));
}

TEST_F(ForeignHoldersTest, AnIdThatSeveralBeginWithIsRefused) {
  node_.Start();
  Report({Holder({"0"}, "a", "12aa"), Holder({"1"}, "b", "12bb")});
  ASSERT_TRUE(WaitForHolders(2));
  EXPECT_THAT(node_.manager().maintenance().FreeHolder("12", "why"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("12aa"), HasSubstr("12bb"))));
  EXPECT_THAT(node_.manager().maintenance().FreeHolder("12b", "why"), IsOk());
}

// Claims are allocated elsewhere, and cannot be kept from such a device.
TEST_F(ForeignHoldersTest, OfCdiDevicesIsWarned) {
  node_.Start();
  ForeignHolder holder = Holder({});
  holder.cdi_devices = {"d.example.com/gpu=gpu-0"};
  Report({holder});
  ASSERT_TRUE(WaitForHolders(1));
  EXPECT_THAT(
      MessagesOf("ForeignHolder"),
      ElementsAre(AllOf(HasSubstr("holds CDI device 'd.example.com/gpu=gpu-0'"),
                        HasSubstr("may still be allocated to others"),
                        Not(HasSubstr("no other pod gets")))));
}

TEST_F(ForeignHoldersTest, ACdiDeviceIsThatOfThePluginThatNamesItSo) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  ForeignHolder holder = Holder({});
  holder.cdi_devices = {"example.com/gpu=0", "example.com/gpu=all",
                        "example.com/none=1"};
  Report({holder});
  ASSERT_TRUE(WaitForHolders(1));
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1"));
  EXPECT_THAT(UsersOf("all"), ElementsAre("no such device"));
}

TEST_F(ForeignHoldersTest, TheNextReportBringsWhatCouldNotBeWritten) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  Settle();
  node_.store.FailNext(SharedStore::Failure::kLost);
  Report({Holder({"0"})});
  Settle();
  EXPECT_THAT(node_.manager().View()->ForeignHolders(), IsEmpty());
  Report({Holder({"0"})});
  EXPECT_TRUE(WaitForHolders(1));
}

TEST_F(ForeignHoldersTest, TheirDevicesAreNobodysHealth) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  Report({Holder({"0"})});
  ASSERT_TRUE(WaitForHolders(1));
  auto devices = HealthyDevices(2);
  devices[0].health = device::Health::kUnhealthy;
  node_.plugins.Report(kGpu, devices);
  ASSERT_TRUE(node_.WaitUntil("the device is not healthy", [&] {
    for (const DeviceInfo& device : node_.manager().View()->Devices()) {
      if (device.device == "0" && device.health == DeviceHealth::kUnhealthy)
        return true;
    }
    return false;
  }));
  EXPECT_THAT(MessagesOf("DeviceUnhealthy"), IsEmpty());
}

}  // namespace
}  // namespace devmgr
