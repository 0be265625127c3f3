// SPDX-License-Identifier: Apache-2.0
#include <devmgr/control.h>
#include <devmgr/inspection.h>
#include <devmgr/inspection/v1/inspection.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "common/peer_status.h"
#include "common/status.h"
#include "rpc/connection.h"
#include "rpc/message.h"
#include "server/pod_watch.h"
#include "support/as_nobody.h"
#include "support/control_calls.h"
#include "support/fake_device_manager.h"
#include "support/status_matchers.h"
#include "support/stream_client.h"
#include "support/temp_folder.h"
#include "support/wanted_text.h"

namespace devmgr {
namespace {

namespace cpb = control::v1;
namespace ipb = inspection::v1;
using absl::StatusCode;
using ::testing::AllOf;
using ::testing::Contains;
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

/// This thread is another user while it lives; other threads are not.
class OtherUser {
 public:
  explicit OtherUser(uid_t uid) { Become(uid); }
  ~OtherUser() { Become(0); }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

 private:
  static void Become(uid_t uid) {
    if (::syscall(SYS_setresuid, -1, uid, -1) != 0) std::abort();
  }
};

class ControlServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Open();
    auto runtime = rpc::Runtime::Start();
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
  }

  void Open() {
    auto wanted = WantedPods::Open(folder_.path() / "wanted", "", nullptr);
    ASSERT_THAT(wanted, IsOk());
    wanted_ = *std::move(wanted);
  }

  void Serve(std::vector<unsigned> users = {}) {
    ControlOptions control;
    control.wanted = wanted_.get();
    control.users = std::move(users);
    server_.reset();
    auto server = InspectionServer::Start(
        manager_, endpoint_,
        [this](LogLevel level, std::string_view text) {
          EXPECT_EQ(level, LogLevel::kWarning);
          log_.Put(std::string(text));
        },
        control);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  std::unique_ptr<rpc::Connection> Dial() {
    auto connection = rpc::Dial(*runtime_, endpoint_, [] {});
    EXPECT_THAT(connection, IsOk());
    return connection.ok() ? *std::move(connection) : nullptr;
  }

  template <typename Response>
  static absl::StatusOr<Response> Call(
      rpc::Connection& connection, const std::string& method,
      const google::protobuf::MessageLite& request) {
    return BeginCall<Response>(connection, method, request).get();
  }
  template <typename Response>
  absl::StatusOr<Response> Control(
      const std::string& method, const google::protobuf::MessageLite& request) {
    const auto connection = Dial();
    return Call<Response>(*connection, kController + method, request);
  }

  absl::StatusOr<cpb::WantPodResponse> Want(const std::string& manifest) {
    return Control<cpb::WantPodResponse>("WantPod", WantRequest(manifest));
  }
  absl::StatusOr<cpb::UnwantPodResponse> Unwant(const std::string& uid) {
    return Control<cpb::UnwantPodResponse>("UnwantPod", UnwantRequest(uid));
  }

  std::unique_ptr<StreamClient> Watch(const std::string& token = "") {
    cpb::WatchPodsRequest request;
    request.set_resume_token(token);
    return std::make_unique<StreamClient>(
        endpoint_, std::string(kController) + "WatchPods",
        rpc::Encode(request));
  }
  static Watched Next(StreamClient& client) {
    const auto bytes = client.Next();
    EXPECT_TRUE(bytes.has_value());
    Watched message;
    EXPECT_TRUE(message.ParseFromString(bytes.value_or("")));
    return message;
  }
  /// `LIST`, `POD p Ready`, `GONE p`, `LISTED`; and the token of it.
  std::string NextText(StreamClient& client) {
    const Watched message = Next(client);
    token_ = message.resume_token();
    const std::string pod = message.pod().name().name();
    switch (message.kind()) {
      case Watched::KIND_LIST:
        return "LIST";
      case Watched::KIND_POD:
        return "POD " + pod +
               (message.pod().state() == ipb::POD_STATE_READY ? " Ready" : "");
      case Watched::KIND_GONE:
        return "GONE " + pod;
      case Watched::KIND_LISTED:
        return "LISTED";
      default:
        return "?";
    }
  }
  std::vector<std::string> NextTexts(StreamClient& client, int count) {
    std::vector<std::string> texts;
    for (int i = 0; i < count; ++i) texts.push_back(NextText(client));
    return texts;
  }

  std::vector<std::string> Decisions() {
    std::vector<std::string> decisions;
    manager_.Set(
        [&](FakeDeviceManager::World& world) { decisions = world.decisions; });
    return decisions;
  }

  const TempFolder folder_;
  const std::filesystem::path endpoint_ = folder_.path() / "devmgr.sock";
  FakeDeviceManager manager_;
  std::unique_ptr<WantedPods> wanted_;
  std::unique_ptr<rpc::Runtime> runtime_;
  Mailbox<std::string> log_;
  std::unique_ptr<InspectionServer> server_;
  std::string token_;
};

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

// --- Users ------------------------------------------------------------------

TEST_F(ControlServiceTest, OnlyControlUsersMayConnectBesidesTheOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be other users";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const auto can_connect = [this](uid_t uid) {
    const OtherUser user(uid);
    return rpc::Dial(*runtime_, endpoint_, [] {}).status().code();
  };
  Serve();
  EXPECT_EQ(can_connect(kNobody), StatusCode::kPermissionDenied);
  Serve({kNobody, 1234});
  EXPECT_EQ(can_connect(kNobody), StatusCode::kOk);
  EXPECT_EQ(can_connect(1234), StatusCode::kOk);
  EXPECT_EQ(can_connect(1235), StatusCode::kPermissionDenied);
  struct stat file {};
  ASSERT_EQ(stat(endpoint_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0707, 0600u);
}

TEST_F(ControlServiceTest, ControlUsersMayControlAndLookButNotMaintain) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be other users";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  Serve({kNobody});
  std::unique_ptr<rpc::Connection> connection;
  {
    const OtherUser user(kNobody);
    connection = Dial();
  }
  ASSERT_NE(connection, nullptr);
  const std::string control = kController;
  const std::string inspect = "/devmgr.inspection.v1.Inspector/";
  const auto want = WantRequest(WantedPodText("p", "u-p"));
  EXPECT_THAT(
      Call<cpb::WantPodResponse>(*connection, control + "WantPod", want),
      IsOk());
  EXPECT_THAT(Decisions(), ElementsAre(HasSubstr("by uid 65534, pid ")));
  EXPECT_THAT(Call<ipb::PodsResponse>(*connection, inspect + "Pods",
                                      ipb::PodsRequest()),
              IsOk());
  ipb::FsckRequest fsck;
  EXPECT_THAT(Call<ipb::FsckReport>(*connection, inspect + "Fsck", fsck),
              IsOk());
  fsck.set_repair(true);
  const auto repair =
      Call<ipb::FsckReport>(*connection, inspect + "Fsck", fsck);
  EXPECT_EQ(repair.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(repair.status()),
              AllOf(HasSubstr("uid 65534, pid "),
                    HasSubstr("may not call Fsck: it is for root and the "
                              "daemon's user (uid 0) only, and not for "
                              "controlUsers")));
  for (const char* method :
       {"ForceReleaseClaim", "HandOverResource", "ConfirmSource", "FreeHolder",
        "PreparePod", "ReleasePod", "ReportRuntime"}) {
    EXPECT_EQ(Call<ipb::PodsResponse>(*connection, inspect + method,
                                      ipb::PodsRequest())
                  .status()
                  .code(),
              StatusCode::kPermissionDenied)
        << method;
  }
  for (const char* method :
       {"BeforeContainerStart", "Claims", "Debts", "DeviceClasses", "Devices",
        "Events", "FindPod", "ForeignHolders", "History", "Node", "Plugins",
        "PodDevicesOf", "Pods", "Resolve", "Resources", "StateAt",
        "WaitForChange"}) {
    EXPECT_NE(Call<ipb::PodsResponse>(*connection, inspect + method,
                                      ipb::PodsRequest())
                  .status()
                  .code(),
              StatusCode::kPermissionDenied)
        << method;
  }
  EXPECT_THAT(Decisions(), SizeIs(1));
}

