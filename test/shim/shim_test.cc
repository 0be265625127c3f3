// SPDX-License-Identifier: Apache-2.0
#include <devmgr/inspection.h>

#include "shim/shim_fixture.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

// BO-098: a container without devices, in odd encoding.
TEST_F(ShimTest, PassesBytesOfContainersWithoutDevices) {
  Give({});
  Start();
  const std::string request = ForContainer("none").SerializeAsString() +
                              std::string("\xBA\x3E\x01?", 4);
  EXPECT_THAT(Call(cri::method::kCreateContainer, request), IsOk());
  EXPECT_EQ(fake_->requests.Take(), request);
  EXPECT_EQ(shim_->Info().unchanged, 1U);
}

// BO-087, BO-106, BO-109, BO-110.
TEST_F(ShimTest, InjectsInTheKubeletsOrder) {
  Give(OneOfEach());
  Start();
  Request request = ForContainer();
  auto& config = *request.mutable_config();
  auto& env = *config.add_envs();
  env.set_key("K");
  env.set_value("pod");
  auto& mine = *config.add_annotations();
  mine.set_key("mine");
  mine.set_value("kubelet");
  config.add_devices()->set_container_path("/dev/block");
  config.add_cdi_devices()->set_name("w.com/c=7");
  const auto seen = Created(request);
  EXPECT_THAT(PairsOf(seen.envs()), ElementsAre("K=plugin", "K=pod"));
  EXPECT_THAT(PairsOf(seen.annotations()),
              ElementsAre("plugin=1", "mine=kubelet"));
  EXPECT_THAT(NamesOf(seen), ElementsAre("w.com/c=7", "v.com/c=1"));
  ASSERT_EQ(seen.mounts_size(), 1);
  EXPECT_EQ(seen.mounts(0).host_path(), "/host/x");
  EXPECT_TRUE(seen.mounts(0).readonly());
  ASSERT_EQ(seen.devices_size(), 2);
  EXPECT_EQ(seen.devices(0).container_path(), "/dev/x");
  EXPECT_EQ(seen.annotations().rbegin()->key(), kAllocationAnnotation);
  // What the ledger gave, and what the client named.
  EXPECT_THAT(seen.annotations().rbegin()->value(),
              MatchesRegex("[0-9a-f]{16}\\.[0-9a-f]{16}"));
}

// BO-076, BO-080, BO-081: names become plain fields, all else stays.
TEST_F(ShimTest, ExpandsForARuntimeWithoutCdi) {
  const std::string folder = Path("").string();
  WriteSpec(R"({"env": ["K=cdi"], "deviceNodes": [{"path": "/dev/y",
                "hostPath": "/dev/null"}], "mounts": [{"containerPath": "/lib/y",
                "hostPath": ")" +
            folder + R"(", "options": ["ro", "bind"]}]})");
  Give(OneOfEach());
  Start("1.6.33");
  Request request = ForContainer();
  auto& config = *request.mutable_config();
  config.add_cdi_devices()->set_name("v.com/c=1");
  config.add_command("\xFFrun");
  config.add_mounts()->set_container_path("/data");
  config.mutable_linux()->mutable_security_context()->add_supplemental_groups(
      44);
  auto& env = *config.add_envs();
  env.set_key("K");
  env.set_value("pod");
  // Fields that nobody knows, in the config and beside it.
  const std::string unknown("\xBA\x3E\x01?", 4);
  ASSERT_TRUE(config.MergeFromString(unknown));
  ASSERT_TRUE(request.MergeFromString(unknown));
  ASSERT_THAT(Call(cri::method::kCreateContainer, request.SerializeAsString()),
              IsOk());
  const auto seen = TakeRequest<Request>();
  EXPECT_EQ(seen.config().mounts_size(), 3);

  const auto add_device = [&](const char* path, const char* permissions) {
    auto& device = *config.add_devices();
    device.set_container_path(path);
    device.set_host_path("/dev/null");
    device.set_permissions(permissions);
  };
  add_device("/dev/x", "rw");
  add_device("/dev/y", "rwm");
  auto& mounts = *config.mutable_mounts();
  const auto add_mount = [&](const char* path, const std::string& host) {
    auto& mount = *mounts.Add();
    mount.set_container_path(path);
    mount.set_host_path(host);
    mount.set_readonly(true);
  };
  add_mount("/run/x", "/host/x");
  add_mount("/lib/y", folder);
  mounts.SwapElements(0, 1);  // Plugins' before the pod's, CDI's last.
  config.mutable_envs(0)->set_value("cdi");
  config.clear_cdi_devices();
  for (const auto& [key, value] :
       {std::pair("plugin", "1"), {"mine", "plugin"}}) {
    auto& annotation = *config.add_annotations();
    annotation.set_key(key);
    annotation.set_value(value);
  }
  // What it holds, and the stamp.
  ASSERT_GE(seen.config().annotations_size(), 2);
  const auto last = seen.config().annotations().rbegin();
  EXPECT_EQ(std::next(last)->key(), kDevicesAnnotation);
  *config.add_annotations() = *std::next(last);
  *config.add_annotations() = *last;
  EXPECT_EQ(seen.SerializeAsString(), request.SerializeAsString());
  const CriShimInfo info = shim_->Info();
  EXPECT_EQ(info.runtime_cdi, RuntimeCdi::kNone);
  EXPECT_EQ(info.runtime_cdi_source, "version");
}

