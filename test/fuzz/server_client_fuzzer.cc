// SPDX-License-Identifier: Apache-2.0
//
// A client of a server that sends any HTTP/2 frames, and hangs up. Its calls
// are answered or end with it; nothing of it stays.
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/unique_fd.h"
#include "fuzz/fuzz.h"
#include "http2/loop.h"
#include "rpc/handlers.h"
#include "rpc/server_client.h"

namespace devmgr::fuzz {
namespace {

/// What fits a socket without a reader.
constexpr std::size_t kMost = 64 * 1024;
/// The beginning of every connection, so that the bytes get somewhere.
constexpr char kPreface[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

rpc::Handlers Methods(int& gone, std::vector<rpc::Respond>& held) {
  rpc::ServerOptions options;
  options.methods["/e"] = [](std::string request, const rpc::Respond& respond) {
    respond(std::move(request));
  };
  options.methods["/h"] = [&held](const std::string&,
                                  const rpc::Respond& respond) {
    held.push_back(respond);
    if (held.size() % 2 == 0) held.front()(absl::InternalError("broken"));
  };
  options.streams["/s"] = [&gone](const std::string& request,
                                  const std::shared_ptr<rpc::ServerStream>& s) {
    s->WhenClientGone([&gone] { ++gone; });
    s->Write(request);
    s->Write(std::string(5000, 's'));
    if (request.size() % 2 == 0) s->Finish(absl::OkStatus());
  };
  return rpc::HandlersOf(std::move(options));
}

void Connect(std::string_view bytes) {
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                     ends) == 0,
          "there are sockets");
  UniqueFd peer(ends[0]);
  int gone = 0;
  std::vector<rpc::Respond> held;
  std::atomic<std::size_t> open_calls{0};
  const std::unique_ptr<http2::Loop> loop = *http2::Loop::Make();
  std::unique_ptr<rpc::ServerClient> client;
  rpc::ServerRoom room{*loop,
                       Methods(gone, held),
                       2,
                       open_calls,
                       [](const std::string&) {},
                       [&](rpc::ServerClient* over) {
                         Require(over == client.get(), "it ends as itself");
                         loop->Bury(std::move(client));
                         loop->Stop();
                       }};
  client = std::make_unique<rpc::ServerClient>(UniqueFd(ends[1]), std::nullopt,
                                               room);
  Require(client->Start().ok(), "a client is served");
  const std::string all = std::string(kPreface, sizeof(kPreface) - 1) +
                          std::string(bytes.substr(0, kMost));
  Require(send(peer.get(), all.data(), all.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(all.size()),
          "a socket takes the bytes");
  shutdown(peer.get(), SHUT_WR);
  loop->Run();
  for (const rpc::Respond& respond : held) respond("late");
  loop->mailbox()->Close();
  Require(open_calls == 0, "no call stays");
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  devmgr::fuzz::Connect({reinterpret_cast<const char*>(data), size});
  return 0;
}
