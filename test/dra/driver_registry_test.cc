// SPDX-License-Identifier: Apache-2.0
#include "dra/driver_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "devmgr/wire/dra/v1/dra.pb.h"
#include "devmgr/wire/dra/v1beta1/dra.pb.h"
#include "dra/claim_c.h"
#include "support/builders.h"
#include "support/fake_connection.h"
#include "support/status_matchers.h"

namespace devmgr::dra {
namespace {

using registration::Plugin;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

namespace v1 = wire::dra::v1;
namespace v1beta1 = wire::dra::v1beta1;

constexpr char kEndpointA[] = "/root/plugins/a/dra.sock";
constexpr char kEndpointB[] = "/root/plugins/b/dra.sock";

class DriverRegistryTest : public testing::Test {
 protected:
  DriverRegistryTest()
      : registry_(
            executor_,
            [this](const auto& socket, auto on_hang_up) {
              return peer_.Dial(socket, std::move(on_hang_up));
            },
            Options()) {
    peer_.AnswerProbes("");
  }

  /// Taken in, and asked whether it is there.
  absl::Status Register(const Plugin& plugin) {
    const absl::Status status = registry_.Register(plugin);
    executor_.RunPending();
    return status;
  }

  DriverRegistryOptions Options() {
    DriverRegistryOptions options;
    options.endpoint_dirs = {"/root/plugins", "/root/plugins_registry"};
    options.now = [] { return WallTime(); };
    options.on_change = [this](const std::string& driver) {
      changes_.push_back(driver);
    };
    return options;
  }

  static Plugin PluginAt(const std::string& endpoint,
                         std::vector<std::string> versions = {"v1.DRAPlugin",
                                                              "v1beta1."
                                                              "DRAPlugin"}) {
    Plugin plugin = {DriverRegistry::kPluginType, kDriver, endpoint,
                     std::move(versions), "/root/plugins_registry/d-reg.sock"};
    plugin.registration = std::hash<std::string>()(endpoint);
    return plugin;
  }

  void Prepare(const std::string& driver = kDriver) {
    prepared_.reset();
    registry_.Prepare(driver, {{kC, NameOf("C")}},
                      [this](PrepareAnswer answer) { prepared_ = answer; });
  }
  void Unprepare(const std::string& driver = kDriver) {
    unprepared_.reset();
    registry_.Unprepare(
        driver, {{kC, NameOf("C")}},
        [this](UnprepareAnswer answer) { unprepared_ = answer; });
  }
  /// The answer about claim C.
  absl::StatusOr<std::vector<state::PreparedDevice>> PreparedC() {
    executor_.RunPending();
    if (!prepared_.has_value()) return InternalError("no answer");
    EXPECT_EQ(prepared_->size(), 1u);
    return prepared_->at(kC);
  }
  absl::Status UnpreparedC() {
    executor_.RunPending();
    if (!unprepared_.has_value()) return InternalError("no answer");
    EXPECT_EQ(unprepared_->size(), 1u);
    return unprepared_->at(kC);
  }

  /// To which endpoint a call goes now.
  std::string CalledEndpoint() {
    Prepare();
    const std::size_t connection = peer_.calls().back().connection;
    peer_.Answer(peer_.calls().size() - 1, "");
    executor_.RunPending();
    return peer_.dialed().at(connection);
  }

  void ExpectRefused(const Plugin& plugin, const std::string& text) {
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
    EXPECT_THAT(registry_.Validate(plugin), refused);
    EXPECT_THAT(registry_.Register(plugin), refused);
    EXPECT_FALSE(registry_.IsRegistered(plugin.name));
    EXPECT_THAT(registry_.Plugins(), IsEmpty());
    EXPECT_THAT(peer_.dialed(), IsEmpty());
    EXPECT_THAT(changes_, IsEmpty());
  }

