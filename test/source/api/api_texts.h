// SPDX-License-Identifier: Apache-2.0
//
// What an API server writes.
#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

namespace devmgr::apiserver {

inline std::string PodText(const std::string& name, const std::string& uid,
                           int version, const std::string& spec = "") {
  return fmt::format(
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}",)"
      R"("namespace":"ns","uid":"{}","resourceVersion":"{}"}},)"
      R"("spec":{{"nodeName":"n1","containers":[{{"name":"c"}}]{}}}}})",
      name, uid, version, spec);
}

inline std::string ListText(const std::vector<std::string>& items,
                            const std::string& version,
                            const std::string& token = "") {
  std::string text;
  for (const std::string& item : items) {
    text += (text.empty() ? "" : ",") + item;
  }
  return fmt::format(
      R"({{"kind":"PodList","apiVersion":"v1","metadata":{{)"
      R"("resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
      version, token, text);
}

inline std::string EventText(const std::string& type,
                             const std::string& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
}

inline std::string BookmarkText(const std::string& version,
                                bool ends_list = false) {
  return EventText(
      "BOOKMARK",
      fmt::format(R"({{"kind":"Pod","apiVersion":"v1","metadata":{{)"
                  R"("resourceVersion":"{}"{}}}}})",
                  version,
                  ends_list ? R"(,"annotations":{)"
                              R"("k8s.io/initial-events-end":"true"})"
                            : ""));
}

inline std::string StatusText(int code, const std::string& reason,
                              const std::string& message = "no",
                              const std::string& details = "{}") {
  return fmt::format(
      R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},)"
      R"("status":"Failure","message":"{}","reason":"{}","details":{},)"
      R"("code":{}}})",
      message, reason, details, code);
}

inline std::string TooLargeVersionText() {
  return StatusText(504, "Timeout", "Too large resource version: 900",
                    R"({"causes":[{"reason":"ResourceVersionTooLarge"}],)"
                    R"("retryAfterSeconds":1})");
}

}  // namespace devmgr::apiserver