// A kubelet above: there is nobody to be asked about pods.
TEST_F(ShimTest, ExpandsNamesThatTheClientSends) {
  WriteSpec(R"({"env": ["K=cdi"]})");
  options_.manager = nullptr;
  Start("1.6.33");
  Request request = ForContainer();
  auto& annotation = *request.mutable_config()->add_annotations();
  annotation.set_key("cdi.k8s.io/x");
  annotation.set_value("v.com/c=1");
  const auto seen = Created(request);
  EXPECT_THAT(PairsOf(seen.envs()), ElementsAre("K=cdi"));
  EXPECT_THAT(PairsOf(seen.annotations()), IsEmpty());
  EXPECT_THAT(PairsOf(Created(ForContainer("other")).envs()), IsEmpty());
}

// BO-082.
TEST_F(ShimTest, RefusesHooksWithTheFullText) {
  WriteSpec(R"({"hooks": [{"hookName": "createContainer", "path":
                "/usr/bin/setup"}]})");
  Give(OneOfEach());
  Start("1.6.33");
  EXPECT_THAT(Refused(ForContainer()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'c'"), HasSubstr("ns/p"),
                             HasSubstr("v.com/c=1"), HasSubstr("v.json"),
                             HasSubstr("createContainer"),
                             HasSubstr("containerd 1.6.33"))));
}

TEST_F(ShimTest, NamesWhatCannotBeResolved) {
  Give(OneOfEach());
  Start("1.6.33");
  EXPECT_THAT(
      Refused(ForContainer()),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("v.com/c=1"), HasSubstr(Path("cdi").string()))));
}

// As the pod tells it; BO-104 is in shim_claims_test.cc.
TEST_F(ShimTest, HoldsBackAContainerWhoseClaimIsNotPrepared) {
  ChangePod(PodState::kPreparing, "DriverError",
            "claim 'ns/x': driver 'gpu.example.com' has not answered");
  Start();
  EXPECT_THAT(
      Refused(ForContainer()),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("claim 'ns/x'"), HasSubstr("gpu.example.com"))));
  Give(OneOfEach());
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
}

ContainerDevices OneOfAClaim() {
  ContainerDevices devices;
  devices.cdi_devices = {
      {"v.com/c=1", {"x", "r", "gpu.example.com", "p", "1"}}};
  return devices;
}

// Specs that vanished while the ledger remembers the claim.
TEST_F(ShimTest, WaitsForADriverToPrepareAgain) {
  Give(OneOfAClaim());
  manager_.start_status =
      absl::UnavailableError("claim 'ns/x' lacks a spec; being prepared again");
  Start("1.6.33");
  const auto answers =
      Begin(cri::method::kCreateContainer, ForContainer().SerializeAsString());
  EXPECT_EQ(manager_.started.Take(), "u-1/c");
  ChangePod(PodState::kPreparing, "DriverError", "not yet");
  EXPECT_EQ(answers->size(), 0U);
  WriteSpec(R"({"env": ["K=cdi"]})");
  Give(OneOfAClaim());
  EXPECT_THAT(StatusOfNext(*answers), IsOk());
  EXPECT_THAT(PairsOf(TakeRequest<Request>().config().envs()),
              ElementsAre("K=cdi"));
}

