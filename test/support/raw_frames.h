// SPDX-License-Identifier: Apache-2.0
//
// What a client of gRPC sends, as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace devmgr {

inline constexpr std::string_view kHttp2Preface =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string RawFrame(int type, int flags, std::uint32_t stream,
                            std::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) {
    frame += static_cast<char>(payload.size() >> shift & 0xff);
  }
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) {
    frame += static_cast<char>(stream >> shift & 0xff);
  }
  return frame.append(payload);
}

/// A header that is neither compressed nor remembered.
inline std::string RawHeader(std::string_view name, std::string_view value) {
  std::string header(1, '\0');
  header += static_cast<char>(name.size());
  header += name;
  header += static_cast<char>(value.size());
  return header.append(value);
}

/// Where all begins: settings, and a window that is never too small.
inline std::string Greeting() {
  return std::string(kHttp2Preface) + RawFrame(4, 0, 0, "") +
         RawFrame(8, 0, 0, std::string_view("\x7f\x00\x00\x00", 4));
}

/// A whole call with one message.
inline std::string CallFrames(std::uint32_t stream, std::string_view method,
                              std::string_view message) {
  const std::string headers =
      RawHeader(":method", "POST") + RawHeader(":scheme", "http") +
      RawHeader(":path", method) + RawHeader(":authority", "localhost") +
      RawHeader("te", "trailers") +
      RawHeader("content-type", "application/grpc");
  std::string body(1, '\0');
  for (const int shift : {24, 16, 8, 0}) {
    body += static_cast<char>(message.size() >> shift & 0xff);
  }
  return RawFrame(1, 4, stream, headers) +
         RawFrame(0, 1, stream, body.append(message));
}

}  // namespace devmgr
