// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "source/api/collection.h"
#include "source/api/node_status.h"
#include "source/api/outgoing.h"

namespace devmgr::apiserver {

/// Keeps the status of the own Node object as it is wanted: reads the node,
/// and patches what differs, with the UID that it has read, so that another
/// node of the same name is never patched. The latest that is wanted counts.
/// Knows no sockets and no clock: it says which request is due, and is given
/// the answer. Thread-bound.
class NodeStatusWriter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// How often it looks whether another agent has written the same fields.
  static constexpr std::chrono::seconds kLookAgain{60};
  /// When another agent has overwritten a field so often in kFlipPeriod, it is
  /// left to that agent.
  static constexpr std::size_t kFlips = 3;
  static constexpr std::chrono::minutes kFlipPeriod{10};

  /// What is to be an event.
  struct Problem {
    std::string reason;
    std::string message;
  };

  NodeStatusWriter(const std::string& node, Random random);

  void Want(TimePoint now, const NodeDeviceStatus& wanted);

  /// The next request; one at a time.
  std::optional<ApiRequest> Next(TimePoint now);
  std::optional<TimePoint> WakeAt() const { return due_; }
  void OnAnswer(TimePoint now, const ResponseHead& head, std::string_view body);
  /// There was no answer: whether it was done is not known.
  void OnFailure(TimePoint now, const std::string& error);

  /// What kept it from being done may have changed.
  void Hurry(TimePoint now);
  bool TakeRefused() { return std::exchange(refused_, false); }
  std::vector<Problem> TakeProblems() { return std::exchange(problems_, {}); }
  /// Why what is wanted is not there; empty: it is, or is being done.
  const std::string& last_error() const { return last_error_; }

 private:
  enum class Step {
    kRead,  // From the server's store.
    kLook,  // From its cache, which may be late.
    kPatch,
  };

  void OnNode(TimePoint now, const NodeStatusView& node);
  void OnPatched(TimePoint now, const NodeStatusView& node);
  void OnRefused(TimePoint now, const ApiStatus& status);
  void Settle(TimePoint now);
  void CountFlips(TimePoint now, const NodeStatusView& node);
  void Leave(const NodeField& field, const std::string& theirs);

  const std::string path_;
  WriteRetry retry_;
  bool is_wanted_ = false;
  WantedFields wanted_;
  Step step_ = Step::kRead;
  bool is_asking_ = false;
  bool ask_again_ = false;  // Something else is wanted meanwhile.
  std::optional<TimePoint> due_;
  std::string uid_;
  std::string patch_;
  WantedFields patched_;  // What the patch changes.
  /// What the node said of a field after a patch of ours.
  WantedFields written_;
  std::map<NodeField, std::deque<TimePoint>> flips_;
  std::set<NodeField> left_;     // To another agent.
  std::set<NodeField> dropped_;  // The server does not keep them.
  bool refused_ = false;
  std::vector<Problem> problems_;
  std::string last_error_;
};

}  // namespace devmgr::apiserver
