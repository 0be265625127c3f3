// SPDX-License-Identifier: Apache-2.0
#include "cri/link.h"

#include <sys/epoll.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "common/status.h"
#include "cri/link_sides.h"
#include "rpc/unix_socket.h"

namespace devmgr::cri {
namespace {

/// How often a call that may wait looks for the runtime.
constexpr std::chrono::milliseconds kLookAgain{100};
/// Open calls of one caller, if the runtime sets no lower limit.
constexpr std::uint32_t kMaxStreams = 16384;
/// Unanswered pings of one caller.
constexpr std::size_t kMaxPings = 1024;
/// "Any number", in SETTINGS.
constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();
/// Of a GOAWAY that only says that the last one will follow.
constexpr http2::StreamId kLastStreamOfAll =
    std::numeric_limits<http2::StreamId>::max();
constexpr std::uint32_t kGone = EPOLLHUP | EPOLLERR;
/// What a client of HTTP/2 sends first, and after that the head of a frame.
constexpr std::string_view kMagic(NGHTTP2_CLIENT_MAGIC,
                                  NGHTTP2_CLIENT_MAGIC_LEN);
constexpr std::size_t kGreetingBytes = kMagic.size() + 9;

}  // namespace

Link::Link(UniqueFd caller, HeldCalls& held_calls,
           std::function<void(Link*)> over)
    : held_calls_(held_calls),
      loop_(held_calls.loop()),
      over_(std::move(over)),
      client_side_(std::make_unique<Side>(this, true)),
      backend_side_(std::make_unique<Side>(this, false)),
      client_(std::make_unique<http2::Session>(
          http2::Session::Role::kServer, std::move(caller), loop_,
          client_side_.get(), client_side_.get())),
      client_header_list_(kUnlimited) {}

Link::~Link() = default;

absl::Status Link::Start() { return client_->Watch(); }

void Link::HearGreeting() {
  if (client_->Keep(kGreetingBytes) != http2::Session::ReadResult::kMore) {
    return End();
  }
  const std::string_view heard = client_->kept();
  const bool of_http2 = heard.substr(0, kMagic.size()) ==
                        kMagic.substr(0, std::min(heard.size(), kMagic.size()));
  if (of_http2 && heard.size() < kGreetingBytes) return;  // It may go on.
  greeted_ = true;
  // The runtime's limits first: the caller is answered once we know them.
  client_->SetReading(false);
  if (!of_http2 || !ConnectBackend().ok()) StartClient();
  Settle();
}

void Link::Stop(const absl::Status& why) {
  if (ended_) return;
  for (const auto& [id, stream] : streams_) LoseCall(*stream, why);
  client_->SubmitGoaway(NGHTTP2_NO_ERROR, "");
  FlushBoth();
  End();
}

void Link::OnClientReady(std::uint32_t events) {
  if (client_->closed()) return;
  if ((events & EPOLLOUT) != 0) client_->SocketHasRoom();
  // One that says nothing, or half of something, costs the runtime nothing.
  if (!greeted_ && (events & kGone) == 0) return HearGreeting();
  bool gone = false;
  if ((events & (EPOLLIN | kGone)) != 0) {
    // Who hung up before he was read has asked for nothing.
    gone = !client_started_ ||
           client_->Read() != http2::Session::ReadResult::kMore;
  }
  if (!gone) return Settle();
  FlushBoth();
  End();
}

void Link::OnBackendReady(std::uint32_t events) {
  http2::Session& session = backend_->session;
  if ((events & EPOLLOUT) != 0) session.SocketHasRoom();
  if ((events & (EPOLLIN | kGone)) != 0) {
    switch (session.Read()) {
      case http2::Session::ReadResult::kMore:
        break;
      case http2::Session::ReadResult::kEnd:
        LoseBackend(UnavailableError("it closed the connection"));
        break;
      case http2::Session::ReadResult::kBroken:
        LoseBackend(UnavailableError("the connection broke"));
        break;
    }
  }
  Settle();
}

void Link::StartClient() {
  if (std::exchange(client_started_, true)) return;
  if (told_streams_ == 0) told_streams_ = kMaxStreams;
  std::optional<std::uint32_t> header_list;
  if (told_header_list_ != 0 && told_header_list_ != kUnlimited) {
    header_list = told_header_list_;
  }
  client_->SubmitSettings(told_streams_, header_list);
  client_->SetReading(true);
}

void Link::OnClientSettings() {
  client_header_list_ =
      client_->PeerSetting(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);
  if (backend_ == nullptr || client_header_list_ == kUnlimited) return;
  backend_->session.SubmitSettings(std::nullopt, client_header_list_);
}

void Link::OnBackendSettings() {
  const std::uint32_t streams = std::min(
      kMaxStreams,
      backend_->session.PeerSetting(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS));
  const std::uint32_t header_list =
      backend_->session.PeerSetting(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);
  const bool changed =
      streams != told_streams_ || header_list != told_header_list_;
  told_streams_ = streams;
  told_header_list_ = header_list;
  if (client_started_ && changed) {
    client_->SubmitSettings(streams, header_list);
  }
  StartClient();
  if (state_ != BackendState::kConnecting) return;
  state_ = BackendState::kReady;
  held_calls_.BackendConnected();
  SubmitWaiting();
}

void Link::OnBackendGoaway(http2::StreamId last, std::uint32_t error,
                           std::string_view debug) {
  state_ = BackendState::kLeaving;
  if (last == kLastStreamOfAll) {
    client_->SubmitShutdownNotice();
  } else {
    client_->SubmitGoaway(error, debug);
  }
  // Nobody has begun them; the caller may call again elsewhere.
  SubmitWaiting();
}

void Link::OnClientPing(const http2::Ping& ping, bool ack) {
  if (ack) {
    if (backend_ != nullptr) backend_->session.SubmitPing(ping, true);
    return;
  }
  if (backend_ == nullptr) return client_->SubmitPing(ping, true);
  switch (pings_.Come(ping, !by_backend_.empty(), http2::Loop::Clock::now())) {
    case Pings::Way::kForward:
      return backend_->session.SubmitPing(ping, false);
    case Pings::Way::kAnswer:
      return client_->SubmitPing(ping, true);
    case Pings::Way::kWait:
      if (pings_.under_way() > kMaxPings) cut_ = true;
  }
}

void Link::OnBackendPing(const http2::Ping& ping, bool ack) {
  if (!ack) return client_->SubmitPing(ping, false);
  AnswerPings();
}

void Link::AnswerPings() {
  for (const http2::Ping& ping : pings_.Answered())
    client_->SubmitPing(ping, true);
}

absl::Status Link::AboutBackend(const absl::Status& why) const {
  return WithContext(why, "runtime at '{}'",
                     held_calls_.options().backend.string());
}

absl::Status Link::ConnectBackend() {
  absl::StatusOr<UniqueFd> fd = rpc::ConnectUnix(held_calls_.options().backend);
  if (!fd.ok()) {
    // Whatever is wrong with the socket, to the caller the runtime is away.
    return AboutBackend(UnavailableError("{}", MessageOf(fd.status())));
  }
  auto backend = std::make_unique<Backend>(*std::move(fd), this);
  DEVMGR_RETURN_IF_ERROR(backend->session.Watch());
  std::optional<std::uint32_t> header_list;
  if (client_header_list_ != kUnlimited) header_list = client_header_list_;
  backend->session.SubmitSettings(std::nullopt, header_list);
  backend_ = std::move(backend);
  backend_used_ = false;
  state_ = BackendState::kConnecting;
  return absl::OkStatus();
}

void Link::LoseBackend(const absl::Status& why) {
  if (backend_ == nullptr) return;
  backend_->session.Close();
  loop_.Bury(std::move(backend_));
  by_backend_.clear();
  const BackendState before = std::exchange(state_, BackendState::kAbsent);
  const absl::Status status = AboutBackend(why);
  if (backend_used_) held_calls_.BackendLost(status);
  for (const auto& [id, stream] : streams_) {
    if (stream->backend_open) LoseCall(*stream, status);
  }
  AnswerPings();
  pings_ = Pings();
  if (before == BackendState::kLeaving) {
    client_->SubmitGoaway(NGHTTP2_NO_ERROR, "");
  }
  StartClient();
  // It may be back already; who cannot wait is told what we know.
  if (!waiting_.empty()) FailImpatient(status);
}

void Link::LookForBackend() {
  retry_ = 0;
  if (state_ != BackendState::kAbsent || waiting_.empty()) return;
  const absl::Status connected = ConnectBackend();
  if (!connected.ok()) FailImpatient(connected);
  Settle();
}

/// Earlier if somebody's patience ends before.
http2::Loop::Clock::time_point Link::NextLook() {
  auto next = http2::Loop::Clock::now() + kLookAgain;
  for (const http2::StreamId id : waiting_) {
    const Stream* stream = Find(id, true);
    if (stream != nullptr && stream->patience) {
      next = std::min(next, *stream->patience);
    }
  }
  return next;
}

void Link::FlushBoth() {
  // What one side takes gives the other one something to say.
  for (bool any = true; any;) {
    any = backend_ != nullptr && backend_->session.Flush();
    any = client_->Flush() || any;
  }
}

void Link::Settle() {
  if (ended_) return;
  FlushBoth();
  if (client_started_ && !client_->kept().empty()) {
    client_->FeedKept();
    FlushBoth();
  }
  if (backend_ != nullptr && backend_->session.finished()) {
    LoseBackend(UnavailableError("the connection ended"));
    FlushBoth();
  }
  for (const http2::StreamId id : dead_) {
    const auto it = streams_.find(id);
    if (it == streams_.end()) continue;
    by_backend_.erase(it->second->backend);
    streams_.erase(it);
    held_calls_.counters().calls--;
  }
  dead_.clear();
  if (cut_ || client_->finished()) return End();
  if (backend_ != nullptr) {
    backend_->session.SetReading(!client_->congested());
    client_->SetReading(client_started_ && !backend_->session.congested());
  }
  if (!waiting_.empty() && state_ == BackendState::kAbsent && retry_ == 0) {
    retry_ = loop_.At(NextLook(), [this] { LookForBackend(); });
  }
}

void Link::End() {
  if (std::exchange(ended_, true)) return;
  loop_.Cancel(retry_);
  held_calls_.counters().calls -= streams_.size();
  streams_.clear();
  by_backend_.clear();
  client_->Close();
  if (backend_ != nullptr) backend_->session.Close();
  over_(this);
}

}  // namespace devmgr::cri
