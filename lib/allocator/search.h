// SPDX-License-Identifier: Apache-2.0
//
// The search itself: the first fit, in upstream's order of trial, with a stack
// of its own.
#pragma once

#include <absl/status/status.h>
#include <devmgr/metrics.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/eligibility.h"
#include "allocator/inventory.h"
#include "allocator/likeness.h"
#include "allocator/requests.h"
#include "allocator/trial.h"

namespace devmgr::allocator {

/// Claims, their requests and the devices of a request one after the other; of
/// a request's devices only combinations, never another order of the same ones.
/// What is tried when:
///
///   alternatives   in their order; the first with which all that comes after
///                  it has a solution
///   devices        in order of the inventory, from behind the device before
///                  for the same request, from the first for a new one
///   `All`          exactly the devices that were found, one after the other
///
/// A search ends with the first solution. Its depth is the number of devices,
/// requests and claims.
///
/// Admin access takes nothing of what others need, but for its own claim, so
/// that another device for it seldom helps what comes after. When that has
/// failed, it is looked for once with the requests for admin access left out:
/// if there is no solution even so, there is none with any device for them.
class Search {
 public:
  enum class End : std::uint8_t { kSolved, kNone, kError, kInterrupted };

  Search(const Inventory& inventory, const Requests& requests,
         Eligibility& eligibility, Trial& trial, Likeness* likeness,
         const Limits& limits);

  /// Once. After kSolved the trial has the solution, else nothing.
  End Run();

  std::uint64_t steps() const { return steps_; }
  const absl::Status& error() const { return error_; }  ///< After kError.
  /// After kSolved: which alternative each request got, by its first number.
  RequestNumber AlternativeOf(const MainRequest& main) const {
    return alternatives_[main.first];
  }
  /// What tests of the trial refused.
  const SearchFigures& figures() const { return figures_; }
  /// The attempt that had most devices when it failed.
  const std::vector<Chosen>& furthest() const { return furthest_; }

 private:
  /// What becomes of a place. kOverflow: none, whatever other devices come
  /// before, since the claim would have more than it can.
  enum class Signal : std::uint8_t { kNone, kOverflow, kSolved, kError, kDown };

  /// The next thing to be satisfied.
  struct Place {
    std::uint32_t claim = 0;
    std::uint32_t main = 0;         ///< The place of the request in its claim.
    std::int32_t alternative = -1;  ///< Not chosen yet.
    std::int64_t count = 0;         ///< Devices that the request has.
    DeviceNumber from = 0;          ///< Where to go on.
  };

  enum class Kind : std::uint8_t { kClaimEnd, kAlternatives, kDevices, kAll };
  /// A place with something left to try.
  struct Frame {
    Kind kind = Kind::kDevices;
    Place place;
    RequestNumber request = 0;
    std::uint32_t next = 0;    ///< The next alternative, or device.
    bool is_overflow = true;   ///< All alternatives so far were.
    bool has_gone_on = false;  ///< What comes after the request was tried.
    bool is_settled = false;   ///< What comes after has a solution without it.
    std::vector<std::uint32_t> failed;  ///< Likenesses of devices that failed.
  };

  Signal Enter();
  Signal EnterRequest(RequestNumber request);
  Signal Resume(Signal below);
  Signal NextAlternative(Frame& frame);
  Signal NextDevice(Frame& frame);
  Signal TakeAll(Frame& frame);
  Signal TryDevice(Frame& frame, DeviceNumber device);
  Frame& Push(Kind kind, RequestNumber request);
  Signal Pop(Signal signal);
  void Count(Refusal refusal);
  void Failed(Frame& frame);
  bool IsLikeFailed(const Frame& frame, DeviceNumber device) const;
  /// Whether the devices from the next one on might be enough.
  bool IsEnoughLeft(const Frame& frame) const;
  /// Whether some request has too few devices whatever the others get. Looked
  /// at once, when a first attempt has failed.
  bool IsHopeless();
  /// Whether to look for what comes after the frame's request without it.
  bool MayLeaveOut(const Frame& frame) const;
  Signal LeaveOut(Frame& frame);
  bool IsLeftOut(const Request& request) const;
  /// Goes on where LeaveOut() was called; it was no use.
  Signal TakeUpAgain();
  bool HasStepsToLeaveOut() const;
  bool Tick();
  void Remember();

  const Inventory& inventory_;
  const Requests& requests_;
  Eligibility& eligibility_;
  Trial& trial_;
  Likeness* likeness_;  ///< Null: symmetry is not made use of.
  const Limits limits_;
  std::vector<Frame> stack_;
  Place next_;
  std::vector<RequestNumber> alternatives_;
  std::vector<Chosen> furthest_;
  bool is_hope_checked_ = false;
  bool may_leave_out_ = false;  ///< No selector fails on any device.
  /// The size of the stack at which requests for admin access are left out
  /// from there on; 0: none is.
  std::size_t left_out_from_ = 0;
  SearchFigures figures_;
  std::uint64_t steps_ = 0;
  std::uint64_t steps_without_ = 0;  ///< Of them, with requests left out.
  absl::Status error_;               ///< Cancelled: interrupted.
};

}  // namespace devmgr::allocator
