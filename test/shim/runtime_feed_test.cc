// SPDX-License-Identifier: Apache-2.0
//
// A manager learns what the runtime runs from a shim in another process.
#include <devmgr/cri_shim.h>
#include <devmgr/inspection.h>
#include <devmgr/runtime_source.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cri/runtime_fields.h"
#include "rpc/message.h"
#include "rpc/rpc_fixture.h"
#include "rpc/server.h"
#include "server/convert.h"
#include "shim/shim_fixture.h"
#include "support/fake_cri_runtime.h"
#include "support/fake_device_manager.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

class RuntimeFeedTest : public rpc::RpcTest {
 protected:
  void SetUp() override {
    RpcTest::SetUp();
    options_.proxy.listen = Path();
    options_.proxy.backend = Path("runtime.sock");
    options_.cdi_spec_dirs = {Path("cdi")};
    options_.devmgrd = Path("devmgr.sock");
    ASSERT_TRUE(fake_.Start(Path("runtime.sock")));
  }
  void TearDown() override {
    client_.reset();
    shim_.reset();
    StopDaemon();
    fake_.Stop();
  }

  void StartDaemon() {
    source_ = ReportedRuntimeSource::Make(names_, std::chrono::seconds(60));
    source_->Subscribe([this] { changed_.Put(0); });
    auto server = InspectionServer::Start(manager_, Path("devmgr.sock"),
                                          nullptr, {}, nullptr, source_.get());
    ASSERT_THAT(server, IsOk());
    daemon_ = *std::move(server);
  }
  void StopDaemon() {
    daemon_.reset();
    source_.reset();
  }
  void StartShim() {
    auto shim = CriShim::Start(options_);
    ASSERT_THAT(shim, IsOk());
    shim_ = *std::move(shim);
    client_ = Connect();
    ASSERT_NE(client_, nullptr);
  }
  bool WaitUntil(const std::function<bool(const RuntimeSnapshot&)>& condition) {
    while (!condition(*source_->Snapshot())) {
      if (!changed_.Take().has_value()) return false;
    }
    return true;
  }
  bool ComesToHave(const std::string& uid) {
    return WaitUntil([&](const RuntimeSnapshot& now) {
      return now.known && now.pods.contains(PodUid{uid});
    });
  }

  FakeCriRuntime fake_;
  std::vector<std::string> names_;  ///< Of the shims that the daemon goes by.
  FakeDeviceManager manager_;
  Mailbox<int> changed_;
  CriShimOptions options_;
  std::unique_ptr<ReportedRuntimeSource> source_;
  std::unique_ptr<InspectionServer> daemon_;
  std::unique_ptr<CriShim> shim_;
  std::unique_ptr<rpc::Connection> client_;
};

TEST_F(RuntimeFeedTest, WhatRunsIsReportedFromTheStartAndAsItPasses) {
  StartDaemon();
  fake_.Has(CriSandbox("p", true), "");
  StartShim();
  ASSERT_TRUE(ComesToHave("p"));
  EXPECT_EQ(source_->Snapshot()->runtime, "containerd 1.7.0");
  EXPECT_EQ(source_->Snapshot()->pods.at(PodUid{"p"})->name.ToString(),
            "ns/pod-p");
  fake_.Has(CriSandbox("q", true), "");
  ASSERT_THAT(CallAndWait(*client_, std::string(cri::method::kRunPodSandbox),
                          CriField(1, "i"))
                  .status(),
              IsOk());
  EXPECT_TRUE(ComesToHave("q"));
}

TEST_F(RuntimeFeedTest, ALookThatIsAskedForSeesWhatIsThereThen) {
  StartDaemon();
  StartShim();
  ASSERT_TRUE(WaitUntil([](const auto& now) { return now.known; }));
  fake_.Has(CriSandbox("p", true), "");
  Mailbox<int> done;
  ASSERT_TRUE(source_->Refresh([&] { done.Put(0); }));
  ASSERT_TRUE(done.Take().has_value());
  EXPECT_TRUE(source_->Snapshot()->pods.contains(PodUid{"p"}));
}

TEST_F(RuntimeFeedTest, ADaemonThatBeginsAnewLearnsAll) {
  StartDaemon();
  fake_.Has(CriSandbox("p", true), "");
  StartShim();
  ASSERT_TRUE(ComesToHave("p"));
  StopDaemon();
  StartDaemon();
  EXPECT_TRUE(ComesToHave("p"));
  Mailbox<int> done;
  ASSERT_TRUE(source_->Refresh([&] { done.Put(0); }));
  EXPECT_TRUE(done.Take().has_value());
}

