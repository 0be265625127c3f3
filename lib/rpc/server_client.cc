// SPDX-License-Identifier: Apache-2.0
#include "rpc/server_client.h"

#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/status.h"
#include "http2/byte_queue.h"
#include "http2/grpc_message.h"
#include "rpc/pending_answer.h"

namespace devmgr::rpc {
namespace {

using http2::Headers;
using http2::StreamId;

/// Calls that a client may have open. One that begins more before it has read
/// that has these refused; later it is hung up on.
constexpr std::uint32_t kMaxOpenCalls = 512;
/// What may come of the request of a call that waits for its turn.
constexpr std::uint32_t kWaitingBytes = 16 * 1024;
/// Of all headers of a call.
constexpr std::size_t kMaxHeaderBytes = 16 * 1024;
/// Frames that a client leaves unread, without those of answers. Of one that
/// behaves there are fewer: each open call has two at most.
constexpr std::size_t kMaxUnreadFrames = 4 * kMaxOpenCalls;
/// What is read in one turn: a few calls; or much of a long request.
constexpr std::size_t kMinTurnBytes = 512;
constexpr std::size_t kMaxTurnBytes = 64 * 1024;
/// Calls that waited and are begun in one turn.
constexpr int kTurnCalls = 4;
/// Messages below this are copied together.
constexpr std::size_t kSmallMessage = 4096;
constexpr std::uint32_t kHungUp = EPOLLHUP | EPOLLERR;

bool IsOurs(std::string_view name) {
  return name.starts_with(':') || name.starts_with("grpc-") || name == "te" ||
         name == "content-type";
}

std::map<std::string, std::string> MetadataOf(const Headers& headers) {
  std::map<std::string, std::string> metadata;
  for (const http2::Header& header : headers) {
    if (!IsOurs(header.name)) metadata.emplace(header.name, header.value);
  }
  return metadata;
}

/// Among the calls of its client; ends on any thread.
class Turn {
 public:
  Turn(std::shared_ptr<http2::Mailbox> loop,
       const std::shared_ptr<std::function<void()>>& over)
      : loop_(std::move(loop)), over_(over) {}
  ~Turn() {
    loop_->Post([over = over_] {
      if (const auto still = over.lock()) (*still)();
    });
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const std::shared_ptr<http2::Mailbox> loop_;
  const std::weak_ptr<std::function<void()>> over_;
};

}  // namespace

/// One call, from its headers until its stream is closed.
class ServerCall final : public AnswerSender {
 public:
  ServerCall(ServerClient& client, StreamId stream)
      : client_(client),
        stream_(stream),
        pending_(std::make_shared<PendingAnswer>(
            this, client.room_.loop.mailbox())) {}
  ~ServerCall() {
    client_.room_.loop.Cancel(deadline_);
    pending_->OnOver();
  }
  ServerCall(const ServerCall&) = delete;
  ServerCall& operator=(const ServerCall&) = delete;

  /// Whether it may be handled; if not, it has been refused.
  bool Begin(const Headers& headers);
  /// It is its turn.
  void Proceed(std::shared_ptr<void> turn);
  void OnData(std::string_view bytes);
  void OnEndOfRequest();
  void OnAnswer() override;
  http2::Body Body();
  void OnSent();
  void OnBodyWaits() { waits_ = true; }
  /// Both sides need not go on.
  void OnEndSent();
  void Abort(const absl::Status& why);

  StreamId stream() const { return stream_; }

 private:
  absl::Status CheckRequest(const Headers& headers);
  void SetDeadline(const Headers& headers);
  /// The client's message is there, or something else than one.
  void TryHandle();
  void Handle(std::string request);
  /// An end without a handler.
  void Refuse(const absl::Status& why);
  /// Takes what waits, as long as little is on its way.
  void Fill();
  void Append(std::shared_ptr<const std::string> message);
  void EndWith(const absl::Status& status);

  ServerClient& client_;
  const StreamId stream_;
  const std::shared_ptr<PendingAnswer> pending_;
  const Handler* handler_ = nullptr;
  /// From its turn until it is handled.
  std::shared_ptr<void> turn_;
  std::map<std::string, std::string> metadata_;
  std::optional<std::string> encoding_;
  http2::Loop::TimerId deadline_ = 0;

