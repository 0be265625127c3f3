// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/metrics.h>
#include <devmgr/pod_resources_server.h>
#include <devmgr/source_info.h>
#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "devmgrd/control_metrics.h"
#include "devmgrd/listen_address.h"
#include "devmgrd/name_limit.h"

namespace devmgrd {

/// The metrics of a manager, as described in docs/metrics.md: counts what it
/// hears of, and reads the rest, gauges, off the manager's views when they are
/// collected. What it hears of comes on the manager's thread; the rest may be
/// called on any other.
class Metrics final : public devmgr::MetricsSink,
                      public devmgr::DeviceManagerObserver,
                      public prometheus::Collectable {
 public:
  explicit Metrics(MetricNames names = {});
  ~Metrics() override;

  void OnRegistration(const devmgr::ResourceName& resource) override;
  void OnAllocate(const devmgr::ResourceName& resource,
                  std::chrono::nanoseconds took, bool failed) override;
  void OnClaimsPrepared(std::chrono::nanoseconds took, bool failed) override;
  void OnClaimsUnprepared(std::chrono::nanoseconds took, bool failed) override;
  void OnDriverCall(const std::string& driver, const std::string& method,
                    const std::string& code,
                    std::chrono::nanoseconds took) override;
  void OnPrepareSkipped(const std::string& driver) override;
  void OnUnprepareSkipped(const std::string& driver) override;
  void OnJudgement(std::string_view event, std::string_view result) override;
  void OnMissedWakeup() override;
  void OnSchedulingAttempt(std::string_view result,
                           std::chrono::nanoseconds took, int attempts,
                           std::chrono::nanoseconds waited) override;
  void OnSchedulingStep(std::string_view plugin, std::string_view point,
                        std::string_view status,
                        std::chrono::nanoseconds took) override;
  void OnWoken(std::string_view event) override;
  void OnClaimCreated(bool extended_resources, bool admin_access,
                      bool failed) override;
  void OnAllocatorSearch(std::string_view result, std::uint64_t steps) override;
  void OnSearchFigures(const devmgr::SearchFigures& figures) override;
  void OnQueueingHint(std::string_view plugin, std::string_view event,
                      bool queues, std::chrono::nanoseconds took) override;
  void OnPodAction(std::string_view action, const std::string& reason,
                   std::string_view outcome) override;
  void OnTaintEviction(std::chrono::nanoseconds late) override;
  void OnTopologyAdmission(std::chrono::nanoseconds took,
                           bool refused) override;
  void OnAlignedContainers(bool pod_scope, bool aligned,
                           std::size_t containers) override;
  void OnLedgerWriteFailed() override;
  void OnEvent(const devmgr::EventInfo& event) override;

  /// From now on there are gauges, those of `manager`; borrowed until `Detach`.
  void Attach(devmgr::DeviceManager& manager);
  /// There are gauges of these sources, too (ApiServerSource::Info), as long as
  /// a manager is attached.
  void AttachSources(std::function<std::vector<devmgr::SourceInfo>()> sources);
  /// There are counters of a pod-resources server, too, as long as a manager is
  /// attached (PodResourcesServer::Counters).
  void AttachPodResources(
      std::function<devmgr::PodResourcesCounters()> counters);
  /// From now on there are none. Waits for a `Collect` that reads them.
  void Detach();
  /// Waits for the manager's thread, as views do.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  void CountClaims(const char* operation, std::chrono::nanoseconds took,
                   bool failed);

  // The manager's thread.
  NameLimit names_;
  NameLimit drivers_;

  const MetricNames metric_names_;
  prometheus::Registry registry_;
  ControlMetrics control_;
  prometheus::Family<prometheus::Counter>& registrations_;
  prometheus::Family<prometheus::Histogram>& durations_;
  prometheus::Family<prometheus::Counter>& failures_;
  prometheus::Family<prometheus::Histogram>& claim_operations_;
  prometheus::Family<prometheus::Histogram>& driver_calls_;
  prometheus::Family<prometheus::Counter>& prepare_skips_;
  prometheus::Family<prometheus::Counter>& unprepare_skips_;
  prometheus::Family<prometheus::Counter>& judgements_;
  prometheus::Counter& missed_wakeups_;
  prometheus::Family<prometheus::Counter>& pod_actions_;
  prometheus::Counter& evictions_;
  prometheus::Histogram& eviction_delays_;
  prometheus::Counter& topology_requests_;
  prometheus::Counter& topology_errors_;
  prometheus::Histogram& topology_durations_;
  prometheus::Family<prometheus::Counter>& aligned_;
  prometheus::Family<prometheus::Counter>& not_aligned_;
  prometheus::Counter& ledger_failures_;
  prometheus::Family<prometheus::Counter>& events_;
  mutable std::mutex mutex_;  // Held while gauges are read.
  devmgr::DeviceManager* manager_ = nullptr;
  std::function<std::vector<devmgr::SourceInfo>()> sources_;
  std::function<devmgr::PodResourcesCounters()> pod_resources_;
};

/// Serves `metrics` at /metrics on threads of its own. The exposer's destructor
/// waits for these: two seconds when no client asks, and as long as a client
/// likes that takes the page in little by little.
///   Unavailable  cannot listen there; names the address
absl::StatusOr<std::unique_ptr<prometheus::Exposer>> ServeMetrics(
    const ListenAddress& address, const std::shared_ptr<Metrics>& metrics);

}  // namespace devmgrd
