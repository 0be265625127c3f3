// SPDX-License-Identifier: Apache-2.0
//
// What a scheduler and the controllers of a control plane count, of a node that
// does their work: under their names, since dashboards exist.
#pragma once

#include <devmgr/metrics.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace devmgrd {

/// Which names there are of metrics that upstream has renamed in 1.37.
struct MetricNames {
  bool current = true;
  bool before = false;  ///< Those of 1.34 to 1.36.
};
/// `current`, `1.36`, `both`.
MetricNames MetricNamesOf(std::string_view text);

/// `count` bounds, the first one `first`, each `factor` times the one before.
prometheus::Histogram::BucketBoundaries Buckets(double first, double factor,
                                                int count);
double SecondsOf(std::chrono::nanoseconds duration);

/// On the manager's thread.
class ControlMetrics {
 public:
  ControlMetrics(prometheus::Registry& registry, MetricNames names);

  void OnAttempt(std::string_view result, std::chrono::nanoseconds took,
                 int attempts, std::chrono::nanoseconds waited);
  void OnStep(std::string_view plugin, std::string_view point,
              std::string_view status, std::chrono::nanoseconds took);
  void OnWoken(std::string_view event);
  void OnClaimCreated(bool extended_resources, bool admin_access, bool failed);
  void OnSearch(std::string_view result, std::uint64_t steps);
  void OnFigures(const devmgr::SearchFigures& figures);
  void OnHint(std::string_view plugin, std::string_view event, bool queues,
              std::chrono::nanoseconds took);

 private:
  void Queue(const char* queue, std::string_view event);
  void CountEvaluations(const devmgr::SearchFigures::Verdicts& verdicts,
                        const char* cached);

  const MetricNames names_;
  prometheus::Family<prometheus::Counter>& attempts_;
  prometheus::Family<prometheus::Histogram>& attempt_durations_;
  prometheus::Family<prometheus::Histogram>& waits_;
  prometheus::Histogram& tries_;
  prometheus::Family<prometheus::Histogram>& plugin_durations_;
  prometheus::Family<prometheus::Histogram>& point_durations_;
  prometheus::Family<prometheus::Counter>& queued_;
  prometheus::Family<prometheus::Histogram>& steps_;
  prometheus::Counter& interruptions_;
  prometheus::Family<prometheus::Counter>& undos_;
  prometheus::Family<prometheus::Counter>& evaluations_;
  prometheus::Counter& cost_;
  prometheus::Family<prometheus::Histogram>& hints_;
  // Null: not by these names.
  prometheus::Family<prometheus::Counter>* creates_ = nullptr;
  prometheus::Family<prometheus::Counter>* old_template_creates_ = nullptr;
  prometheus::Family<prometheus::Counter>* old_special_creates_ = nullptr;
};

}  // namespace devmgrd
