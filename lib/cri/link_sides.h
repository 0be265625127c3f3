// SPDX-License-Identifier: Apache-2.0
//
// Inside of Link: what its two sessions tell, and the connection to the
// runtime.
#pragma once

#include <optional>
#include <utility>

#include "cri/link.h"

namespace devmgr::cri {

class Link::Side final : public http2::SessionEvents, public http2::Readable {
 public:
  Side(Link* link, bool of_client) : link_(*link), of_client_(of_client) {}

  void OnReady(std::uint32_t events) override { link_.OnClientReady(events); }

  void OnHeaders(http2::StreamId id, http2::Headers headers,
                 bool end) override {
    if (of_client_) {
      link_.OnClientHeaders(id, std::move(headers), end);
    } else if (Stream* stream = Find(id)) {
      link_.OnBackendHeaders(*stream, std::move(headers), end);
    }
  }
  void OnData(http2::StreamId id, std::string_view bytes) override {
    Stream* stream = Find(id);
    if (stream == nullptr) return;
    of_client_ ? link_.OnClientData(*stream, bytes)
               : link_.OnBackendData(*stream, bytes);
  }
  void OnEndOfData(http2::StreamId id) override {
    Stream* stream = Find(id);
    if (stream == nullptr) return;
    of_client_ ? link_.OnRequestEnded(*stream) : link_.OnAnswerEnded(*stream);
  }
  void OnStreamClosed(http2::StreamId id, std::uint32_t error) override {
    Stream* stream = Find(id);
    if (stream == nullptr) return;
    of_client_ ? link_.OnClientStreamClosed(*stream, error)
               : link_.OnBackendStreamClosed(*stream, error);
  }
  void OnPing(const http2::Ping& ping, bool ack) override {
    of_client_ ? link_.OnClientPing(ping, ack) : link_.OnBackendPing(ping, ack);
  }
  void OnSettings() override {
    of_client_ ? link_.OnClientSettings() : link_.OnBackendSettings();
  }
  void OnGoaway(http2::StreamId last, std::uint32_t error,
                std::string_view debug) override {
    // A caller that says goodbye makes no more calls; its session ends with the
    // last one.
    if (!of_client_) link_.OnBackendGoaway(last, error, debug);
  }

  std::optional<http2::Body> BodyOf(http2::StreamId id) override {
    Stream* stream = Find(id);
    if (stream == nullptr) return std::nullopt;
    Flow& flow = Sent(*stream);
    return http2::Body{&flow.queue, flow.ended,
                       flow.trailers ? &*flow.trailers : nullptr};
  }
  void OnBodyEnds(http2::StreamId id) override {
    if (Stream* stream = Find(id)) Sent(*stream).finished = true;
  }
  void OnBodyWaits(http2::StreamId id) override {
    if (Stream* stream = Find(id)) Sent(*stream).waits = true;
  }
  void OnBodySent(http2::StreamId id, std::size_t count) override {
    if (Stream* stream = Find(id)) link_.OnSent(*stream, of_client_, count);
  }
  void OnEndSent(http2::StreamId id) override {
    if (Stream* stream = Find(id)) link_.OnEndSent(*stream, of_client_);
  }

 private:
  Stream* Find(http2::StreamId id) { return link_.Find(id, of_client_); }
  Flow& Sent(Stream& stream) const {
    return of_client_ ? stream.down : stream.up;
  }

  Link& link_;
  const bool of_client_;
};

class Link::Backend final : public http2::Buried, public http2::Readable {
 public:
  Backend(UniqueFd fd, Link* link)
      : session(http2::Session::Role::kClient, std::move(fd), link->loop_,
                link->backend_side_.get(), this),
        link_(*link) {}

  void OnReady(std::uint32_t events) override {
    // Events may come once more after it was closed.
    if (!session.closed()) link_.OnBackendReady(events);
  }

  http2::Session session;

 private:
  Link& link_;
};

}  // namespace devmgr::cri