// The same for a runtime that reads specs itself.
TEST_F(ShimTest, SaysInTimeThatADriverPreparesAgain) {
  options_.proxy.decision_budget = std::chrono::milliseconds(400);
  Give(OneOfAClaim());
  manager_.start_status =
      absl::UnavailableError("claim 'ns/x' lacks a spec; being prepared again");
  Start();
  EXPECT_THAT(Refused(ForContainer()), StatusIs(absl::StatusCode::kUnavailable,
                                                HasSubstr("prepared again")));
}

// A driver that was asked in vain is not asked again: the runtime may look
// elsewhere.
TEST_F(ShimTest, LeavesTheRuntimeTheLastWordOnSpecs) {
  Give(OneOfAClaim());
  Start();
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
  EXPECT_EQ(manager_.started.Take(), "u-1/c");
  EXPECT_EQ(manager_.started.size(), 0U);
}

TEST_F(ShimTest, RefusesContainersOfARejectedPod) {
  ChangePod(PodState::kRejected, "UnexpectedAdmissionError", "no");
  Start();
  EXPECT_THAT(Refused(ForContainer()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("UnexpectedAdmissionError")));
}

TEST_F(ShimTest, PassesUnknownPodsAfterAWhile) {
  options_.unknown_sandbox_wait = std::chrono::milliseconds(100);
  Start();
  EXPECT_THAT(NamesOf(Created(ForContainer())), IsEmpty());
  EXPECT_EQ(NextWarning(), "UnknownSandbox");
}

TEST_F(ShimTest, WaitsForAPodToBecomeKnown) {
  options_.unknown_sandbox_wait = kPatience;
  Start();
  const auto answers =
      Begin(cri::method::kCreateContainer, ForContainer().SerializeAsString());
  EXPECT_FALSE(answers->Take(std::chrono::milliseconds(150)).has_value());
  Give(OneOfEach());
  EXPECT_THAT(StatusOfNext(*answers), IsOk());
  EXPECT_THAT(NamesOf(TakeRequest<Request>().config()),
              ElementsAre("v.com/c=1"));
}

TEST_F(ShimTest, WaitsForADaemonToKnowAPod) {
  auto server = InspectionServer::Start(manager_, Path("devmgr.sock"));
  ASSERT_THAT(server, IsOk());
  options_.manager = nullptr;
  options_.devmgrd = Path("devmgr.sock");
  options_.unknown_sandbox_wait = 2 * kPatience;
  Start();
  const auto answers =
      Begin(cri::method::kCreateContainer, ForContainer().SerializeAsString());
  EXPECT_FALSE(answers->Take(std::chrono::milliseconds(150)).has_value());
  Give(OneOfEach());
  EXPECT_THAT(StatusOfNext(*answers), IsOk());
  EXPECT_THAT(NamesOf(TakeRequest<Request>().config()),
              ElementsAre("v.com/c=1"));
  // One that goes while somebody waits for it.
  const auto waiting =
      Begin(cri::method::kCreateContainer,
            ForContainer("c", "of another").SerializeAsString());
  EXPECT_FALSE(waiting->Take(std::chrono::milliseconds(150)).has_value());
  server->reset();
  EXPECT_THAT(StatusOfNext(*waiting), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ShimTest, RefusesUnknownPodsIfToldTo) {
  options_.unknown_sandbox = UnknownSandbox::kRefuse;
  Start();
  EXPECT_THAT(Refused(ForContainer()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is not known")));
  // One of no pod has no devices to miss.
  EXPECT_THAT(NamesOf(Created(ForContainer("c", ""))), IsEmpty());
}

// The client leaves the pod out; the shim saw the sandbox being made.
TEST_F(ShimTest, KnowsSandboxesThatPassed) {
  Give(OneOfEach());
  Start();
  Request request = ForContainer();
  std::string run;
  cri::AppendBytesField(&run, 1, request.sandbox_config().SerializeAsString());
  ASSERT_THAT(Call(cri::method::kRunPodSandbox, run), IsOk());
  EXPECT_EQ(fake_->requests.Take(), run);
  request.clear_sandbox_config();
  EXPECT_THAT(NamesOf(Created(request)), ElementsAre("v.com/c=1"));
  EXPECT_EQ(shim_->Info().sandboxes, 1U);
}

// Nothing is begun for a pod that may have devices, or plugins to be asked.
TEST_F(ShimTest, HoldsBackWhoseOwnerCannotBeTold) {
  Give(OneOfEach());
  ListItems();
  fake_->lists_fail = true;
  Start();
  Request request = ForContainer();
  request.clear_sandbox_config();
  EXPECT_THAT(Refused(request),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("'sandbox-1'"), HasSubstr("too much"))));
  EXPECT_THAT(
      Call(cri::method::kStartContainer, WithId("container-9")),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("'container-9'"), HasSubstr("too much"))));
  EXPECT_EQ(fake_->requests.size(), 0U);
  EXPECT_EQ(manager_.started.size(), 0U);
  fake_->lists_fail = false;
  EXPECT_THAT(NamesOf(Created(request)), ElementsAre("v.com/c=1"));
  EXPECT_THAT(Call(cri::method::kStartContainer, WithId("container-9")),
              IsOk());
  EXPECT_EQ(manager_.started.Take(), "u-1/c");
}

