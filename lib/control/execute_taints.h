// SPDX-License-Identifier: Apache-2.0
//
// The taints that act on devices which are allocated already: those of effect
// NoExecute, of slices and of DeviceTaintRules (KEP-5055).
#pragma once

#include <devmgr/host.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace devmgr::control {

/// A taint with effect NoExecute, and since when it counts.
struct ExecuteTaint {
  DeviceTaint taint;
  /// Unix time: its `timeAdded`; where there is none, when it was seen first.
  std::int64_t since_ms = 0;
  std::string origin;  ///< For people: `DeviceTaintRule broken`.
  friend bool operator==(const ExecuteTaint&, const ExecuteTaint&) = default;
};

/// Follows slices and rules at a cost of what has changed. Lives on one thread.
class ExecuteTaints {
 public:
  /// Whether other taints count than before. `objects` need not be complete: a
  /// taint that is missing is gone.
  bool Follow(const ObjectSnapshot& objects, std::int64_t now_ms);

  bool empty() const { return slices_.empty() && rules_.empty(); }

  /// Those of a device: of the newest generation of its pool, and of rules.
  /// Rules count also for a device that no slice lists any more. Valid until
  /// the next Follow.
  std::vector<const ExecuteTaint*> Of(const std::string& driver,
                                      const std::string& pool,
                                      const std::string& device) const;

 private:
  using Pool = std::pair<std::string, std::string>;  ///< Driver and pool.
  using DeviceTaints = std::map<std::string, std::vector<ExecuteTaint>>;

  /// Of a slice that has any.
  struct SliceTaints {
    Pool pool;
    std::int64_t generation = 0;
    DeviceTaints devices;
    friend bool operator==(const SliceTaints&, const SliceTaints&) = default;
  };

  bool FollowSlice(const ObjectName& name, const ResourceSlice* before,
                   const ResourceSlice* now, std::int64_t now_ms);
  bool FollowRule(const ObjectName& name,
                  std::shared_ptr<const DeviceTaintRule> now,
                  std::int64_t now_ms);
  DeviceTaints TaintsOf(const ResourceSlice& slice, const ObjectName& name,
                        std::int64_t now_ms) const;

  // As they were followed last.
  ObjectMap<ResourceSlice> followed_slices_;
  ObjectMap<DeviceTaintRule> followed_rules_;

  std::map<ObjectName, SliceTaints> slices_;
  std::map<Pool, std::set<ObjectName>> by_pool_;  ///< Of `slices_`.
  /// How many slices of each pool have each generation: of all slices.
  std::map<Pool, std::map<std::int64_t, std::size_t>> generations_;
  struct Rule {
    std::shared_ptr<const DeviceTaintRule> rule;
    ExecuteTaint taint;
  };
  std::map<ObjectName, Rule> rules_;
};

}  // namespace devmgr::control
