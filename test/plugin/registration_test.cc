// SPDX-License-Identifier: Apache-2.0
//
// Plugins register with real sockets and real gRPC, in both ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "devmgr/wire/pluginregistration/v1/registration.pb.h"
#include "plugin/plugin_registry.h"
#include "plugin/recording_listener.h"
#include "plugin/registry_socket.h"
#include "plugin/resource_name.h"
#include "plugin/small_plugin.h"
#include "plugin/socket_fixture.h"
#include "registration/grpc_plugin_socket.h"
#include "registration/registrar.h"
#include "support/names_once.h"
#include "support/status_matchers.h"
#include "watcher/directory_watcher.h"

namespace devmgr::plugin {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

/// A plugin of the registration directory: the handshake, and the service on
/// another socket.
class Announcer {
 public:
  Announcer(const fs::path& socket, const std::string& endpoint) {
    rpc::ServerOptions server;
    server.socket = socket;
    server.methods["/pluginregistration.Registration/GetInfo"] =
        [endpoint](const std::string&, const rpc::Respond& respond) {
          wire::pluginregistration::v1::PluginInfo info;
          info.set_type("DevicePlugin");
          info.set_name(kResource);
          info.set_endpoint(endpoint);
          info.add_supported_versions("v1beta1");
          respond(rpc::Encode(info));
        };
    server.methods
        ["/pluginregistration.Registration/"
         "NotifyRegistrationStatus"] = [this](const std::string& bytes,
                                              const rpc::Respond& respond) {
      wire::pluginregistration::v1::RegistrationStatus status;
      status.ParseFromString(bytes);
      told_.Put(status.plugin_registered() ? "registered" : status.error());
      respond(std::string());
    };
    auto started = rpc::Server::Start(std::move(server));
    EXPECT_TRUE(started.ok()) << started.status().ToString();
    if (started.ok()) server_ = *std::move(started);
  }
  Mailbox<std::string> told_;

 private:
  std::unique_ptr<rpc::Server> server_;
};

class PluginRegistrationTest : public SocketTest {
 protected:
  void SetUp() override {
    SocketTest::SetUp();
    listener_.on_note_ = [this](const std::string& line) { heard_.Put(line); };
    StartManager();
  }
  void TearDown() override {
    StopManager();
    SocketTest::TearDown();
  }

  void StartManager() {
    RunOnExecutor([&] {
      PluginRegistryOptions options;
      options.now = [] { return std::chrono::system_clock::now(); };
      options.instance.dial_window = milliseconds(200);
      registry_ = std::make_unique<PluginRegistry>(
          *executor_, UnixDialer(*runtime_), options, listener_);
      RegistrySocketOptions socket;
      socket.directory = folder();
      auto started = RegistrySocket::Start(
          *executor_, *runtime_, socket,
          [this](const RegisterRequest& request,
                 RegistrySocket::Answer answer) {
            registry_->RegisterFromSocket(request, folder(), std::move(answer));
          });
      ASSERT_THAT(started.status(), IsOk());
      socket_ = *std::move(started);
      fs::create_directories(Directory());
      registrar_ = std::make_unique<registration::Registrar>(
          *executor_, Directory(), registration::GrpcPluginDialer(*runtime_),
          std::map<std::string, registration::PluginHandler*>{
              {PluginRegistry::kPluginType, registry_.get()}},
          nullptr);
      auto watcher = watcher::DirectoryWatcher::Start(
          runtime_->poller(), Directory(),
          [this](const watcher::DirectoryEvent& event) {
            executor_->Post([this, event] {
              if (registrar_ != nullptr) registrar_->OnDirectoryEvent(event);
            });
          });
      ASSERT_THAT(watcher.status(), IsOk());
      watcher_ = *std::move(watcher);
    });
  }
  void StopManager() {
    RunOnExecutor([&] {
      watcher_.reset();
      socket_.reset();
      registrar_.reset();
      registry_.reset();
    });
  }

  fs::path Directory() const { return folder() / "plugins_registry"; }
  std::string Heard() { return heard_.Take().value_or("nothing"); }

