// SPDX-License-Identifier: Apache-2.0
//
// What the shim knows of the runtime, how, and what becomes of that when the
// runtime goes.
#include <thread>

#include "shim/relay.h"
#include "shim/shim_fixture.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// After a restart of the shim the runtime is asked.
TEST_F(ShimTest, AsksTheRuntimeForSandboxesAndContainers) {
  Give(OneOfEach());
  ListItems();
  Start();
  Request request = ForContainer();
  request.clear_sandbox_config();
  EXPECT_THAT(NamesOf(Created(request)), ElementsAre("v.com/c=1"));
  EXPECT_THAT(Call(cri::method::kStartContainer, WithId("container-9")),
              IsOk());
  EXPECT_EQ(manager_.started.Take(), "u-1/c");
}

// Streams first, since lists may be larger than a message.
TEST_F(ShimTest, ReadsListsAsStreams) {
  Give(OneOfEach());
  ListItems();
  fake_->has_streams = true;
  fake_->lists_fail = true;
  Start();
  EXPECT_THAT(Call(cri::method::kStartContainer, WithId("container-9")),
              IsOk());
  EXPECT_EQ(manager_.started.Take(), "u-1/c");
  EXPECT_EQ(shim_->Info().sandboxes, 2U);
  EXPECT_EQ(shim_->Info().containers, 1U);
}

// What the runtime is was said; what it runs is asked for again.
TEST_F(ShimTest, ListsThatFailHoldBackNoContainer) {
  Give(OneOfEach());
  fake_->lists_fail = true;
  Start();
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
  EXPECT_EQ(NextWarning(), "RuntimeNotLookedAt");
  EXPECT_THAT(shim_->Info().runtime_error,
              AllOf(HasSubstr("ListPodSandbox"), HasSubstr("too much")));
  fake_->lists_fail = false;
  EXPECT_TRUE(Eventually([&] { return shim_->Info().runtime_error.empty(); }));
}

TEST_F(ShimTest, WithoutDevicesItDoesNotMatterWhatTheRuntimeIs) {
  Give(OneOfEach());
  fake_->version_fails = true;
  Start();
  EXPECT_THAT(NamesOf(Created(ForContainer("none"))), IsEmpty());
  EXPECT_THAT(Refused(ForContainer()), StatusIs(absl::StatusCode::kUnavailable,
                                                HasSubstr("Service/Version")));
  fake_->version_fails = false;
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
}

TEST_F(ShimTest, TheOperatorsWordIsEnough) {
  options_.runtime_cdi = RuntimeCdi::kField;
  Give(OneOfEach());
  fake_->version_fails = true;
  Start();
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
}

// BO-079.
TEST_F(ShimTest, TakesTheOperatorsWordAboutTheRuntime) {
  options_.runtime_cdi = RuntimeCdi::kField;
  Give(OneOfEach());
  Start("1.6.33");
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
  EXPECT_EQ(shim_->Info().runtime_cdi_source, "override");
  EXPECT_EQ(NextWarning(), "RuntimeCdiOverridden");
}

// BO-101: the runtime comes back as another one.
TEST_F(ShimTest, AsksARuntimeThatComesBackAgain) {
  WriteSpec(R"({"env": ["K=cdi"]})");
  Give(OneOfEach());
  Start("1.6.33");
  EXPECT_THAT(NamesOf(Created(ForContainer())), IsEmpty());
  fake_->Stop();
  EXPECT_THAT(
      Call(cri::method::kCreateContainer, ForContainer().SerializeAsString()),
      StatusIs(absl::StatusCode::kUnavailable));
  fake_->Start("containerd", "2.0.1");
  client_ = Connect();
  EXPECT_THAT(Call(cri::method::kVersion, ""), IsOk());
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
}

// One that was killed says no farewell, and the client's connection goes on.
TEST_F(ShimTest, PlansNothingByWhatTheRuntimeWas) {
  Relay relay(Path("relay.sock"), Path("runtime.sock"));
  options_.proxy.backend = Path("relay.sock");
  WriteSpec(R"({"env": ["K=cdi"]})");
  Give(OneOfEach());
  Start("1.6.33");
  EXPECT_THAT(NamesOf(Created(ForContainer())), IsEmpty());
  relay.Cut();
  fake_->Stop();
  fake_->Start("containerd", "2.0.1");
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
}

// Nobody has a connection to it meanwhile but the shim itself.
TEST_F(ShimTest, NoticesARuntimeThatComesBackBetweenClients) {
  WriteSpec(R"({"env": ["K=cdi"]})");
  Give(OneOfEach());
  Start("1.6.33");
  EXPECT_THAT(NamesOf(Created(ForContainer())), IsEmpty());
  client_.reset();
  while (shim_->Stats().connections > 0) std::this_thread::yield();
  fake_->Stop();
  fake_->Start("containerd", "2.0.1");
  client_ = Connect();
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
}

}  // namespace
}  // namespace devmgr
