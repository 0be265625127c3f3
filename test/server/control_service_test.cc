// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <thread>

#include "common/status.h"
#include "server/control_fixture.h"
#include "server/pod_watch.h"
#include "support/wanted_text.h"

namespace devmgr {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Watched = cpb::WatchPodsResponse;

PodInfo Info(const std::string& name, PodState state,
             const std::string& message = "") {
  PodInfo pod;
  pod.name = {"default", name};
  pod.uid = {"u-" + name};
  pod.state = state;
  pod.message = message;
  return pod;
}

TEST_F(ControlServiceTest, WantsAndUnwantsAPodWithTheCallerInTheHistory) {
  Serve();
  const auto wanted = Want(WantedPodText("p", "u-p"));
  ASSERT_THAT(wanted, IsOk());
  EXPECT_EQ(wanted->uid(), "u-p");
  EXPECT_EQ(wanted->name().name(), "p");
  EXPECT_FALSE(wanted->was_wanted());
  EXPECT_THAT(wanted_->Snapshot()->pods, SizeIs(1));
  EXPECT_TRUE(Want(WantedPodText("p", "u-p"))->was_wanted());
  const auto unwanted = Unwant("u-p");
  ASSERT_THAT(unwanted, IsOk());
  EXPECT_TRUE(unwanted->was_wanted());
  EXPECT_EQ(unwanted->name().name(), "p");
  EXPECT_FALSE(Unwant("u-x")->was_wanted());
  const std::string by = ") by uid " + std::to_string(geteuid()) + ", pid " +
                         std::to_string(getpid());
  EXPECT_THAT(
      Decisions(),
      ElementsAre("wanted u-p (default/p" + by, "wanted u-p (default/p" + by,
                  "unwanted u-p (default/p" + by, "unwanted u-x (" + by));
}

TEST_F(ControlServiceTest, SaysWhatIsWrongWithAManifest) {
  Serve();
  const auto wanted = Want(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
      "spec:\n  containers: 7\n");
  EXPECT_EQ(wanted.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(wanted.status()),
              HasSubstr("manifest:5: spec.containers"));
  const auto large = Want(std::string(WantedPods::kMaxBytes + 1, '#'));
  EXPECT_EQ(large.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(Decisions(), IsEmpty());
}

TEST_F(ControlServiceTest, WarnsOfWhatAManifestHasInVain) {
  Serve();
  const auto wanted = Want(WantedPodText("p", "u-p") +
                           "---\napiVersion: v1\nkind: ConfigMap\n"
                           "metadata: {name: m}\n");
  ASSERT_THAT(wanted, IsOk());
  EXPECT_THAT(wanted->warnings(), ElementsAre(HasSubstr("manifest:")));
}

TEST_F(ControlServiceTest, ALedgerThatCannotBeWrittenHasNothingWanted) {
  Serve();
  manager_.Set([](FakeDeviceManager::World& world) {
    world.wish_status = UnavailableError("the ledger is full");
  });
  const auto wanted = Want(WantedPodText("p", "u-p"));
  EXPECT_EQ(wanted.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(wanted_->Snapshot()->pods, IsEmpty());
}

TEST_F(ControlServiceTest, ANameThatAPodOfUnreadableManifestsMayHaveIsRefused) {
  Serve();
  manager_.ChangePod(Info("p", PodState::kReady));
  const auto wanted = Want(WantedPodText("p", "u-2"));
  EXPECT_EQ(wanted.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(MessageOf(wanted.status()),
              HasSubstr("pod 'default/p' with UID 'u-p' is on this node"));
  // The manifests are complete, and lack it: it is about to go.
  auto objects = std::make_shared<ObjectSnapshot>();
  objects->complete = true;
  manager_.Set(
      [&](FakeDeviceManager::World& world) { world.objects = objects; });
  EXPECT_THAT(Want(WantedPodText("p", "u-2")), IsOk());
}

TEST_F(ControlServiceTest, ReadsAnswersAsTheLibraryGivesThem) {
  Serve();
  auto devices = std::make_shared<PodDevices>();
  devices->uid = {"u-p"};
  devices->containers.resize(1);
  devices->containers[0].name = "c";
  manager_.Set([&](FakeDeviceManager::World& world) {
    world.answers[PodUid{"u-p"}] = devices;
  });
  cpb::PodDevicesRequest pod;
  pod.set_uid("u-p");
  const auto all = Control<ipb::PodDevices>("PodDevices", pod);
  ASSERT_THAT(all, IsOk());
  EXPECT_EQ(all->containers(0).name(), "c");
  pod.set_uid("u-x");
  const auto none = Control<ipb::PodDevices>("PodDevices", pod);
  EXPECT_EQ(none.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(none.status()), "not prepared");
  cpb::ContainerDevicesRequest container;
  container.set_uid("u-p");
  const auto one =
      Control<ipb::ContainerDevices>("ContainerDevices", container);
  EXPECT_EQ(one.status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(MessageOf(one.status()), "fake");
  cpb::BeforeContainerStartRequest start;
  start.set_uid("u-p");
  EXPECT_EQ(MessageOf(Control<cpb::BeforeContainerStartResponse>(
                          "BeforeContainerStart", start)
                          .status()),
            "fake");
}

TEST_F(ControlServiceTest, DrivesAManagerThatFollowsNoSource) {
  ASSERT_THAT(wanted_->Want(WantedPodText("a", "u-a"),
                            [](const auto&) { return absl::OkStatus(); }),
              IsOk());
  ASSERT_THAT(wanted_->Want(WantedPodText("b", "u-b"),
                            [](const auto&) { return absl::OkStatus(); }),
              IsOk());
  ASSERT_THAT(
      wanted_->Unwant({"u-b"}, [](const auto&) { return absl::OkStatus(); }),
      IsOk());
  manager_.Set([](FakeDeviceManager::World& world) {
    world.node.actuate = Actuate::kWanted;
  });
  Serve();
  EXPECT_THAT(manager_.wanted(), ElementsAre("default/a"));
  EXPECT_THAT(manager_.unwanted(), ElementsAre("u-b"));
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  ASSERT_THAT(Unwant("u-a"), IsOk());
  EXPECT_THAT(manager_.wanted(), ElementsAre("default/a", "default/p"));
  EXPECT_THAT(manager_.unwanted(), ElementsAre("u-b", "u-a"));
  manager_.Set([](FakeDeviceManager::World& world) {
    world.node.actuate = Actuate::kSource;
  });
  Serve();
  ASSERT_THAT(Want(WantedPodText("q", "u-q")), IsOk());
  EXPECT_THAT(manager_.wanted(), ElementsAre("default/a", "default/p"));
}

TEST_F(ControlServiceTest, ForgetsAnUnwantedPodThatIsGone) {
  manager_.ChangePod(Info("p", PodState::kReady));
  Serve();
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  ASSERT_THAT(Unwant("u-p"), IsOk());
  EXPECT_THAT(wanted_->Snapshot()->gone_pods, SizeIs(1));
  const auto client = Watch();
  EXPECT_THAT(NextTexts(*client, 3),
              ElementsAre("LIST", "POD p Ready", "LISTED"));
  manager_.RemovePod({"u-p"});
  NextText(*client);
  EXPECT_THAT(wanted_->Snapshot()->gone_pods, IsEmpty());
}

TEST_F(ControlServiceTest, ForgetsAfterARestartWhatTheLedgerDoesNotKnow) {
  const auto ok = [](const auto&) { return absl::OkStatus(); };
  for (const std::string name : {"p", "q"}) {
    ASSERT_THAT(wanted_->Want(WantedPodText(name, "u-" + name), ok), IsOk());
    ASSERT_THAT(wanted_->Unwant({"u-" + name}, ok), IsOk());
  }
  manager_.ChangePod(Info("p", PodState::kReleasing));
  Serve();
  const auto client = Watch();
  NextTexts(*client, 3);
  EXPECT_THAT(wanted_->Snapshot()->gone_pods, ElementsAre(PodUid{"u-p"}));
}

TEST_F(ControlServiceTest, TwoClientsThatRaceLeaveWhatTheLastOneSaid) {
  Serve();
  const auto run = [this](bool want) {
    const auto connection = Dial();
    for (int i = 0; i < 20; ++i) {
      const std::string path = kController;
      if (want) {
        EXPECT_THAT(
            Call<cpb::WantPodResponse>(*connection, path + "WantPod",
                                       WantRequest(WantedPodText("p", "u-p"))),
            IsOk());
      } else {
        EXPECT_THAT(Call<cpb::UnwantPodResponse>(
                        *connection, path + "UnwantPod", UnwantRequest("u-p")),
                    IsOk());
      }
    }
  };
  std::thread first(run, true);
  run(false);
  first.join();
  const auto decisions = Decisions();
  ASSERT_THAT(decisions, SizeIs(40));
  const bool is_wanted = decisions.back().starts_with("wanted");
  EXPECT_EQ(wanted_->Snapshot()->pods.size(), is_wanted ? 1u : 0u);
  EXPECT_EQ(wanted_->Snapshot()->gone_pods.size(), is_wanted ? 0u : 1u);
  Open();
  EXPECT_EQ(wanted_->Snapshot()->pods.size(), is_wanted ? 1u : 0u);
}

// --- Watching ----------------------------------------------------------------

TEST_F(ControlServiceTest, WatchingBeginsWithAllPodsAndGoesOnWithChanges) {
  manager_.ChangePod(Info("a", PodState::kReady));
  manager_.ChangePod(Info("b", PodState::kWaiting, "no device is free"));
  Serve();
  const auto client = Watch();
  EXPECT_EQ(NextText(*client), "LIST");
  EXPECT_EQ(NextText(*client), "POD a Ready");
  const Watched b = Next(*client);
  EXPECT_EQ(b.pod().message(), "no device is free");
  EXPECT_EQ(NextText(*client), "LISTED");
  manager_.ChangePod(Info("b", PodState::kReady));
  EXPECT_EQ(NextText(*client), "POD b Ready");
  manager_.RemovePod({"u-a"});
  EXPECT_EQ(Next(*client).kind(), Watched::KIND_GONE);
}

TEST_F(ControlServiceTest, WatchingGoesOnWhereATokenStands) {
  manager_.ChangePod(Info("a", PodState::kReady));
  manager_.ChangePod(Info("b", PodState::kWaiting));
  Serve();
  auto client = Watch();
  NextTexts(*client, 4);
  const std::string before = token_;
  client.reset();
  manager_.ChangePod(Info("b", PodState::kPreparing));
  manager_.ChangePod(Info("b", PodState::kReady));
  client = Watch(before);
  EXPECT_THAT(NextTexts(*client, 2), ElementsAre("POD b Ready", "LISTED"));
  client = Watch(token_);
  EXPECT_EQ(NextText(*client), "LISTED");
  client = Watch("from-yesterday");
  EXPECT_THAT(NextTexts(*client, 4),
              ElementsAre("LIST", "POD a Ready", "POD b Ready", "LISTED"));
  // Another daemon has another list.
  const std::string old = token_;
  Serve();
  client = Watch(old);
  EXPECT_EQ(NextText(*client), "LIST");
}

TEST_F(ControlServiceTest, ATokenThatIsTooOldGetsAllPodsAnew) {
  manager_.ChangePod(Info("a", PodState::kReady));
  Serve();
  auto client = Watch();
  NextTexts(*client, 3);
  const std::string before = token_;
  client.reset();
  for (std::size_t i = 0; i <= server::PodWatch::kMaxGone; ++i) {
    const std::string name = "x" + std::to_string(i);
    manager_.ChangePod(Info(name, PodState::kReady));
    manager_.RemovePod({"u-" + name});
  }
  client = Watch();
  EXPECT_THAT(NextTexts(*client, 3),
              ElementsAre("LIST", "POD a Ready", "LISTED"));
  client = Watch(before);
  EXPECT_THAT(NextTexts(*client, 3),
              ElementsAre("LIST", "POD a Ready", "LISTED"));
}

TEST_F(ControlServiceTest, AClientThatDoesNotReadMissesOnlyWhatIsOver) {
  Serve();
  const auto client = Watch();
  EXPECT_THAT(NextTexts(*client, 2), ElementsAre("LIST", "LISTED"));
  const std::string text(20'000, 'x');
  constexpr int kChanges = 3'000;  // 60 MB
  for (int i = 1; i <= kChanges; ++i) {
    manager_.ChangePod(Info("a", PodState::kWaiting, text + std::to_string(i)));
  }
  manager_.ChangePod(Info("a", PodState::kReady));
  int read = 0;
  while (NextText(*client) != "POD a Ready") ++read;
  EXPECT_LT(read, kChanges / 2);
}

TEST_F(ControlServiceTest, TooManyWatchersAreRefused) {
  Serve();
  std::vector<std::unique_ptr<StreamClient>> clients;
  for (std::size_t i = 0; i < server::PodWatch::kMaxClients; ++i) {
    clients.push_back(Watch());
    EXPECT_EQ(NextText(*clients.back()), "LIST");
  }
  EXPECT_EQ(Watch()->End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  clients.pop_back();
  // Until the server knows that it has gone.
  while (Watch()->Next() == std::nullopt) {
  }
}

}  // namespace
}  // namespace devmgr
