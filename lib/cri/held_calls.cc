// SPDX-License-Identifier: Apache-2.0
#include "cri/held_calls.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace devmgr::cri {
namespace {

using Clock = http2::Loop::Clock;

/// What the runtime and the way back are left of the caller's time.
constexpr std::chrono::seconds kReserve{5};
/// A deadline is passed on as it is if no more than this was spent.
constexpr std::chrono::milliseconds kNoTime{1};
/// Deadlines beyond are as good as none, and would overflow.
constexpr std::chrono::hours kLongest{24 * 365 * 10};

std::string PathOf(const http2::Headers& request) {
  const std::string* path = http2::FindHeader(request, ":path");
  return path == nullptr ? "" : *path;
}

}  // namespace

std::optional<Clock::time_point> DeadlineOf(const http2::Headers& request,
                                            Clock::time_point now) {
  const std::string* value = http2::FindHeader(request, "grpc-timeout");
  if (value == nullptr) return std::nullopt;
  const std::optional<std::chrono::nanoseconds> timeout =
      http2::ParseTimeout(*value);
  if (!timeout || *timeout > kLongest) return std::nullopt;
  return now + *timeout;
}

Clock::time_point LatestAnswer(Clock::time_point now,
                               Clock::time_point deadline) {
  const auto left = deadline - now;
  return now + std::max(left - kReserve, left / 2);
}

/// The right to decide about one call, shared by the copies of Decide.
class HeldCalls::Ticket {
 public:
  Ticket(HeldCalls* held_calls, std::uint64_t call)
      : held_calls_(held_calls),
        mailbox_(held_calls->loop_.mailbox()),
        call_(call) {}
  ~Ticket() {
    Use(CriDecision::Fail(
        InternalError("no decision was made about the call")));
  }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  void Use(CriDecision decision) {
    if (used_.exchange(true)) return;
    // They live as long as their loop runs tasks.
    mailbox_->Post([held_calls = held_calls_, call = call_,
                    decision = std::move(decision)] {
      held_calls->OnDecision(call, decision);
    });
  }

 private:
  HeldCalls* const held_calls_;
  const std::shared_ptr<http2::Mailbox> mailbox_;
  const std::uint64_t call_;
  std::atomic<bool> used_ = false;
};

HeldBytes::~HeldBytes() { held_calls_.held_bytes_ -= taken_; }

absl::Status HeldBytes::Take(std::size_t count) {
  const std::size_t limit = held_calls_.options_.max_total_held_bytes;
  if (count > limit - held_calls_.held_bytes_) {
    return ResourceExhaustedError("held calls together have more than {} bytes",
                                  limit);
  }
  held_calls_.held_bytes_ += count;
  taken_ += count;
  return absl::OkStatus();
}

HeldCall::HeldCall(HeldCalls& held_calls, const http2::Headers& request,
                   Decided decided)
    : held_calls_(held_calls),
      decided_(std::move(decided)),
      request_(request),
      came_(Clock::now()),
      deadline_(DeadlineOf(request, came_)),
      kept_(held_calls) {
  held_calls_.counters_.held++;
}

HeldCall::~HeldCall() {
  End(CancelledError("the caller gave up"), false);
  if (!forwarded_) held_calls_.counters_.held--;
}

CriCall HeldCall::Describe(std::string message) {
  CriCall call;
  call.id = id_;
  call.method = PathOf(request_);
  for (http2::Header& header : request_) {
    if (header.name.starts_with(':')) continue;
    call.metadata.emplace_back(std::move(header.name), std::move(header.value));
  }
  call.deadline = deadline_;
  const auto now = Clock::now();
  call.decide_by = now + held_calls_.options_.decision_budget;
  if (deadline_) {
    call.decide_by = std::min(call.decide_by, LatestAnswer(now, *deadline_));
  }
  call.message = std::move(message);
  return call;
}

