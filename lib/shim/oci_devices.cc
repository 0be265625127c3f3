// SPDX-License-Identifier: Apache-2.0
#include "shim/oci_devices.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "shim/json_member.h"

namespace devmgr::shim {

std::string TextOf(const Json& json) {
  return json.is_string() ? json.get<std::string>() : std::string();
}

std::int64_t NumberOf(const Json& json) {
  return json.is_number_integer() ? json.get<std::int64_t>() : -1;
}

std::string PathOf(const Json& json) {
  std::string path =
      std::filesystem::path(TextOf(json)).lexically_normal().string();
  if (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::vector<OciNode> OciNodesOf(const Json& config) {
  std::vector<OciNode> nodes;
  for (const Json& node : MemberOf(config, "linux", "devices")) {
    std::string type = TextOf(MemberOf(node, "type"));
    if (type == "u") type = "c";
    nodes.push_back({PathOf(MemberOf(node, "path")), std::move(type),
                     NumberOf(MemberOf(node, "major")),
                     NumberOf(MemberOf(node, "minor"))});
  }
  return nodes;
}

bool IsEverywhere(const std::string& path) {
  static constexpr std::array kPaths = {
      "/dev/null",    "/dev/zero", "/dev/full",    "/dev/random",
      "/dev/urandom", "/dev/tty",  "/dev/console", "/dev/ptmx"};
  return std::find(kPaths.begin(), kPaths.end(), path) != kPaths.end();
}

DeviceAccess::DeviceAccess(const Json& config) {
  for (const Json& rule : MemberOf(config, "linux", "resources", "devices")) {
    Take(rule);
  }
}

std::string DeviceAccess::Of(char type, std::int64_t major,
                             std::int64_t minor) const {
  const auto rule = rules_.find({type, major, minor});
  std::string access;
  for (const char letter : std::string_view("rwm")) {
    const bool is_permitted =
        rule != rules_.end() && rule->second.contains(letter);
    if (is_permitted) access += letter;
  }
  return access;
}

void DeviceAccess::Take(const Json& rule) {
  const bool allow = MemberOf(rule, "allow") == Json(true);
  const std::string type = TextOf(MemberOf(rule, "type"));
  const std::int64_t major = NumberOf(MemberOf(rule, "major"));
  const std::int64_t minor = NumberOf(MemberOf(rule, "minor"));
  std::string access = TextOf(MemberOf(rule, "access"));
  if (access.empty()) access = "rwm";
  const bool is_of_all =
      (type.empty() || type == "a") && major < 0 && minor < 0;
  if (is_of_all) {
    if (!allow) rules_.clear();
    all_ = allow && access.size() >= 3;
    return;
  }
  // Rules for many devices are those of runtimes for all containers.
  if (type.size() != 1 || major < 0 || minor < 0) return;
  std::set<char>& letters = rules_[{type.front(), major, minor}];
  for (const char letter : access) {
    if (allow) {
      letters.insert(letter);
    } else {
      letters.erase(letter);
    }
  }
}

}  // namespace devmgr::shim
