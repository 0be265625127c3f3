// SPDX-License-Identifier: Apache-2.0
#include "allocator/search.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace devmgr::allocator {

Search::Search(const Inventory& inventory, const Requests& requests,
               Eligibility& eligibility, Trial& trial, Likeness* likeness,
               const Limits& limits)
    : inventory_(inventory),
      requests_(requests),
      eligibility_(eligibility),
      trial_(trial),
      likeness_(likeness),
      limits_(limits),
      alternatives_(requests.requests.size()) {
  for (RequestNumber i = 0; i < alternatives_.size(); ++i) alternatives_[i] = i;
  stack_.reserve(8);  // Most pods need no more.
}

Search::End Search::Run() {
  for (Signal signal = Signal::kDown;;) {
    signal = signal == Signal::kDown ? Enter() : Resume(signal);
    switch (signal) {
      case Signal::kSolved:
        return End::kSolved;
      case Signal::kError:
        while (!trial_.chosen().empty()) trial_.GiveBackLast();
        return absl::IsCancelled(error_) ? End::kInterrupted : End::kError;
      case Signal::kNone:
      case Signal::kOverflow:
        if (left_out_from_ == 0) Remember();
        if (stack_.empty()) return End::kNone;
        break;
      case Signal::kDown:
        break;
    }
  }
}

Search::Signal Search::Enter() {
  if (!Tick()) return Signal::kError;
  if (next_.claim >= requests_.claims.size()) {
    if (left_out_from_ == 0) return Signal::kSolved;
    stack_[left_out_from_ - 1].is_settled = true;
    return TakeUpAgain();
  }
  if (left_out_from_ != 0 && !HasStepsToLeaveOut()) return TakeUpAgain();
  const Claim& claim = requests_.claims[next_.claim];
  if (next_.main >= claim.requests.size()) {
    Push(Kind::kClaimEnd, 0);
    next_ = {.claim = next_.claim + 1};
    return Signal::kDown;
  }
  const MainRequest& main = claim.requests[next_.main];
  if (main.has_alternatives && next_.alternative < 0) {
    return NextAlternative(Push(Kind::kAlternatives, main.first));
  }
  return EnterRequest(
      main.first + static_cast<RequestNumber>(std::max(next_.alternative, 0)));
}

Search::Signal Search::EnterRequest(RequestNumber number) {
  const Request& request = requests_.requests[number];
  if (request.wants_all && request.all.empty()) return Signal::kNone;
  if (next_.count >= request.wanted || IsLeftOut(request)) {
    if (!stack_.empty()) stack_.back().has_gone_on = true;
    next_ = {.claim = next_.claim, .main = next_.main + 1};
    return Signal::kDown;
  }
  // Compared without a sum, which a count of a claim could overflow.
  if (request.wanted - next_.count >
      requests_.claims[request.claim].most_devices -
          trial_.CountOf(request.claim)) {
    return Signal::kOverflow;
  }
  if (request.wants_all) return TakeAll(Push(Kind::kAll, number));
  Frame& frame = Push(Kind::kDevices, number);
  frame.next = next_.from;
  return NextDevice(frame);
}

Search::Signal Search::Resume(Signal below) {
  Frame& frame = stack_.back();
  if (below == Signal::kNone && !trial_.chosen().empty() && IsHopeless()) {
    while (!trial_.chosen().empty()) trial_.GiveBackLast();
    stack_.clear();
    return Signal::kNone;
  }
  switch (frame.kind) {
    case Kind::kClaimEnd:
      // Another claim before this one may leave it what it needs.
      return Pop(Signal::kNone);
    case Kind::kAlternatives:
      if (below != Signal::kOverflow) frame.is_overflow = false;
      return NextAlternative(frame);
    case Kind::kAll:
      trial_.GiveBackLast();
      return Pop(below);
    case Kind::kDevices:
      if (stack_.size() == left_out_from_) {
        left_out_from_ = 0;
        return Pop(below);
      }
      trial_.GiveBackLast();
      if (below == Signal::kOverflow) return Pop(below);
      Failed(frame);
      return MayLeaveOut(frame) ? LeaveOut(frame) : NextDevice(frame);
  }
  return Pop(below);
}

Search::Signal Search::NextAlternative(Frame& frame) {
  const MainRequest& main =
      requests_.claims[frame.place.claim].requests[frame.place.main];
  if (frame.next >= main.count) {
    return Pop(frame.is_overflow ? Signal::kOverflow : Signal::kNone);
  }
  alternatives_[main.first] = main.first + frame.next;
  next_ = frame.place;
  next_.alternative = static_cast<std::int32_t>(frame.next++);
  return Signal::kDown;
}

Search::Signal Search::NextDevice(Frame& frame) {
  if (!IsEnoughLeft(frame)) return Pop(Signal::kNone);
  while (frame.next < inventory_.devices().size()) {
    const Signal signal = TryDevice(frame, frame.next++);
    if (signal != Signal::kNone) return signal;
  }
  return Pop(Signal::kNone);
}

Search::Signal Search::TakeAll(Frame& frame) {
  const auto count = static_cast<std::size_t>(frame.place.count);
  const Signal signal =
      TryDevice(frame, requests_.requests[frame.request].all[count]);
  return signal == Signal::kNone ? Pop(signal) : signal;
}