TEST_F(RuntimeFeedTest, TheEndOfTheShimMakesItUnknown) {
  StartDaemon();
  StartShim();
  ASSERT_TRUE(WaitUntil([](const auto& now) { return now.known; }));
  client_.reset();
  shim_.reset();
  EXPECT_TRUE(WaitUntil([](const auto& now) { return !now.known; }));
  StartShim();
  EXPECT_TRUE(WaitUntil([](const auto& now) { return now.known; }));
}

TEST_F(RuntimeFeedTest, AStopOfASandboxIsReportedWithoutBeingAskedFor) {
  fake_.Has(CriSandbox("p", true), "");
  StartDaemon();
  StartShim();
  ASSERT_TRUE(ComesToHave("p"));
  const auto before = std::chrono::steady_clock::now();
  fake_.Has(CriSandbox("p", false), "");
  ASSERT_THAT(CallAndWait(*client_, std::string(cri::method::kStopPodSandbox),
                          CriField(1, "s-p"))
                  .status(),
              IsOk());
  EXPECT_TRUE(WaitUntil([](const RuntimeSnapshot& now) {
    return now.known && !now.pods.at(PodUid{"p"})->IsRunning();
  }));
  // Not by the look of every second.
  EXPECT_LT(std::chrono::steady_clock::now() - before,
            std::chrono::milliseconds(900));
  fake_.Has("", "");
  ASSERT_THAT(CallAndWait(*client_, std::string(cri::method::kRemovePodSandbox),
                          CriField(1, "s-p"))
                  .status(),
              IsOk());
  EXPECT_TRUE(WaitUntil([](const RuntimeSnapshot& now) {
    return now.known && !now.pods.contains(PodUid{"p"});
  }));
}

TEST_F(RuntimeFeedTest, ADaemonThatGoesByNamesTakesOnlyThose) {
  names_ = {"a"};
  StartDaemon();
  fake_.Has(CriSandbox("p", true), "");
  StartShim();
  ASSERT_TRUE(WaitUntil([](const RuntimeSnapshot& now) {
    return now.reason.find("one without a name") != std::string::npos;
  }));
  EXPECT_FALSE(source_->Snapshot()->known);
  client_.reset();
  shim_.reset();
  EXPECT_EQ(fake_.looks.size(), 0u) << "nothing is looked at in vain";
  options_.name = "a";
  StartShim();
  EXPECT_TRUE(ComesToHave("p"));
}

TEST_F(RuntimeFeedTest, ForADaemonThatDoesNotGoByItNothingIsLookedAt) {
  auto server = InspectionServer::Start(manager_, Path("devmgr.sock"));
  ASSERT_THAT(server, IsOk());
  StartShim();
  std::vector<RuntimeReport> reports;
  ASSERT_TRUE(Eventually([&] {
    manager_.Set(
        [&](FakeDeviceManager::World& world) { reports = world.reports; });
    return !reports.empty();
  }));
  ASSERT_THAT(CallAndWait(*client_, std::string(cri::method::kRunPodSandbox),
                          CriField(1, "i"))
                  .status(),
              IsOk());
  for (const RuntimeReport& report : reports) {
    EXPECT_EQ(report.runs, nullptr);
    EXPECT_EQ(report.look, 0u);
  }
  client_.reset();
  shim_.reset();
  EXPECT_EQ(fake_.looks.size(), 0u);
}

/// A daemon that answers each question at once, always with another look.
class EagerDaemonTest : public RuntimeFeedTest {
 protected:
  void SetUp() override {
    RuntimeFeedTest::SetUp();
    rpc::ServerOptions options;
    options.socket = Path("devmgr.sock");
    const std::string service(server::kServicePath);
    options.methods[service + "ReportRuntime"] =
        [](const std::string&, const rpc::Respond& respond) { respond(""); };
    options.methods[service + "WaitForRuntimeLook"] =
        [this](const std::string&, const rpc::Respond& respond) {
          server::pb::RuntimeLookResponse response;
          response.set_look(++questions_);
          respond(rpc::Encode(response));
        };
    auto server = rpc::Server::Start(std::move(options));
    ASSERT_THAT(server, IsOk());
    eager_ = *std::move(server);
  }
  void TearDown() override {
    shim_.reset();
    eager_.reset();
    RuntimeFeedTest::TearDown();
  }

  std::atomic<std::uint64_t> questions_{0};
  std::unique_ptr<rpc::Server> eager_;
};

TEST_F(EagerDaemonTest, KeepsNeitherTheShimNorTheRuntimeBusy) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  StartShim();
  ASSERT_TRUE(Eventually([this] { return questions_ >= 10; }));
  // A pause between each two of them.
  EXPECT_GE(Clock::now() - begin, 9 * std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace devmgr
