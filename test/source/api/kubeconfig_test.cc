// SPDX-License-Identifier: Apache-2.0
#include "source/api/kubeconfig.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/status_matchers.h"

namespace devmgr::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A kubeconfig with these lines for its cluster and its user.
std::string ConfigText(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
         "contexts: [{name: c, context: {cluster: k, user: u, namespace: n}},\n"
         "           {name: other, context: {cluster: k, user: execs}}]\n"
         "clusters: [{name: k, cluster: {" +
         cluster +
         "}}]\n"
         "users: [{name: execs, user: {exec: {command: aws}}},\n"
         "        {name: u, user: {" +
         user + "}}]\n";
}

constexpr char kServer[] = "server: 'https://api.test:6443'";

absl::StatusOr<Kubeconfig> Read(const std::string& cluster,
                                const std::string& user,
                                const std::string& context = "") {
  return ParseKubeconfig(ConfigText(cluster, user), "/etc/kube/config",
                         context);
}

std::string MessageOfRead(const std::string& cluster, const std::string& user,
                          const std::string& context = "") {
  return std::string(Read(cluster, user, context).status().message());
}

TEST(KubeconfigTest, ReadsEveryFieldOfACluster) {
  const auto good = Read(
      "server: 'https://api.test:6443/prefix/', certificate-authority: ca.pem,"
      "tls-server-name: kube.test, proxy-url: 'socks5://u:pass@proxy:1080',"
      "disable-compression: true, extensions: []",
      "");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->context, "c");
  EXPECT_EQ(good->server, "https://api.test:6443/prefix");
  EXPECT_EQ(good->certificate_authority.file, "/etc/kube/ca.pem");
  EXPECT_EQ(good->tls_server_name, "kube.test");
  EXPECT_EQ(good->proxy_url.Reveal(), "socks5://u:pass@proxy:1080");
  EXPECT_TRUE(good->disable_compression);
  EXPECT_FALSE(good->insecure_skip_tls_verify);
  EXPECT_FALSE(good->HasCredentials());
  EXPECT_THAT(good->warnings, ElementsAre());
}

TEST(KubeconfigTest, ReadsEveryFieldOfAUser) {
  const auto config =
      Read(kServer,
           "client-certificate: /pki/current.pem, client-key: /pki/current.pem,"
           "token: sesame, tokenFile: sub/token, as: alice, as-uid: '7',"
           "as-groups: [a, b], as-user-extra: {scopes: [x, z]}");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client_certificate.file, "/pki/current.pem");
  EXPECT_EQ(config->client_key.file, "/pki/current.pem");
  EXPECT_EQ(config->token.Reveal(), "sesame");
  EXPECT_EQ(config->token_file, "/etc/kube/sub/token");
  EXPECT_EQ(config->act_as.user, "alice");
  EXPECT_EQ(config->act_as.uid, "7");
  EXPECT_THAT(config->act_as.groups, ElementsAre("a", "b"));
  EXPECT_THAT(config->act_as.extra.at("scopes"), ElementsAre("x", "z"));
}

TEST(KubeconfigTest, DataWinsOverAFile) {
  const auto config =
      Read(std::string(kServer) +
               ", certificate-authority: ca.pem,"
               "certificate-authority-data: Y2E=",
           "client-certificate-data: Y2VydA==, client-key-data: a2V5,"
           "client-key: key.pem");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->certificate_authority.data.Reveal(), "ca");
  EXPECT_EQ(config->certificate_authority.file, "");
  EXPECT_EQ(config->client_certificate.data.Reveal(), "cert");
  EXPECT_EQ(config->client_key.data.Reveal(), "key");
  EXPECT_EQ(config->client_key.file, "");
}

TEST(KubeconfigTest, Api022RefusesExecInTheChosenUserOnly) {
  EXPECT_EQ(
      MessageOfRead(kServer, "token: t", "other"),
      "kubeconfig '/etc/kube/config': user 'execs': exec credentials are not "
      "supported; use tokenFile or client-certificate");
  EXPECT_TRUE(Read(kServer, "token: t").ok());
}

TEST(KubeconfigTest, RefusesOtherCredentialsThatAreNotSupported) {
  EXPECT_THAT(MessageOfRead(kServer, "auth-provider: {name: gcp}"),
              HasSubstr("auth-provider credentials are not supported"));
  for (const char* user : {"username: root", "password: hunter2"}) {
    EXPECT_THAT(MessageOfRead(kServer, user),
                HasSubstr("user 'u': username and password are not supported"));
  }
  EXPECT_THAT(MessageOfRead("server: 'https://root:hunter2@api.test'", ""),
              HasSubstr("server has a user or a password in it"));
  for (const char* typo : {"http:/root:hunter2@api.test", "//a/b:hunter2@c"}) {
    const std::string message =
        MessageOfRead(fmt::format("server: '{}'", typo), "");
    EXPECT_THAT(message, HasSubstr("server is no URL with http://"));
    EXPECT_THAT(message, Not(HasSubstr("hunter2")));
  }
}

TEST(KubeconfigTest, Api024WarnsThatCredentialsAreNotSentWithoutEncryption) {
  const auto config = Read("server: 'http://127.0.0.1:8080'", "token: sesame");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(config->IsHttps());
  EXPECT_THAT(config->warnings,
              ElementsAre("cluster 'k': connections to 'http://127.0.0.1:8080' "
                          "are not encrypted, so that the credentials of the "
                          "user are not sent"));
}