  RecordingListener listener_;
  Mailbox<std::string> heard_;
  std::unique_ptr<PluginRegistry> registry_;
  std::unique_ptr<RegistrySocket> socket_;
  std::unique_ptr<registration::Registrar> registrar_;
  std::unique_ptr<watcher::DirectoryWatcher> watcher_;
};

// DP-001, DP-007: what the request says of options does not count.
TEST_F(PluginRegistrationTest, APluginRegistersAtTheSocket) {
  SmallPlugin plugin(folder() / "p.sock", {"a", "b"});
  EXPECT_THAT(Register("p.sock", kResource).status(), IsOk());
  EXPECT_EQ(Heard(), "connected example.com/dev 1");
  EXPECT_EQ(Heard(), "list example.com/dev 1: a b");
  EXPECT_EQ(plugin.asked_.size(), 1u);
  EXPECT_TRUE(plugin.listeners_.Take().has_value());
  EXPECT_EQ(plugin.listeners_.size(), 0u);
  EXPECT_FALSE(listener_.options_[kResource].pre_start_required);
}

// DP-002, DP-003
TEST_F(PluginRegistrationTest, APluginHearsWhyItIsRefused) {
  EXPECT_THAT(Register("p.sock", kResource, "v1alpha2").status(),
              StatusIs(absl::StatusCode::kUnknown,
                       HasSubstr("requested API version \"v1alpha2\"")));
  EXPECT_THAT(Register("p.sock", "gpu").status(),
              StatusIs(absl::StatusCode::kUnknown,
                       "the ResourceName \"gpu\" is invalid"));
  EXPECT_THAT(Register("../p.sock", kResource).status(),
              StatusIs(absl::StatusCode::kUnknown,
                       HasSubstr("is not the name of a file")));
}

// DP-005, DP-006
TEST_F(PluginRegistrationTest, APluginHearsThatItCannotBeReached) {
  EXPECT_THAT(Register("p.sock", kResource).status(),
              StatusIs(absl::StatusCode::kUnknown,
                       AllOf(HasSubstr("failed to dial device plugin: '"),
                             NamesOnce((folder() / "p.sock").string()))));
  SmallPlugin plugin(folder() / "p.sock", {}, InternalError("no driver"));
  EXPECT_THAT(Register("p.sock", kResource).status(),
              StatusIs(absl::StatusCode::kUnknown,
                       "failed to get device plugin options: no driver"));
  EXPECT_EQ(plugin.asked_.size(), 1u);
  EXPECT_EQ(plugin.listeners_.size(), 0u);
  EXPECT_EQ(heard_.size(), 0u);
}

// DP-013
TEST_F(PluginRegistrationTest, APluginComesBackAtItsSocket) {
  {
    SmallPlugin first(folder() / "p.sock", {"a"});
    EXPECT_THAT(Register("p.sock", kResource).status(), IsOk());
    EXPECT_EQ(Heard(), "connected example.com/dev 1");
    EXPECT_EQ(Heard(), "list example.com/dev 1: a");
  }
  EXPECT_THAT(Heard(), HasSubstr("gone example.com/dev 1: "));
  SmallPlugin second(folder() / "p.sock", {"b"});
  EXPECT_THAT(Register("p.sock", kResource).status(), IsOk());
  // The old instance may have found the new process before it registered.
  std::string last = Heard();
  while (!last.starts_with("list")) last = Heard();
  EXPECT_THAT(last, HasSubstr(": b"));
  EXPECT_TRUE(WaitUntil([&] {
    std::size_t live = 0;
    RunOnExecutor([&] { live = registry_->Instances().size(); });
    return live == 1;
  }));
}

// DP-021
TEST_F(PluginRegistrationTest, AManagerThatRestartsTellsByRemovingSockets) {
  auto plugin = std::make_unique<SmallPlugin>(folder() / "p.sock",
                                              std::vector<std::string>{"a"});
  EXPECT_THAT(Register("p.sock", kResource).status(), IsOk());
  EXPECT_EQ(Heard(), "connected example.com/dev 1");
  EXPECT_EQ(Heard(), "list example.com/dev 1: a");
  StopManager();
  EXPECT_TRUE(fs::exists(folder() / "p.sock"));
  StartManager();
  EXPECT_FALSE(fs::exists(folder() / "p.sock"));
  plugin = std::make_unique<SmallPlugin>(folder() / "p.sock",
                                         std::vector<std::string>{"a"});
  EXPECT_THAT(Register("p.sock", kResource).status(), IsOk());
  EXPECT_EQ(Heard(), "connected example.com/dev 1");
}

// DP-058
TEST_F(PluginRegistrationTest, ListsComeWholeAndInOrder) {
  SmallPlugin plugin(folder() / "p.sock", {"A", "B", "C"});
  EXPECT_THAT(Register("p.sock", kResource).status(), IsOk());
  const auto stream = plugin.listeners_.Take().value_or(nullptr);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(Heard(), "connected example.com/dev 1");
  EXPECT_EQ(Heard(), "list example.com/dev 1: A B C");
  stream->Write(SmallPlugin::ListOf({"D", "A"}));
  EXPECT_EQ(Heard(), "list example.com/dev 1: D A");
  stream->Write(SmallPlugin::ListOf({}));
  EXPECT_EQ(Heard(), "list example.com/dev 1:");
}

TEST_F(PluginRegistrationTest, AListMayBeLargerThanAnyOtherMessage) {
  SmallPlugin plugin(folder() / "p.sock", {});
  EXPECT_THAT(Register("p.sock", kResource).status(), IsOk());
  const auto stream = plugin.listeners_.Take().value_or(nullptr);
  ASSERT_NE(stream, nullptr);
  std::vector<std::string> ids(20'000, std::string(1'000, 'x'));
  const std::string bytes = SmallPlugin::ListOf(ids);
  ASSERT_GT(bytes.size(), std::size_t{rpc::kMaxReceiveBytes});
  stream->Write(bytes);
  EXPECT_EQ(Heard(), "connected example.com/dev 1");
  EXPECT_EQ(Heard(), "list example.com/dev 1:");
  EXPECT_THAT(Heard(), HasSubstr("list example.com/dev 1: xxxx"));
}

