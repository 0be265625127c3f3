// SPDX-License-Identifier: Apache-2.0
//
// A node whose disk fails, as an operator and a container runtime see it.
#include <thread>

#include "checkpoint/rocksdb_config.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/simulated_disk.h"
#include "manager/manager_fixture.h"
#include "support/mailbox.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using checkpoint::DiskFault;
using checkpoint::DiskOperation;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Resolves one container all the time.
class Reader {
 public:
  explicit Reader(const DeviceManager& manager, const std::string& pod)
      : thread_([this, &manager, uid = PodUid{pod}] {
          while (!stop_) {
            ++(manager.ContainerDevicesOf(uid, "c").ok() ? answers_ : errors_);
            std::this_thread::yield();
          }
        }) {}
  ~Reader() {
    stop_ = true;
    thread_.join();
  }
  /// Waits until a resolve that began after this call has ended.
  void AwaitAnswer() const {
    const int before = answers_;
    while (answers_ < before + 2 && errors_ == 0) std::this_thread::yield();
  }
  int errors() const { return errors_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> answers_ = 0;
  std::atomic<int> errors_ = 0;
  std::thread thread_;
};

class FailingDiskNodeTest : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    disk_.SetHook([this](const DiskOperation& operation) {
      return operation.changes() ? fault_.load() : DiskFault::kNone;
    });
    node_.open_store = [this] {
      auto store = checkpoint::OpenRocksDbStoreOn(
          {folder_.path() / "state", {}},
          checkpoint::LedgerOptions(disk_.env()));
      EXPECT_TRUE(store.ok()) << store.status();
      return *std::move(store);
    };
  }
  void TearDown() override { node_.Stop(); }

  /// The status line, once the ledger is found to be closed.
  std::string AwaitLedgerError() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      const std::string error = node_.manager().View()->Node().ledger_error;
      if (!error.empty()) return error;
    }
    return "";
  }

  const TempFolder folder_;
  checkpoint::SimulatedDisk disk_{folder_.path()};
  std::atomic<DiskFault> fault_ = DiskFault::kNone;
};

TEST_F(FailingDiskNodeTest, ResolvesThroughoutAndGoesOnOnceThereIsSpace) {
  node_.Start();
  const std::string first =
      ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) + PodYaml("p", "u-p", {"c1"});
  node_.Publish(first);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  {
    const Reader reader(node_.manager(), "u-p");
    fault_ = DiskFault::kShortNoSpace;
    node_.Publish(first + ClaimYaml("c2", "u-c2", {kDriver}, {"u-q"}) +
                  PodYaml("q", "u-q", {"c2"}));
    EXPECT_THAT(AwaitLedgerError(),
                AllOf(HasSubstr("ledger cannot be opened after a failed write"),
                      HasSubstr(folder_.path().string()),
                      HasSubstr("No space left on device")));
    reader.AwaitAnswer();
    fault_ = DiskFault::kNone;
    ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
    EXPECT_EQ(node_.manager().View()->Node().ledger_error, "");
    reader.AwaitAnswer();
    EXPECT_EQ(reader.errors(), 0);
  }
  node_.Restart();
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
  EXPECT_THAT(node_.Resolve("q", "c"), ElementsAre("d.example.com/x=c2"));
  // Each claim was prepared once; no driver was called for what was not
  // written.
  EXPECT_THAT(node_.drivers.calls(),
              ElementsAre(Prepare(kDriver, {"c1"}), Prepare(kDriver, {"c2"})));
}

// It used to end with "(DRA driver d.example.com)".
TEST_F(FailingDiskNodeTest, AnErrorOfTheDiskIsNotBlamedOnTheDriver) {
  node_.Start();
  node_.drivers.Answer(kDriver, [this](bool, const dra::ClaimReference&) {
    fault_ = DiskFault::kShortNoSpace;
    return absl::OkStatus();
  });
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_NE(AwaitLedgerError(), "");
  node_.drivers.Answer(kDriver, {});
  fault_ = DiskFault::kNone;
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  std::vector<std::string> failures;
  for (const EventInfo& event : node_.manager().Events(0)) {
    if (event.message.starts_with("Failed to prepare")) {
      failures.push_back(event.message);
    }
  }
  ASSERT_FALSE(failures.empty());
  for (const std::string& failure : failures) {
    EXPECT_THAT(failure, AllOf(HasSubstr("No space left on device"),
                               Not(HasSubstr(kDriver))));
  }
}

}  // namespace
}  // namespace devmgr