TEST(KubeconfigTest, WarnsOfAServerThatIsNotVerified) {
  const auto config =
      Read(std::string(kServer) + ", insecure-skip-tls-verify: true", "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->insecure_skip_tls_verify);
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("any server may")));
}

TEST(KubeconfigTest, NamesTheMistake) {
  const struct {
    std::string cluster, user, message;
  } cases[] = {
      {"", "", "cluster 'k': server is not set"},
      {"server: api.test", "", "server 'api.test' is no URL"},
      {"server: 'https://'", "", "server 'https:' is no URL"},
      {"server: 'https://" + std::string(2000, 'a') + "'", "",
       "server exceeds 2000 bytes"},
      {"server: 'https://a?x=1'", "", "more than a host and a path"},
      {"server: 7", "", "cluster 'k': server is no string"},
      {"server: 'https://a', insecure-skip-tls-verify: 'yes'", "",
       "insecure-skip-tls-verify is neither true nor false"},
      {"server: 'https://a', insecure-skip-tls-verify: true, "
       "certificate-authority: x",
       "", "exclude each other"},
      {"server: 'https://a', proxy-url: 'ftp://p'", "",
       "proxy-url is no URL with"},
      {"server: 'https://a', certificate-authority-data: '*'", "",
       "certificate-authority-data is not base64"},
      {kServer, "client-certificate: x",
       "client-certificate and client-key are needed together"},
      {kServer, "token: \"a\\nb\"", "token has control characters"},
      {kServer, "token: 12345", "user 'u': token is no string"},
      {kServer, "as-groups: [g]", "need as"},
      {kServer, "as: a, as-groups: g", "as-groups is no list"},
      {kServer, "as: a, as-user-extra: [g]", "as-user-extra is no map"},
  };
  for (const auto& one : cases) {
    const auto config = Read(one.cluster, one.user);
    EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(one.message));
  }
}

TEST(KubeconfigTest, NamesWhatIsMissing) {
  EXPECT_THAT(MessageOfRead(kServer, "", "gone"),
              HasSubstr("there is no context 'gone' in contexts"));
  const auto message = [](const std::string& text) {
    return std::string(ParseKubeconfig(text, "f").status().message());
  };
  EXPECT_EQ(message("kind: Config"),
            "kubeconfig 'f': current-context is not set");
  EXPECT_THAT(message("current-context: c\n"
                      "contexts: [{name: c, context: {cluster: x}}]"),
              HasSubstr("there is no cluster 'x' in clusters"));
  EXPECT_THAT(message("kind: Pod"), HasSubstr("no object of kind Config"));
  EXPECT_THAT(message(""), HasSubstr("0 documents"));
}

TEST(KubeconfigTest, NoTextHasACredential) {
  const std::string secret = "c2VjcmV0";  // Also as base64.
  const std::string mistakes[] = {
      "token: [" + secret + "]",
      "token: \"" + secret + "\\n\"",
      "client-key-data: '" + secret + "*', client-certificate: x",
      "password: " + secret,
      "token: " + secret + ", tokenFile: [x]",
  };
  for (const std::string& user : mistakes) {
    EXPECT_THAT(MessageOfRead(kServer, user), Not(HasSubstr(secret))) << user;
  }
  // A parser may repeat the line that it does not understand.
  EXPECT_THAT(std::string(ParseKubeconfig("a: b\nx: {token: " + secret, "f")
                              .status()
                              .message()),
              Not(HasSubstr(secret)));
  const auto config = Read(
      std::string(kServer) + ", proxy-url: 'http://u:" + secret + "@proxy'",
      "token: " + secret +
          ", client-certificate: a, client-key-data: " + secret);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(DescribeKubeconfig(*config),
            "https://api.test:6443 (context 'c', certificate '/etc/kube/a', "
            "token in the kubeconfig, proxy 'http://proxy')");
}

TEST(KubeconfigTest, DescribesWhereThingsAre) {
  const auto config =
      Read(std::string(kServer) +
               ", certificate-authority: ca.pem, tls-server-name: kube.test",
           "tokenFile: t, as: alice");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(DescribeKubeconfig(*config),
            "https://api.test:6443 (context 'c', CA '/etc/kube/ca.pem', server "
            "name 'kube.test', token in '/etc/kube/t', as 'alice')");
}

TEST(KubeconfigTest, FindsTheClusterOfAContainer) {
  const auto config =
      InClusterConfig({.host = "fd00::1", .port = "443", .folder = "/sa"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->token_file, "/sa/token");
  EXPECT_EQ(config->certificate_authority.file, "/sa/ca.crt");
  const auto without =
      InClusterConfig({.host = "10.0.0.1", .port = "443", .has_ca = false});
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without->server, "https://10.0.0.1:443");
  EXPECT_TRUE(without->certificate_authority.empty());
  EXPECT_THAT(without->warnings, ElementsAre(HasSubstr("ca.crt")));
  EXPECT_EQ(InClusterConfig({.host = "h"}).status().message(),
            "KUBERNETES_SERVICE_PORT is not set: this is no container of a "
            "cluster");
}

}  // namespace
}  // namespace devmgr::apiserver
