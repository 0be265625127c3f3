// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plugin/plugins.h"

namespace devmgr::plugin {

/// Writes down what it hears: `connected r 1`, `list r 1: a b!`, `gone r 1:
/// why`. An exclamation mark stands for not healthy.
class RecordingListener final : public PluginListener {
 public:
  void OnConnected(const ResourceName& resource, Generation generation,
                   const PluginOptions& options) override {
    options_[resource] = options;
    Note(fmt::format("connected {} {}", resource, generation));
  }
  void OnList(const ResourceName& resource, Generation generation,
              std::vector<device::Device> devices,
              const ListProblems& problems) override {
    std::string ids;
    for (const auto& device : devices) {
      ids += " " + device.id.value +
             (device.health == device::Health::kHealthy ? "" : "!");
    }
    problems_ += problems.count;
    Note(fmt::format("list {} {}:{}", resource, generation, ids));
  }
  void OnGone(const ResourceName& resource, Generation generation,
              const std::string& why) override {
    Note(fmt::format("gone {} {}: {}", resource, generation, why));
  }
  void OnState(const InstanceInfo& info) override { infos_.push_back(info); }
  void OnRegistration(const ResourceName& resource) override {
    ++registrations_[resource];
  }

  /// What was heard since the last time.
  std::vector<std::string> Take() { return std::exchange(heard_, {}); }

  std::vector<InstanceInfo> infos_;
  std::map<std::string, PluginOptions> options_;
  std::map<std::string, int> registrations_;
  std::size_t problems_ = 0;
  /// Runs with each line.
  std::function<void(const std::string&)> on_note_;

 private:
  void Note(const std::string& line) {
    heard_.push_back(line);
    if (on_note_) on_note_(line);
  }
  std::vector<std::string> heard_;
};

}  // namespace devmgr::plugin
