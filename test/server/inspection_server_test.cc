// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <deque>

#include "common/status.h"
#include "common/unique_fd.h"
#include "rpc/connection.h"
#include "rpc/message.h"
#include "rpc/server.h"
#include "rpc/unix_socket.h"
#include "server/inspection_fixture.h"
#include "server/inspection_service.h"
#include "support/names_once.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(InspectionServerTest, SocketIsForItsOwnerOnly) {
  StartServer();
  struct stat file {};
  ASSERT_EQ(stat(endpoint_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0600u);
}

TEST_F(InspectionServerTest, SecondServerIsTurnedAway) {
  StartServer();
  const auto second = InspectionServer::Start(manager_, endpoint_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(manager_.observers(), 1u);
}

// An operator who finds devmgrctl slow would never have known.
TEST_F(InspectionServerTest, TellsOfClientsThatAreTurnedAwayAtABoundedRate) {
  constexpr int kMost = 256;
  Mailbox<std::string> lines;
  auto server = InspectionServer::Start(
      manager_, endpoint_, [&](LogLevel level, std::string_view text) {
        EXPECT_EQ(level, LogLevel::kWarning);
        lines.Put(std::string(text));
      });
  ASSERT_TRUE(server.ok()) << server.status();
  std::deque<UniqueFd> silent;
  const auto connect = [&] {
    auto fd = rpc::ConnectUnix(endpoint_);
    ASSERT_TRUE(fd.ok()) << fd.status();
    silent.push_back(*std::move(fd));
    if (silent.size() > kMost + 8) silent.pop_front();
  };
  for (int i = 0; i < kMost; ++i) connect();
  // Those that were there before have to be taken in first.
  EXPECT_TRUE(Connect()->Node().ok());
  for (int i = 0; i < 100; ++i) connect();
  const auto first = lines.Take();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(*first,
            "inspection socket: 256 clients are connected, which is the limit; "
            "one was hung up on");
  EXPECT_TRUE(Connect()->Node().ok());
  *server = nullptr;
  EXPECT_LE(lines.size(), 6u) << "and one for all that came later";
}

TEST_F(InspectionServerTest, LeavesNothingBehind) {
  StartServer();
  EXPECT_EQ(manager_.observers(), 1u);
  server_.reset();
  EXPECT_EQ(manager_.observers(), 0u);
  EXPECT_FALSE(std::filesystem::exists(endpoint_));
}

TEST_F(InspectionServerTest, ShowsWhatTheManagerShows) {
  manager_.Set([](FakeDeviceManager::World& world) {
    world.node.version = "7";
    world.pods = {InfoOf(PodState::kWaiting)};
    world.claims.resize(2);
    world.plugins.resize(3);
    world.debts = {{{"default", "gpu"},
                    ClaimUid{"u-c"},
                    "gpu.example.com",
                    {"default/p"},
                    WallTime(std::chrono::seconds(5)),
                    7,
                    "busy",
                    "block"}};
    world.devices.resize(4);
    world.classes.resize(5);
    world.holders.resize(7);
    world.device_holders.resize(8);
    world.history->resize(6);
    for (std::size_t i = 0; i < 6; ++i) (*world.history)[i].sequence = i + 1;
  });
  StartServer();
  const auto inspector = Connect();
  EXPECT_EQ(inspector->Node()->version, "7");
  EXPECT_THAT(*inspector->ForeignHolders(), SizeIs(7));
  EXPECT_THAT(*inspector->DeviceHolders(), SizeIs(8));
  ASSERT_THAT(*inspector->Pods(), SizeIs(1));
  EXPECT_EQ(inspector->Pods()->front().name, kPod);
  EXPECT_THAT(*inspector->Claims(), SizeIs(2));
  EXPECT_THAT(*inspector->Plugins(), SizeIs(3));
  const auto debts = inspector->Debts();
  ASSERT_THAT(*debts, SizeIs(1));
  const DebtInfo& debt = debts->front();
  EXPECT_EQ(debt.claim, (ObjectName{"default", "gpu"}));
  EXPECT_EQ(debt.uid.value, "u-c");
  EXPECT_EQ(debt.driver, "gpu.example.com");
  EXPECT_THAT(debt.pods, ElementsAre("default/p"));
  EXPECT_EQ(debt.since, WallTime(std::chrono::seconds(5)));
  EXPECT_EQ(debt.attempts, 7u);
  EXPECT_EQ(debt.last_error, "busy");
  EXPECT_EQ(debt.policy, "block");
  EXPECT_THAT(*inspector->Devices(), SizeIs(4));
  EXPECT_THAT(*inspector->DeviceClasses(), SizeIs(5));
  EXPECT_THAT(*inspector->History(0), SizeIs(6));
  EXPECT_THAT(*inspector->History(4), SizeIs(2));
}

TEST_F(InspectionServerTest, PassesOnWhatAnOperatorDecides) {
  StartServer();
  const auto inspector = Connect();
  EXPECT_TRUE(inspector->ForceReleaseClaim({"default", "c"}, "why").ok());
  EXPECT_TRUE(inspector
                  ->HandOverResource("example.com/gpu",
                                     ResourceOwner::kDeviceClass, "because")
                  .ok());
  EXPECT_TRUE(inspector->FreeHolder("0123", "it hangs").ok());
  manager_.Set([](FakeDeviceManager::World& world) {
    EXPECT_THAT(world.decisions,
                ElementsAre("release default/c: why",
                            "hand-over example.com/gpu: because",
                            "free holder 0123: it hangs"));
  });
  for (const std::string& reason :
       {std::string(), std::string("a\nb"), std::string(2'000, 'x')}) {
    EXPECT_EQ(inspector->ForceReleaseClaim({"default", "c"}, reason).code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(inspector
                  ->HandOverResource("example.com/gpu",
                                     ResourceOwner::kAutomatic, reason)
                  .code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(inspector->FreeHolder("0123", reason).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(inspector->ForceReleaseClaim({"", "c"}, "why").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(InspectionServerTest, SendsALongHistoryInParts) {
  using server::InspectionService;
  constexpr std::size_t kDecisions = InspectionService::kMaxDecisions + 500;
  manager_.Set([](FakeDeviceManager::World& world) {
    world.history->resize(kDecisions);
    for (std::size_t i = 0; i < kDecisions; ++i) {
      DecisionInfo& decision = (*world.history)[i];
      decision.sequence = i + 1;
      // Few of those fit into an answer, and the last one does not at all.
      if (i < 5) decision.message.resize(400'000, 'x');
      if (i == 5) {
        decision.message.resize(2 * InspectionService::kMaxHistoryBytes, 'x');
      }
    }
  });
  StartServer();
  const auto history = Connect()->History(0);
  ASSERT_TRUE(history.ok()) << history.status().ToString();
  ASSERT_THAT(*history, SizeIs(kDecisions));
  for (std::size_t i = 0; i < kDecisions; ++i) {
    ASSERT_EQ((*history)[i].sequence, i + 1);
  }
  EXPECT_EQ((*history)[5].message.size(),
            2 * InspectionService::kMaxHistoryBytes);
}

TEST_F(InspectionServerTest, TellsEarlierStates) {
  std::vector<LedgerPoint> asked;
  manager_.Set([&](FakeDeviceManager::World& world) {
    world.state_at = [&](const LedgerPoint& at) -> absl::StatusOr<LedgerView> {
      asked.push_back(at);
      if (at == LedgerPoint(std::uint64_t{9})) {
        return OutOfRangeError("decision 9 is yet to come");
      }
      if (at == LedgerPoint(std::uint64_t{8})) {
        return UnavailableError("the ledger is in doubt");
      }
      LedgerView view;
      view.sequence = 3;
      view.time = WallTime(milliseconds(1'500));
      view.pods = {InfoOf(PodState::kReady)};
      view.claims.resize(2);
      view.devices.resize(3);
      return view;
    };
  });
  StartServer();
  const auto inspector = Connect();
  const LedgerPoint time = WallTime(milliseconds(1'234));
  const auto view = inspector->StateAt(time);
  ASSERT_TRUE(view.ok()) << view.status().ToString();
  EXPECT_EQ(view->sequence, 3u);
  EXPECT_EQ(view->time, WallTime(milliseconds(1'500)));
  ASSERT_THAT(view->pods, SizeIs(1));
  EXPECT_EQ(view->pods[0].name, kPod);
  EXPECT_THAT(view->claims, SizeIs(2));
  EXPECT_THAT(view->devices, SizeIs(3));
  ASSERT_TRUE(inspector->StateAt({}).ok());
  ASSERT_TRUE(inspector->StateAt(std::uint64_t{0}).ok());
  const auto late = inspector->StateAt(std::uint64_t{9});
  EXPECT_EQ(late.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(MessageOf(late.status()), HasSubstr("yet to come"));
  // Not "nobody answers there".
  EXPECT_EQ(inspector->StateAt(std::uint64_t{8}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(asked,
              ElementsAre(time, LedgerPoint(), LedgerPoint(std::uint64_t{0}),
                          LedgerPoint(std::uint64_t{9}),
                          LedgerPoint(std::uint64_t{8})));
}

TEST_F(InspectionServerTest, TellsWhoActs) {
  StartServer();
  for (const Actuate actuate :
       {Actuate::kNone, Actuate::kSource, Actuate::kWanted}) {
    SetActuate(actuate);
    EXPECT_EQ(Connect()->Node()->actuate, actuate);
  }
}

TEST_F(InspectionServerTest, BrokenHistoryIsAnErrorOfItsOwn) {
  manager_.Set([](FakeDeviceManager::World& world) {
    world.history = DataLossError("batch 7 cannot be decoded");
  });
  StartServer();
  const auto history = Connect()->History(0);
  EXPECT_EQ(history.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(history.status()), HasSubstr("batch 7"));
}

TEST_F(InspectionServerTest, ResolvesReadyPods) {
  const auto devices = std::make_shared<PodDevices>();
  devices->name = kPod;
  devices->uid = {"u1"};
  devices->containers.resize(1);
  devices->containers[0].name = "main";
  manager_.Set([&](FakeDeviceManager::World& world) {
    world.pods = {InfoOf(PodState::kReady)};
    world.answers[{"u1"}] = devices;
  });
  StartServer();
  const auto answer = Connect()->Resolve(kPod);
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(*answer, *devices);
}

// Unavailable would read as "no daemon there".
TEST_F(InspectionServerTest, PodThatIsNotReadyIsAFailedPrecondition) {
  PodInfo pod = InfoOf(PodState::kWaiting);
  pod.reason = "ClaimMissing";
  pod.message = "claim 'default/c' does not exist";
  manager_.Set([&](FakeDeviceManager::World& world) { world.pods = {pod}; });
  StartServer();
  const auto answer = Connect()->Resolve(kPod);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(answer.status()),
            "pod 'default/gpu-pod' is Waiting: ClaimMissing: claim "
            "'default/c' does not exist");
}

TEST_F(InspectionServerTest, APodOfTheSourceThatHasFinishedSaysSo) {
  auto pod = std::make_shared<Pod>();
  pod->metadata.uid = "u1";
  pod->status.phase = "Succeeded";
  auto objects = std::make_shared<ObjectSnapshot>();
  objects->pods.insert_or_assign(kPod, pod);
  manager_.Set(
      [&](FakeDeviceManager::World& world) { world.objects = objects; });
  StartServer();
  const auto found = Connect()->FindPod(kPod);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->reason, kFinishedReason);
  EXPECT_EQ(found->message,
            "the pod has finished (Succeeded), and holds nothing any more");
}

TEST_F(InspectionServerTest, FindsPodsOfLedgerAndSource) {
  SetSource();
  StartServer();
  const auto inspector = Connect();
  auto found = inspector->FindPod(kPod);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->state, PodState::kWaiting);
  EXPECT_EQ(found->reason, kNotRequestedReason);
  EXPECT_EQ(inspector->Resolve(kPod).status().code(),
            absl::StatusCode::kFailedPrecondition);

  manager_.ChangePod(InfoOf(PodState::kReady));
  found = inspector->FindPod(kPod);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->state, PodState::kReady);

  found = inspector->FindPod({"default", "bad"});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->message, "bad.yaml:3: spec.containers: required value");

  const ObjectName unknown{"default", "unknown"};
  EXPECT_EQ(inspector->FindPod(unknown).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(inspector->Resolve(unknown).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(inspector->FindPod({"", "x"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(InspectionServerTest, NothingCanBeAskedForOfAManagerThatDoesNotActuate) {
  SetSource();
  StartServer();
  const absl::Status status = Connect()->PreparePod(kPod);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status), HasSubstr("actuate: embedder"));
}

TEST_F(InspectionServerTest, AManagerThatFollowsManifestsActsByItself) {
  SetSource();
  manager_.ChangePod(InfoOf(PodState::kReady));
  SetActuate(Actuate::kSource);
  StartServer();
  const auto inspector = Connect();
  EXPECT_EQ(inspector->PreparePod(kPod).code(),
            absl::StatusCode::kFailedPrecondition);
  const absl::Status release = inspector->ReleasePod(kPod);
  EXPECT_EQ(release.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(release), HasSubstr("change the pod's manifest"));
  EXPECT_THAT(manager_.wanted(), IsEmpty());
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
}

TEST_F(InspectionServerTest, PassesWishesToTheManager) {
  SetSource();
  SetActuate(Actuate::kWanted);
  StartServer();
  const auto inspector = Connect();
  EXPECT_TRUE(inspector->PreparePod(kPod).ok());
  EXPECT_THAT(manager_.wanted(), ElementsAre("default/gpu-pod"));
  EXPECT_EQ(inspector->PreparePod({"default", "unknown"}).code(),
            absl::StatusCode::kNotFound);
  const absl::Status bad = inspector->PreparePod({"default", "bad"});
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(bad), HasSubstr("bad.yaml:3"));

  EXPECT_EQ(inspector->ReleasePod(kPod).code(), absl::StatusCode::kNotFound);
  manager_.ChangePod(InfoOf(PodState::kReady));
  EXPECT_TRUE(inspector->ReleasePod(kPod).ok());
  EXPECT_THAT(manager_.unwanted(), ElementsAre("u1"));
}

TEST_F(InspectionServerTest, GarbageIsAnInvalidArgument) {
  StartServer();
  auto runtime = rpc::Runtime::Start();
  ASSERT_TRUE(runtime.ok());
  auto connection = rpc::Dial(**runtime, endpoint_, [] {});
  ASSERT_TRUE(connection.ok());
  Mailbox<absl::StatusCode> answers;
  (*connection)
      ->Call(std::string(server::kServicePath) + "FindPod", "\xFF\xFF\xFF",
             {kPatience}, [&](absl::StatusOr<std::string> answer) {
               answers.Put(answer.status().code());
             });
  EXPECT_EQ(answers.Take(), absl::StatusCode::kInvalidArgument);
}

TEST(InspectorTest, NobodyThereIsUnavailable) {
  const TempFolder folder;
  const auto missing =
      Inspector::Connect(folder.path() / "no.sock", milliseconds(100));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(missing.status()), NamesOnce("no.sock"));
  const auto folder_itself =
      Inspector::Connect(folder.path(), milliseconds(100));
  EXPECT_EQ(folder_itself.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Inspector::Connect(folder.path(), milliseconds(0)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(InspectorTest, SilentDaemonIsADeadlineExceeded) {
  const TempFolder folder;
  std::vector<rpc::Respond> kept;
  rpc::ServerOptions options;
  options.socket = folder.path() / "devmgr.sock";
  options.methods[std::string(server::kServicePath) + "Node"] =
      [&](std::string, rpc::Respond respond) {
        kept.push_back(std::move(respond));
      };
  options.methods[std::string(server::kServicePath) + "FindPod"] =
      [](std::string, rpc::Respond respond) {
        respond(std::string("\xFF\xFF"));
      };
  auto server = rpc::Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  auto inspector = Inspector::Connect(options.socket, milliseconds(50));
  ASSERT_TRUE(inspector.ok());
  const auto node = (*inspector)->Node();
  EXPECT_EQ(node.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(node.status()),
              AllOf(NamesOnce("devmgr.sock"), HasSubstr("within 50 ms")));
  // An older daemon, and one that talks nonsense.
  EXPECT_EQ((*inspector)->Pods().status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ((*inspector)->FindPod(kPod).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(InspectionServerTest, SimulatePassesDocumentsAndTheAnswer) {
  Simulation simulation;
  simulation.sequence = 7;
  simulation.pods.emplace_back().pod = {"default", "p"};
  manager_.Set(
      [&](FakeDeviceManager::World& world) { world.simulation = simulation; });
  StartServer();
  const auto inspector = Connect();
  SimulationDocuments request;
  request.documents = {{"p.yaml",
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
                        "spec: {containers: [{name: c}]}\n"}};
  request.view.base = SimulationBase::kLikeNode;
  request.view.node_name = "n9";
  request.view.minus = {{"default", "old"}};
  request.view.plugins = {{ResourceName("example.com/gpu"), 4, {{1, 2}}}};
  request.count_fits = true;
  request.steps = 99;
  const auto answer = inspector->Simulate(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, EncodeSimulation(simulation));
  const auto asked = manager_.simulation_requests();
  ASSERT_THAT(asked, SizeIs(1));
  ASSERT_THAT(asked[0].pods, SizeIs(1));
  EXPECT_EQ(asked[0].pods[0].metadata.name, "p");
  EXPECT_EQ(asked[0].view.base, SimulationBase::kLikeNode);
  EXPECT_EQ(asked[0].view.node_name, "n9");
  EXPECT_EQ(asked[0].view.minus, request.view.minus);
  ASSERT_THAT(asked[0].view.plugins, SizeIs(1));
  EXPECT_EQ(asked[0].view.plugins[0].by_numa_node.at(1), 2);
  EXPECT_TRUE(asked[0].count_fits);
  EXPECT_EQ(asked[0].steps, 99U);

  request.documents = {{"bad.yaml", "kind: [\n"}};
  EXPECT_TRUE(absl::IsInvalidArgument(inspector->Simulate(request).status()));
  request.documents = {
      {"node.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"}};
  EXPECT_TRUE(absl::IsInvalidArgument(inspector->Simulate(request).status()));
  EXPECT_THAT(manager_.simulation_requests(), SizeIs(1));
}

TEST_F(InspectionServerTest, FsckPassesModeAndReport) {
  FsckReport report;
  report.ledger_sequence = 3;
  report.findings = {{"c", true, "o", "m\xFF", "r", "h"},
                     {"d", false, "p", "n", "", ""}};
  report.repairs = {{"o", "a", "e"}};
  manager_.Set([&](FakeDeviceManager::World& world) { world.fsck = report; });
  StartServer();
  const auto inspector = Connect();
  FsckRequest request;
  const auto checked = inspector->Fsck(request);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->ledger_sequence, 3u);
  report.findings[0].message = "m\xEF\xBF\xBD";
  EXPECT_EQ(checked->findings, report.findings);
  ASSERT_THAT(checked->repairs, SizeIs(1));
  EXPECT_EQ(checked->repairs[0].object, "o");
  EXPECT_EQ(checked->repairs[0].action, "a");
  EXPECT_EQ(checked->repairs[0].error, "e");
  request.mode = FsckMode::kRepair;
  ASSERT_TRUE(inspector->Fsck(request).ok());
  manager_.Set([](FakeDeviceManager::World& world) {
    EXPECT_THAT(world.fsck_modes,
                ElementsAre(FsckMode::kCheck, FsckMode::kRepair));
    world.fsck = absl::UnavailableError("disk is gone");
  });
  // Not to be taken for a daemon that is not there.
  EXPECT_TRUE(absl::IsFailedPrecondition(inspector->Fsck(request).status()));
}

}  // namespace
}  // namespace devmgr
