// SPDX-License-Identifier: Apache-2.0
//
// What a page says of the decisions that a scheduler takes elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "devmgrd/metrics.h"
#include "support/fake_device_manager.h"
#include "tools/metrics_page.h"

namespace devmgrd {
namespace {

using devmgr::FakeDeviceManager;
using ::testing::HasSubstr;
using ::testing::Not;
using World = FakeDeviceManager::World;

// AL-185
TEST_F(MetricsPageTest, AL185ClaimsThatAreMadeAreCounted) {
  metrics_.OnClaimCreated(/*extended_resources=*/false, false, false);
  metrics_.OnClaimCreated(/*extended_resources=*/true, false, false);
  metrics_.OnClaimCreated(/*extended_resources=*/true, false, true);
  const std::string page = Page();
  constexpr char kName[] =
      "dynamic_resource_allocation_resourceclaim_creates_total";
  for (const auto& [status, count] :
       {std::pair("success", "2"), std::pair("failure", "1")}) {
    EXPECT_THAT(page,
                HasSubstr(std::string(kName) + "{admin_access=\"false\"," +
                          "owner_api_group=\"\",owner_api_kind=\"Pod\"," +
                          "status=\"" + status + "\"} " + count + "\n"));
  }
  EXPECT_THAT(page, Not(HasSubstr("resourceclaim_controller")));
  EXPECT_THAT(page, Not(HasSubstr("scheduler_resourceclaim_creates")));
}

// AL-187
TEST(MetricNamesTest, AL187NamesOfBeforeAndOfNow) {
  FakeDeviceManager manager;
  for (const std::string names : {"current", "1.36", "both"}) {
    SCOPED_TRACE(names);
    Metrics metrics(MetricNamesOf(names));
    metrics.Attach(manager);
    metrics.OnClaimCreated(/*extended_resources=*/false, true, false);
    metrics.OnClaimCreated(/*extended_resources=*/true, false, false);
    const std::string page =
        prometheus::TextSerializer().Serialize(metrics.Collect());
    const auto has = [&](const char* text) {
      return page.find(text) != std::string::npos;
    };
    EXPECT_EQ(has("dynamic_resource_allocation_resourceclaim_creates_total{"),
              names != "1.36");
    EXPECT_EQ(has("# HELP dynamic_resource_allocation_resource_claims "),
              names != "1.36");
    EXPECT_EQ(has("resourceclaim_controller_creates_total{admin_access="
                  "\"true\",status=\"success\"} 1\n"),
              names != "current");
    EXPECT_EQ(has("scheduler_resourceclaim_creates_total{status=\"success\"} "
                  "1\n"),
              names != "current");
    EXPECT_EQ(has("# HELP resourceclaim_controller_resource_claims "),
              names != "current");
    metrics.Detach();
  }
}

// AL-186, AL-189
TEST_F(MetricsPageTest, AL186ClaimsByWhatTheyWereMadeFor) {
  const auto add = [](devmgr::ObjectSnapshot& objects, const std::string& name,
                      const char* note, bool allocated) {
    auto claim = std::make_shared<devmgr::ResourceClaim>();
    claim->metadata.ns = "default";
    claim->metadata.name = name;
    if (note != nullptr) claim->metadata.annotations[note] = "true";
    if (allocated) claim->status.allocation.emplace();
    objects.claims.insert_or_assign({"default", name}, claim);
  };
  auto objects = std::make_shared<devmgr::ObjectSnapshot>();
  EXPECT_THAT(Page(), HasSubstr("devmgr_feature_in_use{feature="
                                "\"DRAExtendedResource\"} 0\n"));
  add(*objects, "user", nullptr, false);
  add(*objects, "made", "resource.kubernetes.io/pod-claim-name", true);
  add(*objects, "special", "resource.kubernetes.io/extended-resource-claim",
      true);
  manager_.Set([&](World& world) { world.objects = objects; });
  const std::string page = Page();
  constexpr char kName[] = "dynamic_resource_allocation_resource_claims";
  for (const char* labels :
       {"{admin_access=\"false\",allocated=\"false\",source=\"\"}",
        "{admin_access=\"false\",allocated=\"true\",source="
        "\"resource_claim_template\"}",
        "{admin_access=\"false\",allocated=\"true\",source="
        "\"extended_resource\"}"}) {
    EXPECT_THAT(page, HasSubstr(std::string(kName) + labels + " 1\n"));
  }
  EXPECT_THAT(page, HasSubstr("devmgr_feature_in_use{feature="
                              "\"DRAExtendedResource\"} 1\n"));
}

TEST_F(MetricsPageTest, PoolsByTheirState) {
  const auto slice = [](const std::string& driver, const std::string& pool,
                        std::int64_t generation) {
    devmgr::SliceInfo info;
    info.driver = driver;
    info.pool = pool;
    info.generation = generation;
    return info;
  };
  manager_.Set([&](World& world) {
    world.slices = {slice("a", "p", 1), slice("a", "p", 2), slice("a", "p", 2),
                    slice("a", "q", 1), slice("b", "p", 1), slice("b", "q", 1)};
    world.slices[0].obsolete = true;
    world.slices[4].complete = false;
    world.slices[5].problem = "duplicate device name 'gpu-0'";
    auto objects = std::make_shared<devmgr::ObjectSnapshot>();
    auto shared = std::make_shared<devmgr::ResourceSlice>();
    shared->devices.resize(2);
    shared->devices[1].allow_multiple_allocations = true;
    objects->resource_slices.insert_or_assign({"", "s"}, shared);
    world.objects = objects;
  });
  const std::string page = Page();
  for (const char* line :
       {"devmgr_allocator_pools{driver=\"a\",state=\"complete\"} 2\n",
        "devmgr_allocator_pools{driver=\"a\",state=\"obsolete\"} 1\n",
        "devmgr_allocator_pools{driver=\"b\",state=\"incomplete\"} 1\n",
        "devmgr_allocator_pools{driver=\"b\",state=\"invalid\"} 1\n",
        "devmgr_feature_in_use{feature=\"DRAConsumableCapacity\"} 1\n",
        "devmgr_feature_in_use{feature=\"DRAPartitionableDevices\"} 0\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

// AL-188, but for the queues of groups.
TEST_F(MetricsPageTest, AL188PodsThatWaitByTheirQueue) {
  using Kind = devmgr::WaitingFor::Kind;
  const auto pod = [](const std::string& name,
                      std::vector<devmgr::WaitingFor> what) {
    devmgr::PodInfo info;
    info.name = {"default", name};
    info.uid.value = name;
    info.state = devmgr::PodState::kWaiting;
    info.waiting_for = std::move(what);
    return info;
  };
  manager_.Set([&](World& world) {
    world.pods = {pod("device", {{Kind::kFreeDevices, "d"}}),
                  pod("plugin", {{Kind::kResource, "a.com/x"}}),
                  pod("error", {}), pod("held", {{Kind::kAuthority, "node"}})};
  });
  const std::string page = Page();
  for (const char* line :
       {"scheduler_pending_pods{queue=\"unschedulable\"} 2\n",
        "scheduler_pending_pods{queue=\"backoff\"} 1\n",
        "scheduler_pending_pods{queue=\"gated\"} 1\n",
        "scheduler_pending_pods{queue=\"active\"} 0\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  for (const char* plugin : {"DynamicResources", "NodeResourcesFit"}) {
    EXPECT_THAT(page,
                HasSubstr("scheduler_unschedulable_pods{plugin=\"" +
                          std::string(plugin) + "\",profile=\"devmgr\"} 1\n"));
  }
}

TEST_F(MetricsPageTest, JudgementsHaveASchedulersNames) {
  constexpr std::chrono::milliseconds kTook(3);
  metrics_.OnSchedulingAttempt("admit", kTook, 2, std::chrono::seconds(1));
  metrics_.OnSchedulingAttempt("wait", kTook, 1, kTook);
  metrics_.OnSchedulingAttempt("error", kTook, 1, kTook);
  metrics_.OnSchedulingStep("DynamicResources", "Filter", "Success", kTook);
  metrics_.OnWoken("free devices");
  metrics_.OnAllocatorSearch("interrupted", 200'000);
  metrics_.OnSearchFigures({.evaluated = {3, 2, 1},
                            .known = {4, 0, 0},
                            .cost = 77,
                            .constraint = 5});
  metrics_.OnQueueingHint("NodeResourcesFit", "resource", true, kTook);
  const std::string page = Page();
  for (const char* line :
       {"scheduler_schedule_attempts_total{profile=\"devmgr\",result="
        "\"scheduled\"} 1\n",
        "scheduler_schedule_attempts_total{profile=\"devmgr\",result="
        "\"unschedulable\"} 1\n",
        "scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"2\"} "
        "1\n",
        "scheduler_pod_scheduling_attempts_sum 2\n",
        "devmgr_cel_evaluations_total{cached=\"false\",result=\"false\"} 2\n",
        "devmgr_cel_evaluations_total{cached=\"true\",result=\"true\"} 4\n",
        "devmgr_cel_cost_units_total 77\n",
        "devmgr_allocator_undo_total{check=\"constraint\"} 5\n",
        "scheduler_queueing_hint_execution_duration_seconds_count{event="
        "\"resource\",hint=\"Queue\",plugin=\"NodeResourcesFit\"} 1\n",
        "scheduler_plugin_execution_duration_seconds_count{extension_point="
        "\"Filter\",plugin=\"DynamicResources\",status=\"Success\"} 1\n",
        "scheduler_framework_extension_point_duration_seconds_count{extension_"
        "point=\"Filter\",profile=\"devmgr\",status=\"Success\"} 1\n",
        "scheduler_queue_incoming_pods_total{event=\"free devices\",queue="
        "\"active\"} 1\n",
        "scheduler_queue_incoming_pods_total{event=\"ScheduleAttemptFailure\","
        "queue=\"backoff\"} 1\n",
        "scheduler_pod_scheduled_after_flush_total 0\n",
        "devmgr_allocator_interruptions_total{cause=\"steps\"} 1\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

/// Below a scheduler there is one that counts: these are not shown twice.
TEST_F(MetricsPageTest, BelowASchedulerPendingPodsAreNotCounted) {
  manager_.Set([](World& world) {
    world.node.authority = devmgr::Authority::kScheduler;
  });
  EXPECT_THAT(Page(), Not(HasSubstr("scheduler_pending_pods")));
}

}  // namespace
}  // namespace devmgrd
