// SPDX-License-Identifier: Apache-2.0
//
// A plugin's list of devices, checked. What is wrong with one device is said
// and does not fail the others.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"

namespace devmgr::device {

/// The definition's limit. Longer IDs are reported and work, as at the kubelet.
inline constexpr std::size_t kDefinedIdLength = 63;
/// Longer IDs are dropped.
inline constexpr std::size_t kMaxIdLength = 1024;

/// What is wrong with a list; the first few in words.
struct ListProblems {
  static constexpr std::size_t kMaxTexts = 20;
  std::size_t count = 0;
  std::vector<std::string> texts;

  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    if (count++ < kMaxTexts) {
      texts.push_back(fmt::format(format, std::forward<Args>(args)...));
    }
  }
  friend bool operator==(const ListProblems&, const ListProblems&) = default;
};

/// Why there can be no device of that ID; empty when there can.
std::string CheckDeviceId(std::string_view id);

struct CheckedList {
  std::vector<Device> devices;  ///< In natural order, each ID once.
  /// For each device of the list, its place in `devices`; empty when the list
  /// had something to drop.
  std::vector<std::uint32_t> places;
  ListProblems problems;
};

/// Drops devices whose ID cannot be (CheckDeviceId). Of several devices
/// with one ID the last counts, and it is healthy only if all of them are.
CheckedList CheckList(std::vector<Device> devices,
                      const std::vector<std::int64_t>& machine_nodes);

/// Sorts the device's NUMA nodes and takes those away that are below zero or
/// not among `machine_nodes` (ascending; empty: not known, so any may exist).
void CheckNodes(Device& device, const std::vector<std::int64_t>& machine_nodes,
                ListProblems& problems);

}  // namespace devmgr::device
