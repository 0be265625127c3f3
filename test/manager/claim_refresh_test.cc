// SPDX-License-Identifier: Apache-2.0
//
// A claim is read anew before it is prepared for the first time, from a source
// that can do so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "manager/manager_fixture.h"
#include "support/mailbox.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Done = std::function<void(const absl::Status&)>;

/// A source that is asked to read claims, and a test that answers.
class RefreshedSource final : public MemoryObjectSource {
 public:
  void Publish(ObjectSnapshot snapshot) override {
    objects_->Publish(std::move(snapshot));
  }
  std::shared_ptr<const ObjectSnapshot> Snapshot() const override {
    return objects_->Snapshot();
  }
  void Subscribe(std::function<void()> changed) override {
    objects_->Subscribe(std::move(changed));
  }
  void Unsubscribe() override { objects_->Unsubscribe(); }
  std::string Describe() const override { return "server"; }
  bool Refresh(ObjectKind kind, const ObjectName& name, Done done) override {
    EXPECT_EQ(kind, ObjectKind::kResourceClaim);
    asked.Put({name, std::move(done)});
    return true;
  }

  Mailbox<std::pair<ObjectName, Done>> asked;

 private:
  const std::unique_ptr<MemoryObjectSource> objects_ =
      MemoryObjectSource::Create();
};

class ClaimRefreshTest : public ManagerTest {
 protected:
  void SetUp() override {
    auto source = std::make_unique<RefreshedSource>();
    source_ = source.get();
    node_.source = std::move(source);
    node_.drivers.Register(kDriver);
    node_.Start();
  }
  static std::string Pod() { return PodYaml("p", "u-p", {"c1"}); }
  static std::string Claim(const std::string& uid) {
    return ClaimYaml("c1", uid, {kDriver}, {"u-p"});
  }
  /// The next claim that the source is asked to read.
  Done Asked() {
    auto asked = source_->asked.Take();
    if (!asked.has_value()) return [](const absl::Status&) {};
    EXPECT_EQ(asked->first.ToString(), "default/c1");
    return asked->second;
  }

  RefreshedSource* source_ = nullptr;
};

TEST_F(ClaimRefreshTest, NoDriverIsCalledBeforeTheClaimWasReadAnew) {
  node_.Publish(Pod() + Claim("u-c"));
  const Done done = Asked();
  node_.Sync();
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
  EXPECT_THAT(node_.store.Load().claims, IsEmpty());
  done(absl::OkStatus());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
}

TEST_F(ClaimRefreshTest, WhatWasReadDecides) {
  node_.Publish(Pod() + Claim("u-c"));
  const Done done = Asked();
  // It was deallocated meanwhile, and is another pod's now.
  node_.Publish(Pod() + ClaimYaml("c1", "u-c", {kDriver}, {"u-q"}));
  done(absl::OkStatus());
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotReserved"));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
}

TEST_F(ClaimRefreshTest, AClaimThatDoesNotExistAnyMoreIsNotPrepared) {
  node_.Publish(Pod() + Claim("u-c"));
  const Done done = Asked();
  node_.Publish(Pod());
  done(NotFoundError("there is no such claim"));
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotFound"));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
}

// API-031: what was never prepared waits for the server; it is tried again.
TEST_F(ClaimRefreshTest, WaitsWhileTheClaimCannotBeRead) {
  node_.Publish(Pod() + Claim("u-c"));
  Asked()(UnavailableError("connection refused"));
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimUnavailable"));
  const PodInfo pod = node_.PodNamed("p");
  EXPECT_THAT(pod.message,
              HasSubstr("fetch ResourceClaim c1: connection refused"));
  EXPECT_EQ(pod.waiting_for,
            std::vector({WaitingFor{WaitingFor::Kind::kClaim, "default/c1"}}));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
  Asked()(absl::OkStatus());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(node_.PodNamed("p").message, "");
}

TEST_F(ClaimRefreshTest, WhatTheLedgerHasIsNotReadAgain) {
  node_.Publish(Pod() + Claim("u-c"));
  Asked()(absl::OkStatus());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Reboot();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(2));
}

TEST_F(ClaimRefreshTest, AnAnswerAfterTheEndChangesNothing) {
  node_.Publish(Pod() + Claim("u-c"));
  const Done done = Asked();
  node_.Stop();
  done(absl::OkStatus());
  EXPECT_THAT(node_.store.Load().claims, IsEmpty());
}

}  // namespace
}  // namespace devmgr