Search::Signal Search::TryDevice(Frame& frame, DeviceNumber device) {
  if (trial_.IsTaken(requests_.requests[frame.request], device) ||
      IsLikeFailed(frame, device)) {
    return Signal::kNone;
  }
  switch (eligibility_.Of(frame.request, device)) {
    case Eligibility::Verdict::kYes:
      break;
    case Eligibility::Verdict::kError:
      error_ = eligibility_.Error(frame.request, device);
      return Signal::kError;
    default:
      return Signal::kNone;
  }
  const Refusal refusal = trial_.Test(frame.request, device);
  if (refusal != Refusal::kNone) {
    Count(refusal);
    return Signal::kNone;
  }
  trial_.Take(frame.request, device);
  next_ = frame.place;
  ++next_.count;
  next_.from = device + 1;
  return Signal::kDown;
}

void Search::Count(Refusal refusal) {
  switch (refusal) {
    case Refusal::kCounter:
      ++figures_.counter;
      break;
    case Refusal::kCompatibilityGroup:
      ++figures_.compatibility_group;
      break;
    case Refusal::kConstraint:
      ++figures_.constraint;
      break;
    case Refusal::kCapacity:
      ++figures_.capacity;
      break;
    default:
      break;
  }
}

void Search::Failed(Frame& frame) {
  const DeviceNumber device = frame.next - 1;
  if (likeness_ != nullptr && trial_.IsUntouched(device)) {
    frame.failed.push_back(likeness_->Of(device));
  }
}

bool Search::IsLikeFailed(const Frame& frame, DeviceNumber device) const {
  return !frame.failed.empty() && trial_.IsUntouched(device) &&
         std::find(frame.failed.begin(), frame.failed.end(),
                   likeness_->Of(device)) != frame.failed.end();
}

bool Search::IsEnoughLeft(const Frame& frame) const {
  if (likeness_ == nullptr) return true;
  const Request& request = requests_.requests[frame.request];
  std::int64_t needed = request.wanted - frame.place.count;
  for (DeviceNumber device = frame.next;
       needed > 0 && device < inventory_.devices().size(); ++device) {
    if (trial_.IsTaken(request, device)) continue;
    switch (eligibility_.Known(frame.request, device)) {
      case Eligibility::Verdict::kNo:
        break;
      case Eligibility::Verdict::kYes:
        // What is refused now is refused with more devices chosen.
        if (trial_.Test(frame.request, device) == Refusal::kNone) --needed;
        break;
      default:
        // Perhaps; and whether a selector fails on it is for the search to
        // find out.
        return true;
    }
  }
  return needed <= 0;
}

bool Search::IsHopeless() {
  if (is_hope_checked_ || likeness_ == nullptr) return false;
  is_hope_checked_ = true;
  std::vector<bool> is_possible;
  for (RequestNumber i = 0; i < requests_.requests.size(); ++i) {
    std::int64_t eligible = 0;
    for (DeviceNumber d = 0; d < inventory_.devices().size(); ++d) {
      const auto verdict = eligibility_.Of(i, d);
      // Whether the search meets the error first is for the search to say.
      if (verdict == Eligibility::Verdict::kError) return false;
      if (verdict == Eligibility::Verdict::kYes) ++eligible;
    }
    const Request& request = requests_.requests[i];
    is_possible.push_back(eligible >= request.wanted &&
                          !(request.wants_all && request.all.empty()));
  }
  may_leave_out_ = true;
  for (const Claim& claim : requests_.claims) {
    for (const MainRequest& main : claim.requests) {
      const auto first = is_possible.begin() + main.first;
      if (std::find(first, first + main.count, true) == first + main.count) {
        return true;
      }
    }
  }
  return false;
}

bool Search::IsLeftOut(const Request& request) const {
  return left_out_from_ != 0 && request.has_admin_access && !request.wants_all;
}

bool Search::HasStepsToLeaveOut() const {
  return steps_without_ < 1'000 + 4 * (steps_ - steps_without_);
}

bool Search::MayLeaveOut(const Frame& frame) const {
  return may_leave_out_ && left_out_from_ == 0 && !frame.is_settled &&
         frame.has_gone_on &&
         requests_.requests[frame.request].has_admin_access &&
         HasStepsToLeaveOut();
}

Search::Signal Search::LeaveOut(Frame& frame) {
  left_out_from_ = stack_.size();
  next_ = {.claim = frame.place.claim, .main = frame.place.main + 1};
  return Signal::kDown;
}

Search::Signal Search::TakeUpAgain() {
  for (; stack_.size() > left_out_from_; stack_.pop_back()) {
    const Kind kind = stack_.back().kind;
    if (kind == Kind::kDevices || kind == Kind::kAll) trial_.GiveBackLast();
  }
  left_out_from_ = 0;
  return NextDevice(stack_.back());
}

Search::Frame& Search::Push(Kind kind, RequestNumber request) {
  Frame& frame = stack_.emplace_back();
  frame.kind = kind;
  frame.place = next_;
  frame.request = request;
  return frame;
}

Search::Signal Search::Pop(Signal signal) {
  const Frame& frame = stack_.back();
  const bool has_gone_on = frame.kind == Kind::kDevices &&
                           frame.place.count > 0 && frame.has_gone_on;
  stack_.pop_back();
  // The frame below has the request's device before this one.
  if (has_gone_on) stack_.back().has_gone_on = true;
  return signal;
}

bool Search::Tick() {
  if (limits_.before_step) limits_.before_step();
  if (limits_.interrupted != nullptr && limits_.interrupted->load()) {
    error_ =
        CancelledError("the caller ended the search after {} steps", steps_);
    return false;
  }
  if (steps_ >= limits_.steps) {
    error_ = CancelledError("the search took more than {} steps", steps_);
    return false;
  }
  ++steps_;
  if (left_out_from_ != 0) ++steps_without_;
  return true;
}

void Search::Remember() {
  if (trial_.chosen().size() > furthest_.size()) furthest_ = trial_.chosen();
}

}  // namespace devmgr::allocator
