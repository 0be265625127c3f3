// SPDX-License-Identifier: Apache-2.0
//
// Pods that wait for devices of plugins, in the order in which they may have
// them: by priority, then by when they came. Pure.
#pragma once

#include <devmgr/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace devmgr::admission {

/// What a pod needs at once, by resource.
using DeviceCounts = std::map<ResourceName, std::int64_t>;

struct WaitQueueOptions {
  /// For so long those behind may take what the one before them waits for.
  std::chrono::milliseconds starvation_limit{std::chrono::minutes(5)};
  /// How long devices are kept for a pod whose turn it is.
  std::chrono::milliseconds turn{std::chrono::seconds(10)};
};

class WaitQueue {
 public:
  struct Place {
    std::int32_t priority = 0;
    std::int64_t first_seen_ms = 0;
    DeviceCounts needs;
    /// Those of `needs` that there is too little of. Empty: it does not stand
    /// in line, only the time counts.
    std::set<ResourceName> short_of;
    /// It is judged again after any change of those, whatever is free.
    bool any_change = false;
    /// It waits for devices on certain NUMA nodes: that enough are free does
    /// not do, and while devices are kept for it, all that are free are.
    bool aligned = false;
    /// False: it holds devices already, and takes none of those that are free.
    bool takes = true;
    /// For how long it may wait. Nothing: for ever.
    std::optional<std::chrono::milliseconds> limit;
  };
  /// How many devices of a resource are left.
  using FreeCount = std::function<std::int64_t(const ResourceName& resource)>;
  /// Whether a pod with an aligned place could have its devices now.
  using Aligns = std::function<bool(const PodUid& pod)>;

  explicit WaitQueue(WaitQueueOptions options) : options_(options) {}

  /// Takes its place, or another one. The time since which it waits stays; its
  /// turn is over. Gives the resources that were kept for it and are no more.
  std::set<ResourceName> Enter(const PodUid& pod, Place place,
                               std::int64_t now_ms);
  /// It has what it needs, or does not want it any more. Gives the resources
  /// that others may have now.
  std::set<ResourceName> Leave(const PodUid& pod);

  /// It waits for something else than devices now, and stands in no line until
  /// it enters anew. The time since which it waits stays. As Leave.
  std::set<ResourceName> StepAside(const PodUid& pod);

  /// 0 for one that does not wait.
  std::chrono::milliseconds WaitedFor(const PodUid& pod,
                                      std::int64_t now_ms) const;

  /// The pod that goes before one that could have its devices: one before it
  /// that they are kept for, because it is its turn, or because it has waited
  /// for too long.
  std::optional<PodUid> FirstBefore(const PodUid& pod, const Place& place,
                                    std::int64_t now_ms,
                                    const FreeCount& free) const;

  /// Whose turn it is after these resources changed, in order, as far as what
  /// is free goes. They are to be judged again. `but` has been just now.
  /// `aligns` is asked about those with an aligned place of which enough is
  /// free; null: they have their turn with that.
  std::vector<PodUid> Turns(const std::set<ResourceName>& changed,
                            std::int64_t now_ms, const FreeCount& free,
                            const PodUid& but = {},
                            const Aligns& aligns = nullptr);

  /// Unix time at which Due has something to say though nothing changed.
  std::optional<std::int64_t> NextDeadline() const;
  struct DueNow {
    std::vector<PodUid> pods;  ///< They have waited long enough.
    /// Of turns that were not taken. Their pods have left the queue.
    std::set<ResourceName> resources;
  };
  /// Each is listed once.
  DueNow Due(std::int64_t now_ms);

 private:
  struct Order {
    std::int32_t priority = 0;
    std::int64_t first_seen_ms = 0;
    PodUid pod;
    bool operator<(const Order& other) const;
  };
  struct Entry {
    Place place;
    std::int64_t since_ms = 0;
    std::optional<std::int64_t> deadline_ms;
    std::optional<std::int64_t> turn_until_ms;
  };

  static Order OrderOf(const PodUid& pod, const Place& place) {
    return {place.priority, place.first_seen_ms, pod};
  }
  void Remove(const PodUid& pod, const Entry& entry);
  static std::set<ResourceName> ResourcesOf(const Place& place);
  /// What it needs is kept from those behind it: it is its turn, or it has
  /// waited for too long for devices that others hold. What no pod behind it
  /// can help with, no pod has to wait for.
  bool IsKeptFor(const Entry& entry, std::int64_t now_ms) const;

  const WaitQueueOptions options_;
  std::map<PodUid, Entry> pods_;
  /// By resource, the pods in the queue that need it.
  std::map<ResourceName, std::set<Order>> lines_;
};

}  // namespace devmgr::admission