  ManualExecutor executor_;
  FakePeer peer_;
  std::vector<std::string> changes_;
  std::optional<PrepareAnswer> prepared_;
  std::optional<UnprepareAnswer> unprepared_;
  DriverRegistry registry_;
};

TEST_F(DriverRegistryTest, ARegisteredDriverIsKnownAndConnected) {
  EXPECT_FALSE(registry_.IsRegistered(kDriver));
  ASSERT_THAT(registry_.Validate(PluginAt(kEndpointA)), IsOk());
  EXPECT_FALSE(registry_.IsRegistered(kDriver));
  EXPECT_THAT(peer_.dialed(), IsEmpty());
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  EXPECT_TRUE(registry_.IsRegistered(kDriver));
  EXPECT_THAT(peer_.dialed(), ElementsAre(kEndpointA));
  EXPECT_THAT(changes_, Each(kDriver));
  EXPECT_FALSE(changes_.empty());
  ASSERT_EQ(registry_.Plugins().size(), 1u);
  EXPECT_EQ(registry_.Plugins()[0]->version, "v1.DRAPlugin");
}

// DRA-001, DRA-057
TEST_F(DriverRegistryTest, CallsOfV1GoToTheV1Path) {
  ASSERT_THAT(Register(PluginAt(kEndpointA, {"v1.DRAPlugin"})), IsOk());
  Prepare();
  ASSERT_EQ(peer_.calls().size(), 1u);
  EXPECT_EQ(peer_.calls()[0].method,
            "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources");
  EXPECT_EQ(peer_.calls()[0].timeout, milliseconds(45'000));
  v1::NodePrepareResourcesRequest request;
  ASSERT_TRUE(request.ParseFromString(peer_.calls()[0].request));
  ASSERT_EQ(request.claims_size(), 1);
  EXPECT_EQ(request.claims(0).namespace_(), "ns");
  EXPECT_EQ(request.claims(0).uid(), "u-C");
  EXPECT_EQ(request.claims(0).name(), "C");

  v1::NodePrepareResourcesResponse response;
  auto* device = (*response.mutable_claims())["u-C"].add_devices();
  device->set_pool_name("pool-1");
  device->set_device_name("dev-1");
  device->add_request_names("r");
  device->add_cdi_device_ids("cdi.example.com/x=1");
  device->set_share_id("s-1");
  peer_.Answer(0, response.SerializeAsString());
  const auto devices = PreparedC();
  ASSERT_THAT(devices, IsOk());
  auto expected = Prepared("dev-1", {"cdi.example.com/x=1"});
  expected.share_id = "s-1";
  EXPECT_THAT(*devices, ElementsAre(expected));

  Unprepare();
  EXPECT_EQ(peer_.calls()[1].method,
            "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources");
  v1::NodeUnprepareResourcesResponse done;
  (*done.mutable_claims())["u-C"];
  peer_.Answer(1, done.SerializeAsString());
  EXPECT_THAT(UnpreparedC(), IsOk());
}

// DRA-002
TEST_F(DriverRegistryTest, CallsOfV1Beta1GoToTheV1Beta1Path) {
  ASSERT_THAT(Register(PluginAt(kEndpointA, {"v1beta1.DRAPlugin"})), IsOk());
  Prepare();
  ASSERT_EQ(peer_.calls().size(), 1u);
  EXPECT_EQ(
      peer_.calls()[0].method,
      "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources");
  v1beta1::NodePrepareResourcesResponse response;
  auto* device = (*response.mutable_claims())["u-C"].add_devices();
  device->set_pool_name("pool-1");
  device->set_device_name("dev-1");
  peer_.Answer(0, response.SerializeAsString());
  const auto devices = PreparedC();
  ASSERT_THAT(devices, IsOk());
  EXPECT_THAT(*devices, ElementsAre(Prepared("dev-1", {}, {})));
}

// DRA-003 to DRA-005
TEST_F(DriverRegistryTest, WithoutAVersionOfOursADriverStaysUnknown) {
  const std::string context =
      "invalid supported gRPC versions of DRA driver plugin d.example.com at "
      "endpoint /root/plugins/a/dra.sock: ";
  ExpectRefused(PluginAt(kEndpointA, {}),
                context + "empty list of supported gRPC services");
  ExpectRefused(PluginAt(kEndpointA, {"1.0.0"}),
                context + "none of services supported by the plugin ([1.0.0])");
  ExpectRefused(PluginAt(kEndpointA, {"v1.DRAResourceHealth"}),
                "none of services supported by the plugin");
}

// DRA-006, DRA-007
TEST_F(DriverRegistryTest, UnknownVersionsBesideOursDoNotMatter) {
  ASSERT_THAT(
      Register(PluginAt(kEndpointA, {"v9.DRAPlugin", "v1.DRAPlugin", "?"})),
      IsOk());
  Prepare();
  EXPECT_THAT(peer_.calls()[0].method, HasSubstr(".dra.v1.DRAPlugin/"));
}

// DRA-008: what was advertised is not served.
TEST_F(DriverRegistryTest, TheDriversRefusalOfAMethodIsTheClaimsError) {
  ASSERT_THAT(Register(PluginAt(kEndpointA, {"v1beta1.DRAPlugin"})), IsOk());
  Prepare();
  const std::string service = "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin";
  peer_.Answer(0, UnimplementedError("unknown service {}", service));
  EXPECT_THAT(PreparedC(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("NodePrepareResources: "),
                             HasSubstr("unknown service " + service))));
}

// DRA-009
// Each was a connection, under the same name or another one, and others of the
// node wait while one is made.
TEST_F(DriverRegistryTest, ADriverThatRegistersInALoopIsDialledNowAndThen) {
  for (int i = 0; i < 50; ++i) {
    Plugin plugin = PluginAt(kEndpointA);
    if (i % 2 == 0) plugin.name = fmt::format("driver-{}.example.com", i);
    ASSERT_EQ(Register(plugin), absl::OkStatus());
    registry_.Deregister(plugin);
  }
  EXPECT_THAT(peer_.dialed(), SizeIs(20));
  // The last one stays, and is connected to once it may be.
  ASSERT_EQ(Register(PluginAt(kEndpointA)), absl::OkStatus());
  EXPECT_FALSE(registry_.IsConnected(kDriver));
  EXPECT_THAT(registry_.Plugins().at(0)->last_error,
              HasSubstr("too often in a short time"));
  executor_.Advance(milliseconds(2'000));
  EXPECT_TRUE(registry_.IsConnected(kDriver));
  EXPECT_THAT(peer_.dialed(), SizeIs(21));
  // Others are connected to at once.
  Plugin other = PluginAt(kEndpointB);
  other.name = "other.example.com";
  ASSERT_EQ(Register(other), absl::OkStatus());
  EXPECT_THAT(peer_.dialed(), SizeIs(22));
}

TEST_F(DriverRegistryTest, TheNewestConnectedInstanceIsCalled) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  EXPECT_EQ(CalledEndpoint(), kEndpointA);
  ASSERT_THAT(Register(PluginAt(kEndpointB)), IsOk());
  EXPECT_EQ(registry_.Plugins().size(), 2u);
  EXPECT_EQ(CalledEndpoint(), kEndpointB);
  for (const auto& instance : registry_.Plugins()) {
    EXPECT_EQ(instance->serves, instance->endpoint == kEndpointB);
  }
}

// DRA-010
TEST_F(DriverRegistryTest, TheSameEndpointIsRegisteredOnce) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  EXPECT_THAT(Register(PluginAt(kEndpointA)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "endpoint /root/plugins/a/dra.sock already registered "
                       "for DRA driver plugin d.example.com"));
  EXPECT_EQ(registry_.Plugins().size(), 1u);
  EXPECT_EQ(peer_.open(), 1);
  EXPECT_EQ(CalledEndpoint(), kEndpointA);
}

TEST_F(DriverRegistryTest, TwoDriversMayShareAnEndpoint) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  Plugin other = PluginAt(kEndpointA);
  other.name = kOtherDriver;
  EXPECT_THAT(Register(other), IsOk());
  EXPECT_TRUE(registry_.IsRegistered(kOtherDriver));
}

// DRA-011
TEST_F(DriverRegistryTest, DeregisteringTwiceIsFine) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  registry_.Deregister(PluginAt(kEndpointB));
  EXPECT_TRUE(registry_.IsRegistered(kDriver));
  changes_.clear();
  registry_.Deregister(PluginAt(kEndpointA));
  EXPECT_FALSE(registry_.IsRegistered(kDriver));
  EXPECT_THAT(changes_, ElementsAre(kDriver));
  EXPECT_EQ(peer_.open(), 0);
  registry_.Deregister(PluginAt(kEndpointA));
  EXPECT_THAT(changes_, ElementsAre(kDriver));
  Prepare();
  EXPECT_THAT(
      PreparedC(),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr("DRA driver d.example.com is not registered")));
}

