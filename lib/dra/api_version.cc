// SPDX-License-Identifier: Apache-2.0
#include "dra/api_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "common/status.h"
#include "dra/api_messages.h"
#include "dra/compat/old_messages.h"
#include "dra/compat/old_versions.h"

namespace devmgr::dra {
namespace {

constexpr std::array<ApiVersion, 2 + kOldVersions.size()> kVersions = {
    Adapter<V1>("v1", "v1.DRAPlugin",
                "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"),
    Adapter<V1Beta1>("v1beta1", "v1beta1.DRAPlugin",
                     "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin"),
    kOldVersions[0],
    kOldVersions[1],
    kOldVersions[2],
    kOldVersions[3],
};

absl::Status NothingFits(const std::vector<std::string>& advertised,
                         bool compat) {
  std::vector<std::string_view> ours;
  for (const ApiVersion& version : kVersions) {
    if (version.is_old && !compat) continue;
    if (ours.empty() || ours.back() != version.announced) {
      ours.push_back(version.announced);
    }
  }
  return InvalidArgumentError(
      "none of services supported by the plugin ([{}]) are supported by this "
      "manager ([{}])",
      fmt::join(advertised, " "), fmt::join(ours, " "));
}

}  // namespace

std::string ApiVersion::PrepareMethod() const {
  return fmt::format("/{}/NodePrepareResource{}", service, batched ? "s" : "");
}

std::string ApiVersion::UnprepareMethod() const {
  return fmt::format("/{}/NodeUnprepareResource{}", service,
                     batched ? "s" : "");
}

std::span<const ApiVersion> ApiVersions() { return kVersions; }

const ApiVersion* FindApiVersion(std::string_view name) {
  const auto found =
      std::find_if(kVersions.begin(), kVersions.end(),
                   [&](const ApiVersion& v) { return v.name == name; });
  return found == kVersions.end() ? nullptr : &*found;
}

absl::Status CheckApiOptions(const ApiOptions& options) {
  for (const auto& [driver, name] : options.by_driver) {
    const ApiVersion* version = FindApiVersion(name);
    if (version == nullptr) {
      return InvalidArgumentError(
          "dra.apis of '{}': '{}' is not one of v1, v1beta1, v1alpha4, "
          "v1alpha3, v1alpha2, v1alpha1",
          driver, name);
    }
    if (version->is_old && !options.compat) {
      return InvalidArgumentError("dra.apis of '{}': {} needs dra.compat",
                                  driver, name);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<const ApiVersion*>> ChooseApiVersions(
    const std::string& driver, const std::vector<std::string>& advertised,
    const ApiOptions& options) {
  using Versions = std::vector<const ApiVersion*>;
  const auto wished = options.by_driver.find(driver);
  if (wished != options.by_driver.end()) {
    return Versions{FindApiVersion(wished->second)};
  }
  if (advertised.empty()) {
    return InvalidArgumentError(
        "empty list of supported gRPC services (aka supported versions)");
  }
  for (const ApiVersion& version : kVersions) {
    const bool announced = std::find(advertised.begin(), advertised.end(),
                                     version.announced) != advertised.end();
    if (!version.is_old && announced) return Versions{&version};
  }
  Versions old;
  if (options.compat) old = OldVersions(advertised);
  if (old.empty()) return NothingFits(advertised, options.compat);
  return old;
}

}  // namespace devmgr::dra
