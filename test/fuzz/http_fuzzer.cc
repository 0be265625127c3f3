// SPDX-License-Identifier: Apache-2.0
//
// What a client may send to the HTTP server: whatever it is, the connection
// ends in time, and the next client is served. The first byte says how long the
// pieces are in which it comes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>

#include "common/unique_fd.h"
#include "fuzz/fuzz.h"
#include "http/server.h"

namespace devmgr::fuzz {
namespace {

constexpr std::uint64_t kMaxBody = 4096;
constexpr std::string_view kGood =
    "GET /good HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

bool IsGraphic(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isgraph(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0;
  });
}

void Answer(const http::Request& request,
            const std::shared_ptr<http::Responder>& responder) {
  Require(IsGraphic(request.method), "a method is one word");
  Require(IsGraphic(request.target), "a target is one word");
  Require(request.body.size() <= kMaxBody, "a body is bounded");
  for (const auto& [name, value] : request.headers) {
    Require(IsGraphic(name), "the name of a header is one word");
    Require(value.find_first_of("\r\n") == std::string::npos,
            "a header is one line");
  }
  if (request.target.find("stream") == std::string::npos) {
    return responder->Respond({.status = 200,
                               .headers = {},
                               .body = request.body,
                               .cut_after = std::nullopt});
  }
  const auto stream = responder->Stream(200, {}, {});
  stream->Write(request.body + "x");
  stream->End();
}

/// Serves for as long as the program runs.
std::uint16_t Port() {
  static const auto server = [] {
    http::Options options;
    options.max_header_bytes = 8192;
    options.max_body_bytes = kMaxBody;
    auto started = http::HttpServer::Start(options, Answer);
    Require(started.ok(), "the server starts");
    return *std::move(started);
  }();
  return server->port();
}

/// What a call on a socket returns in the end. libFuzzer looks every few
/// seconds, by a signal, whether an input hangs; a call with a time limit is
/// not resumed after one.
template <typename Call>
ssize_t Resumed(Call call) {
  for (;;) {
    const ssize_t result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// All that the server answers until it hangs up. It takes a client that has
/// ended its own side for one that has left.
std::string Send(std::string_view bytes, std::size_t piece, bool leave) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{20, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(Port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* server = reinterpret_cast<const sockaddr*>(&address);
  Require(
      Resumed([&] { return connect(fd.get(), server, sizeof(address)); }) == 0,
      "the server can be connected to");
  while (!bytes.empty()) {
    const ssize_t sent = Resumed([&] {
      return send(fd.get(), bytes.data(), std::min(piece, bytes.size()),
                  MSG_NOSIGNAL);
    });
    if (sent <= 0) break;  // It has hung up: what it said is there to read.
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  if (leave) shutdown(fd.get(), SHUT_WR);
  std::string answer;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = Resumed(
              [&] { return recv(fd.get(), buffer, sizeof(buffer), 0); })) > 0) {
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  Require(got == 0 || errno == ECONNRESET, "a connection comes to its end");
  return answer;
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using devmgr::fuzz::Require;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  const std::string answer = devmgr::fuzz::Send(bytes, 1 + data[0], true);
  Require(answer.empty() || answer.starts_with("HTTP/1."),
          "what is answered is HTTP");
  Require(devmgr::fuzz::Send(devmgr::fuzz::kGood, 4096, false)
              .starts_with("HTTP/1.1 200 "),
          "the next client is served");
  return 0;
}