absl::Status HeldCall::Ask(const std::string& body) {
  absl::StatusOr<std::string> message =
      http2::ReadOnlyMessage(body, http2::FindHeader(request_, "grpc-encoding"),
                             held_calls_.options_.max_held_bytes);
  if (!message.ok()) {
    phase_ = Phase::kOver;
    return message.status();
  }
  phase_ = Phase::kDeciding;
  id_ = ++held_calls_.last_call_;
  held_calls_.undecided_[id_] = this;
  held_calls_.counters_.intercepted++;
  CriCall call = Describe(*std::move(message));
  const auto budget = std::chrono::duration_cast<std::chrono::milliseconds>(
      call.decide_by - Clock::now());
  timer_ = held_calls_.loop_.At(
      call.decide_by, [this, budget, method = call.method] {
        timer_ = 0;
        Decide(CriDecision::Fail(DeadlineExceededError(
            "no decision about {} within {} ms", method, budget.count())));
      });
  const auto ticket = std::make_shared<HeldCalls::Ticket>(&held_calls_, id_);
  held_calls_.options_.interceptor->OnCall(
      std::move(call),
      [ticket](CriDecision decision) { ticket->Use(std::move(decision)); });
  return absl::OkStatus();
}

void HeldCall::Decide(CriDecision decision) {
  held_calls_.undecided_.erase(id_);
  held_calls_.loop_.Cancel(timer_);
  timer_ = 0;
  if (decision.kind() == CriDecision::Kind::kFail) {
    if (decision.status().ok()) {
      decision = CriDecision::Fail(
          InternalError("a call was failed with a status that is OK"));
    }
    End(decision.status(), false);
  } else {
    phase_ = Phase::kForwarded;
    forwarded_ = true;
    held_calls_.counters_.held--;
  }
  // This may end with the call.
  const Decided decided = std::move(decided_);
  decided(std::move(decision));
}

std::optional<std::chrono::nanoseconds> HeldCall::TimeLeft() const {
  const auto now = Clock::now();
  if (!deadline_ || now - came_ < kNoTime) return std::nullopt;
  return *deadline_ - now;
}

void HeldCall::ObserveHeaders(const http2::Headers& headers) {
  const std::string* encoding = http2::FindHeader(headers, "grpc-encoding");
  if (encoding != nullptr) answer_encoding_ = *encoding;
}

void HeldCall::ObserveData(std::string_view bytes) {
  if (phase_ != Phase::kForwarded || answer_too_large_) return;
  const std::size_t limit =
      held_calls_.options_.max_held_bytes + http2::kPrefixBytes;
  if (answer_.size() + bytes.size() > limit || !kept_.Take(bytes.size()).ok()) {
    answer_too_large_ = true;
    answer_ = std::string();
    return;
  }
  answer_.append(bytes);
}

void HeldCall::End(const absl::Status& status, bool answered) {
  if (phase_ == Phase::kOver) return;
  phase_ = Phase::kOver;
  held_calls_.loop_.Cancel(timer_);
  if (id_ == 0) return;  // nobody has heard of it
  held_calls_.undecided_.erase(id_);
  CriOutcome outcome{status, forwarded_, answered, ""};
  if (status.ok() && !answer_too_large_) {
    absl::StatusOr<std::string> message = http2::ReadOnlyMessage(
        answer_, answer_encoding_.empty() ? nullptr : &answer_encoding_,
        held_calls_.options_.max_held_bytes);
    // An answer that cannot be read is none to us; the caller has it.
    if (message.ok()) outcome.message = *std::move(message);
  }
  held_calls_.options_.interceptor->OnEnd(id_, outcome);
}

std::unique_ptr<HeldCall> HeldCalls::Hold(const http2::Headers& request,
                                          HeldCall::Decided decided) {
  if (options_.intercept.count(PathOf(request)) == 0) return nullptr;
  return std::make_unique<HeldCall>(*this, request, std::move(decided));
}

absl::Status HeldCalls::Unreadable(const http2::Headers& request,
                                   const absl::Status& why) {
  if (options_.refuse_unreadable) {
    return WithContext(why, "the request cannot be read");
  }
  counters_.passed_unread++;
  options_.interceptor->OnPassedUnread(PathOf(request), MessageOf(why));
  return absl::OkStatus();
}

void HeldCalls::BackendConnected() {
  counters_.backend_connects++;
  if (std::exchange(backend_reachable_, true)) return;
  on_backend_change_();
  if (options_.interceptor != nullptr) {
    options_.interceptor->OnBackendConnected();
  }
}

void HeldCalls::BackendLost(const absl::Status& why) {
  counters_.backend_losses++;
  backend_reachable_ = false;
  on_backend_change_();
  if (options_.interceptor != nullptr) options_.interceptor->OnBackendLost(why);
}

void HeldCalls::OnDecision(std::uint64_t call, CriDecision decision) {
  const auto it = undecided_.find(call);
  if (it != undecided_.end()) it->second->Decide(std::move(decision));
}

}  // namespace devmgr::cri
