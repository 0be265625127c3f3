// SPDX-License-Identifier: Apache-2.0
#include "testing/plugin_journal.h"

#include <utility>

namespace devmgr::testing {

void PluginJournal::Serving(const std::string& resource, std::size_t devices,
                            const std::string& socket,
                            const std::string& registration) {
  Json event = {{"event", "serving"},
                {"resource", resource},
                {"devices", devices},
                {"socket", socket}};
  if (!registration.empty()) event["registration"] = registration;
  Emit(event);
}

void PluginJournal::Called(FakeDevicePlugin::Call call) {
  Json event = {{"event", "call"}, {"method", call.method}};
  if (!call.devices.empty()) event["devices"] = call.devices;
  if (!call.must_include.empty()) event["mustInclude"] = call.must_include;
  if (call.size != 0) event["size"] = call.size;
  if (!call.metadata.empty()) event["metadata"] = call.metadata;
  Emit(event);
  Record(std::move(call));
}

void PluginJournal::Answer(std::string_view method,
                           const std::vector<DeviceIds>& answers) {
  Emit({{"event", "answer"},
        {"method", std::string(method)},
        {"containers", answers}});
}

void PluginJournal::List(std::size_t devices, std::size_t healthy) {
  Emit({{"event", "list"}, {"devices", devices}, {"healthy", healthy}});
}

void PluginJournal::Socket(std::string_view event, const std::string& socket,
                           const absl::Status& status) {
  Json json = {{"event", std::string(event)}, {"socket", socket}};
  if (!status.ok()) json["error"] = MessageOf(status);
  Emit(json);
}

}  // namespace devmgr::testing
