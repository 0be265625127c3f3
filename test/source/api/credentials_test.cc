// SPDX-License-Identifier: Apache-2.0
#include "source/api/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/status.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Credentials over files in memory and a clock that is moved. A pair matches
/// when the key is the certificate's text with `key` for `cert`.
class CredentialsTest : public ::testing::Test {
 protected:
  void Start(const std::function<void(Kubeconfig&)>& configure) {
    Kubeconfig config;
    config.server = "https://api.test";
    configure(config);
    credentials.emplace(
        config,
        Credentials::Seams{
            .read_file = [this](const std::filesystem::path& path)
                -> absl::StatusOr<std::string> {
              const auto found = files.find(path.string());
              if (found == files.end()) return NotFoundError("no such file");
              return found->second;
            },
            .check_pair = [this](const std::string& pem, const std::string& key)
                -> absl::StatusOr<CertificateInfo> {
              if (key != "key" + pem.substr(4)) {
                return InvalidArgumentError("the key is another one's");
              }
              return CertificateInfo{not_after};
            },
            .wall_clock = [this] { return wall; },
            .warn = [this](std::string text) { warnings.push_back(text); }});
  }
  void StartWithToken() {
    Start([](Kubeconfig& config) { config.token_file = "/token"; });
  }
  void StartWithPair() {
    Start([](Kubeconfig& config) {
      config.client_certificate.file = "/cert";
      config.client_key.file = "/key";
    });
  }
  std::string Token() {
    const auto current = credentials->Current(now);
    return current.ok() ? (*current)->token.Reveal()
                        : "error: " + MessageOf(current.status());
  }
  std::string Pair() {
    const auto current = credentials->Current(now);
    return current.ok() ? (*current)->certificate_pem + "/" +
                              (*current)->key_pem.Reveal()
                        : "error: " + MessageOf(current.status());
  }

  std::map<std::string, std::string> files;
  Credentials::TimePoint now{seconds(1000)};
  std::chrono::system_clock::time_point wall{seconds(1'000'000)};
  std::chrono::system_clock::time_point not_after{seconds(2'000'000)};
  std::vector<std::string> warnings;
  std::optional<Credentials> credentials;
};

TEST_F(CredentialsTest, Api018TakesANewTokenWithinAMinute) {
  files["/token"] = " old\n";
  StartWithToken();
  EXPECT_EQ(Token(), "old");
  files["/token"] = "new";
  now += seconds(10);
  EXPECT_EQ(Token(), "old");
  now += seconds(50);
  EXPECT_EQ(Token(), "new");
  EXPECT_THAT(warnings, ElementsAre());
}

TEST_F(CredentialsTest, Api018TakesANewTokenAtOnceWhenTheServerRefuses) {
  files["/token"] = "old";
  StartWithToken();
  EXPECT_EQ(Token(), "old");
  files["/token"] = "new";
  credentials->Refused();
  EXPECT_EQ(Token(), "new");
}

TEST_F(CredentialsTest, Api019KeepsTheTokenWhenItsFileIsEmptied) {
  files["/token"] = "old";
  StartWithToken();
  EXPECT_EQ(Token(), "old");
  for (int i = 0; i < 5; ++i) {
    files["/token"] = "\n";
    now += seconds(60);
    EXPECT_EQ(Token(), "old");
  }
  EXPECT_THAT(warnings,
              ElementsAre("the token file '/token' cannot be used; the last "
                          "token stays: it is empty"));
  files["/token"] = "new";
  now += seconds(60);
  EXPECT_EQ(Token(), "new");
  files.erase("/token");
  now += seconds(60);
  EXPECT_EQ(Token(), "new");
  EXPECT_EQ(warnings.size(), 2u);
}

