// SPDX-License-Identifier: Apache-2.0
//
// `actuate: cri`: pods hold devices while they have sandboxes.

#include "shim/shim_fixture.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ActuatingShimTest : public ShimTest {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    options_.actuate = true;
    SetActuate(Actuate::kWanted);
    SetSource("Running");
    run_ = RunRequest(0);
  }

  static std::string RunRequest(std::uint32_t attempt) {
    auto sandbox = ForContainer().sandbox_config();
    sandbox.mutable_metadata()->set_attempt(attempt);
    std::string request;
    cri::AppendBytesField(&request, 1, sandbox.SerializeAsString());
    return request;
  }
  /// An item of ListPodSandbox.
  static std::string ListedSandbox(const std::string& id) {
    std::string sandbox, item;
    cri::AppendBytesField(&sandbox, 1, id);
    cri::AppendBytesField(
        &sandbox, 2,
        ForContainer().sandbox_config().metadata().SerializeAsString());
    cri::AppendBytesField(&item, 1, sandbox);
    return item;
  }

  /// The pod, in this phase; null: it is not there.
  void SetSource(const char* phase) {
    auto objects = std::make_shared<ObjectSnapshot>();
    objects->complete = true;
    if (phase != nullptr) {
      auto pod = std::make_shared<Pod>();
      pod->metadata.ns = "ns";
      pod->metadata.name = "p";
      pod->metadata.uid = kUid;
      pod->status.phase = phase;
      objects->pods.insert_or_assign({"ns", "p"}, pod);
    }
    manager_.Set(
        [&](FakeDeviceManager::World& world) { world.objects = objects; });
    manager_.RemovePod({"another"});  // tells observers
  }

  /// The runtime gives this id to the next sandbox.
  void NextSandbox(const std::string& id) {
    fake_->answer_instead = [id](const std::string&,
                                 const rpc::Respond& respond) {
      respond(WithId(id));
    };
  }
  void RunSandbox(const std::string& id, std::uint32_t attempt = 0) {
    NextSandbox(id);
    ASSERT_THAT(Call(cri::method::kRunPodSandbox, RunRequest(attempt)), IsOk());
    fake_->requests.Take();
  }
  absl::Status RemoveSandbox(const std::string& id) {
    const auto answer = Call(cri::method::kRemovePodSandbox, WithId(id));
    fake_->requests.Take();
    return answer.status();
  }
  /// Another call is dealt with after what the one before had to say.
  void Settle() {
    Call(cri::method::kRemoveContainer, WithId("of nobody")).IgnoreError();
    fake_->requests.Take();
  }
  bool Released() {
    return Eventually([&] { return !manager_.unwanted().empty(); });
  }

  std::string run_;
};

TEST_F(ActuatingShimTest, HoldsASandboxUntilItsPodIsReady) {
  Start();
  const auto answers = Begin(cri::method::kRunPodSandbox, run_);
  ASSERT_TRUE(Eventually([&] { return !manager_.wanted().empty(); }));
  EXPECT_EQ(answers->size(), 0U);
  EXPECT_EQ(fake_->requests.size(), 0U);
  Give(OneOfEach());
  EXPECT_THAT(StatusOfNext(*answers), IsOk());
  EXPECT_EQ(fake_->requests.Take(), run_);
}

// BO-101: reconciliation runs before devices are given away.
TEST_F(ActuatingShimTest, WantsNoPodBeforeTheRuntimeHasToldWhatItRuns) {
  fake_->lists_fail = true;
  Start();
  EXPECT_THAT(
      Call(cri::method::kRunPodSandbox, run_),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("'ns/p'"), HasSubstr("ListPodSandbox"))));
  EXPECT_THAT(manager_.wanted(), IsEmpty());
  EXPECT_EQ(fake_->requests.size(), 0U);
  fake_->lists_fail = false;
  ASSERT_TRUE(Eventually([&] { return shim_->Info().runtime_error.empty(); }));
  const auto answers = Begin(cri::method::kRunPodSandbox, run_);
  ASSERT_TRUE(Eventually([&] { return !manager_.wanted().empty(); }));
  Give(OneOfEach());
  EXPECT_THAT(StatusOfNext(*answers), IsOk());
}

