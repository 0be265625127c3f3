// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/unique_fd.h"
#include "support/mailbox.h"

namespace devmgr::http {

/// A connection to a server on the loopback, byte by byte.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{kPatience.count(), 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience,
                 sizeof(patience));
    // A long request goes out at once, as those of other clients do.
    const int at_once = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &at_once,
                 sizeof(at_once));
    if (receive_buffer > 0) {
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer,
                   sizeof(receive_buffer));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address),
                        sizeof(address)),
              0);
  }

  int fd() const { return fd_.get(); }
  /// False when the other end is gone.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent =
          ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void Get(const std::string& target) {
    EXPECT_TRUE(Send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  /// What comes up to and with `end`; what is left over waits for the next.
  std::string ReadUntil(std::string_view end) {
    for (;;) {
      if (const auto at = rest_.find(end); at != std::string::npos) {
        const std::string text = rest_.substr(0, at + end.size());
        rest_.erase(0, text.size());
        return text;
      }
      if (!ReadMore()) {
        ADD_FAILURE() << "no '" << end << "' in: " << rest_;
        return std::exchange(rest_, {});
      }
    }
  }
  std::string ReadBytes(std::size_t count) {
    while (rest_.size() < count && ReadMore()) {
    }
    EXPECT_GE(rest_.size(), count) << rest_;
    const std::string text = rest_.substr(0, count);
    rest_.erase(0, text.size());
    return text;
  }
  /// All until the server closes.
  std::string ReadAll() {
    while (ReadMore()) {
    }
    return std::exchange(rest_, {});
  }
  void Close() { fd_ = UniqueFd(); }

 private:
  bool ReadMore() {
    char bytes[4096];
    const ssize_t got = ::recv(fd_.get(), bytes, sizeof(bytes), 0);
    if (got < 0) {
      EXPECT_EQ(errno, ECONNRESET) << "the server did not close";
    }
    if (got <= 0) return false;
    rest_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  UniqueFd fd_;
  std::string rest_;
};

}  // namespace devmgr::http
