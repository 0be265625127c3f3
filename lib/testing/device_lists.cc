// SPDX-License-Identifier: Apache-2.0
#include "testing/device_lists.h"

#include <algorithm>
#include <utility>

namespace devmgr::testing {

void DeviceLists::Set(PluginDevices devices) {
  devices_ = std::move(devices);
  SendAll();
}

bool DeviceLists::SetHealth(std::string_view id, std::string_view health) {
  for (FakeDevicePlugin::Device& device : devices_) {
    if (device.id != id) continue;
    device.health = health;
    SendAll();
    return true;
  }
  return false;
}

DeviceLists::ListId DeviceLists::Add(int instance,
                                     std::shared_ptr<rpc::ServerStream> stream,
                                     ScenarioStep step) {
  lists_[++last_list_] = {instance, std::move(stream), std::move(step)};
  return last_list_;
}

void DeviceLists::Begin(ListId id) {
  const auto list = lists_.find(id);
  if (list == lists_.end()) return;
  list->second.live = true;
  Send(list->second);
}

void DeviceLists::OnClientGone(ListId id) {
  if (lists_.erase(id) > 0) journal_.Note("stream-ended");
}

void DeviceLists::EndAll(const absl::Status& status) {
  for (const auto& [id, list] : std::exchange(lists_, {})) {
    list.stream->Finish(status);
    journal_.Note("stream-ended", MessageOf(status));
  }
}

void DeviceLists::Forget(int instance) {
  std::erase_if(lists_, [instance](const auto& entry) {
    return entry.second.instance == instance;
  });
}

void DeviceLists::Send(const List& list) {
  if (list.step.action == ScenarioStep::Action::kGarbageBytes) {
    return list.stream->Write(std::string(kNoMessage));
  }
  const PluginDevices devices = Spoiled(devices_, list.step);
  const auto healthy = std::count_if(
      devices.begin(), devices.end(),
      [](const auto& device) { return device.health == "Healthy"; });
  journal_.List(devices.size(), static_cast<std::size_t>(healthy));
  list.stream->Write(EncodeList(devices));
}

void DeviceLists::SendAll() {
  for (const auto& [id, list] : lists_) {
    if (list.live) Send(list);
  }
}

}  // namespace devmgr::testing
