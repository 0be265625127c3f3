// SPDX-License-Identifier: Apache-2.0
#include "testing/fake_driver_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/status.h"
#include "testing/fake_driver_wire.h"
#include "testing/fake_health.h"

namespace devmgr::testing {
namespace {

constexpr std::size_t kMaxDriverNameBytes = 200;

/// That and others make a file name of at most 255 bytes.
bool FitsIntoFileName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxDriverNameBytes &&
         name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

absl::Status CheckOptions(const FakeDraDriverOptions& options) {
  std::vector<std::string> problems;
  if (!FitsIntoFileName(options.name)) {
    problems.push_back(
        fmt::format("name '{}' is not 1 to {} characters without '/' and "
                    "without a leading '.'",
                    options.name, kMaxDriverNameBytes));
  }
  if (options.root.empty()) problems.push_back("root is empty");
  const std::string both = options.name + "-" + options.instance;
  if (!options.instance.empty() && !FitsIntoFileName(both)) {
    problems.push_back(
        fmt::format("instance '{}' has a '/', or is too long beside the name",
                    options.instance));
  }
  for (const auto* list : {&options.api, &options.served_api}) {
    for (const std::string& name : *list) {
      if (FindDraApi(name) != nullptr) continue;
      problems.push_back(
          fmt::format("api '{}' is not one of v1, v1beta1, v1alpha4, v1alpha3, "
                      "v1alpha2, v1alpha1",
                      name));
    }
    if (std::count(list->begin(), list->end(), "v1alpha4") > 0 &&
        std::count(list->begin(), list->end(), "v1alpha3") > 0) {
      problems.push_back("v1alpha4 and v1alpha3 have the same method names");
    }
  }
  if (!options.health.empty() && !FakeHealth::IsVersion(options.health)) {
    problems.push_back(
        fmt::format("health '{}' is not one of v1, v1alpha1", options.health));
  }
  if (options.health_lease.count() <= 0) {
    problems.push_back(
        fmt::format("health_lease is {} s", options.health_lease.count()));
  }
  if (options.devices < 0) {
    problems.push_back(fmt::format("devices is {}", options.devices));
  }
  if (!options.publish &&
      (!options.kubeconfig.empty() || !options.node_name.empty())) {
    problems.push_back("kubeconfig and node_name are of use to publish only");
  }
  if (problems.empty()) return absl::OkStatus();
  return InvalidArgumentError("fake driver: {}", fmt::join(problems, "; "));
}

std::vector<ScenarioStep> StepsOf(const FakeDraDriverOptions& options) {
  std::vector<ScenarioStep> steps = options.scenario;
  if (options.fail_get_info > 0) {
    ScenarioStep fail;
    fail.action = ScenarioStep::Action::kFail;
    fail.method = "get-info";
    fail.times = options.fail_get_info;
    steps.insert(steps.begin(), std::move(fail));
  }
  return steps;
}

std::string SocketSuffix(const FakeDraDriverOptions& options) {
  return options.instance.empty() ? "" : "-" + options.instance;
}

}  // namespace devmgr::testing
