// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/write_metrics.h"

#include <string>

namespace devmgrd {

WriteMetrics::WriteMetrics()
    : requests_(prometheus::BuildCounter()
                    .Name("devmgr_api_server_write_requests_total")
                    .Help("Requests to the API server in order to write")
                    .Register(registry_)) {}

void WriteMetrics::OnRequest(const devmgr::ApiServerRequest& request) {
  // Few of each: verbs and resources are ours, codes are numbers of HTTP.
  requests_
      .Add({{"verb", request.verb},
            {"resource", request.resource},
            {"code",
             request.code == 0 ? "<error>" : std::to_string(request.code)}})
      .Increment();
}

std::vector<prometheus::MetricFamily> WriteMetrics::Collect() const {
  return registry_.Collect();
}

}  // namespace devmgrd