TEST_F(ShimTest, TellsOfAnUnknownSandboxThatItPasses) {
  options_.unknown_sandbox = UnknownSandbox::kPass;
  fake_->lists_fail = true;
  Start();
  Request request = ForContainer();
  request.clear_sandbox_config();
  EXPECT_THAT(NamesOf(Created(request)), IsEmpty());
  const auto is_told = [&] { return NextWarning() == "UnknownSandbox"; };
  // After what there is to say of the lists.
  EXPECT_TRUE(is_told() || is_told());
}

// BO-103: what a list leaves out is there all the same.
TEST_F(ShimTest, DropsNothingThatAFilteredListLacks) {
  Give(OneOfEach());
  Start();
  Created(ForContainer());
  std::string filter, request;
  cri::AppendBytesField(&filter, 1, "another");
  cri::AppendBytesField(&request, 1, filter);
  for (const std::string_view list :
       {cri::method::kListContainers, cri::method::kListPodSandbox}) {
    const auto answer = Call(list, request);
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(*answer, "");
  }
  EXPECT_THAT(Call(cri::method::kStartContainer, WithId("container-1")),
              IsOk());
  EXPECT_EQ(manager_.started.Take(), "u-1/c");
  EXPECT_EQ(shim_->Info().containers, 1U);
  EXPECT_EQ(shim_->Info().sandboxes, 1U);
}

TEST_F(ShimTest, CallsPluginsBeforeAStart) {
  Give(OneOfEach());
  Start();
  Created(ForContainer());
  const std::string start = WithId("container-1");
  manager_.start_status = absl::UnavailableError("plugin 'r' is away");
  EXPECT_THAT(Call(cri::method::kStartContainer, start),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("'c'"), HasSubstr("plugin 'r'"))));
  EXPECT_EQ(fake_->requests.size(), 0U);
  manager_.start_status = absl::OkStatus();
  EXPECT_THAT(Call(cri::method::kStartContainer, start), IsOk());
  EXPECT_EQ(fake_->requests.Take(), start);
  EXPECT_EQ(manager_.started.Take(), "u-1/c");
  EXPECT_EQ(manager_.started.Take(), "u-1/c");
}

// BO-091: what the runtime says is not ours to change.
TEST_F(ShimTest, HandsOnErrorsOfTheRuntime) {
  Give(OneOfEach());
  fake_->answer_instead = [](const std::string&, const rpc::Respond& respond) {
    respond(absl::NotFoundError("no such sandbox"));
  };
  Start();
  EXPECT_THAT(
      Call(cri::method::kCreateContainer, ForContainer().SerializeAsString()),
      StatusIs(absl::StatusCode::kNotFound, "no such sandbox"));
}

