// SPDX-License-Identifier: Apache-2.0
//
// Devices in an OCI configuration that a runtime made.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace devmgr::shim {

/// Empty: it is no text.
std::string TextOf(const nlohmann::json& json);
/// Numbers that are not there are any number: -1.
std::int64_t NumberOf(const nlohmann::json& json);
/// Of a path in a container: `/a/b/` is `/a/b`.
std::string PathOf(const nlohmann::json& json);

struct OciNode {
  std::string path;  ///< In the container.
  std::string type;  ///< `u` is `c`.
  std::int64_t major = -1;
  std::int64_t minor = -1;
};
std::vector<OciNode> OciNodesOf(const nlohmann::json& config);

/// Runtimes make these in every container.
bool IsEverywhere(const std::string& path);

/// What the device cgroup permits, after all rules, in order.
class DeviceAccess {
 public:
  explicit DeviceAccess(const nlohmann::json& config);

  /// Every device of the host, as for privileged containers.
  bool all() const { return all_; }
  std::string Of(char type, std::int64_t major, std::int64_t minor) const;

 private:
  void Take(const nlohmann::json& rule);

  bool all_ = false;
  std::map<std::tuple<char, std::int64_t, std::int64_t>, std::set<char>> rules_;
};

}  // namespace devmgr::shim