// An administrator may have opened the socket to more users.
TEST_F(ControlServiceTest, OtherUsersMayOnlyLook) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be other users";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  Serve();
  ASSERT_EQ(::chmod(endpoint_.c_str(), 0666), 0);
  std::unique_ptr<rpc::Connection> connection;
  {
    const OtherUser user(kNobody);
    connection = Dial();
  }
  ASSERT_NE(connection, nullptr);
  const std::string control = kController;
  const auto want = WantRequest(WantedPodText("p", "u-p"));
  const auto wanted =
      Call<cpb::WantPodResponse>(*connection, control + "WantPod", want);
  EXPECT_EQ(wanted.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(wanted.status()),
              AllOf(HasSubstr("uid 65534, pid "),
                    HasSubstr("may not call WantPod: its user is neither root "
                              "nor the daemon's (uid 0), nor among "
                              "controlUsers")));
  EXPECT_THAT(log_.Take().value_or(""),
              AllOf(HasSubstr("inspection socket: uid 65534, pid "),
                    HasSubstr("may not call WantPod")));
  for (const char* method : {"UnwantPod", "BeforeContainerStart"}) {
    EXPECT_EQ(Call<cpb::UnwantPodResponse>(*connection, control + method,
                                           cpb::UnwantPodRequest())
                  .status()
                  .code(),
              StatusCode::kPermissionDenied)
        << method;
  }
  EXPECT_EQ(Call<ipb::PodDevices>(*connection, control + "PodDevices",
                                  cpb::PodDevicesRequest())
                .status()
                .code(),
            StatusCode::kUnavailable);
  EXPECT_THAT(Decisions(), IsEmpty());
}

TEST_F(ControlServiceTest, SaysWhichOptionNeedsAccessControlLists) {
  if (::mount("ramfs", folder_.path().c_str(), "ramfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "nothing can be mounted here";
  }
  ControlOptions control;
  control.wanted = wanted_.get();
  control.users = {1234};
  const auto server =
      InspectionServer::Start(manager_, endpoint_, nullptr, control);
  ::umount2(folder_.path().c_str(), MNT_DETACH);
  EXPECT_EQ(server.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(server.status()),
              AllOf(HasSubstr("controlUsers: '"),
                    HasSubstr("without access control lists")));
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
