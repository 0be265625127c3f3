// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime_cdi.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "common/enum_names.h"
#include "shim/json_member.h"

namespace devmgr {

std::string_view RuntimeCdiName(RuntimeCdi cdi) {
  using enum RuntimeCdi;
  static constexpr auto kNames = EnumTable<RuntimeCdi>({
      {kNone, "none"},
      {kAnnotations, "annotations"},
      {kField, "field"},
      {kFieldAndAnnotations, "both"},
  });
  return kNames.Of(cdi, "none");
}

namespace shim {
namespace {

using Numbers = std::array<int, 3>;

/// The first three numbers of `v1.7.10~ds1`; what is missing is 0.
Numbers NumbersOf(std::string_view version) {
  Numbers numbers{};
  if (!version.empty() && version.front() == 'v') version.remove_prefix(1);
  for (int& number : numbers) {
    const char* const end = version.data() + version.size();
    const auto [stop, error] = std::from_chars(version.data(), end, number);
    if (error != std::errc()) break;
    version.remove_prefix(static_cast<std::size_t>(stop - version.data()));
    if (version.empty() || version.front() != '.') break;
    version.remove_prefix(1);
  }
  return numbers;
}

/// What a version can do, and whether it does so unless told otherwise.
struct Ability {
  RuntimeCdi cdi = RuntimeCdi::kNone;
  bool by_default = true;
};

std::optional<Ability> AbilityOf(const cri::VersionResponse& version) {
  const Numbers is = NumbersOf(version.runtime_version);
  if (is == Numbers{}) return std::nullopt;
  if (version.runtime_name == "containerd") {
    if (is < Numbers{1, 7, 0}) return Ability{RuntimeCdi::kNone};
    if (is < Numbers{1, 7, 2}) return Ability{RuntimeCdi::kAnnotations, false};
    return Ability{RuntimeCdi::kFieldAndAnnotations, is >= Numbers{2, 0, 0}};
  }
  if (version.runtime_name == "cri-o") {
    if (is < Numbers{1, 24, 0}) return Ability{RuntimeCdi::kNone};
    if (is < Numbers{1, 28, 0}) return Ability{RuntimeCdi::kAnnotations};
    return Ability{RuntimeCdi::kFieldAndAnnotations};
  }
  return std::nullopt;
}

/// `enableCDI` of containerd's configuration.
std::optional<bool> EnabledByStatus(const cri::TextMap& info) {
  const auto config = info.find("config");
  if (config == info.end()) return std::nullopt;
  const auto json = shim::ParseJson(config->second);
  if (!json.ok()) return std::nullopt;
  const nlohmann::json& enabled = shim::MemberOf(*json, "enableCDI");
  if (!enabled.is_boolean()) return std::nullopt;
  return enabled.get<bool>();
}

RuntimeSupport Probe(const cri::VersionResponse& version,
                     const cri::TextMap& info) {
  const std::string name = version.runtime_name + " " + version.runtime_version;
  const auto ability = AbilityOf(version);
  if (const auto enabled = EnabledByStatus(info)) {
    if (!*enabled) {
      return {
          RuntimeCdi::kNone, "status",
          fmt::format("the configuration of {} says enableCDI: false", name)};
    }
    return {ability ? ability->cdi : RuntimeCdi::kFieldAndAnnotations, "status",
            fmt::format("the configuration of {} says enableCDI: true", name)};
  }
  if (!ability) {
    return {RuntimeCdi::kNone, "default",
            fmt::format("whether runtime '{}' has CDI is not known", name)};
  }
  if (ability->cdi == RuntimeCdi::kNone) {
    return {RuntimeCdi::kNone, "version", name + " has no CDI"};
  }
  if (!ability->by_default) {
    return {RuntimeCdi::kNone, "version",
            name + " has CDI, but does not use it by default"};
  }
  return {ability->cdi, "version", name + " has CDI"};
}

}  // namespace

RuntimeSupport DecideRuntimeCdi(std::optional<RuntimeCdi> by_operator,
                                const cri::VersionResponse& version,
                                const cri::TextMap& info) {
  RuntimeSupport probed = Probe(version, info);
  if (!by_operator) return probed;
  RuntimeSupport support{*by_operator, "override", "an option says so"};
  if (*by_operator != probed.cdi) {
    support.warning =
        fmt::format("runtime CDI is '{}' by an option, but would be '{}': {}",
                    RuntimeCdiName(*by_operator), RuntimeCdiName(probed.cdi),
                    probed.reason);
  }
  return support;
}

}  // namespace shim
}  // namespace devmgr
