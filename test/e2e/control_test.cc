// SPDX-License-Identifier: Apache-2.0
//
// The control service of a daemon: what it says holds however it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/status.h"
#include "common/unique_fd.h"
#include "e2e/daemon.h"
#include "support/as_nobody.h"
#include "support/control_calls.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

namespace cpb = control::v1;
namespace fs = std::filesystem;
using absl::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string TextOf(const std::string& name) {
  return ClaimManifest("c-" + name, "u-c-" + name, {"gpu-" + name},
                       {"u-" + name}) +
         "---\n" + PodManifest(name, "u-" + name, "c-" + name);
}

class ControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto runtime = rpc::Runtime::Start();
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
    driver_ = node_.StartDriver();
  }

  void Start(std::vector<std::string> flags = {}) {
    daemon_ = nullptr;
    daemon_ = std::make_unique<Daemon>(node_.root(), std::move(flags));
    ASSERT_NE(daemon_->Inspect(), nullptr) << daemon_->log();
  }

  /// Begins a call on a connection of its own.
  template <typename Response>
  Answered<Response> Begin(const std::string& method,
                           const google::protobuf::MessageLite& request) {
    auto connection = rpc::Dial(*runtime_, node_.root() / "devmgr.sock", [] {});
    if (!connection.ok()) {
      std::promise<absl::StatusOr<Response>> refused;
      refused.set_value(connection.status());
      return refused.get_future();
    }
    connections_.push_back(*std::move(connection));
    return BeginCall<Response>(*connections_.back(), kController + method,
                               request);
  }
  Answered<cpb::WantPodResponse> BeginWant(const std::string& name) {
    return Begin<cpb::WantPodResponse>("WantPod", WantRequest(TextOf(name)));
  }
  Answered<cpb::UnwantPodResponse> BeginUnwant(const std::string& name) {
    return Begin<cpb::UnwantPodResponse>("UnwantPod",
                                         UnwantRequest("u-" + name));
  }

  /// Kills the daemon the moment that this file is in its place.
  void KillAt(const std::string& file, const std::function<void()>& call) {
    const fs::path folder = node_.root() / "state/wanted";
    fs::create_directories(folder);
    const UniqueFd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    ASSERT_GE(inotify_add_watch(watch.get(), folder.c_str(), IN_MOVED_TO), 0);
    call();
    while (!fs::exists(folder / file)) {
      pollfd ready{watch.get(), POLLIN, 0};
      ASSERT_GT(poll(&ready, 1, 20'000), 0) << daemon_->log();
      char events[4096];
      ASSERT_GT(read(watch.get(), events, sizeof(events)), 0);
    }
    daemon_->Kill();
  }

  bool WaitFor(const std::string& pod, const std::string& state) {
    const Exit exit =
        node_.Ctl({"wait", "pod", pod, "--for=" + state, "--timeout", "20s"});
    EXPECT_EQ(exit.code, 0) << exit.err << daemon_->log();
    return exit.code == 0;
  }
  NodeFolder node_;
  std::unique_ptr<testing::FakeDraDriver> driver_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<rpc::Runtime> runtime_;
  std::vector<std::unique_ptr<rpc::Connection>> connections_;
};

TEST_F(ControlTest, APodIsWantedThatWasWrittenBeforeAKill) {
  Start();
  Answered<cpb::WantPodResponse> cut_off;
  KillAt("u-p.yaml", [&] { cut_off = BeginWant("p"); });
  cut_off.get().IgnoreError();
  Start();
  ASSERT_TRUE(WaitFor("p", "ready"));
  EXPECT_THAT(node_.Ctl({"history", "p"}).out,
              AllOf(HasSubstr("Wanted"), HasSubstr("the pod with UID 'u-p' is "
                                                   "wanted by uid ")));
  const auto again = BeginWant("p").get();
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->was_wanted());
}

// A manifest that cannot be used has nothing of its directory released.
TEST_F(ControlTest, APodIsReleasedThatWasUnwantedBeforeAKill) {
  Start();
  node_.Write("a.yaml", TextOf("a"));
  for (const char* pod : {"p", "q"}) ASSERT_THAT(BeginWant(pod).get(), IsOk());
  for (const char* pod : {"a", "p", "q"}) ASSERT_TRUE(WaitFor(pod, "ready"));
  Answered<cpb::UnwantPodResponse> cut_off;
  KillAt("u-p.gone", [&] { cut_off = BeginUnwant("p"); });
  cut_off.get().IgnoreError();
  node_.Remove("a.yaml");
  node_.Write("bad.yaml", "kind: [");
  Start();
  ASSERT_TRUE(WaitFor("p", "released"));
  EXPECT_EQ(node_.Ctl({"get", "pods", "-o", "name"}).out, "pod/a\npod/q\n");
  const auto again = BeginUnwant("p").get();
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->was_wanted());
  // Late calls about it.
  cpb::ContainerDevicesRequest late;
  late.set_uid("u-p");
  late.set_container("c");
  EXPECT_EQ(Begin<inspection::v1::ContainerDevices>("ContainerDevices", late)
                .get()
                .status()
                .code(),
            StatusCode::kNotFound);
  cpb::BeforeContainerStartRequest start;
  start.set_uid("u-p");
  start.set_container("c");
  EXPECT_EQ(
      Begin<cpb::BeforeContainerStartResponse>("BeforeContainerStart", start)
          .get()
          .status()
          .code(),
      StatusCode::kNotFound);
}

