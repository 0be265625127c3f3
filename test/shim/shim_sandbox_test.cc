// SPDX-License-Identifier: Apache-2.0
//
// What a sandbox knows of the devices of its pod before it is there: for
// runtimes whose sandboxes are virtual machines.
#include <devmgr/cdi_spec.h>
#include <devmgr/inspection.h>

#include "shim/shim_fixture.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using RunPodSandbox = test::cri::RunPodSandboxRequest;

class ShimSandboxTest : public ShimTest {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    options_.sandbox_devices = true;
  }

  static RunPodSandbox ForSandbox(const std::string& uid = kUid) {
    RunPodSandbox request;
    *request.mutable_config() = ForContainer("c", uid).sandbox_config();
    request.set_runtime_handler("kata");
    auto& annotation = *request.mutable_config()->add_annotations();
    annotation.set_key("mine");
    annotation.set_value("1");
    return request;
  }
  /// The annotations of the sandbox that the runtime gets.
  std::vector<std::string> Annotations(const RunPodSandbox& request) {
    EXPECT_THAT(Call(cri::method::kRunPodSandbox, request.SerializeAsString()),
                IsOk());
    const auto seen = TakeRequest<RunPodSandbox>();
    EXPECT_EQ(seen.runtime_handler(), request.runtime_handler());
    return PairsOf(seen.config().annotations());
  }
  /// The pod is Ready, with these containers.
  void GiveAll(std::vector<ContainerDevices> containers) {
    const PodDevices pod{{"ns", "p"}, {kUid}, std::move(containers)};
    manager_.Set([&](FakeDeviceManager::World& world) {
      world.answers[{kUid}] = std::make_shared<const PodDevices>(pod);
    });
    ChangePod(PodState::kReady, "", "");
  }
  static ContainerDevices With(const std::string& name,
                               const std::vector<std::string>& cdi) {
    ContainerDevices devices;
    devices.name = name;
    for (const std::string& one : cdi) devices.cdi_devices.push_back({one, {}});
    return devices;
  }
};

TEST_F(ShimSandboxTest, HasTheCdiNamesOfAllContainersEachOnce) {
  ContainerDevices by_annotation = With("last", {});
  // A plugin that names its devices in an annotation.
  by_annotation.annotations = {
      {"cdi.k8s.io/plugin_1", "v.com/net=7,v.com/c=1", "r"}};
  GiveAll({With("init", {"v.com/c=0"}), With("main", {"v.com/c=1"}),
           With("none", {}), With("side", {"v.com/c=1", "v.com/c=2"}),
           by_annotation});
  Start();
  EXPECT_THAT(Annotations(ForSandbox()),
              ElementsAre("mine=1",
                          "cdi.k8s.io/devmgr_sandbox=v.com/c=0,v.com/c=1,"
                          "v.com/c=2,v.com/net=7"));
  // Containers get their own as before.
  EXPECT_THAT(NamesOf(Created(ForContainer("main"))), ElementsAre("v.com/c=1"));
}

// As a runtime reads it: names joined by commas, under a key that is one.
TEST_F(ShimSandboxTest, TheAnnotationIsOneOfCdi) {
  const auto made = MakeCdiAnnotation("devmgr", "sandbox", {"v.com/c=1"});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->name, kSandboxDevicesAnnotation);
  EXPECT_THAT(*ParseCdiAnnotations({{made->name, "v.com/c=1,v.com/c=2"}}),
              ElementsAre("v.com/c=1", "v.com/c=2"));
}

TEST_F(ShimSandboxTest, OfAPodWithoutDevicesTheBytesPassAsTheyCame) {
  GiveAll({With("none", {})});
  Start();
  const std::string request = ForSandbox().SerializeAsString();
  EXPECT_THAT(Call(cri::method::kRunPodSandbox, request), IsOk());
  EXPECT_EQ(fake_->requests.Take(), request);
  const std::string of_no_pod = ForSandbox("").SerializeAsString();
  EXPECT_THAT(Call(cri::method::kRunPodSandbox, of_no_pod), IsOk());
  EXPECT_EQ(fake_->requests.Take(), of_no_pod);
}

// Annotations of a sandbox are those of its pod, which its author writes.
TEST_F(ShimSandboxTest, NoPodNamesDevicesInItsPlace) {
  GiveAll({With("none", {})});
  Start();
  RunPodSandbox request = ForSandbox();
  auto& forged = *request.mutable_config()->add_annotations();
  forged.set_key(std::string(kSandboxDevicesAnnotation));
  forged.set_value("v.com/c=9");
  EXPECT_THAT(Annotations(request), ElementsAre("mine=1"));
  GiveAll({With("main", {"v.com/c=1"})});
  EXPECT_THAT(Annotations(request),
              ElementsAre("mine=1", "cdi.k8s.io/devmgr_sandbox=v.com/c=1"));
}

