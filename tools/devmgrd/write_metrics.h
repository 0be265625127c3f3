// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/api_server.h>
#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <vector>

namespace devmgrd {

/// Counts the requests that write to an API server. Thread-safe.
class WriteMetrics final : public prometheus::Collectable {
 public:
  WriteMetrics();
  void OnRequest(const devmgr::ApiServerRequest& request);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
};

}  // namespace devmgrd