TEST_F(ControlTest, WhatWasAnsweredHoldsAfterAKillAtAnyMoment) {
  Start();
  for (int round = 0; round < 10; ++round) {
    const bool want = round % 2 == 0;
    Answered<cpb::WantPodResponse> wanted;
    Answered<cpb::UnwantPodResponse> unwanted;
    if (want) {
      wanted = BeginWant("p");
    } else {
      unwanted = BeginUnwant("p");
    }
    // Anywhere in the call, and once after it.
    const auto pause = std::chrono::microseconds(round < 8 ? round * 2'000 : 0);
    if (round < 8) {
      want ? wanted.wait_for(pause) : unwanted.wait_for(pause);
    } else {
      want ? wanted.wait() : unwanted.wait();
    }
    daemon_->Kill();
    const bool answered = want ? wanted.get().ok() : unwanted.get().ok();
    Start();
    const bool is_wanted = fs::exists(node_.root() / "state/wanted/u-p.yaml");
    if (answered) {
      EXPECT_EQ(is_wanted, want) << "round " << round;
    }
    ASSERT_TRUE(WaitFor("p", is_wanted ? "ready" : "released"));
    // For the next round.
    if (want) {
      ASSERT_THAT(BeginWant("p").get(), IsOk());
    } else {
      ASSERT_THAT(BeginUnwant("p").get(), IsOk());
    }
    ASSERT_TRUE(WaitFor("p", want ? "ready" : "released"));
  }
}

TEST_F(ControlTest, WantedPodsAreDrivenWithoutFollowingManifests) {
  Start({"--actuate", "embedder"});
  ASSERT_THAT(BeginWant("p").get(), IsOk());
  ASSERT_TRUE(WaitFor("p", "ready"));
  Start({"--actuate", "embedder"});
  EXPECT_TRUE(WaitFor("p", "ready"));
  ASSERT_THAT(BeginUnwant("p").get(), IsOk());
  EXPECT_TRUE(WaitFor("p", "released"));
}

TEST_F(ControlTest, AnUnwantedPodLeavesNoTrace) {
  Start();
  ASSERT_THAT(BeginWant("p").get(), IsOk());
  ASSERT_TRUE(WaitFor("p", "ready"));
  ASSERT_THAT(BeginUnwant("p").get(), IsOk());
  ASSERT_TRUE(WaitFor("p", "released"));
  // Answered after the daemon has dealt with what came before it.
  ASSERT_THAT(BeginUnwant("p").get(), IsOk());
  EXPECT_TRUE(fs::is_empty(node_.root() / "state/wanted"));
}

TEST_F(ControlTest, TheUsersOfTheConfigurationMayControl) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be other users";
  ASSERT_EQ(::chmod(node_.root().c_str(), 0755), 0);
  const fs::path config = node_.root() / "config.yaml";
  std::ofstream(config) << "controlUsers: [nobody, 1234]\n";
  Start({"--config", config.string()});
  const auto call_as = [this](uid_t uid) {
    absl::Status status;
    // Of this thread alone.
    std::thread([&] {
      ASSERT_EQ(::syscall(SYS_setresuid, -1, uid, -1), 0);
      status = BeginWant("p").get().status();
    }).join();
    return status.code();
  };
  EXPECT_EQ(call_as(kNobody), StatusCode::kOk);
  EXPECT_EQ(call_as(1234), StatusCode::kOk);
  EXPECT_EQ(call_as(1235), StatusCode::kPermissionDenied);
  EXPECT_THAT(node_.Ctl({"history", "p"}).out,
              AllOf(HasSubstr("by uid 65534, pid"), HasSubstr("by uid 1234")));
}

TEST_F(ControlTest, ControlUsersThatAreNoneAreSaid) {
  const std::string config = node_.root() / "config.yaml";
  const auto run = [&](const std::string& text) {
    std::ofstream(config) << text;
    return RunTool("devmgrd", {"--config", config, "--print-config"});
  };
  const Exit taken = run("controlUsers: [nobody, 1234]\n");
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr("controlUsers:\n  - nobody\n  - 1234\n"));
  EXPECT_EQ(run(taken.out).out, taken.out);
  const std::pair<const char*, const char*> cases[] = {
      {"controlUsers: nobody\n",
       "config.yaml:1: controlUsers: must be a list of users"},
      {"controlUsers: [root, no-such-user]\n",
       "controlUsers: 'no-such-user' is neither a UID nor the name of a user"},
      {"controlUsers: [4294967295]\n", "controlUsers: '4294967295' is no UID"},
      {"controlUsers: [[root]]\n",
       "config.yaml:1: controlUsers: must be a text"},
  };
  for (const auto& [text, error] : cases) {
    const Exit refused = run(text);
    EXPECT_EQ(refused.code, 2) << text;
    EXPECT_THAT(refused.err, HasSubstr(error));
  }
}

}  // namespace
}  // namespace devmgr
