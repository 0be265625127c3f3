// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "devmgrd/name_limit.h"
#include "support/fake_device_manager.h"
#include "tools/metrics_page.h"

namespace devmgrd {
namespace {

using devmgr::FakeDeviceManager;
using ::testing::HasSubstr;
using ::testing::Not;
using World = FakeDeviceManager::World;

TEST_F(MetricsPageTest, CountsRegistrationsByName) {
  for (const char* name : {"a.com/x", "invalid", "a.com/x"}) {
    metrics_.OnRegistration(name);
  }
  const std::string page = Page();
  constexpr char kName[] = "kubelet_device_plugin_registration_total";
  EXPECT_THAT(
      page, HasSubstr(std::string(kName) + "{resource_name=\"a.com/x\"} 2\n"));
  EXPECT_THAT(
      page, HasSubstr(std::string(kName) + "{resource_name=\"invalid\"} 1\n"));
}

TEST_F(MetricsPageTest, AllocateCallsFillTheDefaultBuckets) {
  metrics_.OnAllocate("a.com/x", std::chrono::milliseconds(7), false);
  metrics_.OnAllocate("a.com/x", std::chrono::seconds(30), true);
  const std::string page = Page();
  constexpr char kName[] = "kubelet_device_plugin_alloc_duration_seconds";
  constexpr char kLabel[] = "{resource_name=\"a.com/x\"";
  const auto line = [&](const std::string& suffix, const std::string& rest) {
    return kName + suffix + kLabel + rest + "\n";
  };
  for (const char* empty : {"0.005"}) {
    EXPECT_THAT(page, HasSubstr(line("_bucket",
                                     ",le=\"" + std::string(empty) + "\"} 0")));
  }
  for (const char* le :
       {"0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10"}) {
    EXPECT_THAT(
        page, HasSubstr(line("_bucket", ",le=\"" + std::string(le) + "\"} 1")));
  }
  EXPECT_THAT(page, HasSubstr(line("_bucket", ",le=\"+Inf\"} 2")));
  EXPECT_THAT(page, HasSubstr(line("_count", "} 2")));
  EXPECT_THAT(page, HasSubstr("devmgr_device_plugin_alloc_failures_total" +
                              std::string(kLabel) + "} 1\n"));
}

TEST_F(MetricsPageTest, CallsOfPodResourcesHaveTheKubeletsNames) {
  EXPECT_THAT(Page(), Not(HasSubstr("pod_resources")));
  devmgr::PodResourcesCounters counters;
  counters.v1.requests = 5;
  counters.v1.errors_get = 2;
  counters.v1alpha1.list = 3;
  counters.refused = 7;
  metrics_.AttachPodResources([&] { return counters; });
  const std::string page = Page();
  constexpr char kName[] = "kubelet_pod_resources_endpoint_";
  for (const char* line :
       {"requests_total{server_api_version=\"v1\"} 5\n",
        "requests_total{server_api_version=\"v1alpha1\"} 0\n",
        "requests_list{server_api_version=\"v1alpha1\"} 3\n",
        "requests_get_allocatable{server_api_version=\"v1\"} 0\n",
        "errors_get{server_api_version=\"v1\"} 2\n"}) {
    EXPECT_THAT(page, HasSubstr(std::string(kName) + line));
  }
  EXPECT_THAT(page, HasSubstr("# TYPE kubelet_pod_resources_endpoint_requests_"
                              "total counter\n"));
  EXPECT_THAT(page, HasSubstr("devmgr_pod_resources_refused_total 7\n"));
  metrics_.Detach();
  EXPECT_THAT(Page(), Not(HasSubstr("pod_resources")));
}

// DRA-167: prepared claims, by driver and in all.
TEST_F(MetricsPageTest, ClaimsInUse) {
  EXPECT_THAT(
      Page(),
      HasSubstr("dra_resource_claims_in_use{driver_name=\"<any>\"} 0\n"));
  manager_.Set([](World& world) {
    devmgr::ClaimInfo claim;
    claim.state = devmgr::ClaimState::kPrepared;
    claim.drivers.resize(2);
    claim.drivers[0].driver = "a.com";
    claim.drivers[1].driver = "b.com";
    world.claims = {claim, claim};
    world.claims[1].state = devmgr::ClaimState::kPreparing;
    world.debts.resize(2);
    world.debts[0].driver = world.debts[1].driver = "a.com";
    world.holders.resize(3);
    world.holders[0].freed = "it hangs";
  });
  const std::string page = Page();
  for (const char* driver : {"<any>", "a.com", "b.com"}) {
    EXPECT_THAT(page, HasSubstr("dra_resource_claims_in_use{driver_name=\"" +
                                std::string(driver) + "\"} 1\n"));
  }
  EXPECT_THAT(page, HasSubstr("devmgr_debts{driver_name=\"a.com\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("devmgr_foreign_holders{state=\"held\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("devmgr_foreign_holders{state=\"freed\"} 1\n"));
  // After the deletion only the sum is left.
  manager_.Set([](World& world) { world.claims.clear(); });
  const std::string empty = Page();
  EXPECT_THAT(
      empty,
      HasSubstr("dra_resource_claims_in_use{driver_name=\"<any>\"} 0\n"));
  EXPECT_THAT(empty, testing::Not(HasSubstr(
                         "dra_resource_claims_in_use{driver_name=\"a.com\"}")));
}

// DRA-168
TEST_F(MetricsPageTest, PreparesAndCallsToDrivers) {
  metrics_.OnClaimsPrepared(std::chrono::milliseconds(200), false);
  metrics_.OnClaimsPrepared(std::chrono::milliseconds(300), true);
  metrics_.OnClaimsUnprepared(std::chrono::seconds(45), true);
  metrics_.OnDriverCall("a.com", "/v1.DRAPlugin/NodePrepareResources",
                        "DeadlineExceeded", std::chrono::seconds(1));
  metrics_.OnPrepareSkipped("a.com");
  metrics_.OnUnprepareSkipped("a.com");
  const std::string page = Page();
  constexpr char kName[] = "dra_operations_duration_seconds";
  const auto labels = [](const std::string& operation, const char* error) {
    return "is_error=\"" + std::string(error) + "\",operation_name=\"" +
           operation + "\"";
  };
  EXPECT_THAT(
      page,
      HasSubstr(kName + ("_count{" + labels("PrepareResources", "false")) +
                "} 1\n"));
  EXPECT_THAT(
      page, HasSubstr(kName + ("_count{" + labels("PrepareResources", "true")) +
                      "} 1\n"));
  // 15 steps, the last one of 40 s: 45 s are beyond.
  EXPECT_THAT(
      page,
      HasSubstr(kName + ("_bucket{" + labels("UnprepareResources", "true")) +
                ",le=\"40\"} 0\n"));
  EXPECT_THAT(
      page,
      HasSubstr("dra_grpc_operations_duration_seconds_count{driver_name="
                "\"a.com\",grpc_status_code=\"DeadlineExceeded\",method_name="
                "\"/v1.DRAPlugin/NodePrepareResources\"} 1\n"));
  EXPECT_THAT(
      page,
      HasSubstr("dra_node_prepare_skips_total{driver_name=\"a.com\"} 1\n"));
  EXPECT_THAT(
      page,
      HasSubstr("dra_node_unprepare_skips_total{driver_name=\"a.com\"} 1\n"));
}

// W-30: names are for ever, and plugins choose them.
TEST_F(MetricsPageTest, ThereIsABoundToNames) {
  for (std::size_t i = 0; i < 2 * kMostNames; ++i) {
    metrics_.OnRegistration("a.com/" + std::to_string(i));
  }
  metrics_.OnRegistration("a.com/0");
  manager_.Set([](World& world) {
    for (std::size_t i = 0; i < 2 * kMostNames; ++i) {
      world.resources.emplace_back();
      world.resources.back().name = "a.com/" + std::to_string(i);
      world.resources.back().held = 1;
    }
  });
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("total{resource_name=\"other\"} 1000\n"));
  EXPECT_THAT(page, HasSubstr("total{resource_name=\"a.com/0\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("total{resource_name=\"a.com/999\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("a.com/1000")));
  EXPECT_THAT(page, HasSubstr("devmgr_resource_devices{resource_name="
                              "\"other\",kind=\"held\"} 1000\n"));
}

TEST_F(MetricsPageTest, CountsEventsByReason) {
  devmgr::EventInfo event;
  event.reason = "Prepared";
  metrics_.OnEvent(event);
  event.warning = true;
  event.reason = "PluginGone";
  metrics_.OnEvent(event);
  event.fresh = 39;  // Repeats.
  metrics_.OnEvent(event);
  metrics_.OnLedgerWriteFailed();
  metrics_.OnJudgement("quota", "wait");
  metrics_.OnJudgement("quota", "wait");
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("devmgr_events_total{reason=\"Prepared\",type="
                              "\"Normal\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("{reason=\"PluginGone\",type=\"Warning\"} 40\n"));
  EXPECT_THAT(page, HasSubstr("devmgr_ledger_write_failures_total 1\n"));
  EXPECT_THAT(page, HasSubstr("devmgr_judgements_total{event=\"quota\","
                              "result=\"wait\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("devmgr_missed_wakeups_total 0\n"));
  metrics_.OnMissedWakeup();
  EXPECT_THAT(Page(), HasSubstr("devmgr_missed_wakeups_total 1\n"));
}

// Names and labels of the kubelet's topology manager.
TEST_F(MetricsPageTest, AlignmentIsCountedAsAtTheKubelet) {
  metrics_.OnTopologyAdmission(std::chrono::microseconds(60), false);
  metrics_.OnTopologyAdmission(std::chrono::milliseconds(5), true);
  metrics_.OnAlignedContainers(false, true, 2);
  metrics_.OnAlignedContainers(true, false, 1);
  const std::string page = Page();
  EXPECT_THAT(
      page, HasSubstr("kubelet_topology_manager_admission_requests_total 2\n"));
  EXPECT_THAT(page,
              HasSubstr("kubelet_topology_manager_admission_errors_total 1\n"));
  EXPECT_THAT(page,
              HasSubstr("kubelet_topology_manager_admission_duration_ms_bucket"
                        "{le=\"0.05\"} 0\n"));
  EXPECT_THAT(page,
              HasSubstr("kubelet_topology_manager_admission_duration_ms_bucket"
                        "{le=\"0.1\"} 1\n"));
  EXPECT_THAT(
      page,
      HasSubstr("kubelet_topology_manager_admission_duration_ms_count 2\n"));
  // Labels stand in the order of their names.
  EXPECT_THAT(page,
              HasSubstr("kubelet_container_aligned_compute_resources_count{"
                        "boundary=\"numa_node\",scope=\"container\"} 2\n"));
  EXPECT_THAT(
      page,
      HasSubstr("kubelet_container_aligned_compute_resources_failure_count{"
                "boundary=\"numa_node\",scope=\"pod\"} 1\n"));
}

TEST_F(MetricsPageTest, GaugesShowTheManagerAsItIs) {
  manager_.Set([](World& world) {
    world.node.claims = 3;
    world.simulations.wait = 2;
    world.node.ledger_sequence = 12'345'678;
    world.node.source_complete = true;
    world.node.runtime = {"runtime /r.sock", true, {}, "", "", 1};
    world.pods.resize(2);
    world.pods[1].state = devmgr::PodState::kReady;
    world.resources.emplace_back();
    world.resources[0].name = "a.com/x";
    world.resources[0].capacity = 4;
    world.resources[0].allocatable = 3;
    world.resources[0].held = 2;
    world.plugins.resize(2);
    world.plugins[0].kind = devmgr::PluginKind::kDra;
    world.plugins[0].name = "d.example.com";
    world.plugins[0].state = devmgr::PluginState::kConnected;
    world.plugins[0].last_error = "boom";
    world.plugins[0].quarantined_until =
        devmgr::WallTime() + std::chrono::hours(1);
    world.plugins[1].kind = devmgr::PluginKind::kDevicePlugin;
    world.plugins[1].state = devmgr::PluginState::kLive;
    world.plugins[1].breaker = devmgr::PluginBreaker::kOpen;
    world.registration_sockets = {{"/r/a.sock", true}, {"/r/b.sock", false}};
  });
  const std::string page = Page();
  for (const char* line : {
           "devmgr_claims 3",
           "devmgr_simulations_total{verdict=\"wait\"} 2",
           "devmgr_ledger_sequence 12345678",
           "devmgr_ledger_writable 1",
           "devmgr_source_complete 1",
           "devmgr_runtime_known 1",
           "devmgr_pods{state=\"Waiting\"} 1",
           "devmgr_pods{state=\"Ready\"} 1",
           "devmgr_pods{state=\"Rejected\"} 0",
           "devmgr_resource_devices{resource_name=\"a.com/x\","
           "kind=\"capacity\"} 4",
           "devmgr_resource_devices{resource_name=\"a.com/x\","
           "kind=\"allocatable\"} 3",
           "devmgr_resource_devices{resource_name=\"a.com/x\","
           "kind=\"held\"} 2",
           R"(devmgr_plugins{kind="dra",state="Connected"} 1)",
           R"(devmgr_plugins{kind="device-plugin",state="Live"} 1)",
           "devmgr_dra_driver_instances{driver_name=\"d.example.com\","
           "state=\"Connected\"} 1",
           "devmgr_dra_driver_failing_instances{driver_name="
           "\"d.example.com\"} 1",
           "devmgr_device_plugins_paused{reason=\"breaker\"} 1",
           "devmgr_device_plugins_paused{reason=\"quarantine\"} 0",
           "devmgr_dra_drivers_paused{reason=\"breaker\"} 0",
           "devmgr_dra_drivers_paused{reason=\"quarantine\"} 1",
           "plugin_manager_total_plugins{socket_path=\"/r/a.sock\","
           "state=\"actual_state_of_world\"} 1",
           "plugin_manager_total_plugins{socket_path=\"/r/b.sock\","
           "state=\"desired_state_of_world\"} 1",
       }) {
    EXPECT_THAT(page, HasSubstr("\n" + std::string(line) + "\n"));
  }
  EXPECT_THAT(page, Not(HasSubstr("/r/b.sock\",state=\"actual")));
}

TEST_F(MetricsPageTest, ShowsWhatCriShimsReport) {
  manager_.Set([](World& world) {
    devmgr::RuntimeInfo runtime;
    runtime.listen = "/run/devmgr/cri.sock";
    runtime.counters.unknown_containers = 2;
    runtime.counters.injected = 5;
    runtime.counters.refused = 1;
    runtime.counters.runtime_losses = 3;
    runtime.counters.turned_away = 4;
    world.runtimes = {runtime};
  });
  const std::string page = Page();
  constexpr char kSocket[] = "socket_path=\"/run/devmgr/cri.sock\"";
  const auto has = [&](const std::string& name, const std::string& label,
                       const std::string& value) {
    EXPECT_THAT(page, HasSubstr(name + "{" + kSocket + label + "} " + value));
  };
  has("devmgr_shim_known", ",kind=\"containers_of_unknown_pods\"", "2\n");
  has("devmgr_shim_containers_total", ",outcome=\"changed\"", "5\n");
  has("devmgr_shim_calls_total", ",outcome=\"refused\"", "1\n");
  has("devmgr_shim_runtime_losses_total", "", "3\n");
  has("devmgr_shim_callers_turned_away_total", "", "4\n");
  EXPECT_THAT(page, HasSubstr("# TYPE devmgr_shim_known gauge"));
  EXPECT_THAT(page, HasSubstr("# TYPE devmgr_shim_containers_total counter"));
}

devmgr::DeviceHolderInfo HolderOf(const std::string& pod,
                                  const std::string& device) {
  devmgr::DeviceHolderInfo holder;
  holder.pod = {"ns", pod};
  holder.pod_uid = {"u-" + pod};
  holder.container = "main";
  holder.devices.emplace_back().device = device;
  return holder;
}

// What exporters join with what they know of containers, and of devices.
TEST_F(MetricsPageTest, ContainersHaveTheirDevices) {
  manager_.Set([](World& world) {
    devmgr::DeviceHolderInfo holder = HolderOf("p", "GPU-1");
    holder.container_id = "abc";
    holder.state = "running";
    holder.devices[0].resource = "example.com/gpu";
    holder.devices[0].uuid = "GPU-1";
    holder.devices[0].cdi_devices = {"example.com/gpu=1", "example.com/gpu=2"};
    devmgr::ContainerDevice& nic = holder.devices.emplace_back();
    nic.driver = "nic.example.com";
    nic.pool = "node-1";
    nic.device = "nic-0";
    nic.pci_address = "0000:3b:00.0";
    world.device_holders = {holder, HolderOf("over", "GPU-2")};
    world.device_holders[1].state = "exited";
  });
  const std::string page = Page();
  constexpr char kPod[] =
      "devmgr_container_device_info{namespace=\"ns\",pod=\"p\",pod_uid="
      "\"u-p\",container=\"main\",container_id=\"abc\",";
  EXPECT_THAT(
      page,
      HasSubstr(std::string(kPod) +
                "resource_name=\"example.com/gpu\",driver_name=\"\",pool=\"\","
                "device=\"GPU-1\",cdi_device=\"example.com/gpu=1,example.com/"
                "gpu=2\",uuid=\"GPU-1\",pci_address=\"\"} 1\n"));
  EXPECT_THAT(page,
              HasSubstr(std::string(kPod) +
                        "resource_name=\"\",driver_name=\"nic.example.com\","
                        "pool=\"node-1\",device=\"nic-0\",cdi_device=\"\","
                        "uuid=\"\",pci_address=\"0000:3b:00.0\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("GPU-2")));
  EXPECT_THAT(page, HasSubstr("devmgr_container_devices_left_out 0\n"));
}

TEST_F(MetricsPageTest, ThereIsABoundToDevicesOfContainers) {
  manager_.Set([](World& world) {
    for (std::size_t i = 0; i < kMostContainerDevices + 7; ++i) {
      world.device_holders.push_back(HolderOf("p", "d" + std::to_string(i)));
    }
  });
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("devmgr_container_devices_left_out 7\n"));
  EXPECT_THAT(page, HasSubstr("device=\"d4095\""));
  EXPECT_THAT(page, Not(HasSubstr("device=\"d4096\"")));
}

TEST_F(MetricsPageTest, DetachedOnlyTheCountsAreLeft) {
  metrics_.OnRegistration("a.com/x");
  EXPECT_THAT(Page(), HasSubstr("devmgr_claims"));
  metrics_.Detach();
  EXPECT_THAT(Page(), Not(HasSubstr("devmgr_claims")));
  EXPECT_THAT(Page(), HasSubstr("{resource_name=\"a.com/x\"} 1\n"));
}

/// A pod more begins to wait between two views.
class BusyManager : public FakeDeviceManager {
 public:
  std::shared_ptr<const devmgr::NodeView> View() const override {
    const_cast<BusyManager*>(this)->Set([](World& world) {
      devmgr::PodInfo& pod = world.pods.emplace_back();
      pod.state = devmgr::PodState::kWaiting;
    });
    return FakeDeviceManager::View();
  }
};

TEST(MetricsOfOneMomentTest, GaugesOfAPageAreOfOneView) {
  BusyManager manager;
  Metrics metrics;
  metrics.Attach(manager);
  const std::string page =
      prometheus::TextSerializer().Serialize(metrics.Collect());
  EXPECT_THAT(page, HasSubstr("devmgr_pods{state=\"Waiting\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("scheduler_pending_pods{queue=\"backoff\"} 1\n"));
}

}  // namespace
}  // namespace devmgrd
