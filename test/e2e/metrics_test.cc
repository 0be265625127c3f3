// SPDX-License-Identifier: Apache-2.0
//
// What devmgrd tells Prometheus, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/un.h>

#include <optional>
#include <string_view>

#include "e2e/daemon.h"
#include "support/http_client.h"

namespace devmgr {
namespace {

using testing::FakeDevicePluginOptions;
using testing::FakeDraDriverOptions;
using ::testing::HasSubstr;
using ::testing::Not;

/// docs/metrics.md says three seconds; the rest is for a busy machine.
constexpr std::chrono::seconds kBound{6};
constexpr char kTpu[] = "example.com/tpu";
constexpr char kRegistrations[] = "kubelet_device_plugin_registration_total";

FakeDevicePluginOptions PluginOf(const std::string& resource) {
  FakeDevicePluginOptions options;
  options.resource = resource;
  options.devices = 4;
  return options;
}

std::string Tpu(const std::string& metric) {
  return metric + "{resource_name=\"" + kTpu + "\"}";
}

/// Nobody listens there.
UniqueFd BindSocket(const std::filesystem::path& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      0)
      << path;
  return fd;
}

class MetricsEndToEndTest : public ::testing::Test {
 protected:
  void Start(std::vector<std::string> flags = {"--metrics-address", ":0"}) {
    daemon_.emplace(node_.root(), std::move(flags));
    ASSERT_NE(daemon_->Inspect(), nullptr);
  }
  /// Of the server, as the log tells it; 0: there is none.
  in_port_t Port() const {
    constexpr std::string_view kBefore = "metrics are at http://127.0.0.1:";
    const std::string log = daemon_->log();
    const auto found = log.find(kBefore);
    if (found == log.npos) return 0;
    return static_cast<in_port_t>(
        std::stoi(log.substr(found + kBefore.size())));
  }
  std::string Page() const { return HttpGet(Port(), "/metrics"); }
  /// The value behind name and labels; empty: there is none.
  std::string Value(const std::string& series) const {
    const std::string page = Page();
    const auto found = page.find("\n" + series + " ");
    if (found == page.npos) return "";
    const auto begin = found + series.size() + 2;
    return page.substr(begin, page.find('\n', begin) - begin);
  }
  bool WaitForValue(const std::string& series, const std::string& value) const {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (Value(series) != value) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      ::poll(nullptr, 0, 2);  // Nothing tells us but the page itself.
    }
    return true;
  }
  std::unique_ptr<testing::FakeDevicePlugin> Register(
      const FakeDevicePluginOptions& options) {
    auto plugin = node_.StartPlugin(options);
    EXPECT_TRUE(plugin->WaitForRegistrations(1, kPatience));
    return plugin;
  }

  NodeFolder node_;
  std::optional<Daemon> daemon_;
};

// DP-001, DP-002, DP-003, W-30: counted whatever comes of it, by valid names.
TEST_F(MetricsEndToEndTest, EachRegistrationCounts) {
  Start();
  const auto plugin = Register(PluginOf(kTpu));
  EXPECT_EQ(Value(Tpu(kRegistrations)), "1");
  plugin->Register();
  ASSERT_TRUE(plugin->WaitForRegistrations(2, kPatience));
  EXPECT_EQ(Value(Tpu(kRegistrations)), "2");
  FakeDevicePluginOptions old = PluginOf("example.com/old");
  old.version = "v1alpha2";
  EXPECT_THAT(Register(old)->last_registration_error(), HasSubstr("v1beta1"));
  EXPECT_EQ(Value(std::string(kRegistrations) +
                  "{resource_name=\"example.com/old\"}"),
            "1");
  const auto bad = Register(PluginOf("hostile"));
  EXPECT_THAT(bad->last_registration_error(), HasSubstr("invalid"));
  EXPECT_EQ(Value(std::string(kRegistrations) + "{resource_name=\"invalid\"}"),
            "1");
  EXPECT_THAT(Page(), Not(HasSubstr("hostile")));
}

TEST_F(MetricsEndToEndTest, PluginsOfTheDirectoryShowAsSockets) {
  Start();
  FakeDevicePluginOptions options = PluginOf(kTpu);
  options.way = FakeDevicePluginOptions::Way::kDirectory;
  const auto plugin = Register(options);
  const std::string socket =
      (node_.root() / "plugins_registry/example.com_tpu.sock").string();
  const auto series = [&](const std::string& state) {
    return "plugin_manager_total_plugins{socket_path=\"" + socket +
           "\",state=\"" + state + "_state_of_world\"}";
  };
  EXPECT_EQ(Value(series("desired")), "1");
  // The plugin knows before we know that it knows.
  EXPECT_TRUE(WaitForValue(series("actual"), "1")) << Page();
  EXPECT_THAT(Page(), Not(HasSubstr(std::string(kRegistrations) + "{")));
}

TEST_F(MetricsEndToEndTest, AllocationsAndDevicesAreThere) {
  Start();
  const auto plugin = Register(PluginOf(kTpu));
  node_.Write("p.yaml",
              "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: "
              "u}\nspec: {containers: [{name: c, resources: "
              "{limits: {example.com/tpu: \"3\"}}}]}\n");
  ASSERT_TRUE(WaitForValue("devmgr_pods{state=\"Ready\"}", "1")) << Page();
  EXPECT_EQ(Value(Tpu("kubelet_device_plugin_alloc_duration_seconds_count")),
            "1");
  EXPECT_EQ(Value(Tpu("devmgr_device_plugin_alloc_failures_total")), "0");
  const std::string devices =
      "devmgr_resource_devices{resource_name=\"" + std::string(kTpu) + "\",";
  EXPECT_EQ(Value(devices + "kind=\"capacity\"}"), "4");
  EXPECT_EQ(Value(devices + "kind=\"allocatable\"}"), "4");
  EXPECT_EQ(Value(devices + "kind=\"held\"}"), "3");
  EXPECT_NE(Value("devmgr_ledger_sequence"), "0");
}

