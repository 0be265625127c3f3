// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claim/call_need.h"

namespace devmgr::pods {

/// How claims of many pods share the calls to their drivers. A few calls may be
/// under way at a driver; what becomes due while they are goes together with
/// the next one that may begin, in the order in which it became due. So a burst
/// of pods costs a driver few calls, and a hung call holds up no claim that can
/// take another's place.
class CallQueue {
 public:
  /// Under way at one driver.
  static constexpr std::size_t kCallsAtOnce = 4;
  static constexpr std::size_t kClaimsPerCall = 100;

  using Need = claim::CallNeed;
  /// What a claim needs of the driver at this moment.
  using NeedOf = std::function<Need(const ClaimUid&)>;

  struct Call {
    Need need = Need::kNothing;
    std::vector<ClaimUid> claims;  ///< With kNothing: they need no call.
  };

  /// `at_once`: calls under way at a driver, at least one.
  explicit CallQueue(std::size_t at_once = kCallsAtOnce) : at_once_(at_once) {}

  /// The claim is due at the driver. It must not be there already.
  void Add(const std::string& driver, const ClaimUid& claim);

  /// The claim is not due any more, wherever it was.
  void Drop(const ClaimUid& claim);

  /// What is to be done next at the driver; nothing when all calls that it may
  /// have are under way, or nothing is due. A call counts until `End`.
  std::optional<Call> Next(const std::string& driver, const NeedOf& need);

  void End(const std::string& driver);

  /// A call with this claim and others was not answered in time. Until `Clear`,
  /// the claim is asked about alone, so that it holds up no other.
  void Suspect(const std::string& driver, const ClaimUid& claim) {
    suspects_.emplace(driver, claim);
  }
  void Clear(const std::string& driver, const ClaimUid& claim) {
    suspects_.erase({driver, claim});
  }

 private:
  struct Lane {
    std::deque<ClaimUid> due;
    std::size_t calls = 0;  ///< Under way.
  };

  std::size_t at_once_;
  std::map<std::string, Lane> lanes_;  ///< Of drivers that have any of it.
  std::set<std::pair<std::string, ClaimUid>> suspects_;
};

}  // namespace devmgr::pods
