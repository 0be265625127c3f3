// SPDX-License-Identifier: Apache-2.0
//
// A host that opens and closes managers all day: nothing of them stays behind.
// The program sees public headers only, as a host does.
#include <devmgr/device_manager.h>
#include <devmgr/inspection.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <filesystem>
#include <memory>
#include <string>

#include "support/temp_folder.h"
#include "support/test_scale.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;

std::size_t EntriesOf(const char* directory) {
  const fs::directory_iterator entries(directory);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

/// What a process may run out of.
struct Resources {
  std::size_t descriptors = EntriesOf("/proc/self/fd");
  std::size_t threads = EntriesOf("/proc/self/task");
  std::size_t heap_bytes = ::mallinfo2().uordblks;
};

class ManyManagersTest : public ::testing::Test {
 protected:
  /// Everything that devmgrd opens: ledger, registration directory, manifests,
  /// actuator, inspection socket.
  void OpenAndClose(bool durable) {
    const auto source = WatchManifests(folder_.path() / "manifests");
    DeviceManagerOptions options;
    options.ledger.in_memory = !durable;
    if (durable) options.state_dir = folder_.path() / "state";
    options.plugin_registry_dir = folder_.path() / "plugins_registry";
    options.actuate = Actuate::kSource;
    Host host;
    host.objects = source.get();
    const auto manager = DeviceManager::Open(options, host);
    ASSERT_TRUE(manager.ok()) << manager.status();
    const auto server =
        InspectionServer::Start(**manager, folder_.path() / "inspection.sock");
    ASSERT_TRUE(server.ok()) << server.status();
  }

  /// Opens and closes `count` managers after some that fill caches; what is
  /// left behind afterwards.
  void ExpectNothingLeft(bool durable, int count) {
    for (int i = 0; i < 10; ++i) OpenAndClose(durable);
    const Resources before;
    for (int i = 0; i < count; ++i) {
      OpenAndClose(durable);
      ASSERT_FALSE(HasFatalFailure()) << "manager " << i;
    }
    const Resources after;
    EXPECT_EQ(after.descriptors, before.descriptors);
    EXPECT_EQ(after.threads, before.threads);
    // gRPC and RocksDB keep caches that breathe; a leak grows with the count.
    const double grown = static_cast<double>(after.heap_bytes) -
                         static_cast<double>(before.heap_bytes);
    RecordProperty("bytes_per_manager", std::to_string(grown / count));
    EXPECT_LT(grown / count, 256.0);
  }

  const TempFolder folder_;
};

TEST_F(ManyManagersTest, LeaveNothingBehindWithADurableLedger) {
  ExpectNothingLeft(/*durable=*/true, 100 * TestScale());
}

TEST_F(ManyManagersTest, LeaveNothingBehindWithALedgerInMemory) {
  ExpectNothingLeft(/*durable=*/false, 300 * TestScale());
}

TEST_F(ManyManagersTest, LiveSideBySide) {
  std::vector<std::unique_ptr<DeviceManager>> managers;
  for (int i = 0; i < 20; ++i) {
    DeviceManagerOptions options;
    options.state_dir = folder_.path() / std::to_string(i);
    auto manager = DeviceManager::Open(options);
    ASSERT_TRUE(manager.ok()) << manager.status();
    managers.push_back(*std::move(manager));
  }
  for (const auto& manager : managers)
    EXPECT_TRUE(manager->View()->Pods().empty());
}

}  // namespace
}  // namespace devmgr
