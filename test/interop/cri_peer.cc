// SPDX-License-Identifier: Apache-2.0
//
// What stands on the way of the Go peers of proxy/: the proxy itself, alone in
// its process, or a runtime on nghttp2 that answers with what it was sent.
// Prints `ready` and serves until stdin ends.
//
//   cri_peer proxy LISTEN RUNTIME
//   cri_peer record SOCKET
#include <devmgr/cri.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "support/raw_peer.h"

namespace devmgr {
namespace {

using http2::RawConnection;

/// The headers it had, one `name=value` per line, and the size of its body, as
/// one message.
void Tell(RawConnection& connection, std::int32_t stream,
          const http2::RawMessage& request) {
  if (!request.ended) return;
  std::string text;
  for (const auto& [name, value] : request.headers.front()) {
    // Each call has another one.
    const bool time = name == "grpc-timeout";
    text.append(name).append("=").append(time ? "given" : value).append("\n");
  }
  text += std::to_string(request.body_bytes) + " bytes";
  http2::RawSend send;
  send.headers = {{":status", "200"},
                  {"content-type", "application/grpc"},
                  {"x-first", "one"},
                  {"x-first", "two"}};
  send.body = http2::Message(text);
  send.trailers = {
      {"grpc-status", "0"}, {"x-last-bin", "AP8"}, {"x-last", "done"}};
  connection.Answer(stream, std::move(send));
}

void WaitForEnd() {
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

int Proxy(const char* listen, const char* runtime) {
  CriProxyOptions options;
  options.listen = listen;
  options.backend = runtime;
  const auto proxy = CriProxy::Start(options);
  if (!proxy.ok()) {
    std::fprintf(stderr, "%s\n", proxy.status().ToString().c_str());
    return 1;
  }
  WaitForEnd();
  return 0;
}

int Record(const char* socket) {
  RawConnection::Options options;
  options.on_event = Tell;
  const http2::RawServer server(socket, options);
  WaitForEnd();
  return 0;
}

}  // namespace
}  // namespace devmgr

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "proxy" && argc == 4) return devmgr::Proxy(argv[2], argv[3]);
  if (what == "record" && argc == 3) return devmgr::Record(argv[2]);
  std::fprintf(stderr, "cri_peer proxy LISTEN RUNTIME | record SOCKET\n");
  return 2;
}