TEST_F(CredentialsTest, TheTokenOfTheConfigurationServesUntilTheFileIsGood) {
  Start([](Kubeconfig& config) {
    config.token_file = "/token";
    config.token = Secret("inline");
  });
  EXPECT_EQ(Token(), "inline");
  files["/token"] = "file";
  now += seconds(60);
  EXPECT_EQ(Token(), "file");
}

TEST_F(CredentialsTest, SaysWhyThereIsNoToken) {
  StartWithToken();
  EXPECT_EQ(Token(),
            "error: the token file '/token' cannot be used: no such file");
  files["/token"] = "a\nb";
  now += seconds(60);
  EXPECT_EQ(Token(),
            "error: the token file '/token' cannot be used: it has more than "
            "one line");
}

TEST_F(CredentialsTest, Api020TakesANewPairAfterASecond) {
  files["/cert"] = "cert1";
  files["/key"] = "key1";
  StartWithPair();
  EXPECT_EQ(Pair(), "cert1/key1");
  files["/cert"] = "cert2";
  files["/key"] = "key2";
  now += seconds(1);
  EXPECT_EQ(Pair(), "cert2/key2");
}

TEST_F(CredentialsTest, Api021KeepsTheOldPairWhileTheNewDoesNotMatch) {
  files["/cert"] = "cert1";
  files["/key"] = "key1";
  StartWithPair();
  EXPECT_EQ(Pair(), "cert1/key1");
  files["/key"] = "key2";
  for (int i = 0; i < 2; ++i) {
    now += seconds(1);
    EXPECT_EQ(Pair(), "cert1/key1");
  }
  EXPECT_THAT(warnings,
              ElementsAre("the client certificate cannot be used; the last "
                          "pair stays: the key is another one's"));
  files["/cert"] = "cert2";
  now += seconds(1);
  EXPECT_EQ(Pair(), "cert2/key2");
}

TEST_F(CredentialsTest, SaysWhyThereIsNoPair) {
  files["/cert"] = "cert1";
  StartWithPair();
  EXPECT_EQ(Pair(),
            "error: the client certificate cannot be used: '/key': no such "
            "file");
}

TEST_F(CredentialsTest, WarnsOfACertificateThatHasExpiredAndUsesIt) {
  files["/cert"] = "cert1";
  files["/key"] = "key1";
  StartWithPair();
  EXPECT_EQ(Pair(), "cert1/key1");
  EXPECT_THAT(warnings, ElementsAre());
  wall = not_after;
  EXPECT_EQ(Pair(), "cert1/key1");
  EXPECT_EQ(Pair(), "cert1/key1");
  EXPECT_THAT(
      warnings,
      ElementsAre("the client certificate expired on 1970-01-24T03:33:20Z"));
}

TEST_F(CredentialsTest, ReadsTheAuthorityAgain) {
  files["/ca"] = "-----BEGIN 1";
  Start([](Kubeconfig& config) { config.certificate_authority.file = "/ca"; });
  EXPECT_EQ((*credentials->Current(now))->ca_pem, "-----BEGIN 1");
  files["/ca"] = "";
  now += seconds(1);
  EXPECT_EQ((*credentials->Current(now))->ca_pem, "-----BEGIN 1");
  files["/ca"] = "-----BEGIN 2";
  now += seconds(1);
  EXPECT_EQ((*credentials->Current(now))->ca_pem, "-----BEGIN 2");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("there is no certificate")));
}

TEST_F(CredentialsTest, IsOneObjectWhileNothingChanges) {
  files["/token"] = "a";
  StartWithToken();
  const auto first = *credentials->Current(now);
  now += seconds(100);
  EXPECT_EQ(*credentials->Current(now), first);
}

TEST_F(CredentialsTest, Api024HasNothingToSendWithoutEncryption) {
  files["/token"] = "file";
  Start([](Kubeconfig& config) {
    config.server = "http://api.test";
    config.token = Secret("inline");
    config.token_file = "/token";
  });
  EXPECT_EQ(Token(), "");
}

}  // namespace
}  // namespace devmgr::apiserver
