// SPDX-License-Identifier: Apache-2.0
#include "api/old_handles.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "api/json_text.h"

namespace devmgr::api {
namespace {

/// As of the data of handles: bounds what the ledger keeps.
constexpr std::size_t kMaxParameterBytes = 16 * 1024;

/// What a driver is told besides its devices.
struct Config {
  bool from_class;
  std::vector<std::string> requests;  ///< Empty: all.
  std::string parameters;             ///< JSON.
};

/// A word on why there is no handle.
struct Unsayable {
  std::string why;
};

std::vector<Config> ConfigsOf(const Field& devices, std::string_view driver) {
  std::vector<Config> configs;
  for (const Field& item : devices["config"].Items()) {
    const Field opaque = item["opaque"];
    if (opaque["driver"].StringOr("") != driver) continue;
    Config config{item["source"].StringOr("") == "FromClass", {}, {}};
    for (const Field& request : item["requests"].Items()) {
      config.requests.push_back(request.StringOr(""));
    }
    const Field parameters = opaque["parameters"];
    if (parameters.IsPresent())
      config.parameters = JsonText(*parameters.value());
    configs.push_back(std::move(config));
  }
  return configs;
}

/// `request` is as in results, `req` or `req/sub`; what is meant for `req` is
/// meant for each of its alternatives.
bool IsFor(const Config& config, std::string_view request) {
  const std::string_view base = request.substr(0, request.find('/'));
  return std::any_of(
      config.requests.begin(), config.requests.end(),
      [&](const std::string& name) { return name == request || name == base; });
}

/// The one of `configs` that `applies`; empty parameters when none does.
template <typename Predicate>
std::string OnlyOne(const std::vector<Config>& configs,
                    const Predicate& applies, const std::string& place,
                    Unsayable* unsayable) {
  const Config* only = nullptr;
  for (const Config& config : configs) {
    if (!applies(config)) continue;
    if (only != nullptr) {
      unsayable->why = fmt::format("more than one opaque config of {}", place);
    }
    only = &config;
  }
  if (only == nullptr) return "";
  if (only->parameters.size() > kMaxParameterBytes) {
    unsayable->why = fmt::format("an opaque config of {} has {} bytes", place,
                                 only->parameters.size());
  }
  return only->parameters;
}

/// Of the class: a handle has it once for all requests.
std::string ClassParameters(const std::vector<Config>& configs,
                            const std::vector<std::string>& requests,
                            Unsayable* unsayable) {
  std::optional<std::string> common;
  for (const std::string& request : requests) {
    std::string parameters = OnlyOne(
        configs,
        [&](const Config& config) {
          return config.from_class &&
                 (config.requests.empty() || IsFor(config, request));
        },
        "the class", unsayable);
    if (common.has_value() && *common != parameters) {
      unsayable->why = "opaque configs of classes that differ by request";
    }
    common = std::move(parameters);
  }
  return common.value_or("");
}

void CheckDevice(const Field& item, Unsayable* unsayable) {
  if (item["adminAccess"].BoolOr(false)) {
    unsayable->why = "adminAccess";
  } else if (!item["shareID"].StringOr("").empty()) {
    unsayable->why = "a shareID";
  } else if (item["consumedCapacity"].IsPresent()) {
    unsayable->why = "consumed capacity";
  }
}

ResourceHandle HandleOf(const std::string& driver, const Field& devices,
                        std::string_view node) {
  const std::vector<Config> configs = ConfigsOf(devices, driver);
  Unsayable unsayable;
  StructuredResourceHandle handle;
  handle.node_name = node;
  std::vector<std::string> requests;
  std::set<std::string> names;
  for (const Field& item : devices["results"].Items()) {
    if (item["driver"].StringOr("") != driver) continue;
    CheckDevice(item, &unsayable);
    const std::string& request =
        requests.emplace_back(item["request"].StringOr(""));
    const std::string device = item["device"].StringOr("");
    if (!names.insert(device).second) {
      unsayable.why = fmt::format("two devices of the name '{}'", device);
    }
    const auto of_request = [&](const Config& config) {
      return !config.from_class && IsFor(config, request);
    };
    handle.results.push_back(
        {OnlyOne(configs, of_request, fmt::format("request '{}'", request),
                 &unsayable),
         device});
  }
  handle.vendor_class_parameters =
      ClassParameters(configs, requests, &unsayable);
  const auto of_claim = [](const Config& config) {
    return !config.from_class && config.requests.empty();
  };
  handle.vendor_claim_parameters =
      OnlyOne(configs, of_claim, "the claim", &unsayable);
  // A structured handle that says nothing at all does not occur otherwise.
  if (!unsayable.why.empty()) {
    return {std::move(unsayable.why), StructuredResourceHandle()};
  }
  return {"", std::move(handle)};
}

}  // namespace

void AddOldHandles(const Field& field, std::string_view node,
                   AllocationResult* allocation) {
  for (const DeviceRequestAllocationResult& result : allocation->results) {
    if (allocation->resource_handles.contains(result.driver)) continue;
    allocation->resource_handles[result.driver] =
        HandleOf(result.driver, field["devices"], node);
  }
}

std::string_view WhyNotSayable(const ResourceHandle& handle) {
  if (handle.structured != StructuredResourceHandle()) return "";
  return handle.data;
}

}  // namespace devmgr::api