// A second registration socket that was refused took the living instance along
// when it went.
TEST_F(DriverRegistryTest, ARefusedRegistrationTakesNothingAlong) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  Plugin second = PluginAt(kEndpointA);
  ++second.registration;
  EXPECT_THAT(Register(second),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  registry_.Deregister(second);
  EXPECT_TRUE(registry_.IsConnected(kDriver));
  registry_.Deregister(PluginAt(kEndpointA));
  EXPECT_FALSE(registry_.IsRegistered(kDriver));
}

// DRA-012
TEST_F(DriverRegistryTest, AfterTheNewestLeftTheOlderInstanceIsCalled) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  ASSERT_THAT(Register(PluginAt(kEndpointB)), IsOk());
  registry_.Deregister(PluginAt(kEndpointB));
  EXPECT_TRUE(registry_.IsRegistered(kDriver));
  EXPECT_EQ(CalledEndpoint(), kEndpointA);
}

// DRA-013
TEST_F(DriverRegistryTest, AConnectedInstanceIsPreferredToANewerOne) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  peer_.set_dial_status(UnavailableError("nobody listens"));
  ASSERT_THAT(Register(PluginAt(kEndpointB)), IsOk());
  EXPECT_EQ(CalledEndpoint(), kEndpointA);
}

TEST_F(DriverRegistryTest, WithoutAnyConnectedInstanceTheNewestIsTried) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  ASSERT_THAT(Register(PluginAt(kEndpointB)), IsOk());
  executor_.Advance(milliseconds(1'600));
  Prepare();
  EXPECT_THAT(PreparedC(), StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("is not connected at '" +
                                              std::string(kEndpointB) + "'")));
}