TEST_F(ActuatingShimTest, HoldsARestoreUntilItsPodIsReady) {
  Start();
  test::cri::RestorePodRequest request;
  *request.mutable_config() = ForContainer().sandbox_config();
  *request.add_container_configs() = ForContainer().config();
  const auto answers =
      Begin(cri::method::kRestorePod, request.SerializeAsString());
  ASSERT_TRUE(Eventually([&] { return !manager_.wanted().empty(); }));
  EXPECT_EQ(fake_->requests.size(), 0U);
  Give(OneOfEach());
  EXPECT_THAT(StatusOfNext(*answers), IsOk());
  const auto seen = TakeRequest<test::cri::RestorePodRequest>();
  ASSERT_EQ(seen.container_configs_size(), 1);
  EXPECT_THAT(NamesOf(seen.container_configs(0)), ElementsAre("v.com/c=1"));
  SetSource(nullptr);
  Settle();
  EXPECT_THAT(manager_.unwanted(), IsEmpty()) << "it runs";
  EXPECT_THAT(RemoveSandbox("sandbox-1"), IsOk());
  EXPECT_TRUE(Released());
}

TEST_F(ActuatingShimTest, TellsInTimeWhatAPodWaitsFor) {
  options_.proxy.decision_budget = std::chrono::milliseconds(400);
  ChangePod(PodState::kWaiting, "PluginMissing",
            "no device plugin and no DeviceClass serves 'example.com/tpu'");
  Start();
  EXPECT_THAT(
      Call(cri::method::kRunPodSandbox, run_),
      StatusIs(
          absl::StatusCode::kUnavailable,
          HasSubstr(
              "no device plugin and no DeviceClass serves 'example.com/tpu'")));
  EXPECT_EQ(fake_->requests.size(), 0U);
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
}

TEST_F(ActuatingShimTest, ReleasesAPodThatNeitherRuntimeNorSourceHas) {
  Give(OneOfEach());
  Start();
  RunSandbox("sandbox-1");
  ASSERT_THAT(RemoveSandbox("sandbox-1"), IsOk());
  Settle();
  EXPECT_THAT(manager_.unwanted(), IsEmpty()) << "the source has it";
  SetSource(nullptr);
  ASSERT_TRUE(Released());
  EXPECT_THAT(manager_.unwanted(), ElementsAre(kUid));
}

TEST_F(ActuatingShimTest, ReleasesATerminalPodOnceItsLastSandboxIsGone) {
  Give(OneOfEach());
  Start();
  RunSandbox("sandbox-1");
  SetSource("Succeeded");
  Settle();
  EXPECT_THAT(manager_.unwanted(), IsEmpty()) << "its sandbox is there";
  ASSERT_THAT(RemoveSandbox("sandbox-1"), IsOk());
  ASSERT_TRUE(Released());
  EXPECT_THAT(manager_.unwanted(), ElementsAre(kUid));
}

TEST_F(ActuatingShimTest, ALateRemovalOfAnOldSandboxTouchesNoNewerAttempt) {
  options_.pods_from_source = false;
  Give(OneOfEach());
  Start();
  RunSandbox("sandbox-0", 0);
  RunSandbox("sandbox-1", 1);
  EXPECT_THAT(RemoveSandbox("sandbox-0"), IsOk());
  EXPECT_THAT(RemoveSandbox("sandbox-0"), IsOk());
  Settle();
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
  EXPECT_THAT(RemoveSandbox("sandbox-1"), IsOk());
  ASSERT_TRUE(Released());
  EXPECT_THAT(manager_.unwanted(), ElementsAre(kUid));
}

TEST_F(ActuatingShimTest, ASandboxThatIsNotFoundIsGone) {
  options_.pods_from_source = false;
  Give(OneOfEach());
  Start();
  RunSandbox("sandbox-1");
  const auto answer = [&](const absl::Status& status) {
    fake_->answer_instead = [status](const std::string&,
                                     const rpc::Respond& respond) {
      respond(status);
    };
  };
  answer(absl::InternalError("it does not stop"));
  EXPECT_THAT(RemoveSandbox("sandbox-1"),
              StatusIs(absl::StatusCode::kInternal));
  Settle();
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
  EXPECT_EQ(shim_->Info().sandboxes, 1U);
  answer(absl::NotFoundError("no such sandbox"));
  EXPECT_THAT(RemoveSandbox("sandbox-1"),
              StatusIs(absl::StatusCode::kNotFound, "no such sandbox"));
  ASSERT_TRUE(Released());
  EXPECT_THAT(manager_.unwanted(), ElementsAre(kUid));
  EXPECT_EQ(shim_->Info().sandboxes, 0U);
}