// BO-099.
TEST_F(ShimTest, OneCreationThatHangsDelaysNobody) {
  Give(OneOfEach());
  Mailbox<rpc::Respond> hanging;
  fake_->answer_instead = [&](const std::string& request,
                              const rpc::Respond& respond) {
    if (request.find("other") == std::string::npos) return hanging.Put(respond);
    respond(WithId("container-2"));
  };
  Start();
  const auto answers =
      Begin(cri::method::kCreateContainer, ForContainer().SerializeAsString());
  const auto respond = hanging.Take();
  ASSERT_TRUE(respond.has_value());
  EXPECT_THAT(Call(cri::method::kListContainers, ""), IsOk());
  EXPECT_THAT(Call(cri::method::kStatus, ""), IsOk());
  EXPECT_THAT(Call(cri::method::kCreateContainer,
                   ForContainer("other", "").SerializeAsString()),
              IsOk());
  EXPECT_EQ(answers->size(), 0U);
  (*respond)(std::string());
  EXPECT_THAT(StatusOfNext(*answers), IsOk());
}

// BO-100.
TEST_F(ShimTest, InjectsIntoContainersThatAreRestored) {
  Give(OneOfEach());
  Start();
  test::cri::RestorePodRequest request;
  *request.mutable_config() = ForContainer().sandbox_config();
  for (const char* name : {"c", "none", "c"}) {
    *request.add_container_configs() = ForContainer(name).config();
  }
  EXPECT_THAT(Call(cri::method::kRestorePod, request.SerializeAsString()),
              IsOk());
  const auto seen = TakeRequest<test::cri::RestorePodRequest>();
  ASSERT_EQ(seen.container_configs_size(), 3);
  EXPECT_THAT(NamesOf(seen.container_configs(0)), ElementsAre("v.com/c=1"));
  EXPECT_THAT(NamesOf(seen.container_configs(1)), IsEmpty());
  EXPECT_THAT(NamesOf(seen.container_configs(2)), ElementsAre("v.com/c=1"));
}

TEST_F(ShimTest, PassesWhatItCannotRead) {
  Start();
  const std::string garbage("\x12\x7F?", 3);
  EXPECT_THAT(Call(cri::method::kCreateContainer, garbage), IsOk());
  EXPECT_EQ(fake_->requests.Take(), garbage);
  EXPECT_EQ(shim_->Info().unreadable, 1U);
}

TEST_F(ShimTest, RefusesWhatItCannotReadIfStrict) {
  options_.strict = true;
  Start();
  EXPECT_THAT(Call(cri::method::kCreateContainer, "\x12\x7F?"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(fake_->requests.size(), 0U);
}

TEST_F(ShimTest, LooksDevicesUpInADaemon) {
  Give(OneOfEach());
  auto server = InspectionServer::Start(manager_, Path("devmgr.sock"));
  ASSERT_THAT(server, IsOk());
  options_.manager = nullptr;
  options_.devmgrd = Path("devmgr.sock");
  Start();
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
  const std::string start = WithId("container-1");
  EXPECT_THAT(Call(cri::method::kStartContainer, start), IsOk());
  EXPECT_EQ(fake_->requests.Take(), start);
  EXPECT_EQ(manager_.started.Take(), "u-1/c");
  // While it is away, nobody knows what a pod has.
  server->reset();
  EXPECT_THAT(Refused(ForContainer()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("devmgr")));
  Request of_no_pod = ForContainer("c", "");
  of_no_pod.set_pod_sandbox_id("sandbox-2");
  EXPECT_THAT(NamesOf(Created(of_no_pod)), IsEmpty());
  auto again = InspectionServer::Start(manager_, Path("devmgr.sock"));
  ASSERT_THAT(again, IsOk());
  EXPECT_THAT(NamesOf(Created(ForContainer())), ElementsAre("v.com/c=1"));
}

TEST(CriShim, RefusesOptionsThatContradictEachOther) {
  FakeDeviceManager manager;
  CriShimOptions options;
  options.proxy.listen = "/tmp/x";
  options.proxy.backend = "/tmp/y";
  options.manager = &manager;
  options.devmgrd = "/tmp/z";
  EXPECT_THAT(CriShim::Start(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("both")));
  options.devmgrd.clear();
  options.actuate = true;
  EXPECT_THAT(CriShim::Start(options),
              StatusIs(absl::StatusCode::kInvalidArgument));
  manager.Set([](FakeDeviceManager::World& world) {
    world.node.actuate = Actuate::kWanted;
    world.node.source = "none";
  });
  EXPECT_THAT(CriShim::Start(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("source, and it has none")));
  options.actuate = false;
  options.call_timeout = {};
  EXPECT_THAT(
      CriShim::Start(options),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("call_timeout")));
}

}  // namespace
}  // namespace devmgr
