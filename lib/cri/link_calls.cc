// SPDX-License-Identifier: Apache-2.0
//
// How a link passes calls on. See link.h.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "common/status.h"
#include "cri/link.h"
#include "cri/link_sides.h"
#include "cri/runtime_fields.h"

namespace devmgr::cri {
namespace {

void Resume(Flow& flow, http2::Session& sink, http2::StreamId id) {
  if (std::exchange(flow.waits, false)) sink.ResumeBody(id);
}

/// The source is done, and the sink's session has begun with the flow.
void PassEnd(Flow& flow, http2::Session& sink, http2::StreamId id) {
  if (flow.finished) return;
  if (flow.waits && flow.queue.empty() && flow.trailers) {
    // The session would wait for its window to send nothing.
    flow.finished = true;
    sink.SubmitTrailers(id, *flow.trailers);
    return;
  }
  Resume(flow, sink, id);
}

bool HasBody(const Flow& flow) {
  return !flow.ended || !flow.queue.empty() || flow.trailers;
}

void SetHeader(http2::Headers& headers, std::string_view name,
               const std::string& value) {
  for (http2::Header& header : headers) {
    if (header.name == name) header.value = value;
  }
}

}  // namespace

Stream* Link::Find(http2::StreamId id, bool of_client) {
  if (of_client) {
    const auto it = streams_.find(id);
    return it == streams_.end() ? nullptr : it->second.get();
  }
  const auto it = by_backend_.find(id);
  return it == by_backend_.end() ? nullptr : it->second;
}

// ---- From the caller.

void Link::OnClientHeaders(http2::StreamId id, http2::Headers headers,
                           bool end) {
  if (Stream* stream = Find(id, true)) {
    // Trailers of a request: nobody sends them, but they would be passed on.
    if (!end) return ResetClient(*stream, NGHTTP2_PROTOCOL_ERROR);
    stream->up.trailers = std::move(headers);
    return OnRequestEnded(*stream);
  }
  auto owned = std::make_unique<Stream>();
  Stream& stream = *owned;
  stream.client = id;
  stream.request = std::move(headers);
  stream.held =
      held_calls_.Hold(stream.request, [this, id](CriDecision decision) {
        OnDecision(id, std::move(decision));
      });
  streams_.emplace(id, std::move(owned));
  has_called_ = true;
  held_calls_.counters().calls++;
  held_calls_.counters().total_calls++;
  const bool held = stream.held != nullptr;
  if (held) {
    const absl::Status kept =
        stream.kept.emplace(held_calls_).Take(http2::ListBytes(stream.request));
    if (!kept.ok()) {
      stream.up.ended = end;
      return PassUnread(stream, kept);
    }
  }
  if (end) OnRequestEnded(stream);
  if (!held) Forward(stream);
}

void Link::OnClientData(Stream& stream, std::string_view bytes) {
  const bool collecting = stream.held != nullptr &&
                          stream.held->phase() == HeldCall::Phase::kCollecting;
  const bool wanted =
      stream.backend_open || (stream.backend == 0 && !stream.down.ended);
  if (!wanted) {
    // Nobody reads it any more.
    client_->Consumed(stream.client, bytes.size());
    return;
  }
  stream.up.queue.Append(bytes);
  if (collecting) {
    client_->Consumed(stream.client, bytes.size());
    stream.up.prepaid += bytes.size();
    const std::size_t limit = held_calls_.options().max_held_bytes;
    absl::Status kept = stream.kept->Take(bytes.size());
    if (stream.up.queue.size() > limit + http2::kPrefixBytes) {
      kept = ResourceExhaustedError("more than {} bytes", limit);
    }
    if (!kept.ok()) PassUnread(stream, kept);
    return;
  }
  if (stream.backend_open) {
    Resume(stream.up, backend_->session, stream.backend);
  }
}

void Link::OnRequestEnded(Stream& stream) {
  stream.up.ended = true;
  if (stream.backend_open) {
    PassEnd(stream.up, backend_->session, stream.backend);
  }
  if (stream.held == nullptr ||
      stream.held->phase() != HeldCall::Phase::kCollecting) {
    return;
  }
  std::string body = stream.up.queue.TakeAll();
  const absl::Status asked = stream.held->Ask(body);
  stream.up.queue.Append(body);
  if (!asked.ok()) PassUnread(stream, asked);
}

void Link::OnClientStreamClosed(Stream& stream, std::uint32_t error) {
  stream.client_open = false;
  const bool clean = stream.down.end_sent && stream.up.ended;
  if (stream.held != nullptr && !clean) {
    stream.held->End(CancelledError("the caller gave up"), false);
  }
  stream.down.queue.Clear();
  if (stream.backend_open) {
    if (!clean) {
      ResetBackend(stream, error);
    } else if (!stream.up.finished) {
      // It has answered without having read all of the request.
      ResetBackend(stream, NGHTTP2_NO_ERROR);
    }
  }
  GoIfOver(stream);
}

// ---- From the runtime.

void Link::OnBackendHeaders(Stream& stream, http2::Headers headers, bool end) {
  pings_.RuntimeSpoke();
  if (stream.held != nullptr) {
    stream.held->ObserveHeaders(headers);
    if (end) stream.held->End(http2::StatusIn(headers), true);
  }
  if (!stream.client_open) return;
  if (!stream.answered) {
    stream.answered = true;
    stream.down.ended = end;
    stream.down.finished = end;
    client_->SubmitResponse(stream.client, headers, !end);
    return;
  }
  if (!end) {
    // Neither the beginning nor the end of an answer: not HTTP.
    ResetBackend(stream, NGHTTP2_PROTOCOL_ERROR);
    return;
  }
  stream.down.trailers = std::move(headers);
  stream.down.ended = true;
  PassEnd(stream.down, *client_, stream.client);
}

void Link::OnBackendData(Stream& stream, std::string_view bytes) {
  pings_.RuntimeSpoke();
  if (!stream.client_open || !stream.answered) {
    backend_->session.Consumed(stream.backend, bytes.size());
    return;
  }
  if (stream.held != nullptr) stream.held->ObserveData(bytes);
  stream.down.boundary.Feed(bytes);
  stream.down.queue.Append(bytes);
  Resume(stream.down, *client_, stream.client);
}

void Link::OnAnswerEnded(Stream& stream) {
  if (stream.held != nullptr) {
    stream.held->End(
        MakeStatus(absl::StatusCode::kUnknown, "an answer without a status"),
        true);
  }
  stream.down.ended = true;
  if (stream.client_open) PassEnd(stream.down, *client_, stream.client);
}

void Link::OnBackendStreamClosed(Stream& stream, std::uint32_t error) {
  stream.backend_open = false;
  stream.up.queue.Clear();
  if (stream.client_open) {
    const bool complete = stream.down.ended;
    if (stream.held != nullptr && !complete) {
      stream.held->End(UnavailableError("the runtime reset the call: {}",
                                        nghttp2_http2_strerror(error)),
                       false);
    }
    if (!complete || (error != NGHTTP2_NO_ERROR) || !stream.up.ended) {
      // After what has come from it.
      stream.down.reset = error;
      const bool all_sent =
          complete ? stream.down.end_sent : stream.down.queue.empty();
      if (all_sent) ResetClient(stream, error);
    }
  }
  GoIfOver(stream);
}

// ---- What sessions have sent.

void Link::OnSent(Stream& stream, bool to_client, std::size_t count) {
  Flow& flow = to_client ? stream.down : stream.up;
  const std::size_t prepaid = std::min(count, flow.prepaid);
  flow.prepaid -= prepaid;
  if (to_client) {
    if (stream.backend_open) {
      backend_->session.Consumed(stream.backend, count);
    }
    if (flow.reset && flow.queue.empty() && !flow.ended) {
      ResetClient(stream, *flow.reset);
    }
  } else if (stream.client_open && count > prepaid) {
    client_->Consumed(stream.client, count - prepaid);
  }
}

void Link::OnEndSent(Stream& stream, bool to_client) {
  Flow& flow = to_client ? stream.down : stream.up;
  flow.end_sent = true;
  if (to_client && flow.reset && stream.client_open) {
    ResetClient(stream, *flow.reset);
  }
}

// ---- Held calls.

void Link::OnDecision(http2::StreamId client, CriDecision decision) {
  Stream* stream = Find(client, true);
  if (stream == nullptr || ended_) return;
  switch (decision.kind()) {
    case CriDecision::Kind::kForward:
      Forward(*stream);
      break;
    case CriDecision::Kind::kReplace:
      stream->up.queue.Clear();
      stream->up.queue.Append(http2::WithPrefix(decision.message()));
      stream->up.prepaid = stream->up.queue.size();
      std::erase_if(stream->request, [](const http2::Header& header) {
        return header.name == "content-length";
      });
      Forward(*stream);
      break;
    case CriDecision::Kind::kFail:
      Fail(*stream, decision.status());
      break;
  }
  Settle();
}

void Link::PassUnread(Stream& stream, const absl::Status& why) {
  const absl::Status refused = held_calls_.Unreadable(stream.request, why);
  stream.held.reset();
  if (refused.ok()) return Forward(stream);
  Fail(stream, refused);
}

// ---- Calling the runtime.

void Link::Forward(Stream& stream) {
  absl::Status absent;
  if (state_ == BackendState::kAbsent) absent = ConnectBackend();
  switch (state_) {
    case BackendState::kReady:
      return Submit(stream);
    case BackendState::kConnecting:
      waiting_.push_back(stream.client);
      return;
    case BackendState::kLeaving:
      return ResetClient(stream, NGHTTP2_REFUSED_STREAM);
    case BackendState::kAbsent:
      break;
  }
  const std::string* path = http2::FindHeader(stream.request, ":path");
  if (path == nullptr || *path != method::kVersion) return Fail(stream, absent);
  if (!stream.patience) {
    const auto now = http2::Loop::Clock::now();
    stream.patience = now + held_calls_.options().version_patience;
    // The caller gets our answer rather than none.
    if (const auto deadline = DeadlineOf(stream.request, now)) {
      stream.patience =
          std::min(*stream.patience, LatestAnswer(now, *deadline));
    }
  }
  waiting_.push_back(stream.client);
}

void Link::SubmitWaiting() {
  for (const http2::StreamId id : std::exchange(waiting_, {})) {
    Stream* stream = Find(id, true);
    if (stream != nullptr && stream->client_open) Forward(*stream);
  }
}

void Link::FailImpatient(const absl::Status& why) {
  const auto now = http2::Loop::Clock::now();
  for (const http2::StreamId id : std::exchange(waiting_, {})) {
    Stream* stream = Find(id, true);
    if (stream == nullptr || !stream->client_open) continue;
    if (stream->patience && now < *stream->patience) {
      waiting_.push_back(id);
    } else {
      Fail(*stream, why);
    }
  }
}

void Link::Submit(Stream& stream) {
  if (stream.held != nullptr) {
    const auto left = stream.held->TimeLeft();
    if (left && left->count() <= 0) {
      return Fail(stream,
                  DeadlineExceededError("no time is left for the runtime"));
    }
    if (left) {
      SetHeader(stream.request, "grpc-timeout", http2::FormatTimeout(*left));
    }
  }
  const bool has_body = HasBody(stream.up);
  const std::optional<http2::StreamId> id =
      backend_->session.SubmitRequest(stream.request, has_body);
  if (!id) return ResetClient(stream, NGHTTP2_REFUSED_STREAM);
  backend_used_ = true;
  stream.backend = *id;
  stream.backend_open = true;
  stream.up.finished = !has_body;
  by_backend_[*id] = &stream;
  stream.request = {};
}

// ---- Ends that are ours.

void Link::Fail(Stream& stream, const absl::Status& status) {
  if (stream.held != nullptr) stream.held->End(status, false);
  if (!stream.client_open || stream.down.ended) return;
  stream.up.queue.Clear();
  stream.down.ended = true;
  // Who still sends should stop.
  if (!stream.up.ended) stream.down.reset = NGHTTP2_NO_ERROR;
  if (!stream.answered) {
    stream.answered = true;
    stream.down.finished = true;
    client_->SubmitResponse(stream.client, http2::EndingWith(status, true),
                            false);
    return;
  }
  stream.down.trailers = http2::EndingWith(status, false);
  PassEnd(stream.down, *client_, stream.client);
}

void Link::LoseCall(Stream& stream, const absl::Status& why) {
  stream.backend_open = false;
  if (!stream.client_open) return GoIfOver(stream);
  if (stream.down.ended) {
    // Its answer is complete.
    if (!stream.up.ended) stream.down.reset = NGHTTP2_NO_ERROR;
    if (stream.down.reset && stream.down.end_sent) {
      ResetClient(stream, *stream.down.reset);
    }
    return;
  }
  // A status in the middle of a message would not be understood.
  if (!stream.down.boundary.between()) cut_ = true;
  Fail(stream, why);
}

void Link::ResetClient(Stream& stream, std::uint32_t error) {
  if (stream.client_open) client_->SubmitReset(stream.client, error);
}

void Link::ResetBackend(Stream& stream, std::uint32_t error) {
  if (stream.backend_open) {
    backend_->session.SubmitReset(stream.backend, error);
  }
}

void Link::GoIfOver(Stream& stream) {
  if (!stream.client_open && !stream.backend_open) {
    dead_.push_back(stream.client);
  }
}

}  // namespace devmgr::cri
