// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apistore/bed.h"
#include "http/raw_client.h"

namespace devmgr::endpoint {

struct Reply {
  int code = 0;
  std::string head;  ///< Status line and headers, in lower case.
  std::string body;

  apistore::Json json() const { return apistore::J(body); }
};

/// A connection that trusts the authority in a file, and no other.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const std::filesystem::path& authority,
            const char* name = "127.0.0.1")
      : client_(port), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_load_verify_locations(context_, authority.c_str(), nullptr);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    ssl_ = SSL_new(context_);
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), name);
    SSL_set_fd(ssl_, client_.fd());
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool connected() const { return connected_; }

  void Send(const std::string& method, const std::string& target,
            const std::string& token, const std::string& body = "",
            const std::string& type = "application/json") {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: x\r\n";
    if (!token.empty()) text += "Authorization: Bearer " + token + "\r\n";
    text += "Accept: application/vnd.kubernetes.protobuf,application/json\r\n";
    if (!body.empty()) text += "Content-Type: " + type + "\r\n";
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    text += body;
    SSL_write(ssl_, text.data(), static_cast<int>(text.size()));
  }
  Reply Call(const std::string& method, const std::string& target,
             const std::string& token, const std::string& body = "",
             const std::string& type = "application/json") {
    Send(method, target, token, body, type);
    Reply reply = Head();
    const std::size_t at = reply.head.find("content-length: ");
    if (at == std::string::npos) {
      while (ReadChunk()) {
      }
      reply.body = std::exchange(text_, "");
      return reply;
    }
    const auto size =
        static_cast<std::size_t>(std::atol(reply.head.c_str() + at + 16));
    while (raw_.size() < size && Fill()) {
    }
    reply.body = raw_.substr(0, size);
    raw_.erase(0, size);
    return reply;
  }

  /// Status line and headers.
  Reply Head() {
    std::size_t end = 0;
    while ((end = raw_.find("\r\n\r\n")) == std::string::npos) {
      if (!Fill()) return {};
    }
    Reply reply;
    reply.head = raw_.substr(0, end + 2);
    raw_.erase(0, end + 4);
    std::transform(reply.head.begin(), reply.head.end(), reply.head.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    reply.code = std::atoi(reply.head.c_str() + 9);
    return reply;
  }
  /// The next event of a watch; null at its end.
  apistore::Json Event() {
    std::size_t end = 0;
    while ((end = text_.find('\n')) == std::string::npos) {
      if (!ReadChunk()) return nullptr;
    }
    const apistore::Json event = apistore::J(text_.substr(0, end));
    text_.erase(0, end + 1);
    return event;
  }
  /// The stream was ended with its last chunk.
  bool ended() const { return ended_; }

 private:
  bool Fill() {
    char bytes[16384];
    const int got = SSL_read(ssl_, bytes, sizeof(bytes));
    if (got <= 0) return false;
    raw_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }
  bool ReadChunk() {
    std::size_t line = 0;
    while ((line = raw_.find("\r\n")) == std::string::npos) {
      if (!Fill()) return false;
    }
    const std::size_t size = std::strtoul(raw_.c_str(), nullptr, 16);
    while (raw_.size() < line + 2 + size + 2) {
      if (!Fill()) return false;
    }
    text_ += raw_.substr(line + 2, size);
    raw_.erase(0, line + 2 + size + 2);
    ended_ = ended_ || size == 0;
    return size > 0;
  }

  http::RawClient client_;
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  bool connected_ = false;
  std::string raw_;
  std::string text_;
  bool ended_ = false;
};

}  // namespace devmgr::endpoint
