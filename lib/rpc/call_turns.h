// SPDX-License-Identifier: Apache-2.0
//
// Inside of this room: whose turn it is among the calls of one client.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <vector>

#include "rpc/client_lines.h"

namespace devmgr::rpc {

/// So many calls of a connection are handled at a time; further ones wait, in
/// the order they came. How many may wait is bounded by ClientLines::kMaxOpen.
/// Not thread-safe.
template <typename Call>
class CallTurns {
 public:
  explicit CallTurns(std::size_t at_a_time) : at_a_time_(at_a_time) {}

  /// False: it waits, and comes out of a later End or of TakeWaiting.
  bool Begin(ClientLines::Id line, Call* call) {
    Line& of = lines_[line];
    if (of.handled < at_a_time_) {
      ++of.handled;
      return true;
    }
    of.waiting.push_back(call);
    return false;
  }

  /// One that had its turn is over. Whose turn it is now; null: none waits.
  Call* End(ClientLines::Id line) {
    const auto found = lines_.find(line);
    Line& of = found->second;
    if (!of.waiting.empty()) {
      Call* const next = of.waiting.front();
      of.waiting.pop_front();
      return next;
    }
    if (--of.handled == 0) lines_.erase(found);
    return nullptr;
  }

  /// All that wait, as if it were their turn.
  std::vector<Call*> TakeWaiting() {
    std::vector<Call*> waiting;
    for (auto& [id, line] : lines_) Take(line, &waiting);
    return waiting;
  }
  /// The same, of one connection.
  std::vector<Call*> TakeWaiting(ClientLines::Id line) {
    std::vector<Call*> waiting;
    const auto found = lines_.find(line);
    if (found != lines_.end()) Take(found->second, &waiting);
    return waiting;
  }

 private:
  struct Line {
    std::size_t handled = 0;
    std::deque<Call*> waiting;
  };

  static void Take(Line& line, std::vector<Call*>* waiting) {
    line.handled += line.waiting.size();
    waiting->insert(waiting->end(), line.waiting.begin(), line.waiting.end());
    line.waiting.clear();
  }

  const std::size_t at_a_time_;
  std::map<ClientLines::Id, Line> lines_;
};

}  // namespace devmgr::rpc
