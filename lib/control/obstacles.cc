// SPDX-License-Identifier: Apache-2.0
#include "control/obstacles.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

namespace devmgr::control {
namespace {

using allocator::DeviceRefusal;
using allocator::Refusal;
using allocator::RequestRefusals;
using Kind = WaitingFor::Kind;

/// So many tainted devices are waited for one by one; of more, any of their
/// drivers'.
constexpr std::size_t kMostTaints = 32;

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// The operands of `&&`, outside of brackets and strings. Empty: the selector
/// is something else, or has something that is not understood here.
std::vector<std::string_view> Conjuncts(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' || (c == '/' && text.substr(i).starts_with("//"))) return {};
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (depth == 0 && (c == '?' || c == '|')) {
      return {};
    } else if (depth == 0 && text.substr(i).starts_with("&&")) {
      parts.push_back(Trimmed(text.substr(begin, i - begin)));
      begin = i + 2;
    }
  }
  if (depth != 0 || quote != 0) return {};
  parts.push_back(Trimmed(text.substr(begin)));
  return parts;
}

/// `device.driver == "..."`, and nothing else.
std::string_view DriverSaidBy(std::string_view part) {
  constexpr std::string_view kDriver = "device.driver";
  if (!part.starts_with(kDriver)) return {};
  part = Trimmed(part.substr(kDriver.size()));
  if (!part.starts_with("==")) return {};
  part = Trimmed(part.substr(2));
  if (part.size() < 2 || (part[0] != '"' && part[0] != '\'')) return {};
  if (part.find(part[0], 1) != part.size() - 1) return {};
  return part.substr(1, part.size() - 2);
}

using Visit = std::function<void(const DeviceSubRequest&)>;

void ForEachRequest(const RefusedClaims& refused, const Visit& visit) {
  for (const ResourceClaim* claim : refused.claims) {
    for (const devmgr::DeviceRequest& request : claim->spec.requests) {
      if (request.exactly.has_value()) visit(*request.exactly);
      for (const DeviceSubRequest& each : request.first_available) visit(each);
    }
  }
}

std::string DriverOf(const DeviceSubRequest& request,
                     const ObjectMap<DeviceClass>& classes) {
  std::string driver = DriverPinnedBy(request.selectors);
  if (!driver.empty()) return driver;
  const auto* found = classes.Find(ObjectName{"", request.device_class_name});
  if (found != nullptr) driver = DriverPinnedBy((*found)->selectors);
  return driver.empty() ? WaitingFor::kAnyDriver : driver;
}

/// Others may give it back, wholly or in part.
bool IsHeld(Refusal reason) {
  return reason == Refusal::kBusy || reason == Refusal::kCounter ||
         reason == Refusal::kCompatibilityGroup || reason == Refusal::kCapacity;
}

/// What devices were refused for.
class Refusals {
 public:
  Refusals(const allocator::Outcome& outcome,
           const std::set<std::string>& drivers)
      : drivers_(drivers) {
    if (outcome.refusals.empty()) AddAll(Kind::kFreeDevices);
    for (const RequestRefusals& request : outcome.refusals) Take(request);
  }

  std::set<WaitingFor> Take() && {
    if (tainted_.size() <= kMostTaints) {
      for (const auto& [device, driver] : tainted_) {
        all_.insert({Kind::kTaint, device});
      }
    } else {
      for (const auto& [device, driver] : tainted_) {
        all_.insert({Kind::kTaint, driver});
      }
    }
    return std::move(all_);
  }

 private:
  void AddAll(Kind kind) {
    for (const std::string& driver : drivers_) all_.insert({kind, driver});
  }

  void Take(const RequestRefusals& request) {
    std::size_t listed = 0;
    for (const DeviceRefusal& device : request.devices) {
      ++listed;
      if (IsHeld(device.reason)) {
        all_.insert({Kind::kFreeDevices, device.device.driver});
      } else if (device.reason == Refusal::kTaint) {
        tainted_.emplace(device.device.Text(), device.device.driver);
      }
    }
    std::size_t counted = 0;
    for (const auto& [reason, count] : request.counts) counted += count;
    if (counted == listed) return;
    // The rest is not known by name.
    for (const auto& [reason, count] : request.counts) {
      if (IsHeld(reason)) AddAll(Kind::kFreeDevices);
      if (reason == Refusal::kTaint) AddAll(Kind::kTaint);
    }
  }

  const std::set<std::string>& drivers_;
  std::set<WaitingFor> all_;
  std::map<std::string, std::string> tainted_;
};

void AddClaims(const RefusedClaims& refused, std::set<WaitingFor>* all) {
  for (const ObjectName& name : refused.of_source) {
    all->insert({Kind::kClaim, name.ToString()});
  }
  for (const ObjectName& name : refused.templates) {
    all->insert({Kind::kClaimTemplate, name.ToString()});
  }
}

}  // namespace

std::string DriverPinnedBy(const std::vector<std::string>& selectors) {
  for (const std::string& selector : selectors) {
    for (const std::string_view part : Conjuncts(selector)) {
      const std::string_view driver = DriverSaidBy(part);
      if (!driver.empty()) return std::string(driver);
    }
  }
  return {};
}

std::set<std::string> DriversOf(const RefusedClaims& refused,
                                const ObjectMap<DeviceClass>& classes) {
  std::set<std::string> drivers;
  ForEachRequest(refused, [&](const DeviceSubRequest& request) {
    drivers.insert(DriverOf(request, classes));
  });
  return drivers;
}

std::vector<WaitingFor> ObstaclesOf(const RefusedClaims& refused,
                                    const ObjectMap<DeviceClass>& classes,
                                    const allocator::Outcome& outcome) {
  std::set<WaitingFor> all;
  ForEachRequest(refused, [&](const DeviceSubRequest& request) {
    const std::string& name = request.device_class_name;
    if (classes.Find(ObjectName{"", name}) == nullptr) {
      all.insert({Kind::kDeviceClass, name});
    }
  });
  AddClaims(refused, &all);
  // Without its class no request can be served, whatever there is.
  const bool lacks_class = std::any_of(
      all.begin(), all.end(),
      [](const auto& what) { return what.kind == Kind::kDeviceClass; });
  if (lacks_class) return {all.begin(), all.end()};
  const std::set<std::string> drivers = DriversOf(refused, classes);
  all.merge(Refusals(outcome, drivers).Take());
  ForEachRequest(refused, [&](const DeviceSubRequest& request) {
    const std::string driver = DriverOf(request, classes);
    all.insert({Kind::kDeviceClass, request.device_class_name});
    all.insert({Kind::kDevices, driver});
    if (request.allocation_mode != "All") return;
    all.insert({Kind::kFreeDevices, driver});
    all.insert({Kind::kFewerDevices, driver});
  });
  return {all.begin(), all.end()};
}

}  // namespace devmgr::control
