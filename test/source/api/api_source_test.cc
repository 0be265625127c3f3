// SPDX-License-Identifier: Apache-2.0
//
// The source over real sockets and files.
#include <devmgr/api_server.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "source/api/api_texts.h"
#include "support/mailbox.h"
#include "support/raw_http_server.h"
#include "support/temp_folder.h"
#include "support/test_certificates.h"

namespace devmgr::apiserver {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ApiSourceTest : public ::testing::Test {
 protected:
  ~ApiSourceTest() override {
    if (source != nullptr) source->Unsubscribe();
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder.path() / name) << text;
  }
  /// A kubeconfig for the server, with a token in a file.
  void WriteKubeconfig() {
    server.UseTls(MakeCertificate("127.0.0.1", &authority));
    Write("ca.pem", authority.Pem());
    Write("token", "sesame\n");
    Write("config",
          "current-context: c\n"
          "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
          "clusters: [{name: k, cluster: {server: '" +
              server.Url("https") +
              "', certificate-authority: ca.pem}}]\n"
              "users: [{name: u, user: {tokenFile: token}}]\n");
  }
  absl::Status Start() {
    ApiServerOptions options;
    options.kubeconfig = folder.path() / "config";
    options.node_name = "n1";
    options.log = [this](LogLevel, std::string_view text) {
      log.Put(std::string(text));
    };
    auto started = WatchApiServer(options);
    if (!started.ok()) return started.status();
    source = *std::move(started);
    source->Subscribe([this] { changes.Put(true); });
    return absl::OkStatus();
  }
  /// Answers what is asked for first, until the pods are watched; a connection
  /// for each request.
  RawConnection ServeUntilWatch() {
    for (;;) {
      RawConnection connection = server.Accept();
      const std::string request = connection.ReadRequest();
      EXPECT_THAT(request, HasSubstr("Authorization: Bearer sesame"));
      if (request.find("watch=true") != std::string::npos) {
        connection.BeginChunks();
        return connection;
      }
      if (request.find("/api/v1/pods") != std::string::npos) {
        connection.Answer(ListText({PodText("a", "u-a", 7)}, "100"), "200 OK",
                          "Connection: close\r\n");
      } else {
        connection.Answer("", "404 No", "Connection: close\r\n");
      }
    }
  }
  bool WaitFor(const std::function<bool(const ObjectSnapshot&)>& wanted) {
    while (!wanted(*source->Snapshot())) {
      if (!changes.Take()) return false;
    }
    return true;
  }

  TempFolder folder;
  RawHttpServer server;
  const TestCertificate authority = MakeCertificate("test CA");
  Mailbox<bool> changes;
  Mailbox<std::string> log;
  std::unique_ptr<ApiServerSource> source;
};

TEST_F(ApiSourceTest, PublishesThePodsOfTheServer) {
  WriteKubeconfig();
  ASSERT_TRUE(Start().ok());
  RawConnection watch = ServeUntilWatch();
  ASSERT_TRUE(WaitFor([](const ObjectSnapshot& snapshot) {
    return snapshot.complete && snapshot.pods.size() == 1;
  }));
  watch.SendChunk(EventText("ADDED", PodText("b", "u-b", 101)));
  ASSERT_TRUE(WaitFor([](const ObjectSnapshot& snapshot) {
    return snapshot.pods.size() == 2;
  }));
  EXPECT_EQ(
      source->Describe(),
      "API server of " + (folder.path() / "config").string() + " (node n1)");
  EXPECT_THAT(source->State(), HasSubstr("Watching"));
  while (log.size() > 0) {
    EXPECT_THAT(*log.Take(), Not(HasSubstr("sesame")));
  }
}

TEST_F(ApiSourceTest, NeedsTheNameOfTheNode) {
  EXPECT_EQ(WatchApiServer({}).status().message(),
            "the name of the node is not set");
}

TEST_F(ApiSourceTest, StopsWhileAServerIsSilent) {
  WriteKubeconfig();
  ASSERT_TRUE(Start().ok());
  RawConnection connection = server.Accept();
  EXPECT_NE(connection.ReadRequest(), "");
  source.reset();
}

}  // namespace
}  // namespace devmgr::apiserver
