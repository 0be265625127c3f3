// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/hardware_config.h"

#include <algorithm>
#include <map>
#include <vector>

#include "devmgrd/config_values.h"

namespace devmgrd {
namespace {

using HardwareLists =
    std::map<std::string, std::vector<std::string> devmgr::HardwareOptions::*>;

const HardwareLists& ListsOfHardware() {
  using Options = devmgr::HardwareOptions;
  static const HardwareLists kLists = {
      {"controlNodes", &Options::control_nodes},
      {"parentAttributes", &Options::parent_attributes},
      {"pciAttributes", &Options::pci_attributes},
      {"shared", &Options::shared},
      {"uuidAttributes", &Options::uuid_attributes}};
  return kLists;
}

}  // namespace

absl::Status ReadHardware(const YAML::Node& value, const std::string& file,
                          devmgr::HardwareOptions* hardware) {
  static constexpr char kKnown[] =
      "controlNodes, oneHolder, parentAttributes, pciAttributes, shared, "
      "uuidAttributes";
  if (!value.IsMap()) {
    return Invalid("{}: hardware: must be a map of {}", Where(file, value),
                   kKnown);
  }
  for (const auto& entry : value) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const std::string name = "hardware." + key;
    if (key == "oneHolder") {
      absl::Status status =
          ReadBool(entry.second, file, name, &hardware->one_holder);
      if (!status.ok()) return status;
      continue;
    }
    const auto list = ListsOfHardware().find(key);
    if (list == ListsOfHardware().end()) {
      return Invalid("{}: hardware: unknown key '{}'; known are {}",
                     Where(file, entry.first), Shown(key), kKnown);
    }
    std::vector<std::string> texts;
    absl::Status status = ReadTexts(entry.second, file, name, "names", &texts);
    if (!status.ok()) return status;
    std::vector<std::string>& all = hardware->*list->second;
    for (const std::string& text : texts) {
      if (std::find(all.begin(), all.end(), text) == all.end()) {
        all.push_back(text);
      }
    }
  }
  return absl::OkStatus();
}

void WriteHardware(const devmgr::HardwareOptions& hardware,
                   YAML::Emitter& out) {
  out << YAML::Key << "hardware" << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "oneHolder" << YAML::Value << hardware.one_holder;
  for (const auto& [key, list] : ListsOfHardware()) {
    out << YAML::Key << key << YAML::Value << hardware.*list;
  }
  out << YAML::EndMap;
}

}  // namespace devmgrd
