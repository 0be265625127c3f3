// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cri.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "http2/grpc_message.h"
#include "http2/loop.h"

namespace devmgr::cri {

/// CriProxyStats, counted on the loop and read anywhere.
struct Counters {
  std::atomic<std::uint64_t> connections = 0;
  std::atomic<std::uint64_t> calls = 0;
  std::atomic<std::uint64_t> held = 0;
  std::atomic<std::uint64_t> total_connections = 0;
  std::atomic<std::uint64_t> total_calls = 0;
  std::atomic<std::uint64_t> intercepted = 0;
  std::atomic<std::uint64_t> passed_unread = 0;
  std::atomic<std::uint64_t> backend_connects = 0;
  std::atomic<std::uint64_t> backend_losses = 0;
  std::atomic<std::uint64_t> turned_away = 0;
};

/// When the caller of a request that comes now stops waiting; nothing: never.
std::optional<http2::Loop::Clock::time_point> DeadlineOf(
    const http2::Headers& request, http2::Loop::Clock::time_point now);
/// By when it is to have an answer of ours: 5 s before, or after half of the
/// time, whichever is later.
http2::Loop::Clock::time_point LatestAnswer(
    http2::Loop::Clock::time_point now,
    http2::Loop::Clock::time_point deadline);

class HeldCalls;

/// What one call keeps in memory, of what all of them may
/// (CriProxyOptions::max_total_held_bytes). Belongs to the loop's thread.
class HeldBytes {
 public:
  explicit HeldBytes(HeldCalls& held_calls) : held_calls_(held_calls) {}
  ~HeldBytes();
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  /// So many more. ResourceExhausted: there is no room for them.
  absl::Status Take(std::size_t count);

 private:
  HeldCalls& held_calls_;
  std::size_t taken_ = 0;
};

/// A call of an intercepted method, from its headers to its end. First its
/// request is collected, then it is decided about, then its answer observed.
/// Belongs to the loop's thread.
class HeldCall {
 public:
  /// Runs on the loop, once, unless the call ends before.
  using Decided = std::function<void(CriDecision)>;

  HeldCall(HeldCalls& held_calls, const http2::Headers& request,
           Decided decided);
  /// Ends it as given up by the caller, if nothing else did.
  ~HeldCall();
  HeldCall(const HeldCall&) = delete;
  HeldCall& operator=(const HeldCall&) = delete;

  enum class Phase { kCollecting, kDeciding, kForwarded, kOver };
  Phase phase() const { return phase_; }

  /// Its request has come as a whole. An error: it cannot be read, and no
  /// interceptor was asked.
  absl::Status Ask(const std::string& body);
  /// How long the caller waits from now on; nothing: as the headers say, since
  /// next to no time has passed.
  std::optional<std::chrono::nanoseconds> TimeLeft() const;

  void ObserveHeaders(const http2::Headers& headers);
  void ObserveData(std::string_view bytes);
  /// Only the first counts. Tells the interceptor if it was asked.
  void End(const absl::Status& status, bool answered);

 private:
  friend class HeldCalls;

  void Decide(CriDecision decision);
  CriCall Describe(std::string message);

  HeldCalls& held_calls_;
  Decided decided_;
  http2::Headers request_;
  const http2::Loop::Clock::time_point came_;
  std::optional<http2::Loop::Clock::time_point> deadline_;
  Phase phase_ = Phase::kCollecting;
  std::uint64_t id_ = 0;  ///< 0 until it was asked about.
  bool forwarded_ = false;
  http2::Loop::TimerId timer_ = 0;
  HeldBytes kept_;      ///< Of the answer.
  std::string answer_;  ///< With prefix, as it came.
  std::string answer_encoding_;
  bool answer_too_large_ = false;
};

/// Between the links and the interceptor. Belongs to the loop's thread.
class HeldCalls {
 public:
  /// All borrowed.
  HeldCalls(const CriProxyOptions& options, http2::Loop& loop,
            Counters& counters)
      : options_(options), loop_(loop), counters_(counters) {}

  /// Null when no interceptor wants to hear of such calls.
  std::unique_ptr<HeldCall> Hold(const http2::Headers& request,
                                 HeldCall::Decided decided);

  /// What becomes of a call that cannot be read: OK to pass it on.
  absl::Status Unreadable(const http2::Headers& request,
                          const absl::Status& why);

  void BackendConnected();
  void BackendLost(const absl::Status& why);

  const CriProxyOptions& options() const { return options_; }
  http2::Loop& loop() { return loop_; }
  /// Runs when the runtime was lost, and when it is there for the first time
  /// or again.
  void OnBackendChange(std::function<void()> run) {
    on_backend_change_ = std::move(run);
  }
  Counters& counters() { return counters_; }

 private:
  friend class HeldBytes;
  friend class HeldCall;
  class Ticket;

  void OnDecision(std::uint64_t call, CriDecision decision);

  const CriProxyOptions& options_;
  http2::Loop& loop_;
  Counters& counters_;
  bool backend_reachable_ = false;
  std::function<void()> on_backend_change_ = [] {};
  std::size_t held_bytes_ = 0;  ///< Of all calls.
  std::uint64_t last_call_ = 0;
  std::unordered_map<std::uint64_t, HeldCall*> undecided_;
};

}  // namespace devmgr::cri
