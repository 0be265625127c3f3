// SPDX-License-Identifier: Apache-2.0
//
// A server on the loopback whose part the test plays byte by byte, with or
// without TLS.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/unique_fd.h"
#include "support/mailbox.h"
#include "support/test_certificates.h"

namespace devmgr {

/// One connection of a client. Calls wait as long as a test is patient.
class RawConnection {
 public:
  explicit RawConnection(UniqueFd fd, SSL_CTX* tls = nullptr)
      : fd_(std::move(fd)) {
    const timeval patience{kPatience.count(), 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience,
                 sizeof(patience));
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience,
                 sizeof(patience));
    if (tls == nullptr) return;
    // OpenSSL writes to clients that have hung up.
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    ssl_.reset(SSL_new(tls));
    SSL_set_fd(ssl_.get(), fd_.get());
    is_open_ = SSL_accept(ssl_.get()) == 1;
  }

  /// Whether the client has taken our certificate.
  bool is_open() const { return is_open_; }
  /// What the client called us.
  std::string ServerName() const {
    const char* name =
        SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
    return name == nullptr ? "" : name;
  }
  /// The common name in the client's certificate; empty: it has shown none.
  std::string ClientName() const {
    const std::unique_ptr<X509, void (*)(X509*)> certificate(
        SSL_get1_peer_certificate(ssl_.get()), X509_free);
    if (certificate == nullptr) return "";
    char name[64] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()),
                              NID_commonName, name, sizeof(name));
    return name;
  }

  /// The head of the next request; empty: the client has hung up.
  std::string ReadRequest() {
    std::string text;
    char c = 0;
    while (!text.ends_with("\r\n\r\n")) {
      const auto got = ssl_ != nullptr ? SSL_read(ssl_.get(), &c, 1)
                                       : ::recv(fd_.get(), &c, 1, 0);
      if (got <= 0) return "";
      text += c;
    }
    return text;
  }
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent =
          ssl_ != nullptr
              ? SSL_write(ssl_.get(), bytes.data(),
                          static_cast<int>(bytes.size()))
              : ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// As much as the client and the kernel take at once.
  std::size_t TrySend(std::string_view bytes) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }
  /// Whether the client takes more within this time.
  bool WaitForRoom(std::chrono::milliseconds patience) const {
    pollfd room{fd_.get(), POLLOUT, 0};
    return ::poll(&room, 1, static_cast<int>(patience.count())) == 1;
  }
  void Answer(std::string_view body, std::string_view status = "200 OK",
              std::string_view headers = "") {
    Send(std::string("HTTP/1.1 ") + std::string(status) +
         "\r\nContent-Type: application/json\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body));
  }
  void BeginChunks() {
    Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
  bool SendChunk(std::string_view bytes) {
    char size[32];
    std::snprintf(size, sizeof(size), "%zx\r\n", bytes.size());
    return Send(size + std::string(bytes) + "\r\n");
  }
  void EndChunks() { Send("0\r\n\r\n"); }
  void Close() {
    ssl_.reset();
    fd_.Reset();
  }

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  UniqueFd fd_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  bool is_open_ = true;
};

class RawHttpServer {
 public:
  RawHttpServer() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_.get(), generic, size), 0);
    EXPECT_EQ(::listen(fd_.get(), 16), 0);
    EXPECT_EQ(::getsockname(fd_.get(), generic, &size), 0);
    port_ = ntohs(address.sin_port);
  }

  /// From now on with this certificate, asking clients for theirs.
  void UseTls(const TestCertificate& certificate) {
    tls_.reset(SSL_CTX_new(TLS_server_method()));
    EXPECT_EQ(SSL_CTX_use_certificate(tls_.get(), certificate.x509.get()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(tls_.get(), certificate.key.get()), 1);
    SSL_CTX_set_verify(tls_.get(), SSL_VERIFY_PEER,
                       [](int, X509_STORE_CTX*) { return 1; });
  }

  std::string Url(const std::string& scheme = "http") const {
    return scheme + "://127.0.0.1:" + std::to_string(port_);
  }
  RawConnection Accept() {
    EXPECT_TRUE(HasClient(kPatience)) << "no client came";
    return RawConnection(
        UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)),
        tls_.get());
  }
  bool HasClient(std::chrono::milliseconds patience) const {
    pollfd client{fd_.get(), POLLIN, 0};
    return ::poll(&client, 1, static_cast<int>(patience.count())) == 1;
  }

 private:
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  const UniqueFd fd_;
  std::unique_ptr<SSL_CTX, FreeContext> tls_;
  in_port_t port_ = 0;
};

}  // namespace devmgr
