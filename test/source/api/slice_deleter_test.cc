// SPDX-License-Identifier: Apache-2.0
#include "source/api/slice_deleter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "source/api/api_texts.h"

namespace devmgr::apiserver {
namespace {

using ::testing::HasSubstr;

class SliceDeleterTest : public ::testing::Test {
 protected:
  void Delete(const std::string& driver) {
    deleter.Delete(now, driver,
                   [this](absl::Status status) { ends.push_back(status); });
  }
  std::string Target() {
    const auto next = deleter.Next(now);
    if (!next) return "";
    EXPECT_EQ(next->request.method, ApiRequest::Method::kDelete);
    EXPECT_EQ(next->request.content, "");
    return next->request.target;
  }

  SliceDeleter::TimePoint now{};
  SliceDeleter deleter{"n1"};
  std::vector<absl::Status> ends;
};

TEST_F(SliceDeleterTest, DeletesThoseOfTheNodeAndTheDriver) {
  deleter.SetVersion(Discovery::State::kServed, "v1");
  Delete("gpu.example.com");
  EXPECT_EQ(Target(),
            "/apis/resource.k8s.io/v1/resourceslices?fieldSelector="
            "spec.nodeName%3Dn1%2Cspec.driver%3Dgpu.example.com");
  EXPECT_EQ(Target(), "");
  deleter.OnAnswer("gpu.example.com", {.code = 200, .retry_after = {}}, "{}");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_TRUE(ends[0].ok());
}

TEST_F(SliceDeleterTest, DeletesThoseOfAllDriversOfTheNode) {
  deleter.SetVersion(Discovery::State::kServed, "v1beta1");
  Delete("");
  EXPECT_EQ(Target(),
            "/apis/resource.k8s.io/v1beta1/resourceslices?fieldSelector="
            "spec.nodeName%3Dn1");
}

TEST_F(SliceDeleterTest, TheFirstVersionHasOtherFields) {
  deleter.SetVersion(Discovery::State::kServed, "v1alpha2");
  Delete("d");
  EXPECT_THAT(Target(), HasSubstr("nodeName%3Dn1%2CdriverName%3Dd"));
}

TEST_F(SliceDeleterTest, WaitsAMomentForTheVersion) {
  Delete("d");
  EXPECT_EQ(Target(), "");
  EXPECT_EQ(deleter.WakeAt(), now + SliceDeleter::kPatience);
  now += SliceDeleter::kPatience;
  EXPECT_EQ(Target(), "");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(ends[0]));
  deleter.SetVersion(Discovery::State::kServed, "v1");
  EXPECT_EQ(Target(), "");
}

TEST_F(SliceDeleterTest, WhereNoSlicesAreServedThereAreNone) {
  Delete("d");
  deleter.SetVersion(Discovery::State::kNotServed, "");
  EXPECT_EQ(Target(), "");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(ends[0]));
}

TEST_F(SliceDeleterTest, ADriverThatIsBackKeepsItsSlices) {
  Delete("d");
  deleter.Keep("d");
  deleter.SetVersion(Discovery::State::kServed, "v1");
  EXPECT_EQ(Target(), "");
  Delete("d");
  EXPECT_NE(Target(), "");
  deleter.Keep("d");
  // It was too late to stop it; nothing is reported.
  deleter.OnAnswer("d", {.code = 200, .retry_after = {}}, "{}");
  EXPECT_TRUE(ends.empty());
}

TEST_F(SliceDeleterTest, WhatTheServerSaysIsPassedOn) {
  deleter.SetVersion(Discovery::State::kServed, "v1");
  Delete("d");
  ASSERT_NE(Target(), "");
  deleter.OnAnswer("d", {.code = 403, .retry_after = {}},
                   StatusText(403, "Forbidden", "may not delete"));
  Delete("d");
  ASSERT_NE(Target(), "");
  deleter.OnFailure("d", "connection refused");
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_TRUE(absl::IsUnavailable(ends[0]));
  EXPECT_EQ(ends[0].message(),
            "deleting resource slices: HTTP 403 Forbidden: may not delete");
  EXPECT_EQ(ends[1].message(), "deleting resource slices: connection refused");
}

TEST_F(SliceDeleterTest, AVersionThatIsServedNoMoreIsLookedFor) {
  deleter.SetVersion(Discovery::State::kServed, "v1");
  Delete("d");
  ASSERT_NE(Target(), "");
  deleter.OnAnswer("d", {.code = 404, .retry_after = {}},
                   StatusText(404, "NotFound"));
  EXPECT_TRUE(deleter.TakeNotServed());
  EXPECT_FALSE(deleter.TakeNotServed());
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(ends[0]));
}

TEST_F(SliceDeleterTest, RefusedCredentialsAreReadAgain) {
  deleter.SetVersion(Discovery::State::kServed, "v1");
  Delete("d");
  ASSERT_NE(Target(), "");
  deleter.OnAnswer("d", {.code = 401, .retry_after = {}}, "");
  EXPECT_TRUE(deleter.TakeRefused());
}

}  // namespace
}  // namespace devmgr::apiserver
