// SPDX-License-Identifier: Apache-2.0
//
// devmgrctl and devmgrd of different versions: a daemon that lacks calls, and
// one that says more than this program knows. What is not known is shown as it
// came, left out, or named in one sentence.
#include <devmgr/inspection/v1/inspection.pb.h>
#include <gmock/gmock.h>

#include "rpc/message.h"
#include "rpc/server.h"
#include "server/convert.h"
#include "support/temp_folder.h"
#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

namespace pb = inspection::v1;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A field of each kind that no message has yet.
constexpr std::string_view kNewFields(
    "\x80\x7d\x01"              // 2000, a number
    "\x8a\x7d\x03new"           // 2001, a text or a message
    "\x91\x7d\1\1\1\1\1\1\1\1"  // 2002, of eight bytes
    "\x9d\x7d\1\1\1\1",         // 2003, of four
    3 + 6 + 10 + 6);

template <typename Message>
std::string Newer(const Message& message) {
  return rpc::Encode(message) + std::string(kNewFields);
}

class VersionSkewTest : public CommandLineTest {
 protected:
  VersionSkewTest() {
    connect_ = [this](const std::filesystem::path&,
                      std::chrono::milliseconds timeout) {
      return Inspector::Connect(socket(), timeout);
    };
  }
  ~VersionSkewTest() override { server_.reset(); }

  std::filesystem::path socket() const { return folder_.path() / "d.sock"; }

  void Answer(const std::string& method, std::string bytes) {
    methods_[std::string(server::kServicePath) + method] =
        [bytes = std::move(bytes)](std::string, const rpc::Respond& respond) {
          respond(bytes);
        };
  }
  void Serve() {
    rpc::ServerOptions options;
    options.socket = socket();
    options.methods = methods_;
    auto server = rpc::Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  const TempFolder folder_;
  std::map<std::string, rpc::UnaryHandler> methods_;
  std::unique_ptr<rpc::Server> server_;
};

/// All that looks or asks, with what it needs.
std::vector<std::vector<std::string>> AllCommands() {
  std::vector<std::vector<std::string>> commands;
  for (const char* kind :
       {"plugins", "resources", "claims", "pods", "devices", "classes", "debts",
        "holders", "sources", "slices", "numa", "changes"}) {
    commands.push_back({"get", kind});
    commands.push_back({"get", kind, "-o", "json"});
  }
  for (const std::vector<std::string>& more :
       std::initializer_list<std::vector<std::string>>{
           {"status"},
           {"describe", "pod", "p"},
           {"describe", "claim", "c"},
           {"resolve", "p"},
           {"explain", "pod", "p"},
           {"events"},
           {"history"},
           {"state"},
           {"diff", "--from", "0"},
           {"fsck"},
           {"prepare", "pod", "p"},
           {"release", "pod", "p"},
           {"wait", "pod", "p", "--for=ready", "--timeout", "1s"},
           {"get", "changes", "-f", "-o", "json"},
           {"release", "claim", "c", "--force", "--reason", "r", "--yes"},
           {"hand-over", "resource", "example.com/gpu", "--to", "plugin",
            "--reason", "r", "--yes"},
           {"confirm", "source", "--reason", "r", "--yes"},
           {"recheck", "device", "example.com/gpu", "--reason", "r"},
           {"authority", "set", "node", "--reason", "r", "--yes"},
           {"free", "holder", "abc", "--reason", "r", "--yes"},
           {"delete", "slices", "--driver", "d.example.com", "--reason", "r",
            "--yes"},
           {"endpoint", "kubeconfig", "d.example.com"}}) {
    commands.push_back(more);
  }
  return commands;
}

TEST_F(VersionSkewTest, ACallThatAnOlderDaemonLacksIsNamed) {
  pb::NodeInfo node;
  node.set_version("0.0.9");
  node.set_node_name("n");
  Answer("Node", rpc::Encode(node));
  Serve();
  EXPECT_THAT(Run({"version"}).out, HasSubstr("0.0.9"));
  for (const auto& command : AllCommands()) {
    SCOPED_TRACE(::testing::PrintToString(command));
    const Result result = Run(command);
    EXPECT_THAT(result.code, AnyOf(1, 8)) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("the daemon at '" + socket().string() + "'"),
                      HasSubstr("is older than this program"),
                      Not(HasSubstr("unknown method"))));
  }
}