// DRA-025: registered before the service listens.
TEST_F(DriverRegistryTest, TellsWhenADriverComesToBeConnected) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  EXPECT_TRUE(registry_.IsRegistered(kDriver));
  changes_.clear();
  peer_.set_dial_status(absl::OkStatus());
  executor_.Advance(milliseconds(50));
  EXPECT_THAT(changes_, ElementsAre(kDriver));
}

// It took every call, and the one that works got none.
TEST_F(DriverRegistryTest, ASilentInstanceGetsNoCallsBesideOneThatAnswers) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  peer_.RecordProbes();
  ASSERT_THAT(Register(PluginAt(kEndpointB)), IsOk());
  EXPECT_EQ(peer_.open(), 2);
  EXPECT_EQ(CalledEndpoint(), kEndpointA);
  // Until it answers.
  peer_.Answer(0, "");
  executor_.RunPending();
  EXPECT_EQ(CalledEndpoint(), kEndpointB);
}

TEST_F(DriverRegistryTest, AloneItIsCalled) {
  peer_.RecordProbes();
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  EXPECT_TRUE(registry_.IsConnected(kDriver));
  EXPECT_EQ(CalledEndpoint(), kEndpointA);
  EXPECT_TRUE(registry_.IsConnected(kDriver));
}

TEST_F(DriverRegistryTest, AnInstanceThatStopsAnsweringHandsItsCallsOver) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  ASSERT_THAT(Register(PluginAt(kEndpointB)), IsOk());
  for (int i = 0; i < 3; ++i) {
    Prepare();
    EXPECT_EQ(peer_.calls().back().connection, 1u);
    peer_.Answer(peer_.calls().size() - 1, DeadlineExceededError("late"));
    executor_.RunPending();
  }
  EXPECT_EQ(CalledEndpoint(), kEndpointA);
  // And takes them again when it does.
  executor_.Advance(milliseconds(10'000));
  EXPECT_EQ(CalledEndpoint(), kEndpointB);
}

TEST_F(DriverRegistryTest, AnInstanceThatComesAndGoesStandsBehindTheOther) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  ASSERT_THAT(Register(PluginAt(kEndpointB)), IsOk());
  changes_.clear();
  for (std::size_t line = 1; line <= 5; ++line) {
    EXPECT_EQ(CalledEndpoint(), kEndpointB);
    peer_.HangUp(line);
    executor_.Advance(milliseconds(50));
  }
  EXPECT_EQ(CalledEndpoint(), kEndpointA);
  EXPECT_THAT(changes_, SizeIs(5)) << "it was connected all the time";
  ASSERT_TRUE(registry_.Plugins().at(1)->quarantined_until.has_value());
  // Crashing for good does not make it new.
  registry_.Deregister(PluginAt(kEndpointB));
  ASSERT_THAT(Register(PluginAt(kEndpointB)), IsOk());
  EXPECT_EQ(CalledEndpoint(), kEndpointA);
  executor_.Advance(milliseconds(61'000));
  EXPECT_EQ(CalledEndpoint(), kEndpointB);
}

// What is probed must do nothing, in any version.
TEST_F(DriverRegistryTest, IsAskedForNothingInItsOwnVersion) {
  peer_.RecordProbes();
  ASSERT_THAT(Register(PluginAt(kEndpointA, {"v1beta1.DRAPlugin"})), IsOk());
  ASSERT_EQ(peer_.calls().size(), 1u);
  EXPECT_THAT(peer_.calls()[0].method, HasSubstr("dra.v1beta1.DRAPlugin/"));
  EXPECT_EQ(peer_.calls()[0].request, "");
}

// DRA-014
TEST_F(DriverRegistryTest, CallsToNobodyFailLater) {
  Prepare("");
  EXPECT_FALSE(prepared_.has_value());
  EXPECT_THAT(PreparedC(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    "DRA driver name is empty"));
  Prepare("x.example.com");
  EXPECT_THAT(PreparedC(),
              StatusIs(absl::StatusCode::kUnavailable,
                       "DRA driver x.example.com is not registered"));
  Unprepare("");
  EXPECT_THAT(UnpreparedC(), StatusIs(absl::StatusCode::kInvalidArgument));
  Unprepare("x.example.com");
  EXPECT_THAT(UnpreparedC(),
              StatusIs(absl::StatusCode::kUnavailable,
                       "DRA driver x.example.com is not registered"));
}

// DRA-015
TEST_F(DriverRegistryTest, BadNamesAreRefused) {
  Plugin plugin = PluginAt(kEndpointA);
  plugin.name = "";
  ExpectRefused(plugin, "Required value");
  plugin.name = "Bad_Name";
  ExpectRefused(plugin, "invalid DRA driver name");
  plugin.name = std::string(64, 'a');
  ExpectRefused(plugin, "Too long");
  plugin.name = std::string("a\0b", 3);
  ExpectRefused(plugin, "invalid DRA driver name");
}

// DRA-016
TEST_F(DriverRegistryTest, BadEndpointsAreRefused) {
  ExpectRefused(PluginAt(""), "empty DRA plugin endpoint");
  ExpectRefused(PluginAt("dra.sock"), "must be an absolute path");
  ExpectRefused(PluginAt("/run/other/dra.sock"), "is not inside");
  ExpectRefused(PluginAt("/root/plugins/../../x.sock"), "is not inside");
  ExpectRefused(PluginAt("/root/plugins"), "is not inside");
  ExpectRefused(PluginAt("/root/plugins-of-others/x.sock"), "is not inside");
  ExpectRefused(PluginAt("/root/plugins/" + std::string(186, 'x')),
                "longer than 107 bytes");
}

// The kernel would connect to /run/other.sock, which is not inside.
TEST_F(DriverRegistryTest, AnEndpointWithANulIsRefused) {
  ExpectRefused(
      PluginAt(std::string("/run/other.sock\0/../../../root/plugins/x", 40)),
      "has a NUL");
}

// DRA-017
TEST_F(DriverRegistryTest, DotDotIsFineThatStaysInside) {
  const Plugin plugin = PluginAt("/root/plugins/a/../b/dra.sock");
  EXPECT_THAT(registry_.Validate(plugin), IsOk());
  EXPECT_THAT(Register(plugin), IsOk());
}

// DRA-018: with one common socket the endpoint is the registration socket.
TEST_F(DriverRegistryTest, AnEndpointInTheRegistryIsFine) {
  EXPECT_THAT(Register(PluginAt("/root/plugins_registry/d-reg.sock")), IsOk());
}

TEST_F(DriverRegistryTest, WithoutDirectoriesAnyEndpointIsFine) {
  DriverRegistryOptions options = Options();
  options.endpoint_dirs.clear();
  DriverRegistry anywhere(
      executor_,
      [this](const auto& socket, auto on_hang_up) {
        return peer_.Dial(socket, std::move(on_hang_up));
      },
      options);
  EXPECT_THAT(anywhere.Validate(PluginAt("/run/other/dra.sock")), IsOk());
}

// A driver that re-registers in the middle of a call: not a wish of ours.
TEST_F(DriverRegistryTest, ACallOfADeregisteredInstanceMayWorkLater) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  Prepare();
  registry_.Deregister(PluginAt(kEndpointA));
  EXPECT_THAT(PreparedC(), StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("NodePrepareResources: ")));
}

TEST_F(DriverRegistryTest, AnswersThatAreNoMessagesAreTheClaimsError) {
  ASSERT_THAT(Register(PluginAt(kEndpointA)), IsOk());
  Prepare();
  peer_.Answer(0, "\x0a\x7f\x01");
  EXPECT_THAT(PreparedC(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("NodePrepareResources: ")));
  Unprepare();
  peer_.Answer(1, "\x0a\x7f\x01");
  EXPECT_THAT(UnpreparedC(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("NodeUnprepareResources: ")));
}

}  // namespace
}  // namespace devmgr::dra
