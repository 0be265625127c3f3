// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/persistent_map.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "state/state.h"

namespace devmgr::pods {

/// Which pods of the ledger a source has, had, and lacks. Follows the source
/// and the ledger at a cost of what has changed in both. Lives on one thread.
class SourcePods {
 public:
  /// `state` is borrowed.
  explicit SourcePods(const state::State& state) : state_(state) {}

  /// Takes in what the source and the ledger have now.
  void Follow(const ObjectSnapshot& snapshot);
  /// Pods of the ledger whose names the source did not have then; of those that
  /// were imported, whose UIDs.
  const std::set<PodUid>& lacking() const { return lacking_; }

  /// The parts of this snapshot have pods.
  void NoteParts(const ObjectSnapshot& snapshot);
  struct Part {
    std::size_t index = 0;
    std::uint64_t watch = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };
  /// Which part had the pod last, in which watch; nothing when none had it.
  std::optional<Part> PartOf(const ObjectName& pod) const;

  /// The snapshot as a whole answers for its pods, but for vouched ones.
  void NoteSeen(const ObjectSnapshot& snapshot);
  /// The watch in which the pod was seen last; 0 when it was not, or the source
  /// has no watch.
  std::uint64_t SeenIn(const ObjectName& pod) const;
  /// Of the last one that was noted: whether there are pods for which it has to
  /// answer.
  bool has_own() const { return own_ > 0; }

 private:
  using Held = decltype(state::State::pods);
  /// What was taken in last.
  struct Base {
    ObjectMap<Pod> pods;
    ObjectMap<MalformedPod> malformed_pods;
    PersistentSet<ObjectName> vouched_pods;
    Held held;
  };

  Base BaseOf(const ObjectSnapshot& snapshot) const {
    return {snapshot.pods, snapshot.malformed_pods, snapshot.vouched_pods,
            state_.pods};
  }
  /// Which imported pods, that have no name yet, the source has and lacks.
  void FollowImported(const Base& now);
  template <typename Entries>
  void FollowImported(const Entries& before, const Entries& now);
  static std::set<ObjectName> Changed(const Base& before, const Base& now);
  static std::size_t OwnOf(const Base& base, const ObjectName& pod);
  bool IsHeld(const ObjectName& pod) const;

  const state::State& state_;
  Base followed_;
  std::set<PodUid> lacking_;

  Held held_with_parts_;
  std::vector<ObjectSnapshot::Part> parts_;
  std::map<ObjectName, Part> part_of_;

  Base seen_base_;
  std::uint64_t watch_ = 0;
  std::map<ObjectName, std::uint64_t> seen_;
  std::size_t own_ = 0;
};

}  // namespace devmgr::pods
