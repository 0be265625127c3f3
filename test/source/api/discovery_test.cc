// SPDX-License-Identifier: Apache-2.0
#include "source/api/discovery.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "source/api/api_texts.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class DiscoveryTest : public ::testing::Test {
 protected:
  bool Asks() {
    const auto request = discovery.Next(now);
    if (!request) return false;
    EXPECT_EQ(request->target, "/apis/resource.k8s.io");
    return true;
  }
  void Answer(int code, const std::string& body = "",
              std::optional<seconds> retry_after = {}) {
    discovery.OnAnswer(now, {.code = code, .retry_after = retry_after}, body);
  }
  void AnswerVersions(const std::vector<std::string>& versions) {
    std::string items;
    for (const std::string& version : versions) {
      items += (items.empty() ? "" : ",") +
               fmt::format(R"({{"groupVersion":"resource.k8s.io/{0}",)"
                           R"("version":"{0}"}})",
                           version);
    }
    Answer(200, R"({"kind":"APIGroup","versions":[)" + items + "]}");
  }

  Discovery::TimePoint now{std::chrono::hours(1)};
  Discovery discovery{[] { return 0.0; }, now};
};

TEST_F(DiscoveryTest, TakesTheNewestVersionThatIsListed) {
  const struct {
    std::vector<std::string> listed;
    std::string version;
  } cases[] = {{{"v1beta1", "v1"}, "v1"},
               {{"v1beta1", "v1beta2", "v3"}, "v1beta2"},
               {{"v1alpha3", "v1beta1"}, "v1beta1"},
               {{"v1alpha3"}, "v1alpha3"},
               {{"v1alpha2", "v1alpha1"}, "v1alpha2"}};
  for (const auto& one : cases) {
    discovery.AskAgain(now);
    ASSERT_TRUE(Asks());
    AnswerVersions(one.listed);
    EXPECT_EQ(discovery.state(), Discovery::State::kServed);
    EXPECT_EQ(discovery.version(), one.version);
    EXPECT_EQ(discovery.WakeAt(), std::nullopt);
  }
}

TEST_F(DiscoveryTest, Api037AsksEveryTenMinutesForAGroupThatIsNotServed) {
  ASSERT_TRUE(Asks());
  Answer(404, "404 page not found");
  EXPECT_EQ(discovery.state(), Discovery::State::kNotServed);
  now += minutes(10) - seconds(1);
  EXPECT_FALSE(Asks());
  now += seconds(1);
  ASSERT_TRUE(Asks());
  AnswerVersions({"v1beta1"});
  EXPECT_EQ(discovery.state(), Discovery::State::kServed);
  EXPECT_EQ(discovery.version(), "v1beta1");
}

TEST_F(DiscoveryTest, AsksAgainForVersionsThatAreNotRead) {
  ASSERT_TRUE(Asks());
  AnswerVersions({"v7", "v1alpha1"});
  EXPECT_EQ(discovery.state(), Discovery::State::kUnreadable);
  EXPECT_EQ(discovery.version(), "");
  EXPECT_EQ(discovery.WakeAt(), now + minutes(10));
}

TEST_F(DiscoveryTest, TakesTheNextVersionWhenOneHasNoObjects) {
  ASSERT_TRUE(Asks());
  AnswerVersions({"v1beta1", "v1alpha3"});
  discovery.OnNotServed(now);
  ASSERT_TRUE(Asks());
  AnswerVersions({"v1beta1", "v1alpha3"});
  EXPECT_EQ(discovery.version(), "v1alpha3");
  discovery.OnNotServed(now);
  ASSERT_TRUE(Asks());
  AnswerVersions({"v1beta1", "v1alpha3"});
  EXPECT_EQ(discovery.state(), Discovery::State::kUnreadable);
  now += minutes(10);
  ASSERT_TRUE(Asks());
  AnswerVersions({"v1beta1", "v1alpha3"});
  EXPECT_EQ(discovery.version(), "v1beta1");
}

TEST_F(DiscoveryTest, KeepsItsVersionWhileTheServerFails) {
  ASSERT_TRUE(Asks());
  AnswerVersions({"v1"});
  discovery.AskAgain(now);
  ASSERT_TRUE(Asks());
  Answer(503, "", seconds(20));
  EXPECT_EQ(discovery.version(), "v1");
  EXPECT_EQ(discovery.WakeAt(), now + seconds(20));
  EXPECT_EQ(discovery.last_error(), "/apis/resource.k8s.io: HTTP 503");
  now += seconds(20);
  ASSERT_TRUE(Asks());
  discovery.OnFailure(now, "connection refused");
  EXPECT_EQ(discovery.WakeAt(), now + std::chrono::milliseconds(1600));
}

TEST_F(DiscoveryTest, TakesNoOtherPageForAGroup) {
  for (const char* body : {"", "<html>", "{}", "[]", R"({"versions":7)"}) {
    discovery.AskAgain(now);
    ASSERT_TRUE(Asks());
    Answer(200, body);
    EXPECT_EQ(discovery.state(), Discovery::State::kUnknown) << body;
    EXPECT_NE(discovery.WakeAt(), std::nullopt);
  }
}

TEST_F(DiscoveryTest, AsksOnceMoreWithOtherCredentials) {
  ASSERT_TRUE(Asks());
  Answer(401);
  EXPECT_TRUE(discovery.TakeRefused());
  ASSERT_TRUE(Asks());
  Answer(401);
  EXPECT_FALSE(Asks());
}

TEST_F(DiscoveryTest, AsksAgainAfterAnAnswerThatMayBeOld) {
  ASSERT_TRUE(Asks());
  discovery.AskAgain(now);
  EXPECT_FALSE(Asks());
  AnswerVersions({"v1"});
  EXPECT_TRUE(Asks());
}

}  // namespace
}  // namespace devmgr::apiserver
