// SPDX-License-Identifier: Apache-2.0
//
// What gRPC puts into HTTP/2: messages with a prefix, statuses and deadlines in
// headers. Values in, values out; all of it comes from outside.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::http2 {

struct Header {
  std::string name;
  std::string value;
  bool never_index = false;  ///< Not to enter anybody's compression table.
};
using Headers = std::vector<Header>;

/// What RFC 9113 counts for each header beside its texts.
inline constexpr std::size_t kHeaderOverhead = 32;
/// The size of a list of headers by that measure.
std::size_t ListBytes(const Headers& headers);

/// The first value of `name`, or null.
const std::string* FindHeader(const Headers& headers, std::string_view name);

/// Bytes before each message: one of flags, four of length.
inline constexpr std::size_t kPrefixBytes = 5;

struct PrefixedMessage {
  bool compressed = false;
  std::string_view bytes;  ///< Within what was read.
};

/// The one message that `body` is; InvalidArgument if it is anything else.
absl::StatusOr<PrefixedMessage> ReadOnlyMessage(std::string_view body);

/// The bytes of the only message of `body`, uncompressed. `encoding`: value of
/// grpc-encoding; null if there is none.
///   InvalidArgument    not exactly one message, or broken compression
///   Unimplemented      an encoding that we do not know
///   ResourceExhausted  more than `limit` bytes
absl::StatusOr<std::string> ReadOnlyMessage(std::string_view body,
                                            const std::string* encoding,
                                            std::size_t limit);

/// `message` with the prefix of an uncompressed one. Below 4 GiB.
std::string WithPrefix(std::string_view message);
/// That prefix, for a message of `length` bytes.
std::string PrefixOf(std::size_t length);
/// The length that the prefix tells with which `body` begins. There are
/// kPrefixBytes.
std::size_t LengthInPrefix(std::string_view body);

/// Follows a stream of messages to tell whether it is between two of them.
class MessageBoundary {
 public:
  void Feed(std::string_view bytes);
  bool between() const { return missing_ == 0 && prefix_bytes_ == 0; }

 private:
  std::uint64_t missing_ = 0;     ///< Of the message that has begun.
  std::size_t prefix_bytes_ = 0;  ///< Of the prefix that has begun.
  std::uint32_t length_ = 0;
};

/// Value of grpc-timeout; nothing when it is malformed.
std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view value);
/// The same as a value, rounded down to what eight digits hold; at least 1n.
std::string FormatTimeout(std::chrono::nanoseconds timeout);

/// Value of grpc-message, percent-encoded, and back. Whatever is not encoded
/// properly is taken as it is.
std::string EncodeStatusMessage(std::string_view message);
std::string DecodeStatusMessage(std::string_view value);

/// Headers that begin an answer.
Headers Beginning();

/// Headers that end a stream with `status`; with those that begin one in front
/// if `only`.
Headers EndingWith(const absl::Status& status, bool only);

/// The status that headers at the end of a stream tell; Unknown when there is
/// none.
absl::Status StatusIn(const Headers& trailers);

}  // namespace devmgr::http2
