// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/unique_fd.h"
#include "cri/held_calls.h"
#include "cri/pings.h"
#include "cri/stream.h"
#include "http2/loop.h"
#include "http2/session.h"

namespace devmgr::cri {

/// A caller's connection and the one to the runtime that belongs to it.
/// Settings, pings and goodbyes go from one to the other; calls are mapped.
///
///               connect            SETTINGS            GOAWAY
///   kAbsent ------------> kConnecting ------> kReady --------> kLeaving
///      ^                       | lost            | lost           | lost
///      +-----------------------+-----------------+        the caller's ends
///      too
///
/// While it is absent, the next call tries to connect. Sessions only note what
/// they hear of it while they read or write; what destroys anything happens in
/// Settle, at the end of each event.
class Link final : public http2::Buried {
 public:
  /// `over` runs last, when the link has closed everything; bury it then.
  Link(UniqueFd caller, HeldCalls& held_calls, std::function<void(Link*)> over);
  ~Link() override;

  /// Begins. On an error nothing has, and `over` does not run.
  absl::Status Start();
  /// Answers all calls with `why`, tries once to send that, and ends.
  void Stop(const absl::Status& why);
  /// It has asked for something.
  bool has_called() const { return has_called_; }

 private:
  enum class BackendState { kAbsent, kConnecting, kReady, kLeaving };

  /// What one of the two sessions tells.
  class Side;
  /// A connection to the runtime; a link may have several in its life.
  class Backend;

  // link.cc: connections.
  void OnClientReady(std::uint32_t events);
  void OnBackendReady(std::uint32_t events);
  void OnClientSettings();
  void OnBackendSettings();
  void OnBackendGoaway(http2::StreamId last, std::uint32_t error,
                       std::string_view debug);
  void OnClientPing(const http2::Ping& ping, bool ack);
  void OnBackendPing(const http2::Ping& ping, bool ack);
  void AnswerPings();
  /// The caller says something for the first time.
  void HearGreeting();
  void StartClient();
  absl::Status ConnectBackend();
  void LoseBackend(const absl::Status& why);
  absl::Status AboutBackend(const absl::Status& why) const;
  void LookForBackend();
  http2::Loop::Clock::time_point NextLook();
  void Settle();
  void FlushBoth();
  void End();

  // link_calls.cc: calls.
  void OnClientHeaders(http2::StreamId id, http2::Headers headers, bool end);
  void OnClientData(Stream& stream, std::string_view bytes);
  void OnRequestEnded(Stream& stream);
  void OnClientStreamClosed(Stream& stream, std::uint32_t error);
  void OnBackendHeaders(Stream& stream, http2::Headers headers, bool end);
  void OnBackendData(Stream& stream, std::string_view bytes);
  void OnAnswerEnded(Stream& stream);
  void OnBackendStreamClosed(Stream& stream, std::uint32_t error);
  void OnSent(Stream& stream, bool to_client, std::size_t count);
  void OnEndSent(Stream& stream, bool to_client);
  void OnDecision(http2::StreamId client, CriDecision decision);
  void PassUnread(Stream& stream, const absl::Status& why);
  void Forward(Stream& stream);
  void SubmitWaiting();
  void FailImpatient(const absl::Status& why);
  void Submit(Stream& stream);
  void Fail(Stream& stream, const absl::Status& status);
  void LoseCall(Stream& stream, const absl::Status& why);
  void ResetClient(Stream& stream, std::uint32_t error);
  void ResetBackend(Stream& stream, std::uint32_t error);
  void GoIfOver(Stream& stream);
  Stream* Find(http2::StreamId id, bool of_client);

  HeldCalls& held_calls_;
  http2::Loop& loop_;
  const std::function<void(Link*)> over_;
  const std::unique_ptr<Side> client_side_;
  const std::unique_ptr<Side> backend_side_;
  const std::unique_ptr<http2::Session> client_;
  std::unique_ptr<Backend> backend_;  ///< Null when absent.
  BackendState state_ = BackendState::kAbsent;
  bool backend_used_ = false;  ///< It has been called.
  bool greeted_ = false;
  bool client_started_ = false;  ///< It has our settings.
  bool has_called_ = false;
  bool cut_ = false;  ///< A message was cut: hang up, too.
  bool ended_ = false;
  /// Limits of the runtime that the caller was sent.
  std::uint32_t told_streams_ = 0;
  std::uint32_t told_header_list_ = 0;
  std::uint32_t client_header_list_;
  Pings pings_;

  std::unordered_map<http2::StreamId, std::unique_ptr<Stream>> streams_;
  std::unordered_map<http2::StreamId, Stream*> by_backend_;
  std::vector<http2::StreamId> waiting_;  ///< For the runtime, in order.
  std::vector<http2::StreamId> dead_;     ///< To go in Settle.
  http2::Loop::TimerId retry_ = 0;
};

}  // namespace devmgr::cri