// The sandbox went, and then the shim, before the release.
TEST_F(ActuatingShimTest, ReleasesAfterARestartWhatTheSourceLacksToo) {
  Give(OneOfEach());
  Start();
  Settle();
  EXPECT_THAT(manager_.unwanted(), IsEmpty()) << "the source has it";
  client_.reset();
  shim_.reset();
  fake_->Stop();
  SetSource(nullptr);
  Start();
  ASSERT_TRUE(Released());
  EXPECT_THAT(manager_.unwanted(), ElementsAre(kUid));
}

TEST_F(ActuatingShimTest, AdoptsThePodsOfAFormerShim) {
  Give(OneOfEach());
  SetSource(nullptr);
  fake_->sandboxes = ListedSandbox("sandbox-7");
  Start();
  ASSERT_TRUE(Eventually([&] { return shim_->Info().sandboxes == 1; }));
  Settle();
  EXPECT_THAT(manager_.unwanted(), IsEmpty()) << "its sandbox is there";
  EXPECT_THAT(RemoveSandbox("sandbox-7"), IsOk());
  EXPECT_TRUE(Released());
}

// The call is quicker than the lists that say whose sandbox it is about.
TEST_F(ActuatingShimTest, ARemovalAtOnceAfterTheStartIsNotMissed) {
  options_.pods_from_source = false;
  Give(OneOfEach());
  fake_->sandboxes = ListedSandbox("sandbox-7");
  Start();
  EXPECT_THAT(RemoveSandbox("sandbox-7"), IsOk());
  EXPECT_TRUE(Released());
}

// The runtime dies while it makes a sandbox; when it is back it has it.
TEST_F(ActuatingShimTest, LooksForASandboxWhoseAnswerWasLost) {
  options_.pods_from_source = false;
  Give(OneOfEach());
  Start();
  RunSandbox("sandbox-0", 0);
  Mailbox<rpc::Respond> hanging;
  fake_->answer_instead = [&](const std::string&, const rpc::Respond& respond) {
    hanging.Put(respond);
  };
  const auto answers = Begin(cri::method::kRunPodSandbox, RunRequest(1));
  const auto respond = hanging.Take();
  ASSERT_TRUE(respond.has_value());
  fake_->requests.Take();
  fake_->Stop();
  EXPECT_FALSE(StatusOfNext(*answers).ok());
  fake_->answer_instead = nullptr;
  fake_->sandboxes = ListedSandbox("sandbox-1");
  fake_->Start("containerd", "2.0.1");
  client_ = Connect();
  EXPECT_THAT(RemoveSandbox("sandbox-0"), IsOk());
  ASSERT_TRUE(Eventually([&] {
    Settle();
    return shim_->Info().sandboxes == 1;
  }));
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
  EXPECT_THAT(RemoveSandbox("sandbox-1"), IsOk());
  EXPECT_TRUE(Released());
}

// Nobody but the embedder knows the pods, and nobody but the runtime when they
// are over: a manager without any source of objects.
TEST_F(ActuatingShimTest, WithoutASourceARealManagerGetsItsDevicesBack) {
  DeviceManagerOptions options;
  options.state_dir = Path("state");
  options.plugin_registry_dir = Path("registry");
  options.device_plugin_dir.clear();
  options.actuate = Actuate::kWanted;
  auto manager = DeviceManager::Open(options);
  ASSERT_THAT(manager, IsOk());
  {
    options_.manager = manager->get();
    fake_->Start("containerd", "2.0.1");
    EXPECT_THAT(
        CriShim::Start(options_).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("it has none")));
    fake_->Stop();
    options_.pods_from_source = false;
    Start();
    // The client is quicker than the embedder.
    const auto answers = Begin(cri::method::kRunPodSandbox, run_);
    Pod pod;
    pod.metadata.ns = "ns";
    pod.metadata.name = "p";
    pod.metadata.uid = kUid;
    pod.spec.containers = {{"c", {}, ""}};
    ASSERT_THAT((*manager)->WantPod(pod), IsOk());
    EXPECT_THAT(StatusOfNext(*answers), IsOk());
    const auto info = (*manager)->View()->PodInfoOf({kUid});
    ASSERT_THAT(info, IsOk());
    EXPECT_EQ(info->state, PodState::kReady);
    Created(ForContainer());
    EXPECT_THAT(RemoveSandbox("sandbox-1"), IsOk());
    EXPECT_TRUE(Eventually([&] { return (*manager)->View()->Pods().empty(); }));
    client_.reset();
    shim_.reset();
  }
}

}  // namespace
}  // namespace devmgr
