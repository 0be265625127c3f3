// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace devmgrd {

/// As many names of resources, and of sockets, a metric tells apart. Those
/// beyond are counted under `other`, so that plugins, which choose their names,
/// cannot make us grow.
inline constexpr std::size_t kMostNames = 1000;

/// As many devices of containers are shown, one series each.
inline constexpr std::size_t kMostContainerDevices = 4096;

/// The first names that come, and `other` for those that come too late.
class NameLimit {
 public:
  explicit NameLimit(std::size_t most = kMostNames) : most_(most) {}

  std::string Of(const std::string& name) {
    if (names_.contains(name)) return name;
    if (names_.size() >= most_) return "other";
    names_.insert(name);
    return name;
  }

 private:
  const std::size_t most_;
  std::set<std::string> names_;
};

}  // namespace devmgrd