TEST_F(VersionSkewTest, AnotherServerThanDevmgrdIsNamed) {
  methods_["/runtime.v1.RuntimeService/Version"] =
      [](std::string, const rpc::Respond& respond) { respond(std::string()); };
  Serve();
  const Result result = Run({"get", "pods"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("is no socket of devmgrd: unknown service "
                                    "devmgr.inspection.v1.Inspector"));
}

// What came with newer calls is left out of what an older daemon can say.
TEST_F(VersionSkewTest, StatusAndHoldersDoWithoutNewerCalls) {
  pb::NodeInfo node;
  node.set_node_name("n");
  Answer("Node", rpc::Encode(node));
  Answer("Plugins", rpc::Encode(pb::PluginsResponse()));
  pb::ForeignHoldersResponse foreign;
  foreign.add_holders()->mutable_holder()->set_container_id("c0ffee");
  Answer("ForeignHolders", rpc::Encode(foreign));
  Serve();
  EXPECT_EQ(Run({"status"}).code, 0);
  const Result holders = Run({"get", "holders"});
  EXPECT_EQ(holders.code, 0);
  EXPECT_THAT(holders.out, HasSubstr("c0ffee"));
  EXPECT_THAT(holders.err, HasSubstr("too old"));
}

TEST_F(VersionSkewTest, WordsOfANewerDaemonAreShownAsTheyCome) {
  pb::NodeInfo node;
  node.set_authority("shared");
  node.set_profile("relaxed");
  node.set_actuate("on-demand");
  Answer("Node", Newer(node));
  Answer("Sources", Newer(pb::SourcesResponse()));
  pb::PluginsResponse plugins;
  pb::PluginInfo* plugin = plugins.add_plugins();
  plugin->set_name("d.example.com");
  plugin->set_kind("NewKind");
  plugin->set_state("NewState");
  plugin->set_breaker("NewBreaker");
  ASSERT_TRUE(plugin->ParseFromString(Newer(*plugin)));
  Answer("Plugins", Newer(plugins));
  pb::ClaimsResponse claims;
  pb::ClaimInfo* claim = claims.add_claims();
  claim->mutable_name()->set_name("c");
  claim->set_state("Parked");
  claim->add_drivers()->set_state("Parking");
  Answer("Claims", Newer(claims));
  pb::DevicesResponse devices;
  devices.add_devices()->set_device("d0");
  devices.mutable_devices(0)->set_health("Tired");
  Answer("Devices", Newer(devices));
  pb::HistoryResponse history;
  history.add_decisions()->set_sequence(1);
  history.mutable_decisions(0)->set_kind("Imagined");
  Answer("History", Newer(history));
  pb::ChangesResponse changes;
  changes.add_changes()->set_kind("Painted");
  changes.mutable_changes(0)->mutable_token()->set_sequence(7);
  changes.mutable_changes(0)->set_health("Tired");
  changes.mutable_changes(0)->set_owner("NewOwner");
  Answer("Changes", Newer(changes));
  Serve();
  for (const auto& [command, word] :
       std::initializer_list<std::pair<std::vector<std::string>, const char*>>{
           {{"status"}, ""},
           {{"get", "plugins"}, "NewState"},
           {{"get", "plugins", "-o", "json"}, "NewState"},
           {{"get", "claims"}, "Parked"},
           {{"get", "claims", "-o", "yaml"}, "Parking"},
           {{"get", "devices", "-o", "wide"}, "Tired"},
           {{"history"}, "Imagined"},
           {{"get", "changes"}, "Painted"},
           {{"get", "changes", "-o", "json"}, "Painted"}}) {
    SCOPED_TRACE(::testing::PrintToString(command));
    const Result result = Run(command);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(word));
    EXPECT_THAT(result.err, IsEmpty());
  }
}

// There is no word for it, and to show another state would be wrong.
TEST_F(VersionSkewTest, AStateOfAPodThatIsNotKnownIsNamed) {
  pb::PodsResponse pods;
  pods.add_pods()->mutable_name()->set_ns("default");
  pods.mutable_pods(0)->mutable_name()->set_name("p");
  pods.mutable_pods(0)->set_state(static_cast<pb::PodState>(99));
  Answer("Pods", Newer(pods));
  Answer("FindPod", Newer(pods.pods(0)));
  Serve();
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"get", "pods"},
        std::vector<std::string>{"describe", "pod", "p"}}) {
    const Result result = Run(command);
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err,
                HasSubstr("pod 'default/p' is in a state, 99, that version "));
  }
}

// The message says it in any case.
TEST_F(VersionSkewTest, WhatAPodWaitsForMayBeNew) {
  pb::PodsResponse pods;
  pb::PodInfo* pod = pods.add_pods();
  pod->mutable_name()->set_name("p");
  pod->set_state(pb::POD_STATE_WAITING);
  pod->set_message("waits for the moon");
  pod->add_waiting_for()->set_kind(static_cast<pb::WaitingFor::Kind>(99));
  pod->add_waiting_for()->set_kind(pb::WaitingFor::KIND_CLAIM);
  pod->mutable_waiting_for(1)->set_name("default/c");
  Answer("Pods", Newer(pods));
  Serve();
  const auto list = RunJson({"get", "pods"});
  ASSERT_EQ(list["items"].size(), 1u);
  EXPECT_THAT(list.dump(),
              AllOf(HasSubstr("waits for the moon"), HasSubstr("default/c")));
}

}  // namespace
}  // namespace devmgr::ctl
