// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>

#include "common/unique_fd.h"
#include "support/mailbox.h"

namespace devmgr {

/// A connection to a server on the loopback; plain bytes.
class HttpClient {
 public:
  /// Small ones take in a few hundred bytes of what nobody reads, and leave
  /// those of the server little room.
  enum class Buffers { kUsual, kSmall };

  explicit HttpClient(in_port_t port, Buffers buffers = Buffers::kUsual)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{kPatience.count(), 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience,
                 sizeof(patience));
    if (buffers == Buffers::kSmall) {
      SetOption(IPPROTO_TCP, TCP_MAXSEG, 88);
      SetOption(SOL_SOCKET, SO_RCVBUF, 1024);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address),
                           sizeof(address)) == 0;
  }

  bool connected() const { return connected_; }
  void Send(std::string_view bytes) {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// All that comes until the other end hangs up.
  std::string ReadAll() {
    std::string all;
    char bytes[4096];
    for (;;) {
      const ssize_t got = ::recv(fd_.get(), bytes, sizeof(bytes), 0);
      if (got <= 0) {
        EXPECT_TRUE(got == 0 || errno == ECONNRESET) << "no end of the answer";
        return all;
      }
      all.append(bytes, static_cast<std::size_t>(got));
    }
  }

  /// False when none begins to come.
  bool WaitForAnswer() const {
    pollfd answer{fd_.get(), POLLIN, 0};
    const std::chrono::milliseconds patience = kPatience;
    return ::poll(&answer, 1, static_cast<int>(patience.count())) == 1;
  }

 private:
  void SetOption(int level, int name, int value) const {
    EXPECT_EQ(::setsockopt(fd_.get(), level, name, &value, sizeof(value)), 0);
  }

  const UniqueFd fd_;
  bool connected_ = false;
};

/// The whole answer: status line, headers, body.
inline std::string HttpGet(in_port_t port, const std::string& path) {
  HttpClient client(port);
  EXPECT_TRUE(client.connected());
  if (!client.connected()) return "";
  client.Send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return client.ReadAll();
}

}  // namespace devmgr
