// SPDX-License-Identifier: Apache-2.0
#include "dra/api_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "common/status.h"
#include "dra/api_messages.h"

namespace devmgr::dra {
namespace {

constexpr std::array kVersions = {
    BatchedAdapter<V1>("v1", "v1.DRAPlugin",
                       "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"),
    BatchedAdapter<V1Beta1>("v1beta1", "v1beta1.DRAPlugin",
                            "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin"),
    Old(BatchedAdapter<V1Beta1>("v1alpha4", "v1alpha3.NodeService",
                                "v1alpha3.Node")),
    Old(BatchedAdapter<V1Alpha3>("v1alpha3", "v1alpha3.NodeService",
                                 "v1alpha3.Node")),
    Old(OneClaimAdapter<V1Alpha2>("v1alpha2", "v1alpha2.NodeService",
                                  "v1alpha2.Node")),
    Old(OneClaimAdapter<V1Alpha1>("v1alpha1", "v1alpha1.NodeService",
                                  "v1alpha1.Node")),
};

/// `1.0.0`, `v1.2`: numbers with dots between them, two at least.
bool IsPlainVersion(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  bool dotted = false;
  bool after_digit = false;
  for (const char c : text) {
    if (!is_digit(c) && (c != '.' || !after_digit)) return false;
    after_digit = is_digit(c);
    dotted = dotted || c == '.';
  }
  return dotted && after_digit;
}

bool Lists(const std::vector<std::string>& advertised, std::string_view name) {
  return std::find(advertised.begin(), advertised.end(), name) !=
         advertised.end();
}

bool Announces(const std::vector<std::string>& advertised,
               const ApiVersion& version) {
  return Lists(advertised, version.announced) ||
         (version.is_old && Lists(advertised, version.service));
}

/// The old versions that drivers of Kubernetes 1.26 to 1.33 may mean.
std::vector<const ApiVersion*> OldVersions(
    const std::vector<std::string>& advertised) {
  std::vector<const ApiVersion*> announced;
  std::vector<const ApiVersion*> all;
  for (const ApiVersion& version : kVersions) {
    if (!version.is_old) continue;
    all.push_back(&version);
    if (Announces(advertised, version)) announced.push_back(&version);
  }
  if (announced.empty() &&
      std::any_of(advertised.begin(), advertised.end(), IsPlainVersion)) {
    return all;
  }
  return announced;
}

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
          "dra_api of '{}': '{}' is not one of v1, v1beta1, v1alpha4, "
          "v1alpha3, v1alpha2, v1alpha1",
          driver, name);
    }
    if (version->is_old && !options.compat) {
      return InvalidArgumentError("dra_api of '{}': {} needs dra_compat",
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
    if (!version.is_old && Announces(advertised, version)) {
      return Versions{&version};
    }
  }
  Versions old;
  if (options.compat) old = OldVersions(advertised);
  if (old.empty()) return NothingFits(advertised, options.compat);
  return old;
}

const ApiVersion* TellApart(const std::string& prepare_answer) {
  if (HasNamedDevices(prepare_answer)) return FindApiVersion("v1alpha4");
  if (HasCdiNames(prepare_answer)) return FindApiVersion("v1alpha3");
  return nullptr;
}

}  // namespace devmgr::dra
