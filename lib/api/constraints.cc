// SPDX-License-Identifier: Apache-2.0
//
// What the devices of a claim must have in common, and how parts of a claim
// name its requests.
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/device_parts.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxConstraints = 32;
constexpr std::size_t kMaxReferences = 32;

DeviceConstraint DecodeConstraint(const Field& field,
                                  const RequestNames& known) {
  DeviceConstraint constraint;
  constraint.requests = DecodeRequestReferences(field["requests"], &known);
  const Field match = field["matchAttribute"];
  const Field distinct = field["distinctAttribute"];
  if (match.IsPresent() == distinct.IsPresent()) {
    field.Error(fmt::format(
        "has {} matchAttribute {} distinctAttribute; exactly one is required",
        match.IsPresent() ? "both" : "neither",
        match.IsPresent() ? "and" : "nor"));
  }
  if (match.IsPresent()) {
    constraint.match_attribute = RequiredName(match, CheckFullDeviceKey);
  }
  if (distinct.IsPresent()) {
    constraint.distinct_attribute = RequiredName(distinct, CheckFullDeviceKey);
  }
  return constraint;
}

}  // namespace

std::string CheckRequestReference(std::string_view text) {
  const std::size_t slash = text.find('/');
  std::string problem = CheckLabel(text.substr(0, slash));
  if (problem.empty() && slash != std::string_view::npos) {
    problem = CheckLabel(text.substr(slash + 1));
  }
  return problem;
}

std::vector<std::string> DecodeRequestReferences(const Field& list,
                                                 const RequestNames* known) {
  std::vector<std::string> references =
      DecodeNames(list, kMaxReferences, CheckRequestReference);
  if (known == nullptr) return references;
  for (const Field& item : ItemsAgain(list)) {
    const std::string name = item.IsString() ? item.StringOr("") : "";
    if (!CheckRequestReference(name).empty() || known->contains(name)) continue;
    item.Error(
        fmt::format("{} is neither a request of the claim nor, after '/', an "
                    "alternative of one",
                    Quoted(name)));
  }
  return references;
}

std::vector<DeviceConstraint> DecodeConstraints(const Field& list,
                                                const RequestNames& known) {
  std::vector<DeviceConstraint> constraints;
  CheckCount(list, kMaxConstraints);
  for (const Field& item : list.Items()) {
    if (item.RequireMap()) constraints.push_back(DecodeConstraint(item, known));
  }
  return constraints;
}

}  // namespace devmgr::api
