// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an OCI runtime configuration that gets edits of all kinds. It is
// refused, or has them all and is the same elsewhere.
#include <devmgr/cdi.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "cdi/cdi_world.h"
#include "common/status.h"
#include "fuzz/fuzz.h"

namespace {

using Json = nlohmann::ordered_json;
using devmgr::fuzz::Require;

devmgr::ContainerDevices Devices() {
  devmgr::ContainerDevices devices;
  devices.name = "c";
  devices.cdi_devices = {{"v.com/c=d", {}}};
  devices.env = {{"PLUGIN", "1", "r"}};
  devices.mounts = {{"/plugin", "/p", true, "r"}};
  devices.devices = {{"/dev/p", "/dev/a", "rw", "r"}};
  devices.annotations = {{"plugin", "1", "r"}};
  return devices;
}

std::shared_ptr<const devmgr::CdiRegistry> Registry() {
  return devmgr::MakeRegistry(
      {{"/etc/cdi/x.yaml",
        devmgr::SpecText(
            {{"d",
              "env: [CDI=1], deviceNodes: [{path: /dev/a}], netDevices: "
              "[{hostInterfaceName: e0, name: n0}], mounts: [{hostPath: /h, "
              "containerPath: /cdi, options: [bind]}], hooks: [{hookName: "
              "prestart, path: /hook}], intelRdt: {closID: c}, "
              "additionalGids: [4294967295]"}})}});
}

bool HasText(const Json& list, const std::string& member,
             const std::string& text) {
  for (const Json& item : list) {
    if (item.is_object() && item.contains(member) && item[member] == text) {
      return true;
    }
  }
  return false;
}

void RequireAllThere(const Json& config) {
  std::set<std::string> env;
  for (const Json& entry : config["process"]["env"]) env.insert(entry);
  Require(env.contains("CDI=1"), "env of CDI is there");
  Require(HasText(config["linux"]["devices"], "path", "/dev/a"),
          "the node of CDI is there");
  Require(HasText(config["linux"]["devices"], "path", "/dev/p"),
          "the node of the plugin is there");
  Require(HasText(config["mounts"], "destination", "/cdi"),
          "the mount of CDI is there");
  Require(HasText(config["mounts"], "destination", "/plugin"),
          "the mount of the plugin is there");
  Require(HasText(config["hooks"]["prestart"], "path", "/hook"),
          "the hook is there");
  Require(config["linux"]["intelRdt"] == Json({{"closID", "c"}}),
          "RDT is there");
}

/// Members that no edit concerns.
Json Untouched(Json config) {
  for (const char* member :
       {"process", "linux", "mounts", "hooks", "annotations"}) {
    config.erase(member);
  }
  return config;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const auto registry = Registry();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  devmgr::FakeCdiHost host;
  host.AddChar("/dev/a", 1, 2);
  const auto result =
      devmgr::InjectIntoOciConfig(text, Devices(), *registry, host.Host());
  const auto same = devmgr::InjectCdiIntoOciConfig(text, {}, host.Host());
  if (!result.ok()) {
    devmgr::fuzz::RequireReadable(devmgr::MessageOf(result.status()));
    return 0;
  }
  Require(same.ok() && *same == text, "without edits nothing changes");
  const Json after = Json::parse(*result, nullptr, false);
  Require(!after.is_discarded(), "the result is JSON");
  RequireAllThere(after);
  const Json before = Json::parse(text);
  // A member that is there twice means the last one to the JSON library, and
  // may stand in another place then.
  Require(nlohmann::json(Untouched(before)) == nlohmann::json(Untouched(after)),
          "all else is the same");
  return 0;
}