// DRA-108, DRA-168
TEST_F(MetricsEndToEndTest, CallsToDriversAndWhatIsPreparedAreThere) {
  Start();
  FakeDraDriverOptions options;
  testing::ScenarioStep fails;
  fails.method = "prepare";
  fails.action = testing::ScenarioStep::Action::kFail;
  options.scenario = {fails};
  const auto driver = node_.StartDriver(options);
  node_.Write("p.yaml",
              "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
              "metadata: {name: c, uid: u-c}\n"
              "spec: {devices: {requests: [{name: r, exactly: "
              "{deviceClassName: x}}]}}\n"
              "status:\n  allocation: {devices: {results: [{request: r, "
              "driver: gpu.example.com, pool: pool-0, device: gpu-0}]}}\n"
              "  reservedFor: [{resource: pods, name: p, uid: u}]\n---\n"
              "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u}\n"
              "spec:\n  containers: [{name: c, resources: {claims: "
              "[{name: x}]}}]\n"
              "  resourceClaims: [{name: x, resourceClaimName: c}]\n");
  ASSERT_TRUE(WaitForValue("devmgr_pods{state=\"Ready\"}", "1")) << Page();
  const std::string in_use = "dra_resource_claims_in_use{driver_name=\"";
  EXPECT_EQ(Value(in_use + "gpu.example.com\"}"), "1");
  EXPECT_EQ(Value(in_use + "<any>\"}"), "1");
  const auto calls = [](const std::string& method, const std::string& code) {
    return "dra_grpc_operations_duration_seconds_count{driver_name="
           "\"gpu.example.com\",grpc_status_code=\"" +
           code +
           "\",method_name=\"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/" +
           method + "\"}";
  };
  EXPECT_EQ(Value(calls("NodePrepareResources", "Unknown")), "1") << Page();
  EXPECT_EQ(Value(calls("NodePrepareResources", "OK")), "1");
  const std::string prepares =
      "dra_operations_duration_seconds_count{is_error=\"false\","
      "operation_name=\"PrepareResources\"}";
  EXPECT_EQ(Value(prepares), "1") << Page();
  node_.Remove("p.yaml");
  EXPECT_TRUE(WaitForValue(calls("NodeUnprepareResources", "OK"), "1"))
      << Page();
  EXPECT_EQ(Value(in_use + "<any>\"}"), "0");
  // Of drivers without claims there is nothing.
  EXPECT_EQ(Value(in_use + "gpu.example.com\"}"), "");
}

// Two, as many as are served at once.
TEST_F(MetricsEndToEndTest, SilentClientsHoldNothingUpForLong) {
  Start();
  const auto begin = std::chrono::steady_clock::now();
  const HttpClient silent(Port());
  HttpClient half(Port());
  half.Send("GET /metrics HT");
  EXPECT_THAT(Page(), HasSubstr("200 OK"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kBound);
  const HttpClient again(Port());
  std::chrono::milliseconds took{};
  EXPECT_EQ(daemon_->Terminate(&took), 0) << daemon_->log();
  EXPECT_LT(took, kBound);
}

TEST_F(MetricsEndToEndTest, StopsInTimeThoughAClientDoesNotRead) {
  Start();
  const std::filesystem::path registry = node_.root() / "plugins_registry";
  std::vector<UniqueFd> sockets;  // Each a line of the page.
  for (int i = 0; i < 700; ++i) {
    sockets.push_back(BindSocket(
        registry / (std::string(40, 'x') + "-" + std::to_string(i) + ".sock")));
  }
  const auto big = [&] { return Page().size() > 80'000; };
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!big() && std::chrono::steady_clock::now() < deadline) {
    ::poll(nullptr, 0, 20);  // Nothing tells us but the page itself.
  }
  ASSERT_TRUE(big());
  HttpClient client(Port(), HttpClient::Buffers::kSmall);
  client.Send("GET /metrics HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(client.WaitForAnswer());
  std::chrono::milliseconds took{};
  EXPECT_EQ(daemon_->Terminate(&took), 0) << daemon_->log();
  EXPECT_LT(took, kBound);
}

TEST_F(MetricsEndToEndTest, NothingListensUnlessToldTo) {
  Start({});
  EXPECT_EQ(Port(), 0);
}

TEST_F(MetricsEndToEndTest, AnAddressThatCannotBeIsToldWithItsKey) {
  const Exit bad = RunTool("devmgrd", {"--root", node_.root().string(),
                                       "--metrics-address", "nowhere:1"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("metricsAddress: \"nowhere:1\" is no"));
  Start();
  const NodeFolder other;
  const std::string taken = "127.0.0.1:" + std::to_string(Port());
  const Exit second = RunTool(
      "devmgrd", {"--root", other.root().string(), "--metrics-address", taken});
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err,
              HasSubstr("metricsAddress: cannot listen on " + taken + ": "));
}

}  // namespace
}  // namespace devmgr
