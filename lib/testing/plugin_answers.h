// SPDX-License-Identifier: Apache-2.0
//
// What a fake device plugin says, well or badly: values in, values out.
#pragma once

#include <devmgr/cdi_spec.h>
#include <devmgr/testing.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "testing/plugin_wire.h"

namespace devmgr::testing {

using PluginDevices = std::vector<FakeDevicePlugin::Device>;

/// Bytes that are no message: a field that never ends.
inline constexpr std::string_view kNoMessage = "\xff\xff\xff\xff";

/// Names that follow from a resource name, whatever that is.
struct PluginNames {
  explicit PluginNames(std::string_view resource);

  std::string file;      ///< `example.com_gpu`
  std::string device;    ///< `gpu`, what IDs begin with
  std::string variable;  ///< `EXAMPLE_COM_GPU`
  std::string cdi_kind;  ///< `example.com/gpu`
};

/// Devices `<name>-0` to `<name>-<count - 1>`, all healthy.
PluginDevices MakeDevices(const PluginNames& names, int count,
                          const std::vector<std::int64_t>& numa);

/// The list as `step` spoils it; as it is, if that is not about lists.
PluginDevices Spoiled(PluginDevices devices, const ScenarioStep& step);

/// What the plugin prefers: all that it must take, then the last ones.
DeviceIds Prefer(const PreferenceRequest& request);

/// What a container gets of devices; `state` holds a directory for each to
/// mount.
Edits EditsFor(const PluginNames& names, const DeviceIds& ids,
               const std::filesystem::path& state);
/// The same by way of CDI names.
Edits CdiEditsFor(const PluginNames& names, const DeviceIds& ids);
/// What no runtime takes.
Edits GarbageEdits(const ScenarioStep& step);

/// A CDI spec with the devices and what each puts into a container.
CdiSpec CdiSpecOf(const PluginNames& names, const PluginDevices& devices,
                  const std::filesystem::path& state);

}  // namespace devmgr::testing
