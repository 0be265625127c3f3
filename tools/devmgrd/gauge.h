// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace devmgrd {

/// A gauge, or a counter that is read off a view, with its labels; what is
/// added under the same labels adds up.
class Gauge {
 public:
  using Type = prometheus::MetricType;
  Gauge(std::string name, std::string help, Type type = Type::Gauge)
      : name_(std::move(name)), help_(std::move(help)), type_(type) {}

  using Labels = std::vector<prometheus::ClientMetric::Label>;
  void Add(Labels labels, double value) { values_[std::move(labels)] += value; }
  void Set(Labels labels, double value) { values_[std::move(labels)] = value; }

  prometheus::MetricFamily Family() const {
    prometheus::MetricFamily family;
    family.name = name_;
    family.help = help_;
    family.type = type_;
    for (const auto& [labels, value] : values_) {
      prometheus::ClientMetric metric;
      metric.label = labels;
      (type_ == Type::Gauge ? metric.gauge.value : metric.counter.value) =
          value;
      family.metric.push_back(std::move(metric));
    }
    return family;
  }

 private:
  const std::string name_;
  const std::string help_;
  const Type type_;
  std::map<Labels, double> values_;
};

}  // namespace devmgrd
