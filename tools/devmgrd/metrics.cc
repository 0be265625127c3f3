// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/metrics.h"

#include <fmt/core.h>

#include <cmath>
#include <exception>
#include <utility>

#include "devmgrd/gauges.h"

namespace devmgrd {
namespace {

/// Those of Prometheus' own libraries, which the kubelet uses.
const prometheus::Histogram::BucketBoundaries kDefaultBuckets = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

/// Those of the kubelet for DRA: 15 steps from 0.1 to 40 s, each the last one
/// times the same.
prometheus::Histogram::BucketBoundaries DraBuckets() {
  constexpr int kSteps = 15;
  constexpr double kFirst = 0.1;
  constexpr double kLast = 40;
  prometheus::Histogram::BucketBoundaries buckets;
  for (int i = 0; i < kSteps; ++i) {
    buckets.push_back(kFirst *
                      std::pow(kLast / kFirst, double{1} * i / (kSteps - 1)));
  }
  return buckets;
}

}  // namespace

Metrics::Metrics(MetricNames names)
    : metric_names_(names),
      control_(registry_, names),
      registrations_(prometheus::BuildCounter()
                         .Name("kubelet_device_plugin_registration_total")
                         .Help("Calls of Register on the registry socket")
                         .Register(registry_)),
      durations_(prometheus::BuildHistogram()
                     .Name("kubelet_device_plugin_alloc_duration_seconds")
                     .Help("Duration of Allocate calls, failed or not")
                     .Register(registry_)),
      failures_(prometheus::BuildCounter()
                    .Name("devmgr_device_plugin_alloc_failures_total")
                    .Help("Allocate calls that failed or were not sent")
                    .Register(registry_)),
      claim_operations_(prometheus::BuildHistogram()
                            .Name("dra_operations_duration_seconds")
                            .Help("Duration of preparing and unpreparing all "
                                  "claims of a pod")
                            .Register(registry_)),
      driver_calls_(prometheus::BuildHistogram()
                        .Name("dra_grpc_operations_duration_seconds")
                        .Help("Duration of calls to DRA drivers")
                        .Register(registry_)),
      prepare_skips_(prometheus::BuildCounter()
                         .Name("dra_node_prepare_skips_total")
                         .Help("Claims that a driver did not have to prepare")
                         .Register(registry_)),
      unprepare_skips_(
          prometheus::BuildCounter()
              .Name("dra_node_unprepare_skips_total")
              .Help("Claims that a driver did not have to unprepare")
              .Register(registry_)),
      judgements_(prometheus::BuildCounter()
                      .Name("devmgr_judgements_total")
                      .Help("Pods that were judged, by what for and by how it "
                            "ended")
                      .Register(registry_)),
      missed_wakeups_(
          prometheus::BuildCounter()
              .Name("devmgr_missed_wakeups_total")
              .Help("Pods that admissionAudit found to wait although they "
                    "could have been admitted")
              .Register(registry_)
              .Add({})),
      pod_actions_(prometheus::BuildCounter()
                       .Name("devmgr_pod_actions_total")
                       .Help("Pods that were to fail, to be evicted or to be "
                             "stopped, for their devices")
                       .Register(registry_)),
      evictions_(
          prometheus::BuildCounter()
              .Name("device_taint_eviction_controller_pod_deletions_total")
              .Help("Pods evicted because of taints of their devices")
              .Register(registry_)
              .Add({})),
      eviction_delays_(
          prometheus::BuildHistogram()
              .Name("device_taint_eviction_controller_pod_deletion_duration_"
                    "seconds")
              .Help("From when a pod was to leave its devices until that was "
                    "recorded")
              .Register(registry_)
              .Add({},
                   prometheus::Histogram::BucketBoundaries{0.005, 0.025, 0.1,
                                                           0.5, 1, 2.5, 10, 30,
                                                           60, 120, 180, 240})),
      topology_requests_(
          prometheus::BuildCounter()
              .Name("kubelet_topology_manager_admission_requests_total")
              .Help("Pods that were judged by NUMA alignment")
              .Register(registry_)
              .Add({})),
      topology_errors_(
          prometheus::BuildCounter()
              .Name("kubelet_topology_manager_admission_errors_total")
              .Help("Pods that NUMA alignment refused")
              .Register(registry_)
              .Add({})),
      topology_durations_(
          prometheus::BuildHistogram()
              .Name("kubelet_topology_manager_admission_duration_ms")
              .Help("How long NUMA alignment of a pod took")
              .Register(registry_)
              .Add({}, Buckets(0.05, 2, 15))),  // The kubelet's.
      aligned_(prometheus::BuildCounter()
                   .Name("kubelet_container_aligned_compute_resources_count")
                   .Help("Containers, or pods, whose devices are on one NUMA "
                         "node because they have to be")
                   .Register(registry_)),
      not_aligned_(
          prometheus::BuildCounter()
              .Name("kubelet_container_aligned_compute_resources_failure_count")
              .Help("The same that were refused")
              .Register(registry_)),
      ledger_failures_(
          prometheus::BuildCounter()
              .Name("devmgr_ledger_write_failures_total")
              .Help("Writes of the ledger that failed, and attempts to open it "
                    "again that did")
              .Register(registry_)
              .Add({})),
      events_(prometheus::BuildCounter()
                  .Name("devmgr_events_total")
                  .Help("Events, as `devmgrctl get events` shows them")
                  .Register(registry_)) {}

Metrics::~Metrics() = default;

void Metrics::OnRegistration(const devmgr::ResourceName& resource) {
  registrations_.Add({{"resource_name", names_.Of(resource)}}).Increment();
}

void Metrics::OnAllocate(const devmgr::ResourceName& resource,
                         std::chrono::nanoseconds took, bool failed) {
  const prometheus::Labels labels = {{"resource_name", names_.Of(resource)}};
  durations_.Add(labels, kDefaultBuckets).Observe(SecondsOf(took));
  // Also when it did not fail, so that the failures are there to be seen as 0.
  failures_.Add(labels).Increment(failed ? 1 : 0);
}

void Metrics::CountClaims(const char* operation, std::chrono::nanoseconds took,
                          bool failed) {
  claim_operations_
      .Add({{"operation_name", operation},
            {"is_error", failed ? "true" : "false"}},
           DraBuckets())
      .Observe(SecondsOf(took));
}

void Metrics::OnClaimsPrepared(std::chrono::nanoseconds took, bool failed) {
  CountClaims("PrepareResources", took, failed);
}

void Metrics::OnClaimsUnprepared(std::chrono::nanoseconds took, bool failed) {
  CountClaims("UnprepareResources", took, failed);
}

void Metrics::OnDriverCall(const std::string& driver, const std::string& method,
                           const std::string& code,
                           std::chrono::nanoseconds took) {
  driver_calls_
      .Add({{"driver_name", drivers_.Of(driver)},
            {"method_name", method},
            {"grpc_status_code", code}},
           DraBuckets())
      .Observe(SecondsOf(took));
}

void Metrics::OnPrepareSkipped(const std::string& driver) {
  prepare_skips_.Add({{"driver_name", drivers_.Of(driver)}}).Increment();
}

void Metrics::OnUnprepareSkipped(const std::string& driver) {
  unprepare_skips_.Add({{"driver_name", drivers_.Of(driver)}}).Increment();
}

void Metrics::OnJudgement(std::string_view event, std::string_view result) {
  judgements_
      .Add({{"event", std::string(event)}, {"result", std::string(result)}})
      .Increment();
}

void Metrics::OnSchedulingAttempt(std::string_view result,
                                  std::chrono::nanoseconds took, int attempts,
                                  std::chrono::nanoseconds waited) {
  control_.OnAttempt(result, took, attempts, waited);
}

void Metrics::OnSchedulingStep(std::string_view plugin, std::string_view point,
                               std::string_view status,
                               std::chrono::nanoseconds took) {
  control_.OnStep(plugin, point, status, took);
}

void Metrics::OnWoken(std::string_view event) { control_.OnWoken(event); }

void Metrics::OnClaimCreated(bool extended_resources, bool admin_access,
                             bool failed) {
  control_.OnClaimCreated(extended_resources, admin_access, failed);
}

void Metrics::OnAllocatorSearch(std::string_view result, std::uint64_t steps) {
  control_.OnSearch(result, steps);
}

void Metrics::OnSearchFigures(const devmgr::SearchFigures& figures) {
  control_.OnFigures(figures);
}

void Metrics::OnQueueingHint(std::string_view plugin, std::string_view event,
                             bool queues, std::chrono::nanoseconds took) {
  control_.OnHint(plugin, event, queues, took);
}

void Metrics::OnMissedWakeup() { missed_wakeups_.Increment(); }

void Metrics::OnPodAction(std::string_view action, const std::string& reason,
                          std::string_view outcome) {
  pod_actions_
      .Add({{"action", std::string(action)},
            {"reason", reason},
            {"outcome", std::string(outcome)}})
      .Increment();
}

void Metrics::OnTaintEviction(std::chrono::nanoseconds late) {
  evictions_.Increment();
  eviction_delays_.Observe(std::chrono::duration<double>(late).count());
}

void Metrics::OnTopologyAdmission(std::chrono::nanoseconds took, bool refused) {
  topology_requests_.Increment();
  topology_errors_.Increment(refused ? 1 : 0);
  topology_durations_.Observe(
      std::chrono::duration<double, std::milli>(took).count());
}

void Metrics::OnAlignedContainers(bool pod_scope, bool aligned,
                                  std::size_t containers) {
  (aligned ? aligned_ : not_aligned_)
      .Add({{"scope", pod_scope ? "pod" : "container"},
            {"boundary", "numa_node"}})
      .Increment(static_cast<double>(containers));
}

void Metrics::OnLedgerWriteFailed() { ledger_failures_.Increment(); }

void Metrics::OnEvent(const devmgr::EventInfo& event) {
  events_
      .Add({{"reason", event.reason},
            {"type", event.warning ? "Warning" : "Normal"}})
      .Increment(static_cast<double>(event.fresh));
}

void Metrics::Attach(devmgr::DeviceManager& manager) {
  const std::lock_guard lock(mutex_);
  manager_ = &manager;
}

void Metrics::AttachSources(
    std::function<std::vector<devmgr::SourceInfo>()> sources) {
  const std::lock_guard lock(mutex_);
  sources_ = std::move(sources);
}

void Metrics::AttachPodResources(
    std::function<devmgr::PodResourcesCounters()> counters) {
  const std::lock_guard lock(mutex_);
  pod_resources_ = std::move(counters);
}

void Metrics::Detach() {
  const std::lock_guard lock(mutex_);
  manager_ = nullptr;
  pod_resources_ = nullptr;
}

std::vector<prometheus::MetricFamily> Metrics::Collect() const {
  Families families = registry_.Collect();
  const auto add = [&](const Families& more) {
    families.insert(families.end(), more.begin(), more.end());
  };
  const std::lock_guard lock(mutex_);
  if (manager_ == nullptr) return families;
  const auto view = manager_->View();
  add(FamiliesOf(*view));
  add(FamiliesOfControl(*view, *manager_->Objects(), metric_names_));
  add(FamiliesOf(manager_->Simulations()));
  if (pod_resources_) add(FamiliesOf(pod_resources_()));
  if (sources_) add(FamiliesOf(sources_()));
  return families;
}

absl::StatusOr<std::unique_ptr<prometheus::Exposer>> ServeMetrics(
    const ListenAddress& address, const std::shared_ptr<Metrics>& metrics) {
  // The timeout is for a whole request, and for each time that the answer does
  // not get on. No linger, or its end would wait for clients, too.
  std::vector<std::string> options = {
      "listening_ports",    address.ToString(),  //
      "num_threads",        "2",                 //
      "request_timeout_ms", "2000",              //
      "enable_keep_alive",  "no",
  };
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(std::move(options));
    exposer->RegisterCollectable(metrics);
    return exposer;
  } catch (const std::exception& error) {
    const std::string message = fmt::format("cannot listen on {}: {}",
                                            address.ToString(), error.what());
    return absl::UnavailableError(absl::string_view(message));
  }
}

}  // namespace devmgrd
