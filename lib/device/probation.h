// SPDX-License-Identifier: Apache-2.0
//
// Devices that did not work are given to no pod before they have worked for a
// while: one that comes and goes would take one pod after the other with it.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"

namespace devmgr::device {

/// Which devices of one resource, or of one driver, are on probation. Times are
/// in milliseconds, of any one clock. Thread-bound. It holds devices that did
/// not work, and no others.
class Probation {
 public:
  struct Rules {
    std::int64_t healthy_for_ms = 0;  ///< 0: there is no probation.
    bool unknown_is_unhealthy = false;
  };
  Probation() = default;
  explicit Probation(Rules rules) : rules_(rules) {}

  /// The health of a device now. Whether Withholds says something else of it
  /// than before.
  bool Note(const std::string& device, Health health, std::int64_t now_ms);

  /// It did not work, or has not worked for long enough since.
  bool Withholds(const std::string& device) const {
    return withheld_.contains(device);
  }
  std::size_t size() const { return withheld_.size(); }

  /// Devices that have worked for long enough: they are withheld no more.
  std::vector<std::string> End(std::int64_t now_ms);
  /// When the next one has; nothing: none works.
  std::optional<std::int64_t> NextEnd() const;

  /// Devices that work and are withheld: they are withheld no more. An empty
  /// `device` stands for all.
  std::vector<std::string> Recheck(const std::string& device);

  /// Whether Recheck has something to do; `name` is whose devices these are.
  ///   NotFound            no such device is withheld
  ///   FailedPrecondition  it does not work, or none of them does
  absl::Status CheckRecheck(const std::string& name,
                            const std::string& device) const;

  /// There is no such device any more.
  void Forget(const std::string& device) { withheld_.erase(device); }

  /// In order of their names, with when they are offered again; nothing: they
  /// do not work.
  const std::map<std::string, std::optional<std::int64_t>>& withheld() const {
    return withheld_;
  }

 private:
  Rules rules_;
  std::map<std::string, std::optional<std::int64_t>> withheld_;
};

/// NotFound: no such device of `name` is withheld.
absl::Status NothingWithheld(const std::string& name,
                             const std::string& device);

}  // namespace devmgr::device
