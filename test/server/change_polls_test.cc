// SPDX-License-Identifier: Apache-2.0
//
// Clients that read changes of devices over the socket.
#include <gmock/gmock.h>

#include <future>
#include <string>
#include <variant>
#include <vector>

#include "common/mutex.h"
#include "common/status.h"
#include "server/inspection_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ChangePollsTest : public InspectionServerTest {
 protected:
  ChangePollsTest() {
    manager_.Set([&](FakeDeviceManager::World& world) {
      world.changes = [this](const ChangesFrom& from) { return Read(from); };
    });
  }

  void Add(const DeviceChange& change) {
    {
      const MutexLock lock(mutex_);
      changes_.push_back(change);
    }
    manager_.TellDeviceChanges();
  }

  static DeviceChange Released(std::uint64_t sequence) {
    DeviceChange change;
    change.token = {sequence, 2, 0, 0x77};
    change.time = WallTime(std::chrono::milliseconds(1'700'000'000'123));
    change.kind = DeviceChangeKind::kReleased;
    change.pod = kPod;
    change.pod_uid = {"u1"};
    change.container = "c";
    change.resource = "example.com/gpu";
    change.claim = {"default", "gpu"};
    change.claim_uid = {"u2"};
    change.driver = "gpu.example.com";
    change.pool = "pool";
    change.devices = {"gpu0", "gpu1"};
    change.share_id = "share";
    change.cdi_devices = {"example.com/gpu=0"};
    change.health = DeviceHealth::kUnhealthy;
    change.owner = ResourceOwner::kDeviceClass;
    change.former_owner = ResourceOwner::kDevicePlugin;
    change.reason = "Release";
    change.message = "pod is released";
    return change;
  }

 private:
  absl::StatusOr<DeviceChanges> Read(const ChangesFrom& from) {
    const MutexLock lock(mutex_);
    DeviceChanges all{{}, {9}, false};
    if (std::holds_alternative<FromOldest>(from)) all.next = {1};
    if (const auto* after = std::get_if<ChangeToken>(&from)) {
      if (after->sequence < 5) return OutOfRangeError("too old: ...");
      all.next = *after;
    }
    for (const DeviceChange& change : changes_) {
      if (change.token <= all.next) continue;
      all.changes.push_back(change);
      all.next = change.token;
    }
    return all;
  }

  Mutex mutex_;
  std::vector<DeviceChange> changes_ DEVMGR_GUARDED_BY(mutex_);
};

TEST_F(ChangePollsTest, AChangeComesAsItIs) {
  StartServer();
  const auto inspector = Connect();
  const DeviceChange sent = Released(12);
  Add(sent);
  const auto some = inspector->Changes(ChangeToken{11}, milliseconds(0));
  ASSERT_THAT(some, IsOk());
  ASSERT_THAT(some->changes, SizeIs(1));
  const DeviceChange& got = some->changes.front();
  EXPECT_EQ(got.token, sent.token);
  EXPECT_EQ(got.token.process, sent.token.process);
  EXPECT_EQ(got.time, sent.time);
  EXPECT_EQ(got.kind, sent.kind);
  EXPECT_EQ(got.pod, sent.pod);
  EXPECT_EQ(got.pod_uid, sent.pod_uid);
  EXPECT_EQ(got.container, sent.container);
  EXPECT_EQ(got.resource, sent.resource);
  EXPECT_EQ(got.claim, sent.claim);
  EXPECT_EQ(got.claim_uid, sent.claim_uid);
  EXPECT_EQ(got.driver, sent.driver);
  EXPECT_EQ(got.pool, sent.pool);
  EXPECT_EQ(got.devices, sent.devices);
  EXPECT_EQ(got.share_id, sent.share_id);
  EXPECT_EQ(got.cdi_devices, sent.cdi_devices);
  EXPECT_EQ(got.health, sent.health);
  EXPECT_EQ(got.owner, sent.owner);
  EXPECT_EQ(got.former_owner, sent.former_owner);
  EXPECT_EQ(got.reason, sent.reason);
  EXPECT_EQ(got.message, sent.message);
  EXPECT_EQ(some->next, sent.token);
}

TEST_F(ChangePollsTest, WhereAReaderBeginsIsPassedOn) {
  StartServer();
  const auto inspector = Connect();
  EXPECT_EQ(inspector->Changes(FromSnapshot(), milliseconds(0))->next,
            ChangeToken{9});
  EXPECT_EQ(inspector->Changes(FromOldest(), milliseconds(0))->next,
            ChangeToken{1});
  EXPECT_THAT(inspector->Changes(ChangeToken{4}, milliseconds(0)),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("too old")));
}

TEST_F(ChangePollsTest, AReaderThatWaitsIsWoken) {
  StartServer();
  const auto inspector = Connect();
  auto waiting = std::async(std::launch::async, [&] {
    return inspector->Changes(ChangeToken{11}, kPatience);
  });
  Add(Released(12));
  ASSERT_EQ(waiting.wait_for(kPatience), std::future_status::ready);
  const auto some = waiting.get();
  ASSERT_THAT(some, IsOk());
  EXPECT_THAT(some->changes, SizeIs(1));
}

TEST_F(ChangePollsTest, AWaitEndsWithoutAChange) {
  StartServer();
  const auto inspector = Connect();
  const auto none = inspector->Changes(ChangeToken{11}, milliseconds(20));
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT(none->changes, IsEmpty());
  EXPECT_EQ(none->next, ChangeToken{11});
}

}  // namespace
}  // namespace devmgr
