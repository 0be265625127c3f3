// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_message.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "common/status.h"

namespace devmgr::http2 {
namespace {

/// More digits are not allowed in grpc-timeout.
constexpr std::uint64_t kMaxTimeoutValue = 99'999'999;

struct TimeoutUnit {
  char letter;
  std::chrono::nanoseconds length;
};
constexpr std::array<TimeoutUnit, 6> kTimeoutUnits = {{
    {'n', std::chrono::nanoseconds(1)},
    {'u', std::chrono::microseconds(1)},
    {'m', std::chrono::milliseconds(1)},
    {'S', std::chrono::seconds(1)},
    {'M', std::chrono::minutes(1)},
    {'H', std::chrono::hours(1)},
}};

std::uint32_t LengthIn(const char* bytes) {
  std::uint32_t length = 0;
  for (int i = 0; i < 4; ++i) {
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return length;
}

/// Both gzip and zlib ("deflate") by their own headers.
absl::StatusOr<std::string> Inflate(std::string_view bytes, std::size_t limit) {
  constexpr int kAnyHeader = 32;
  z_stream stream{};
  if (inflateInit2(&stream, kAnyHeader + MAX_WBITS) != Z_OK) {
    return InternalError("zlib does not start");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&stream, inflateEnd);
  // zlib does not write there.
  stream.next_in =
      const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string result;
  int outcome = Z_OK;
  while (outcome == Z_OK) {
    std::array<Bytef, 16384> chunk;
    stream.next_out = chunk.data();
    stream.avail_out = chunk.size();
    outcome = inflate(&stream, Z_NO_FLUSH);
    const std::size_t got = chunk.size() - stream.avail_out;
    if (result.size() + got > limit) {
      return ResourceExhaustedError("more than {} bytes when uncompressed",
                                    limit);
    }
    result.append(reinterpret_cast<const char*>(chunk.data()), got);
  }
  if (outcome != Z_STREAM_END || stream.avail_in != 0) {
    return InvalidArgumentError("{} bytes are not compressed properly",
                                bytes.size());
  }
  return result;
}

/// A foreign text that a message of ours can stand.
std::string Quotable(std::string_view text) {
  constexpr std::size_t kMost = 40;
  return EncodeStatusMessage(text.substr(0, kMost));
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::size_t ListBytes(const Headers& headers) {
  std::size_t bytes = 0;
  for (const Header& header : headers) {
    bytes += header.name.size() + header.value.size() + kHeaderOverhead;
  }
  return bytes;
}

const std::string* FindHeader(const Headers& headers, std::string_view name) {
  const auto it =
      std::find_if(headers.begin(), headers.end(),
                   [&](const Header& header) { return header.name == name; });
  return it == headers.end() ? nullptr : &it->value;
}

absl::StatusOr<PrefixedMessage> ReadOnlyMessage(std::string_view body) {
  if (body.size() < kPrefixBytes) {
    return InvalidArgumentError("{} bytes are no message", body.size());
  }
  const std::size_t length = LengthInPrefix(body);
  const std::string_view rest = body.substr(kPrefixBytes);
  if (rest.size() != length) {
    return InvalidArgumentError("a message of {} bytes comes with {} bytes",
                                length, rest.size());
  }
  const auto flags = static_cast<unsigned char>(body[0]);
  if (flags > 1) return InvalidArgumentError("flags {} of a message", flags);
  return PrefixedMessage{flags == 1, rest};
}

absl::StatusOr<std::string> ReadOnlyMessage(std::string_view body,
                                            const std::string* encoding,
                                            std::size_t limit) {
  DEVMGR_ASSIGN_OR_RETURN(const PrefixedMessage message, ReadOnlyMessage(body));
  if (!message.compressed || (encoding != nullptr && *encoding == "identity")) {
    if (message.bytes.size() > limit) {
      return ResourceExhaustedError("{} bytes, more than {}",
                                    message.bytes.size(), limit);
    }
    return std::string(message.bytes);
  }
  if (encoding == nullptr) {
    return InvalidArgumentError("a compressed message without encoding");
  }
  if (*encoding != "gzip" && *encoding != "deflate") {
    return UnimplementedError("encoding '{}'", Quotable(*encoding));
  }
  return Inflate(message.bytes, limit);
}

std::string PrefixOf(std::size_t length) {
  std::string result(kPrefixBytes, '\0');
  for (int i = 0; i < 4; ++i) {
    result[4 - i] = static_cast<char>(length >> (8 * i) & 0xff);
  }
  return result;
}

std::string WithPrefix(std::string_view message) {
  return PrefixOf(message.size()).append(message);
}

std::size_t LengthInPrefix(std::string_view body) {
  return LengthIn(body.data() + 1);
}

void MessageBoundary::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (missing_ > 0) {
      const std::uint64_t taken =
          std::min<std::uint64_t>(missing_, bytes.size());
      missing_ -= taken;
      bytes.remove_prefix(taken);
      continue;
    }
    if (prefix_bytes_ > 0) {
      length_ = length_ << 8 | static_cast<unsigned char>(bytes[0]);
    }
    bytes.remove_prefix(1);
    if (++prefix_bytes_ == kPrefixBytes) {
      missing_ = length_;
      prefix_bytes_ = 0;
    }
  }
}

std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view value) {
  if (value.size() < 2 || value.size() > 9) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = value.data() + value.size() - 1;
  const auto [stopped, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  for (const TimeoutUnit& unit : kTimeoutUnits) {
    if (unit.letter != value.back()) continue;
    // So many hours are more than fits.
    constexpr auto kMax = std::chrono::nanoseconds::max();
    if (number > static_cast<std::uint64_t>(kMax / unit.length)) return kMax;
    return number * unit.length;
  }
  return std::nullopt;
}

std::string FormatTimeout(std::chrono::nanoseconds timeout) {
  if (timeout.count() < 1) return "1n";
  for (const TimeoutUnit& unit : kTimeoutUnits) {
    const auto number = static_cast<std::uint64_t>(timeout / unit.length);
    if (number <= kMaxTimeoutValue) {
      return fmt::format("{}{}", number, unit.letter);
    }
  }
  return fmt::format("{}H", kMaxTimeoutValue);
}

std::string EncodeStatusMessage(std::string_view message) {
  std::string result;
  for (const char c : message) {
    if (c >= ' ' && c <= '~' && c != '%') {
      result += c;
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

std::string DecodeStatusMessage(std::string_view value) {
  std::string result;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const bool encoded = value[i] == '%' && i + 2 < value.size() &&
                         HexDigit(value[i + 1]) >= 0 &&
                         HexDigit(value[i + 2]) >= 0;
    if (!encoded) {
      result += value[i];
      continue;
    }
    result +=
        static_cast<char>(HexDigit(value[i + 1]) * 16 + HexDigit(value[i + 2]));
    i += 2;
  }
  return result;
}

Headers Beginning() {
  return {{":status", "200"}, {"content-type", "application/grpc"}};
}

Headers EndingWith(const absl::Status& status, bool only) {
  Headers headers;
  if (only) headers = Beginning();
  headers.push_back({"grpc-status", fmt::format("{}", status.raw_code())});
  headers.push_back({"grpc-message", EncodeStatusMessage(MessageOf(status))});
  return headers;
}

absl::Status StatusIn(const Headers& trailers) {
  const std::string* code = FindHeader(trailers, "grpc-status");
  if (code == nullptr) {
    return MakeStatus(absl::StatusCode::kUnknown, "an answer without a status");
  }
  int number = -1;
  const auto [end, error] =
      std::from_chars(code->data(), code->data() + code->size(), number);
  if (error != std::errc() || end != code->data() + code->size() ||
      number < 0 || number > 16) {
    return MakeStatus(absl::StatusCode::kUnknown,
                      fmt::format("status '{}'", Quotable(*code)));
  }
  const std::string* message = FindHeader(trailers, "grpc-message");
  return MakeStatus(static_cast<absl::StatusCode>(number),
                    message == nullptr ? "" : DecodeStatusMessage(*message));
}

}  // namespace devmgr::http2
