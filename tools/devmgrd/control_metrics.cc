// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/control_metrics.h"

#include <utility>

namespace devmgrd {
namespace {

constexpr char kProfile[] = "devmgr";

prometheus::Family<prometheus::Counter>& CounterOf(
    prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

prometheus::Family<prometheus::Histogram>& HistogramOf(
    prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

/// A scheduler's word for how a judgement ended.
const char* ResultOf(std::string_view result) {
  if (result == "admit") return "scheduled";
  return result == "error" ? "error" : "unschedulable";
}

}  // namespace

prometheus::Histogram::BucketBoundaries Buckets(double first, double factor,
                                                int count) {
  prometheus::Histogram::BucketBoundaries buckets;
  for (int i = 0; i < count; ++i, first *= factor) buckets.push_back(first);
  return buckets;
}

double SecondsOf(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

MetricNames MetricNamesOf(std::string_view text) {
  return {text != "1.36", text == "1.36" || text == "both"};
}

ControlMetrics::ControlMetrics(prometheus::Registry& registry,
                               MetricNames names)
    : names_(names),
      attempts_(CounterOf(registry, "scheduler_schedule_attempts_total",
                          "Judgements of pods that want devices")),
      attempt_durations_(
          HistogramOf(registry, "scheduler_scheduling_attempt_duration_seconds",
                      "Duration of these, until the verdict is recorded")),
      waits_(HistogramOf(registry,
                         "scheduler_pod_scheduling_sli_duration_seconds",
                         "From when a pod was first seen until it was "
                         "admitted")),
      tries_(HistogramOf(registry, "scheduler_pod_scheduling_attempts",
                         "Judgements of a pod until it was admitted")
                 .Add({}, Buckets(1, 2, 5))),
      plugin_durations_(HistogramOf(
          registry, "scheduler_plugin_execution_duration_seconds",
          "Duration of the steps of a judgement, by what is allocated")),
      point_durations_(HistogramOf(
          registry, "scheduler_framework_extension_point_duration_seconds",
          "Duration of the steps of a judgement")),
      queued_(CounterOf(registry, "scheduler_queue_incoming_pods_total",
                        "Pods that are to be judged, or that have to wait")),
      steps_(HistogramOf(registry, "devmgr_allocator_steps",
                         "Steps of a search for devices of claims")),
      interruptions_(CounterOf(registry, "devmgr_allocator_interruptions_total",
                               "Searches that took more steps than one may")
                         .Add({{"cause", "steps"}})),
      undos_(CounterOf(registry, "devmgr_allocator_undo_total",
                       "Devices that a search tried and did not take")),
      evaluations_(CounterOf(registry, "devmgr_cel_evaluations_total",
                             "Selectors, each on one device")),
      cost_(CounterOf(registry, "devmgr_cel_cost_units_total",
                      "Cost of the evaluations, in units of CEL")
                .Add({})),
      hints_(HistogramOf(
          registry, "scheduler_queueing_hint_execution_duration_seconds",
          "Duration of the search for pods that wait for a change")) {
  if (names_.current) {
    creates_ = &CounterOf(
        registry, "dynamic_resource_allocation_resourceclaim_creates_total",
        "Claims that this node made for pods, or failed to");
  }
  if (names_.before) {
    old_template_creates_ =
        &CounterOf(registry, "resourceclaim_controller_creates_total",
                   "Claims that this node made from templates, or failed to");
    old_special_creates_ = &CounterOf(
        registry, "scheduler_resourceclaim_creates_total",
        "Claims that this node made for extended resources, or failed to");
  }
  CounterOf(registry, "scheduler_pod_scheduled_after_flush_total",
            "Stays 0: waiting pods are woken, there is no flush")
      .Add({});
}

void ControlMetrics::Queue(const char* queue, std::string_view event) {
  queued_.Add({{"queue", queue}, {"event", std::string(event)}}).Increment();
}

void ControlMetrics::OnAttempt(std::string_view result,
                               std::chrono::nanoseconds took, int attempts,
                               std::chrono::nanoseconds waited) {
  const char* outcome = ResultOf(result);
  const prometheus::Labels labels = {{"result", outcome},
                                     {"profile", kProfile}};
  attempts_.Add(labels).Increment();
  attempt_durations_.Add(labels, Buckets(0.001, 2, 15))
      .Observe(SecondsOf(took));
  if (result == "admit") {
    constexpr int kMostCounted = 16;
    const std::string tries =
        attempts < kMostCounted ? std::to_string(attempts) : std::string("16+");
    waits_.Add({{"attempts", tries}}, Buckets(0.01, 2, 20))
        .Observe(SecondsOf(waited));
    tries_.Observe(attempts);
  } else {
    Queue(result == "error" ? "backoff" : "unschedulable",
          "ScheduleAttemptFailure");
  }
}

void ControlMetrics::OnStep(std::string_view plugin, std::string_view point,
                            std::string_view status,
                            std::chrono::nanoseconds took) {
  plugin_durations_
      .Add({{"plugin", std::string(plugin)},
            {"extension_point", std::string(point)},
            {"status", std::string(status)}},
           Buckets(0.00001, 1.5, 20))
      .Observe(SecondsOf(took));
  point_durations_
      .Add({{"extension_point", std::string(point)},
            {"status", std::string(status)},
            {"profile", kProfile}},
           Buckets(0.0001, 2, 12))
      .Observe(SecondsOf(took));
}

void ControlMetrics::OnWoken(std::string_view event) { Queue("active", event); }

void ControlMetrics::OnClaimCreated(bool extended_resources, bool admin_access,
                                    bool failed) {
  const std::string status = failed ? "failure" : "success";
  const std::string admin = admin_access ? "true" : "false";
  if (creates_ != nullptr) {
    creates_
        ->Add({{"status", status},
               {"admin_access", admin},
               {"owner_api_group", ""},
               {"owner_api_kind", "Pod"}})
        .Increment();
  }
  if (!names_.before) return;
  if (extended_resources) {
    old_special_creates_->Add({{"status", status}}).Increment();
  } else {
    old_template_creates_->Add({{"status", status}, {"admin_access", admin}})
        .Increment();
  }
}

void ControlMetrics::OnSearch(std::string_view result, std::uint64_t steps) {
  steps_.Add({{"result", std::string(result)}}, Buckets(1, 4, 10))
      .Observe(static_cast<double>(steps));
  if (result == "interrupted") interruptions_.Increment();
}

void ControlMetrics::CountEvaluations(
    const devmgr::SearchFigures::Verdicts& verdicts, const char* cached) {
  const std::pair<const char*, std::uint64_t> results[] = {
      {"true", verdicts.matches},
      {"false", verdicts.mismatches},
      {"error", verdicts.errors}};
  for (const auto& [result, count] : results) {
    evaluations_.Add({{"result", result}, {"cached", cached}})
        .Increment(static_cast<double>(count));
  }
}

void ControlMetrics::OnFigures(const devmgr::SearchFigures& figures) {
  CountEvaluations(figures.evaluated, "false");
  CountEvaluations(figures.known, "true");
  cost_.Increment(static_cast<double>(figures.cost));
  // As simulations name these reasons.
  const std::pair<const char*, std::uint64_t> checks[] = {
      {"counter", figures.counter},
      {"compatibility-group", figures.compatibility_group},
      {"constraint", figures.constraint},
      {"capacity", figures.capacity}};
  for (const auto& [check, count] : checks) {
    undos_.Add({{"check", check}}).Increment(static_cast<double>(count));
  }
}

void ControlMetrics::OnHint(std::string_view plugin, std::string_view event,
                            bool queues, std::chrono::nanoseconds took) {
  hints_
      .Add({{"plugin", std::string(plugin)},
            {"event", std::string(event)},
            {"hint", queues ? "Queue" : "QueueSkip"}},
           Buckets(0.00001, 2, 12))
      .Observe(SecondsOf(took));
}

}  // namespace devmgrd
