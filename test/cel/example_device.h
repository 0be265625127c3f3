// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_objects.h>

#include <string_view>

#include "api/quantity.h"

namespace devmgr::cel {

/// A device and its driver that are the same in test/interop/cel/main.go, where
/// the official library looks at them.
constexpr std::string_view kExampleDriver = "gpu.example.com";

inline SliceDevice ExampleDevice() {
  SliceDevice device;
  device.allow_multiple_allocations = true;
  device.attributes["model"] = SharedText("A100");
  device.attributes["index"] = std::int64_t{7};
  device.attributes["flag"] = true;
  device.attributes["version"] = DeviceVersion{"1.10.0"};
  device.attributes["names"] = RareVector<SharedText>{"b", "a"};
  device.attributes["numbers"] = RareVector<std::int64_t>{3, 1, 2};
  device.attributes["e.com/other"] = SharedText("x");
  device.capacity["memory"].value = *api::ParseQuantity("80Gi");
  device.capacity["cores"].value = *api::ParseQuantity("1500m");
  return device;
}

}  // namespace devmgr::cel
