// SPDX-License-Identifier: Apache-2.0
//
// A small world for tests of the allocator, and its answers as texts.
#pragma once

#include <devmgr/objects.h>

#include <deque>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "allocator/allocator.h"

namespace devmgr::allocator {

Quantity Q(const std::string& text);

/// Selects devices of driver a with so much memory.
std::string AtLeast(const std::string& amount);

/// A device, put together.
struct Dev : SliceDevice {
  explicit Dev(std::string device_name) { name = std::move(device_name); }
  Dev& Attr(const std::string& attribute, DeviceAttribute value) {
    attributes[attribute] = std::move(value);
    return *this;
  }
  Dev& Int(const std::string& attribute, std::int64_t value) {
    return Attr(attribute, value);
  }
  Dev& Text(const std::string& attribute, const std::string& value) {
    return Attr(attribute, SharedText(value));
  }
  Dev& Version(const std::string& attribute, const std::string& value) {
    return Attr(attribute, DeviceVersion{value});
  }
  Dev& Ints(const std::string& attribute, std::vector<std::int64_t> values) {
    return Attr(attribute, RareVector<std::int64_t>(std::move(values)));
  }
  Dev& Cap(const std::string& capacity_name, const std::string& value) {
    capacity[capacity_name].value = Q(value);
    return *this;
  }
  Dev& Policy(const std::string& capacity_name, CapacityRequestPolicy policy) {
    capacity[capacity_name].request_policy =
        std::make_shared<const CapacityRequestPolicy>(std::move(policy));
    return *this;
  }
  Dev& Taint(const std::string& key, const std::string& effect,
             const std::string& value = "") {
    taints.push_back({key, value, effect, ""});
    return *this;
  }
  Dev& Uses(const std::string& set,
            const std::map<std::string, std::string>& amounts,
            std::vector<SharedText> groups = {}) {
    DeviceCounterConsumption use;
    use.counter_set = set;
    for (const auto& [counter, amount] : amounts) {
      use.counters.emplace(counter, Q(amount));
    }
    use.compatibility_groups = std::move(groups);
    consumes_counters.push_back(std::move(use));
    return *this;
  }
  Dev& Shared() {
    allow_multiple_allocations = true;
    return *this;
  }
  Dev& Binds(const std::string& condition, const std::string& failure) {
    binding_conditions = {condition};
    binding_failure_conditions = {failure};
    return *this;
  }
  Dev& On(const std::string& node) {
    node_name = node;
    return *this;
  }
};

/// d0, d1 and so on.
std::vector<SliceDevice> Devices(int count);

/// A request, or an alternative of one.
struct Ask : DeviceSubRequest {
  /// Of a class, `count` devices.
  explicit Ask(std::string class_name, std::int64_t devices = 1) {
    device_class_name = std::move(class_name);
    allocation_mode = "ExactCount";
    count = devices;
  }
  static Ask All(std::string class_name) {
    Ask ask(std::move(class_name), 0);
    ask.allocation_mode = "All";
    return ask;
  }
  Ask& If(const std::string& expression) {
    selectors.push_back(expression);
    return *this;
  }
  Ask& Cap(const std::string& capacity, const std::string& amount) {
    capacity_requests.emplace(capacity, Q(amount));
    return *this;
  }
  Ask& Tolerate(DeviceToleration toleration) {
    tolerations.push_back(std::move(toleration));
    return *this;
  }
  Ask& Admin() {
    is_admin = true;
    return *this;
  }
  bool is_admin = false;
};

/// A claim, with requests q0, q1 and so on; alternatives are s0, s1.
struct Want : ResourceClaim {
  explicit Want(const std::string& name = "claim");
  Want& One(const Ask& ask);
  Want& First(std::initializer_list<Ask> alternatives);
  Want& Match(const std::string& attribute,
              std::vector<std::string> requests = {});
  Want& Distinct(const std::string& attribute,
                 std::vector<std::string> requests = {});
  Want& Config(const std::string& driver,
               std::vector<std::string> requests = {});
};

/// Node n1 with label region=r1; classes A and B for the drivers a and b.
/// Slices are at generation 1, and a pool has as many as are added, unless a
/// test says otherwise.
struct Bed {
  Bed();

  ResourceSlice& Slice(const std::string& node, const std::string& pool,
                       std::vector<SliceDevice> devices,
                       const std::string& driver = "a");
  /// For all nodes.
  ResourceSlice& Counters(const std::string& pool, const std::string& set,
                          const std::map<std::string, std::string>& amounts,
                          const std::string& driver = "a");
  DeviceClass& Class(const std::string& name,
                     std::vector<std::string> selectors);
  /// As another claim has it: whole, or a share that consumes `consumed`.
  Bed& Held(const std::string& device, const std::string& pool = "p1",
            const std::string& driver = "a");
  Bed& HeldShare(const std::string& device,
                 const std::map<std::string, std::string>& consumed = {},
                 const std::string& pool = "p1",
                 const std::string& driver = "a");

  const Outcome& Run(const std::vector<ResourceClaim>& wanted);
  /// `q0=p1/d1 q1=p1/d2`, claims separated by ` | `; or the result's name and,
  /// after a colon, its message.
  std::string Solve(const std::vector<ResourceClaim>& wanted);
  std::string Solve(const Ask& ask) { return Solve({Want().One(ask)}); }
  /// The result's name alone.
  std::string Verdict(const std::vector<ResourceClaim>& wanted);
  std::string Verdict(const Ask& ask) { return Verdict({Want().One(ask)}); }

  /// Slices for which a test set no count get that of their pool.
  World MakeWorld();

  Node node;
  std::deque<ResourceSlice> slices;
  std::deque<DeviceClass> classes;
  std::deque<DeviceTaintRule> rules;
  AllocatedState held;
  Features features;
  Options options;
  Outcome outcome;  ///< Of the last run.

 private:
  int held_claims_ = 0;
};

/// Of a solved outcome.
std::string TextOf(const Outcome& outcome);
/// `FromClass[q0,q1]:driver FromClaim[]:driver`.
std::string ConfigText(const AllocationResult& allocation);
/// `name in n1` or `region In r1, planet In earth`; `-` for all nodes.
std::string NodesText(const AllocationResult& allocation);

}  // namespace devmgr::allocator
