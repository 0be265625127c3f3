// SPDX-License-Identifier: Apache-2.0
#include "source/api/source_memory.h"

#include <fmt/core.h>

#include <algorithm>

#include "source/api/json_view.h"

namespace devmgr::apiserver {
namespace {

constexpr std::size_t kMaxBytes = 128;

std::string Remembered(std::string_view text, std::string_view key) {
  std::string value = StringMember(text, key);
  return CanBeRemembered(value) ? value : "";
}

}  // namespace

bool CanBeRemembered(std::string_view text) {
  return text.size() <= kMaxBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                  (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
         });
}

std::string FormatMemory(const SourceMemory& memory) {
  // Names of nodes are made of the same characters.
  return fmt::format(
      "{{\"nodeName\": \"{}\", \"nodeUID\": \"{}\", "
      "\"podsVersion\": \"{}\"}}\n",
      memory.node_name, memory.node_uid, memory.pods_version);
}

SourceMemory ParseMemory(std::string_view text, const std::string& node_name) {
  SourceMemory memory;
  memory.node_name = node_name;
  if (StringMember(text, "nodeName") != node_name) return memory;
  memory.node_uid = Remembered(text, "nodeUID");
  memory.pods_version = Remembered(text, "podsVersion");
  return memory;
}

}  // namespace devmgr::apiserver
