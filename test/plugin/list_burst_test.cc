// SPDX-License-Identifier: Apache-2.0
//
// Many lists at once, over real sockets: the last one counts soon, however
// little is left of the plugin's budget, and nothing is decided before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/status.h"
#include "plugin/plugin_registry.h"
#include "plugin/resource_name.h"
#include "plugin/small_plugin.h"
#include "plugin/socket_fixture.h"
#include "support/status_matchers.h"

namespace devmgr::plugin {
namespace {

using std::chrono::milliseconds;

/// A list of healthy devices `0` to `count - 1`, but for the first `failed`.
std::string ListWithFailed(int count, int failed) {
  wire::deviceplugin::v1beta1::ListAndWatchResponse list;
  for (int i = 0; i < count; ++i) {
    auto* device = list.add_devices();
    device->set_id(std::to_string(i));
    device->set_health(i < failed ? "Unhealthy" : "Healthy");
  }
  return rpc::Encode(list);
}

class ListBurstTest : public SocketTest, private PluginListener {
 protected:
  void TearDown() override {
    RunOnExecutor([&] { registry_.reset(); });
    SocketTest::TearDown();
  }

  /// A plugin that has told no devices yet, and whose lists have this budget.
  void Serve(WorkBudget::Options budget) {
    plugin_.emplace(folder() / "p.sock", std::vector<std::string>());
    RunOnExecutor([&] {
      PluginRegistryOptions options;
      options.now = [] { return WallTime(); };
      options.instance.lists = budget;
      options.catch_up = kPatience;
      registry_ = std::make_unique<PluginRegistry>(
          *executor_, UnixDialer(*runtime_), options,
          static_cast<PluginListener&>(*this));
      registry_->RegisterFromSocket({"v1beta1", "p.sock", kResource}, folder(),
                                    [](const absl::Status&) {});
    });
    stream_ = plugin_->listeners_.Take().value_or(nullptr);
    ASSERT_NE(stream_, nullptr);
  }

  void OnList(const ResourceName&, Generation,
              std::vector<device::Device> devices,
              const ListProblems&) override {
    ++lists_;
    devices_ = std::move(devices);
  }

  int HealthyOnes() const {
    return static_cast<int>(
        std::count_if(devices_.begin(), devices_.end(), [](const auto& one) {
          return one.health == device::Health::kHealthy;
        }));
  }

  /// Asks, until there are `devices` devices and no healthy one.
  bool WaitUntilAllFailed(std::size_t devices) {
    return WaitUntil([&] {
      bool all_failed = false;
      RunOnExecutor([&] {
        all_failed = devices_.size() == devices && HealthyOnes() == 0;
      });
      return all_failed;
    });
  }

  std::optional<SmallPlugin> plugin_;
  SmallPlugin::Stream stream_;
  std::unique_ptr<PluginRegistry> registry_;
  // On the executor.
  int lists_ = 0;
  std::vector<device::Device> devices_;
};

// Of 64 devices that failed one after the other 39 still counted as healthy
// half a second later.
TEST_F(ListBurstTest, DevicesThatFailOneAfterTheOtherHaveFailedSoon) {
  constexpr int kDevices = 64;
  Serve({});
  for (int failed = 0; failed <= kDevices; ++failed) {
    stream_->Write(ListWithFailed(kDevices, failed));
  }
  EXPECT_TRUE(WaitUntilAllFailed(kDevices));
}

// One after the other they would take more than a minute.
TEST_F(ListBurstTest, TheLastOfManyListsCountsThoughTheBudgetIsSpent) {
  constexpr int kDevices = 64;
  constexpr int kLists = 5'000;
  Serve({milliseconds(1), 1});
  const std::string list = ListWithFailed(kDevices, 0);
  for (int i = 0; i < kLists; ++i) stream_->Write(list);
  stream_->Write(ListWithFailed(kDevices, kDevices));
  EXPECT_TRUE(WaitUntilAllFailed(kDevices));
  EXPECT_LT(lists_, kLists / 2);
}

// Beyond the budget each took 0.3 s.
TEST_F(ListBurstTest, TheLastOfManyLargeListsCounts) {
  constexpr int kDevices = 60'000;
  Serve({milliseconds(1), 20});
  const std::string list = ListWithFailed(kDevices, 0);
  for (int i = 0; i < 20; ++i) stream_->Write(list);
  stream_->Write(ListWithFailed(kDevices, kDevices));
  EXPECT_TRUE(WaitUntilAllFailed(kDevices));
}

// Whoever asks after a list was taken in as the newest sees it or a later one,
// while ever more of them come.
TEST_F(ListBurstTest, NothingIsDecidedOnAListThatIsOlderThanOneThatHasCome) {
  constexpr int kDevices = 64;
  Serve({milliseconds(1), 20});
  int asked = 0;
  int decided_with = 0;  // Failed devices, at the last decision.
  for (int failed = 0; failed <= kDevices; ++failed) {
    stream_->Write(ListWithFailed(kDevices, failed));
    Mailbox<int> decided;
    RunOnExecutor([&] {
      registry_->WhenCurrent(
          {kResource}, [&](const absl::Status& status, const std::string&) {
            EXPECT_THAT(status, IsOk());
            decided.Put(static_cast<int>(devices_.size()) - HealthyOnes());
          });
    });
    const auto now = decided.Take();
    ASSERT_TRUE(now.has_value());
    EXPECT_GE(*now, decided_with);
    decided_with = *now;
    ++asked;
  }
  EXPECT_EQ(asked, kDevices + 1);
  EXPECT_TRUE(WaitUntilAllFailed(kDevices));
}

}  // namespace
}  // namespace devmgr::plugin
