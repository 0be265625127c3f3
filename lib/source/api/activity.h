// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace devmgr::apiserver {

/// What a source has done, over all its sessions.
struct Activity {
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Verb, resource, and the code of HTTP; 0: there was no answer.
  using Request = std::tuple<std::string, std::string, int>;

  std::map<Request, std::uint64_t> requests;
  std::uint64_t watch_restarts = 0;
  // Of the pods:
  std::optional<TimePoint> last_list;
  std::optional<TimePoint> last_event;
  /// What is known is no older; while they are watched it is of now.
  std::optional<TimePoint> known_at;
  bool is_watched = false;  ///< A watch has begun, and not ended.
};

}  // namespace devmgr::apiserver
