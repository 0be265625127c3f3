// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "plugin/plugin_registry.h"
#include "plugin/recording_listener.h"
#include "plugin/resource_name.h"
#include "support/fake_connection.h"

namespace devmgr::plugin {

namespace v1beta1 = devmgr::wire::deviceplugin::v1beta1;

inline constexpr char kOptionsPath[] =
    "/v1beta1.DevicePlugin/GetDevicePluginOptions";
inline constexpr char kListPath[] = "/v1beta1.DevicePlugin/ListAndWatch";
inline constexpr char kAllocatePath[] = "/v1beta1.DevicePlugin/Allocate";

inline std::string ListOf(const std::vector<std::string>& ids) {
  v1beta1::ListAndWatchResponse list;
  for (const std::string& id : ids) {
    auto* device = list.add_devices();
    device->set_id(id);
    device->set_health("Healthy");
  }
  return list.SerializeAsString();
}

inline std::string OptionsOf(bool pre_start, bool preferred) {
  v1beta1::DevicePluginOptions options;
  options.set_pre_start_required(pre_start);
  options.set_get_preferred_allocation_available(preferred);
  return options.SerializeAsString();
}

/// What stands behind the sockets, and the clock, are in the hands of the test.
class PluginRegistryTest : public testing::Test {
 protected:
  PluginRegistryTest() { Make({}); }

  void Make(PluginRegistryOptions options) {
    options.now = [] { return WallTime(); };
    registry_.reset();
    registry_ = std::make_unique<PluginRegistry>(
        executor_,
        [this](const auto& socket, auto on_hang_up) {
          return peer_.Dial(socket, std::move(on_hang_up));
        },
        options, listener_);
  }

  void Register(const std::string& endpoint = "p.sock",
                const std::string& resource = kResource,
                const std::string& version = "v1beta1") {
    registry_->RegisterFromSocket(
        {version, endpoint, resource}, "/d",
        [this](absl::Status status) { registered_.push_back(status); });
    executor_.RunPending();
  }

  /// The last call to that method; fails the test if there was none.
  std::size_t LastCall(const std::string& method) {
    for (std::size_t i = peer_.calls().size(); i-- > 0;) {
      if (peer_.calls()[i].method == method) return i;
    }
    ADD_FAILURE() << "nobody called " << method;
    return 0;
  }
  std::size_t CallsOf(const std::string& method) const {
    return static_cast<std::size_t>(
        std::count_if(peer_.calls().begin(), peer_.calls().end(),
                      [&](const auto& call) { return call.method == method; }));
  }

  void Answer(const std::string& method, absl::StatusOr<std::string> answer) {
    peer_.Answer(LastCall(method), std::move(answer));
    executor_.RunPending();
  }
  void Tell(const std::vector<std::string>& ids) {
    peer_.SendMessage(LastCall(kListPath), ListOf(ids));
    executor_.RunPending();
  }
  void EndList(absl::Status status) {
    peer_.EndStream(LastCall(kListPath), std::move(status));
    executor_.RunPending();
  }

  /// Registers, answers the options, tells one device.
  void GoLive(const std::string& endpoint = "p.sock",
              const std::string& resource = kResource) {
    Register(endpoint, resource);
    Answer(kOptionsPath, OptionsOf(false, false));
    Tell({"a"});
  }

  void Allocate(Generation generation, const std::string& resource = kResource,
                const PodIdentity& pod = {}) {
    registry_->Allocate(resource, generation, {"a"}, pod, [this](auto edits) {
      allocated_.push_back(edits.status());
      if (edits.ok()) edits_ = *std::move(edits);
    });
    executor_.RunPending();
  }

  InstanceInfo Only() {
    const auto infos = registry_->Instances();
    EXPECT_THAT(infos, testing::SizeIs(1));
    if (infos.empty()) return {};
    ExpectShown(infos.front());
    return infos.front();
  }

  /// People see the same, also when they have seen it before.
  void ExpectShown(const InstanceInfo& info) {
    const PluginInfo want = PluginInfoOf(info);
    const auto shown =
        registry_->Shown([](const ResourceName&, Generation) { return false; });
    ASSERT_THAT(shown, testing::SizeIs(1));
    EXPECT_EQ(shown[0]->state, want.state);
    EXPECT_EQ(shown[0]->devices, want.devices);
    EXPECT_EQ(shown[0]->last_error, want.last_error);
    EXPECT_EQ(shown[0]->breaker, want.breaker);
    EXPECT_EQ(shown[0]->quarantined_until.has_value(),
              want.quarantined_until.has_value());
    EXPECT_EQ(shown[0]->calls, want.calls);
    EXPECT_EQ(shown[0]->queued, want.queued);
  }

  ManualExecutor executor_;
  FakePeer peer_;
  RecordingListener listener_;
  std::vector<absl::Status> registered_;
  std::vector<absl::Status> allocated_;
  device::ContainerEdits edits_;
  std::unique_ptr<PluginRegistry> registry_;
};

}  // namespace devmgr::plugin