TEST_F(ShimSandboxTest, WaitsUntilThePodIsReady) {
  ChangePod(PodState::kPreparing, "DriverError", "not yet");
  Start();
  const auto answers =
      Begin(cri::method::kRunPodSandbox, ForSandbox().SerializeAsString());
  ChangePod(PodState::kPreparing, "DriverError", "still not");
  EXPECT_EQ(answers->size(), 0U);
  GiveAll({With("main", {"v.com/c=1"})});
  EXPECT_THAT(StatusOfNext(*answers), IsOk());
  EXPECT_THAT(PairsOf(TakeRequest<RunPodSandbox>().config().annotations()),
              ElementsAre("mine=1", "cdi.k8s.io/devmgr_sandbox=v.com/c=1"));
}

TEST_F(ShimSandboxTest, SaysInTimeForWhatThePodWaits) {
  options_.proxy.decision_budget = std::chrono::milliseconds(400);
  ChangePod(PodState::kPreparing, "DriverError",
            "claim 'ns/x': driver 'gpu.example.com' has not answered");
  Start();
  EXPECT_THAT(
      Call(cri::method::kRunPodSandbox, ForSandbox().SerializeAsString())
          .status(),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("sandbox of pod 'ns/p'"),
                     HasSubstr("gpu.example.com"))));
  EXPECT_EQ(fake_->requests.size(), 0U);
}

TEST_F(ShimSandboxTest, OfARejectedPodThereIsNone) {
  ChangePod(PodState::kRejected, "UnexpectedAdmissionError", "no");
  Start();
  EXPECT_THAT(
      Call(cri::method::kRunPodSandbox, ForSandbox().SerializeAsString())
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("UnexpectedAdmissionError")));
}

TEST_F(ShimSandboxTest, OfAnUnknownPodItIsAsOfContainers) {
  options_.unknown_sandbox_wait = std::chrono::milliseconds(50);
  Start();
  EXPECT_THAT(Annotations(ForSandbox()), ElementsAre("mine=1"));
  EXPECT_EQ(NextWarning(), "UnknownSandbox");
}

// After the end of a sandbox all init containers run again.
TEST_F(ShimSandboxTest, InitContainersThatRunAgainGetTheirDevicesFirst) {
  ContainerDevices one = With("init-1", {});
  one.devices_released = true;
  ContainerDevices two = With("init-2", {});
  two.devices_released = true;
  GiveAll({one, two, With("main", {"v.com/c=1"})});
  Start();
  // The fake gives nothing back: each is asked for once, then it is said.
  EXPECT_THAT(
      Call(cri::method::kRunPodSandbox, ForSandbox().SerializeAsString())
          .status(),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("init-1")));
  EXPECT_EQ(manager_.started.Take(), "u-1/init-1");
}

TEST_F(ShimSandboxTest, ARestoredPodHasItToo) {
  GiveAll({With("c", {"v.com/c=1"}), With("main", {"v.com/c=2"})});
  Start();
  test::cri::RestorePodRequest request;
  *request.mutable_config() = ForContainer().sandbox_config();
  *request.add_container_configs() = ForContainer("c").config();
  EXPECT_THAT(Call(cri::method::kRestorePod, request.SerializeAsString()),
              IsOk());
  const auto seen = TakeRequest<test::cri::RestorePodRequest>();
  EXPECT_THAT(NamesOf(seen.container_configs(0)), ElementsAre("v.com/c=1"));
  EXPECT_THAT(PairsOf(seen.config().annotations()),
              ElementsAre("cdi.k8s.io/devmgr_sandbox=v.com/c=1,v.com/c=2"));
}

TEST_F(ShimSandboxTest, ADaemonKnowsTheDevices) {
  GiveAll({With("main", {"v.com/c=1"})});
  auto server = InspectionServer::Start(manager_, Path("devmgr.sock"));
  ASSERT_THAT(server, IsOk());
  options_.manager = nullptr;
  options_.devmgrd = Path("devmgr.sock");
  Start();
  EXPECT_THAT(Annotations(ForSandbox()),
              ElementsAre("mine=1", "cdi.k8s.io/devmgr_sandbox=v.com/c=1"));
  server->reset();
  EXPECT_THAT(
      Call(cri::method::kRunPodSandbox, ForSandbox().SerializeAsString())
          .status(),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("devmgr")));
}

TEST_F(ShimSandboxTest, WithoutTheOptionSandboxesAreAsTheyCame) {
  options_.sandbox_devices = false;
  GiveAll({With("main", {"v.com/c=1"})});
  Start();
  EXPECT_THAT(Annotations(ForSandbox()), ElementsAre("mine=1"));
  options_.sandbox_devices = true;
  options_.manager = nullptr;
  EXPECT_THAT(CriShim::Start(options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sandbox_devices")));
}

}  // namespace
}  // namespace devmgr
