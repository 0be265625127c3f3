// SPDX-License-Identifier: Apache-2.0
//
// A caller that waits for two seconds gets an answer of ours, whatever is late.
#include <devmgr/inspection.h>

#include "rpc/message.h"
#include "server/convert.h"
#include "shim/shim_fixture.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kDeadline{2};

class ShimDeadlineTest : public ShimTest {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    options_.unknown_sandbox_wait = 2 * kPatience;
  }

  absl::Status CallWithDeadline(std::string_view method,
                                const std::string& request) {
    return StatusOfNext(*Begin(method, request, kDeadline));
  }
  static std::string RunRequest() {
    std::string request;
    cri::AppendBytesField(&request, 1,
                          ForContainer().sandbox_config().SerializeAsString());
    return request;
  }
  static std::string RestoreRequest() {
    test::cri::RestorePodRequest request;
    *request.mutable_config() = ForContainer().sandbox_config();
    *request.add_container_configs() = ForContainer().config();
    return request.SerializeAsString();
  }
  void ExpectPasses(std::string_view method, const std::string& request) {
    EXPECT_THAT(CallWithDeadline(method, request), IsOk()) << method;
    EXPECT_EQ(fake_->requests.Take(), request) << method;
    EXPECT_EQ(NextWarning(), "UnknownSandbox") << method;
  }
  void ExpectPassesAll() {
    ExpectPasses(cri::method::kCreateContainer,
                 ForContainer().SerializeAsString());
    ExpectPasses(cri::method::kRestorePod, RestoreRequest());
  }

  /// A daemon that never answers `hanging`; the pod's `c` has `devices`.
  std::unique_ptr<rpc::Server> StartDaemonWith(const std::string& hanging,
                                               ContainerDevices devices = {}) {
    devices.name = "c";
    PodDevices pod{{"ns", "p"}, {kUid}, {std::move(devices)}};
    const std::string service(server::kServicePath);
    std::map<std::string, rpc::UnaryHandler> methods;
    methods[service + "PodDevicesOf"] = [pod](const std::string&,
                                              const rpc::Respond& respond) {
      respond(rpc::Encode(server::ToProto(pod)));
    };
    methods[service + hanging] = [this](const std::string&,
                                        const rpc::Respond& respond) {
      hanging_.Put(respond);
    };
    auto daemon = TryServe(std::move(methods), Path("devmgr.sock"));
    EXPECT_THAT(daemon, IsOk());
    options_.manager = nullptr;
    options_.devmgrd = Path("devmgr.sock");
    return daemon.ok() ? *std::move(daemon) : nullptr;
  }

  Mailbox<rpc::Respond> hanging_;
};

TEST_F(ShimDeadlineTest, PassesAnUnknownPodInTimeWithAManager) {
  Start();
  ExpectPassesAll();
}

TEST_F(ShimDeadlineTest, PassesAnUnknownPodInTimeWithADaemon) {
  auto server = InspectionServer::Start(manager_, Path("devmgr.sock"));
  ASSERT_THAT(server, IsOk());
  options_.manager = nullptr;
  options_.devmgrd = Path("devmgr.sock");
  Start();
  ExpectPassesAll();
}

TEST_F(ShimDeadlineTest, PassesAnUnknownPodInTimeWithAnActuator) {
  options_.actuate = true;
  SetActuate(Actuate::kWanted);
  options_.pods_from_source = false;
  Start();
  ExpectPasses(cri::method::kRunPodSandbox, RunRequest());
  ExpectPassesAll();
  client_.reset();
  shim_.reset();
}

TEST_F(ShimDeadlineTest, NamesADaemonThatDoesNotAnswerAboutAPod) {
  const auto daemon = StartDaemonWith("PodDevicesOf");
  Start();
  EXPECT_THAT(CallWithDeadline(cri::method::kCreateContainer,
                               ForContainer().SerializeAsString()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("container 'c'"), HasSubstr("devmgrd"),
                             HasSubstr("has not answered within"))));
  EXPECT_EQ(fake_->requests.size(), 0U);
}

TEST_F(ShimDeadlineTest, NamesADaemonThatDoesNotAnswerBeforeAStart) {
  ContainerDevices devices;
  devices.devices_released = true;
  const auto daemon = StartDaemonWith("BeforeContainerStart", devices);
  ListItems();
  Start();
  const auto is_named =
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               AllOf(HasSubstr("devmgrd"), HasSubstr("has not answered")));
  EXPECT_THAT(
      CallWithDeadline(cri::method::kStartContainer, WithId("container-9")),
      is_named);
  EXPECT_THAT(CallWithDeadline(cri::method::kCreateContainer,
                               ForContainer().SerializeAsString()),
              is_named);
  EXPECT_EQ(fake_->requests.size(), 0U);
}

TEST_F(ShimDeadlineTest, NamesARuntimeThatDoesNotTellWhatItRuns) {
  fake_->lists_hang = true;
  Start();
  const auto is_named = StatusIs(
      absl::StatusCode::kUnavailable,
      AllOf(HasSubstr("is not known"), HasSubstr(Path("runtime.sock").string()),
            HasSubstr("has not answered within")));
  EXPECT_THAT(
      CallWithDeadline(cri::method::kStartContainer, WithId("container-9")),
      is_named);
  Request request = ForContainer();
  request.clear_sandbox_config();
  EXPECT_THAT(CallWithDeadline(cri::method::kCreateContainer,
                               request.SerializeAsString()),
              is_named);
  EXPECT_EQ(fake_->requests.size(), 0U);
}

}  // namespace
}  // namespace devmgr
