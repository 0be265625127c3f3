// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "http/raw_client.h"
#include "http/server.h"
#include "support/temp_folder.h"
#include "support/test_certificates.h"

namespace devmgr::http {
namespace {

/// A certificate that signs itself, with its key, in two files.
struct Pair {
  Pair(const std::filesystem::path& folder, const std::string& name)
      : certificate(folder / (name + ".crt")), key(folder / (name + ".key")) {
    const TestCertificate made = MakeCertificate(name);
    std::ofstream(certificate) << made.Pem();
    std::ofstream(key) << made.KeyPem();
  }
  std::filesystem::path certificate;
  std::filesystem::path key;
};

/// TLS over a connection to the loopback.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const Pair* pair, int version = 0)
      : client_(port), context_(SSL_CTX_new(TLS_client_method())) {
    if (version != 0) SSL_CTX_set_max_proto_version(context_, version);
    if (pair != nullptr) {
      SSL_CTX_use_certificate_file(context_, pair->certificate.c_str(),
                                   SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_, pair->key.c_str(),
                                  SSL_FILETYPE_PEM);
    }
    ssl_ = SSL_new(context_);
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
  std::string Get(const std::string& target, const std::string& end) {
    const std::string request = "GET " + target + " HTTP/1.1\r\n\r\n";
    SSL_write(ssl_, request.data(), static_cast<int>(request.size()));
    std::string text;
    char bytes[4096];
    while (text.find(end) == std::string::npos) {
      const int got = SSL_read(ssl_, bytes, sizeof(bytes));
      if (got <= 0) break;
      text.append(bytes, static_cast<std::size_t>(got));
    }
    return text;
  }
  /// `/CN=server`, the name in the certificate of the server.
  std::string Peer() const {
    X509* certificate = SSL_get1_peer_certificate(ssl_);
    char name[100];
    X509_NAME_oneline(X509_get_subject_name(certificate), name, sizeof(name));
    X509_free(certificate);
    return name;
  }

 private:
  RawClient client_;
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  bool connected_ = false;
};

class HttpTls : public ::testing::Test {
 protected:
  HttpTls() {
    Options options;
    options.tls = Tls{server_pair_.certificate, server_pair_.key,
                      client_pair_.certificate};
    auto server = HttpServer::Start(
        options, [](Request request, std::shared_ptr<Responder> responder) {
          std::string text = "no certificate";
          if (request.certificate.has_value()) {
            text = request.certificate->subject +
                   (request.certificate->verified ? ", verified" : ", foreign");
          }
          responder->Respond({200, {}, text + ".", {}});
        });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  TempFolder folder_;
  const Pair server_pair_{folder_.path(), "server"};
  const Pair client_pair_{folder_.path(), "client"};
  const Pair stranger_pair_{folder_.path(), "stranger"};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTls, ACertificateOfTheClientIsReportedAndNotRequired) {
  const auto answer = [&](const Pair* pair) {
    TlsClient client(server_->port(), pair);
    EXPECT_TRUE(client.connected());
    const std::string text = client.Get("/", "\r\n\r\n");
    return text.substr(text.rfind("\r\n") + 2);
  };
  EXPECT_EQ(answer(nullptr), "no certificate.");
  EXPECT_EQ(answer(&client_pair_), "CN=client, verified.");
  EXPECT_EQ(answer(&stranger_pair_), "CN=stranger, foreign.");
}

TEST_F(HttpTls, AnotherCertificateIsForConnectionsToCome) {
  const std::filesystem::path certificate = server_pair_.certificate;
  TlsClient old(server_->port(), nullptr);
  EXPECT_EQ(old.Peer(), "/CN=server");
  const auto take = [&](const Pair& pair) {
    for (const auto& [from, to] : {std::pair(pair.certificate, certificate),
                                   std::pair(pair.key, server_pair_.key)}) {
      std::filesystem::copy_file(
          from, to, std::filesystem::copy_options::overwrite_existing);
    }
  };
  take(stranger_pair_);
  ASSERT_TRUE(server_->ReloadCertificate().ok());
  EXPECT_EQ(TlsClient(server_->port(), nullptr).Peer(), "/CN=stranger");
  EXPECT_NE(old.Get("/", "\r\n\r\n"), "") << "it goes on";
  std::filesystem::remove(certificate);
  EXPECT_TRUE(absl::IsInvalidArgument(server_->ReloadCertificate()));
  EXPECT_EQ(TlsClient(server_->port(), nullptr).Peer(), "/CN=stranger");
}

TEST_F(HttpTls, OldVersionsAreRefused) {
  TlsClient client(server_->port(), nullptr, TLS1_1_VERSION);
  EXPECT_FALSE(client.connected());
}

TEST_F(HttpTls, WhatIsNoTlsIsCutOff) {
  RawClient client(server_->port());
  client.Get("/");
  EXPECT_EQ(client.ReadAll().find("HTTP"), std::string::npos);
}

TEST_F(HttpTls, AKeyOfAnotherCertificateIsRefused) {
  Options options;
  options.tls = Tls{server_pair_.certificate, client_pair_.key, ""};
  EXPECT_TRUE(
      absl::IsInvalidArgument(HttpServer::Start(options, nullptr).status()));
}

}  // namespace
}  // namespace devmgr::http
