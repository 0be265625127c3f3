// SPDX-License-Identifier: Apache-2.0
//
// Random edits of random OCI configurations, against the same rules applied in
// the plainest way to what a JSON library makes of the text.
#include <devmgr/cdi.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cdi/cdi_world.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using Json = nlohmann::ordered_json;

class RandomWorld {
 public:
  explicit RandomWorld(Luck& luck) : luck_(luck) {}

  Json Config() {
    Json config = {{"ociVersion", "1.0.2"}};
    if (luck_.Below(4) > 0) {
      Json& process = config["process"] = {{"cwd", "/"}};
      while (luck_.Below(3) > 0) process["env"].push_back(Env());
      process["user"] = {{"uid", luck_.Below(2)}, {"gid", luck_.Below(3)}};
      while (luck_.Below(2) > 0) {
        process["user"]["additionalGids"].push_back(luck_.Below(4));
      }
    }
    while (luck_.Below(4) > 0) {
      config["mounts"].push_back(
          {{"destination", Path()}, {"x", luck_.Below(9)}});
    }
    while (luck_.Below(3) > 0) {
      config["linux"]["devices"].push_back(
          {{"path", Path()}, {"x", luck_.Below(9)}});
    }
    if (luck_.Below(2) > 0) config["hooks"]["poststop"] = {{{"path", "/old"}}};
    if (luck_.Below(2) > 0) config["linux"]["namespaces"] = {{{"type", "pid"}}};
    return config;
  }

  CdiContainerEdits Edits() {
    CdiContainerEdits edits;
    while (luck_.Below(3) > 0) edits.env.push_back(Env());
    while (luck_.Below(3) > 0) {
      CdiDeviceNode node;
      node.path = Path();
      node.type = luck_.Below(2) > 0 ? "c" : "b";
      node.major = 1 + luck_.Below(9);
      node.permissions =
          std::vector<std::string>{"", "r", "none"}[luck_.Below(3)];
      edits.device_nodes.push_back(node);
    }
    while (luck_.Below(3) > 0) {
      edits.mounts.push_back({"/h", Path(), {"ro"}, ""});
    }
    while (luck_.Below(2) > 0) {
      edits.hooks.push_back(
          {luck_.Below(2) > 0 ? "prestart" : "poststop", Path(), {}, {}, {}});
    }
    while (luck_.Below(2) > 0) {
      edits.additional_gids.push_back(luck_.Below(5u));
    }
    return edits;
  }

 private:
  std::string Env() {
    return std::string(1, static_cast<char>('A' + luck_.Below(4))) + "=" +
           std::to_string(luck_.Below(100));
  }
  std::string Path() {
    std::string path;
    for (std::size_t i = 1 + luck_.Below(3); i > 0; --i) {
      path += "/" + std::string(1, static_cast<char>('a' + luck_.Below(2)));
    }
    return path;
  }

  Luck& luck_;
};

void Replace(Json& list, const char* key, const Json& item) {
  for (std::size_t i = list.size(); i-- > 0;) {
    if (list[i][key] == item[key]) list.erase(i);
  }
  list.push_back(item);
}

void ApplyEnv(Json& list, const std::string& entry) {
  const std::string name = entry.substr(0, entry.find('=') + 1);
  for (std::size_t i = list.size(); i > 0; --i) {
    if (list[i - 1].get<std::string>().starts_with(name)) {
      list[i - 1] = entry;
      return;
    }
  }
  list.push_back(entry);
}

Json DeviceOf(const CdiDeviceNode& node, const Json& config) {
  Json device = {{"path", node.path},
                 {"type", node.type},
                 {"major", node.major},
                 {"minor", 0}};
  for (const char* id : {"uid", "gid"}) {
    const auto pointer = nlohmann::ordered_json::json_pointer("/process/user/" +
                                                              std::string(id));
    const auto value = config.value(pointer, 0);
    if (value > 0) device[id] = value;
  }
  return device;
}

/// What the text should mean afterwards.
Json Expected(Json config, const CdiContainerEdits& edits) {
  for (const std::string& entry : edits.env) {
    ApplyEnv(config["process"]["env"], entry);
  }
  for (const CdiDeviceNode& node : edits.device_nodes) {
    Replace(config["linux"]["devices"], "path", DeviceOf(node, config));
    if (node.permissions == "none") continue;
    config["linux"]["resources"]["devices"].push_back(
        {{"allow", true},
         {"type", node.type},
         {"major", node.major},
         {"minor", 0},
         {"access", node.permissions.empty() ? "rwm" : node.permissions}});
  }
  for (const CdiMount& mount : edits.mounts) {
    Replace(config["mounts"], "destination",
            {{"destination", mount.container_path},
             {"source", mount.host_path},
             {"options", mount.options}});
  }
  if (!edits.mounts.empty()) {
    Json& mounts = config["mounts"];
    const auto depth = [](const Json& mount) {
      const auto path = mount["destination"].get<std::string>();
      return std::count(path.begin(), path.end(), '/');
    };
    std::stable_sort(
        mounts.begin(), mounts.end(),
        [&](const Json& a, const Json& b) { return depth(a) < depth(b); });
  }
  for (const CdiHook& hook : edits.hooks) {
    config["hooks"][hook.hook_name].push_back({{"path", hook.path}});
  }
  for (const std::uint32_t gid : edits.additional_gids) {
    const Json::json_pointer groups("/process/user/additionalGids");
    const bool is_there =
        config.contains(groups) &&
        std::find(config[groups].begin(), config[groups].end(), Json(gid)) !=
            config[groups].end();
    if (gid != 0 && !is_there) config[groups].push_back(gid);
  }
  return config;
}

TEST(OciPropertyTest, EditingTextIsEditingWhatItMeans) {
  const FakeCdiHost host;
  LiveEach({1, 300}, [&](Luck& luck) {
    RandomWorld world(luck);
    const Json config = world.Config();
    const auto edits = std::make_shared<const CdiContainerEdits>(world.Edits());
    const std::string text = config.dump(luck.Below(3) - 1);
    const auto result = InjectCdiIntoOciConfig(
        text, {{"v/c=d", "/x", false, edits}}, host.Host());
    ASSERT_THAT(result, IsOk()) << text;
    // Members may stand in another order.
    ASSERT_EQ(nlohmann::json::parse(*result),
              nlohmann::json::parse(Expected(config, *edits).dump()))
        << text;
    const auto again = InjectCdiIntoOciConfig(*result, {}, host.Host());
    ASSERT_THAT(again, IsOk());
    ASSERT_EQ(*again, *result);
  });
}

}  // namespace
}  // namespace devmgr
