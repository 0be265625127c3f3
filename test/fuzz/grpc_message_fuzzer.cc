// SPDX-License-Identifier: Apache-2.0
//
// Messages, deadlines and statuses as callers and runtimes may write them: read
// within bounds or refused, and what we write we can read.
#include <algorithm>
#include <string>

#include "common/status.h"
#include "fuzz/fuzz.h"
#include "http2/byte_queue.h"
#include "http2/grpc_message.h"

namespace devmgr::fuzz {
namespace {

constexpr std::size_t kLimit = 4096;

void ReadMessage(std::string_view bytes) {
  const std::string encodings[] = {"gzip", "deflate", "identity",
                                   std::string(bytes.substr(0, 100))};
  for (const std::string& encoding : encodings) {
    const absl::StatusOr<std::string> message =
        http2::ReadOnlyMessage(bytes, &encoding, kLimit);
    if (message.ok()) {
      Require(message->size() <= kLimit, "a message keeps its limit");
    } else {
      RequireReadable(MessageOf(message.status()));
    }
  }
  const std::string framed = http2::WithPrefix(bytes);
  const absl::StatusOr<std::string> back =
      http2::ReadOnlyMessage(framed, nullptr, bytes.size());
  Require(back.ok() && *back == bytes, "what we frame we can read");
}

/// Cut anywhere, it is the same.
void FindBoundary(std::string_view bytes) {
  http2::MessageBoundary whole;
  whole.Feed(bytes);
  http2::MessageBoundary pieces;
  http2::ByteQueue queue;
  http2::ByteQueue moved;
  for (std::size_t at = 0, step = 1; at < bytes.size(); at += step, ++step) {
    pieces.Feed(bytes.substr(at, step));
    queue.Append(bytes.substr(at, step));
    if (step % 3 == 0) queue.MoveTo(moved, queue.size() / 2);
  }
  const std::string copy = moved.TakeAll() + queue.TakeAll();
  Require(whole.between() == pieces.between(), "a boundary is a boundary");
  Require(copy == bytes, "a queue keeps what it gets");
}

void ReadTexts(const std::string& text) {
  Require(http2::DecodeStatusMessage(http2::EncodeStatusMessage(text)) == text,
          "what we encode we can decode");
  RequireReadable("." + http2::EncodeStatusMessage(text), 4 * text.size() + 8);
  if (const auto timeout = http2::ParseTimeout(text)) {
    Require(timeout->count() >= 0, "a timeout is not negative");
    const auto back = http2::ParseTimeout(http2::FormatTimeout(*timeout));
    Require(back && (*back <= *timeout || timeout->count() == 0),
            "a timeout does not grow");
  }
  const absl::Status status =
      http2::StatusIn({{"grpc-status", text}, {"grpc-message", text}});
  Require(status.raw_code() >= 0 && status.raw_code() <= 16,
          "a status has a code");
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  devmgr::fuzz::ReadMessage(bytes);
  devmgr::fuzz::FindBoundary(bytes);
  devmgr::fuzz::ReadTexts(std::string(bytes));
  return 0;
}