TEST_F(PluginRegistrationTest, ACallGoesToThePluginAndBack) {
  SmallPlugin plugin(folder() / "p.sock", {"a"});
  EXPECT_THAT(Register("p.sock", kResource).status(), IsOk());
  Mailbox<absl::StatusOr<device::ContainerEdits>> answers;
  const auto allocate = [&] {
    RunOnExecutor([&] {
      registry_->Allocate(kResource, 1, {"a"}, {},
                          [&](auto edits) { answers.Put(std::move(edits)); });
    });
  };
  allocate();
  auto call = plugin.allocations_.Take();
  ASSERT_TRUE(call.has_value());
  wire::deviceplugin::v1beta1::AllocateResponse response;
  response.add_container_responses()->add_cdi_devices()->set_name("a.com/b=c");
  call->respond(rpc::Encode(response));
  const auto edits = answers.Take();
  ASSERT_TRUE(edits.has_value());
  ASSERT_THAT(*edits, IsOk());
  EXPECT_EQ((*edits)->cdi_devices.at(0), "a.com/b=c");
}

TEST_F(PluginRegistrationTest, APluginThatDiesDuringACallMayHaveActed) {
  auto plugin = std::make_unique<SmallPlugin>(folder() / "p.sock",
                                              std::vector<std::string>{"a"});
  EXPECT_THAT(Register("p.sock", kResource).status(), IsOk());
  Mailbox<absl::Status> answers;
  RunOnExecutor([&] {
    registry_->Allocate(kResource, 1, {"a"}, {},
                        [&](auto edits) { answers.Put(edits.status()); });
  });
  const auto call = plugin->allocations_.Take();
  plugin.reset();
  const auto status = answers.Take();
  ASSERT_TRUE(status.has_value());
  EXPECT_FALSE(status->ok());
}

// DP-032, DP-035, DP-029
TEST_F(PluginRegistrationTest, APluginIsFoundInTheRegistrationDirectory) {
  SmallPlugin plugin(folder() / "service.sock", {"a"});
  auto announcer = std::make_unique<Announcer>(Directory() / "reg.sock",
                                               (folder() / "service.sock"));
  EXPECT_EQ(announcer->told_.Take(), "registered");
  EXPECT_EQ(Heard(), "connected example.com/dev 1");
  EXPECT_EQ(Heard(), "list example.com/dev 1: a");
  announcer.reset();
  EXPECT_EQ(Heard(), "gone example.com/dev 1: its registration socket is gone");
}

// DP-038: the connect step is part of it, and is tried again.
TEST_F(PluginRegistrationTest, ADirectoryPluginThatCannotBeReachedHearsIt) {
  Announcer announcer(Directory() / "reg.sock", (folder() / "service.sock"));
  EXPECT_THAT(announcer.told_.Take().value_or(""),
              HasSubstr("RegisterPlugin error -- plugin registration failed "
                        "with err: failed to dial device plugin"));
  SmallPlugin plugin(folder() / "service.sock", {"a"});
  std::string told;
  while (told != "registered") told = announcer.told_.Take().value_or("never");
  EXPECT_EQ(Heard(), "connected example.com/dev 1");
}

// DP-040; the figures that come of it: DP-008 to DP-010 of the inventory.
TEST_F(PluginRegistrationTest, InstancesInTheDirectoryAreOneResource) {
  std::vector<std::unique_ptr<SmallPlugin>> plugins;
  std::vector<std::unique_ptr<Announcer>> announcers;
  const auto come = [&](const std::string& name,
                        const std::vector<std::string>& ids) {
    plugins.push_back(std::make_unique<SmallPlugin>(folder() / name, ids));
    announcers.push_back(
        std::make_unique<Announcer>(Directory() / name, folder() / name));
    EXPECT_EQ(announcers.back()->told_.Take(), "registered");
  };
  come("1.sock", {"a", "b"});
  EXPECT_EQ(Heard(), "connected example.com/dev 1");
  EXPECT_EQ(Heard(), "list example.com/dev 1: a b");
  come("2.sock", {"a", "b"});
  EXPECT_EQ(Heard(), "connected example.com/dev 2");
  EXPECT_EQ(Heard(), "list example.com/dev 2: a b");
  come("3.sock", {"c"});
  EXPECT_EQ(Heard(), "connected example.com/dev 3");
  EXPECT_EQ(Heard(), "list example.com/dev 3: c");
  EXPECT_EQ(heard_.size(), 0u);
}

// DP-041
TEST_F(PluginRegistrationTest, ADirectoryPluginIsFoundAgainAfterARestart) {
  SmallPlugin plugin(folder() / "plugins_registry" / ".s", {"a"});
  Announcer announcer(Directory() / "reg.sock", Directory() / ".s");
  EXPECT_EQ(Heard(), "connected example.com/dev 1");
  EXPECT_EQ(Heard(), "list example.com/dev 1: a");
  StopManager();
  StartManager();
  EXPECT_EQ(Heard(), "connected example.com/dev 1");
  EXPECT_EQ(Heard(), "list example.com/dev 1: a");
}

}  // namespace
}  // namespace devmgr::plugin
