// SPDX-License-Identifier: Apache-2.0
#include "dra/compat/old_versions.h"

#include <algorithm>
#include <string_view>

#include "cdi/qualified_name.h"
#include "common/ascii.h"
#include "dra/compat/old_messages.h"

namespace devmgr::dra {
namespace {

/// `1.0.0`, `v1.2`: numbers with dots between them, two at least.
bool IsPlainVersion(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  bool dotted = false;
  bool after_digit = false;
  for (const char c : text) {
    if (!IsDigit(c) && (c != '.' || !after_digit)) return false;
    after_digit = IsDigit(c);
    dotted = dotted || c == '.';
  }
  return dotted && after_digit;
}

bool Announces(const std::vector<std::string>& advertised,
               const ApiVersion& version) {
  return std::any_of(
      advertised.begin(), advertised.end(), [&](const std::string& name) {
        return name == version.announced || name == version.service;
      });
}

/// An answer of v1alpha4 with devices, all of which have names. What v1alpha3
/// answers instead begins with a letter, which is the tag of no field of them.
bool HasNamedDevices(const std::string& bytes) {
  const auto response = rpc::Decode<V1Beta1::PrepareResponse>(bytes);
  if (!response.ok()) return false;
  for (const auto& [uid, claim] : response->claims()) {
    for (const auto& device : claim.devices()) {
      if (!device.device_name().empty()) return true;
    }
  }
  return false;
}

/// An answer of v1alpha3 with devices.
bool HasCdiNames(const std::string& bytes) {
  const auto response = rpc::Decode<V1Alpha3::PrepareResponse>(bytes);
  if (!response.ok()) return false;
  for (const auto& [uid, claim] : response->claims()) {
    for (const std::string& name : claim.cdi_devices()) {
      if (cdi::CheckQualifiedName(name).ok()) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<const ApiVersion*> OldVersions(
    const std::vector<std::string>& advertised) {
  std::vector<const ApiVersion*> announced;
  std::vector<const ApiVersion*> all;
  for (const ApiVersion& version : ApiVersions()) {
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

const ApiVersion* TellApart(const std::string& prepare_answer) {
  if (HasNamedDevices(prepare_answer)) return FindApiVersion("v1alpha4");
  if (HasCdiNames(prepare_answer)) return FindApiVersion("v1alpha3");
  return nullptr;
}

}  // namespace devmgr::dra