  std::string request_;  ///< With its prefix.
  bool request_ended_ = false;
  bool handled_ = false;  ///< Or refused.

  bool begun_ = false;  ///< The first headers of the answer are submitted.
  bool waits_ = false;  ///< The session wants ResumeBody.
  http2::ByteQueue out_;
  std::optional<Headers> trailers_;
};

bool ServerCall::Begin(const Headers& headers) {
  const absl::Status status = CheckRequest(headers);
  if (!status.ok()) {
    Refuse(status);
    return false;
  }
  metadata_ = MetadataOf(headers);
  if (const auto* encoding = http2::FindHeader(headers, "grpc-encoding")) {
    encoding_ = *encoding;
  }
  SetDeadline(headers);
  return true;
}

absl::Status ServerCall::CheckRequest(const Headers& headers) {
  if (http2::ListBytes(headers) > kMaxHeaderBytes) {
    return ResourceExhaustedError("more than {} bytes of headers",
                                  kMaxHeaderBytes);
  }
  const std::string* method = http2::FindHeader(headers, ":method");
  const std::string* type = http2::FindHeader(headers, "content-type");
  const std::string* path = http2::FindHeader(headers, ":path");
  if (method == nullptr || *method != "POST" || path == nullptr ||
      type == nullptr || !type->starts_with("application/grpc")) {
    return InvalidArgumentError("this is no call of gRPC");
  }
  const auto handler = client_.room_.handlers.find(*path);
  if (handler == client_.room_.handlers.end()) {
    return UnknownMethod(client_.room_.handlers, *path);
  }
  handler_ = &handler->second;
  return absl::OkStatus();
}

void ServerCall::SetDeadline(const Headers& headers) {
  const std::string* value = http2::FindHeader(headers, "grpc-timeout");
  if (value == nullptr) return;
  const auto timeout = http2::ParseTimeout(*value);
  // Longer ones end with their client.
  if (!timeout || *timeout > std::chrono::hours(24)) return;
  deadline_ =
      client_.room_.loop.At(http2::Loop::Clock::now() + *timeout, [this] {
        deadline_ = 0;
        pending_->OnOver();
        if (!trailers_) {
          // In gRPC's words: the client's own may come at the same moment.
          Refuse(DeadlineExceededError("Deadline Exceeded"));
        }
        client_.Settle();
      });
}

void ServerCall::Proceed(std::shared_ptr<void> turn) {
  turn_ = std::move(turn);
  client_.session_.Consumed(stream_, request_.size());
  TryHandle();
}

void ServerCall::OnData(std::string_view bytes) {
  if (handled_) return client_.session_.Consumed(stream_, bytes.size());
  request_.append(bytes);
  if (turn_ == nullptr) return;
  client_.session_.Consumed(stream_, bytes.size());
  TryHandle();
}

void ServerCall::OnEndOfRequest() {
  request_ended_ = true;
  if (turn_ != nullptr) TryHandle();
}

void ServerCall::TryHandle() {
  if (handled_) return;
  const bool has_length = request_.size() >= http2::kPrefixBytes;
  const std::size_t length = has_length ? http2::LengthInPrefix(request_) : 0;
  if (length > kMaxReceiveBytes) {
    return Refuse(ResourceExhaustedError("a request of {} bytes, more than {}",
                                         length, kMaxReceiveBytes));
  }
  const bool complete =
      has_length && request_.size() >= http2::kPrefixBytes + length;
  if (!complete && !request_ended_) return;
  if (request_.empty()) return Refuse(InternalError("the call has no request"));
  const std::string* encoding = encoding_ ? &*encoding_ : nullptr;
  auto request = http2::ReadOnlyMessage(request_, encoding, kMaxReceiveBytes);
  if (!request.ok()) {
    return Refuse(WithContext(request.status(), "the request"));
  }
  Handle(*std::move(request));
}

void ServerCall::Handle(std::string request) {
  handled_ = true;
  request_ = {};
  pending_->Open(std::move(metadata_), client_.caller(), std::move(turn_));
  (*handler_)(std::move(request), std::make_shared<Answerer>(pending_));
}

void ServerCall::Refuse(const absl::Status& why) {
  handled_ = true;
  request_ = {};
  pending_->Abort(why);
  EndWith(why);
}

void ServerCall::Abort(const absl::Status& why) {
  if (trailers_) return;
  Fill();
  if (!trailers_) Refuse(why);
}

void ServerCall::OnAnswer() {
  if (pending_->overflown()) {
    // What was taken goes at once: the reset may not get out for long.
    pending_->OnOver();
    out_.Clear();
    client_.session_.SubmitReset(stream_, NGHTTP2_CANCEL);
  } else {
    Fill();
  }
  client_.FlushSoon();
}

void ServerCall::Fill() {
  if (trailers_ || !out_.empty()) return;
  PendingAnswer::Next next = pending_->TakeNext();
  if (next.message != nullptr) Append(std::move(next.message));
  if (next.end) EndWith(*next.end);
}

void ServerCall::Append(std::shared_ptr<const std::string> message) {
  out_.Append(http2::PrefixOf(message->size()));
  if (message->size() < kSmallMessage) {
    out_.Append(*message);
  } else {
    out_.Append(std::move(message));
  }
  if (!std::exchange(begun_, true)) {
    client_.session_.SubmitResponse(stream_, http2::Beginning(), true);
  }
  if (std::exchange(waits_, false)) client_.session_.ResumeBody(stream_);
}

void ServerCall::EndWith(const absl::Status& status) {
  trailers_ = http2::EndingWith(status, /*only=*/!begun_);
  if (!std::exchange(begun_, true)) {
    return client_.session_.SubmitResponse(stream_, *trailers_, false);
  }
  if (std::exchange(waits_, false)) client_.session_.ResumeBody(stream_);
}

http2::Body ServerCall::Body() {
  return {&out_, trailers_.has_value(), trailers_ ? &*trailers_ : nullptr};
}

void ServerCall::OnSent() {
  if (!out_.empty()) return;
  pending_->OnSent();
  Fill();
}

void ServerCall::OnEndSent() {
  // What the client still wants to say concerns nothing any more.
  if (!request_ended_) {
    client_.session_.SubmitReset(stream_, NGHTTP2_NO_ERROR);
  }
}

ServerClient::ServerClient(UniqueFd fd, Caller caller, ServerRoom& room)
    : room_(room),
      caller_(caller),
      session_(http2::Session::Role::kServer, std::move(fd), room.loop, this,
               this),
      turn_bytes_(kMinTurnBytes) {}

ServerClient::~ServerClient() = default;

absl::Status ServerClient::Start() {
  DEVMGR_RETURN_IF_ERROR(session_.Watch());
  session_.SubmitSettings(kMaxOpenCalls, kMaxHeaderBytes, kWaitingBytes);
  session_.Flush();
  return absl::OkStatus();
}

void ServerClient::Stop(const absl::Status& why) {
  if (ended_) return;
  waiting_.clear();
  for (const auto& [stream, call] : calls_) call->Abort(why);
  session_.SubmitGoaway(NGHTTP2_NO_ERROR, "");
  Settle();
}

void ServerClient::End() {
  if (std::exchange(ended_, true)) return;
  room_.loop.Cancel(turns_timer_);
  room_.open_calls -= calls_.size();
  calls_.clear();
  session_.Close();
  room_.over(this);
}

void ServerClient::OnReady(std::uint32_t events) {
  if (session_.closed()) return;
  if ((events & EPOLLOUT) != 0) session_.SocketHasRoom();
  if ((events & (EPOLLIN | kHungUp)) != 0) {
    const std::size_t before = begun_;
    const auto result = session_.Read(turn_bytes_);
    if (result != http2::Session::ReadResult::kMore) {
      session_.Flush();
      return End();
    }
    const bool long_request =
        begun_ == before && session_.last_read() == turn_bytes_;
    turn_bytes_ =
        long_request ? std::min(2 * turn_bytes_, kMaxTurnBytes) : kMinTurnBytes;
  }
  Settle();
}

void ServerClient::FlushSoon() {
  if (std::exchange(flush_posted_, true)) return;
  room_.loop.mailbox()->Post([this] {
    flush_posted_ = false;
    Settle();
  });
}

void ServerClient::Settle() {
  if (ended_) return;
  session_.Flush();
  if (session_.waiting_frames() > kMaxUnreadFrames) {
    return HangUp(
        fmt::format("a client left more than {} frames unread and was hung up "
                    "on",
                    kMaxUnreadFrames));
  }
  if (session_.finished()) {
    if (calls_.size() < kMaxOpenCalls) return End();
    return HangUp(
        fmt::format("a client began more than {} calls at a time and was hung "
                    "up on",
                    kMaxOpenCalls));
  }
}

void ServerClient::HangUp(const std::string& why) {
  End();
  room_.hung_up(why);
}

ServerCall* ServerClient::Find(StreamId stream) {
  const auto found = calls_.find(stream);
  return found == calls_.end() ? nullptr : found->second.get();
}

void ServerClient::OnHeaders(StreamId stream, Headers headers, bool end) {
  if (ServerCall* known = Find(stream)) {
    if (end) known->OnEndOfRequest();
    return;
  }
  has_called_ = true;
  ++begun_;
  ++room_.open_calls;
  auto& call = calls_[stream];
  call = std::make_unique<ServerCall>(*this, stream);
  if (call->Begin(headers)) TakeTurn(*call);
  if (end) call->OnEndOfRequest();
}

void ServerClient::TakeTurn(ServerCall& call) {
  if (handled_ < room_.max_calls && waiting_.empty()) {
    return call.Proceed(MakeTurn());
  }
  waiting_.push_back(call.stream());
}

void ServerClient::OnData(StreamId stream, std::string_view bytes) {
  if (ServerCall* call = Find(stream)) {
    call->OnData(bytes);
  } else {
    session_.Consumed(stream, bytes.size());
  }
}

void ServerClient::OnEndOfData(StreamId stream) {
  if (ServerCall* call = Find(stream)) call->OnEndOfRequest();
}

void ServerClient::OnStreamClosed(StreamId stream, std::uint32_t) {
  const auto found = calls_.find(stream);
  if (found == calls_.end()) return;
  const std::unique_ptr<ServerCall> call = std::move(found->second);
  calls_.erase(found);
  --room_.open_calls;
  // One that begins and resets calls without end leaves nothing behind.
  std::erase(waiting_, stream);
}

std::shared_ptr<void> ServerClient::MakeTurn() {
  ++handled_;
  return std::make_shared<Turn>(room_.loop.mailbox(), turn_over_);
}

void ServerClient::OnTurnOver() {
  --handled_;
  // Not here and now: what waited for long must not hold up other clients.
  if (waiting_.empty() || turns_timer_ != 0 || ended_) return;
  turns_timer_ =
      room_.loop.At(http2::Loop::Clock::now(), [this] { NextTurns(); });
}

void ServerClient::NextTurns() {
  turns_timer_ = 0;
  int begun = 0;
  while (!waiting_.empty() && handled_ < room_.max_calls) {
    if (begun == kTurnCalls) {
      turns_timer_ =
          room_.loop.At(http2::Loop::Clock::now(), [this] { NextTurns(); });
      break;
    }
    ServerCall& call = *calls_.at(waiting_.front());
    waiting_.pop_front();
    ++begun;
    call.Proceed(MakeTurn());
  }
  Settle();
}

void ServerClient::OnPing(const http2::Ping& ping, bool ack) {
  if (!ack) session_.SubmitPing(ping, true);
}

std::optional<http2::Body> ServerClient::BodyOf(StreamId stream) {
  ServerCall* const call = Find(stream);
  if (call == nullptr) return std::nullopt;
  return call->Body();
}

void ServerClient::OnBodyWaits(StreamId stream) {
  if (ServerCall* call = Find(stream)) call->OnBodyWaits();
}

void ServerClient::OnBodySent(StreamId stream, std::size_t) {
  if (ServerCall* call = Find(stream)) call->OnSent();
}

void ServerClient::OnEndSent(StreamId stream) {
  if (ServerCall* call = Find(stream)) call->OnEndSent();
}

}  // namespace devmgr::rpc
