// SPDX-License-Identifier: Apache-2.0
#include "cel/selector.h"

#include <fmt/format.h>

#include <cassert>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "api/quote.h"
#include "cel/checker.h"
#include "cel/device.h"
#include "cel/estimate.h"
#include "cel/parser.h"
#include "common/status.h"

namespace devmgr::cel {
namespace {

/// The advice of Kubernetes for the most common mistake.
constexpr std::string_view kMissingKeyHint =
    "consider using CEL optional chaining (.? followed by orValue()) or "
    "guarding the check with has() for optional fields";

absl::Status FailedEvaluation(const Value& error) {
  const std::string& message = error.message();
  if (message.starts_with("no such key: ")) {
    return InvalidArgumentError("{}. {}", message, kMissingKeyHint);
  }
  return InvalidArgumentError("{}", message);
}

absl::Status ToStatus(Evaluation::End end, const EvaluationOptions& options) {
  switch (end) {
    case Evaluation::End::kCostLimit:
      return ResourceExhaustedError(
          "actual cost limit exceeded: the expression costs more than {}",
          options.cost_limit);
    case Evaluation::End::kWorkLimit:
      return ResourceExhaustedError(
          "the expression works on values that are too large");
    case Evaluation::End::kInterrupted:
      return CancelledError("the evaluation was interrupted");
    case Evaluation::End::kDone:
      break;
  }
  return absl::OkStatus();
}

bool IsAttributeScalar(const Type& type) {
  return IsDyn(type) || type.kind == TypeKind::kBool ||
         type.kind == TypeKind::kInt || type.kind == TypeKind::kString ||
         type.name == kSemverTypeName;
}

bool MayBeAttribute(const Type& type) {
  return IsAttributeScalar(type) ||
         (type.kind == TypeKind::kList && IsAttributeScalar(*type.params[0]));
}

std::string NoAttribute(const std::string& type) {
  return fmt::format(
      "must evaluate to a primitive scalar (string, integer, boolean, semver) "
      "or a list of these scalars, not {}",
      api::Readable(type, 200));
}

std::string VersionText(const Semver& version) {
  return fmt::format("{}.{}.{}{}{}", version.major, version.minor,
                     version.patch, version.pre_release.empty() ? "" : "-",
                     fmt::join(version.pre_release, "."));
}

/// Nothing for a value that no attribute can have.
std::optional<DeviceAttribute> ScalarOf(const Value& value) {
  if (const auto* flag = value.As<bool>()) return *flag;
  if (const auto* number = value.As<std::int64_t>()) return *number;
  if (value.Is<String>()) return SharedText(value.text());
  if (const auto* version = value.As<SemverValue>()) {
    return DeviceVersion{SharedText(VersionText(*version->version))};
  }
  return std::nullopt;
}

/// The same for a list of entries of the kind of the first one, and for an
/// empty one.
std::optional<DeviceAttribute> ListOf(const std::vector<Value>& elements) {
  std::vector<DeviceAttribute> scalars;
  for (const Value& element : elements) {
    auto scalar = ScalarOf(element);
    if (!scalar) return std::nullopt;
    if (!scalars.empty() && scalar->index() != scalars[0].index()) {
      return std::nullopt;
    }
    scalars.push_back(*std::move(scalar));
  }
  if (scalars.empty()) return std::nullopt;
  return std::visit(
      [&](const auto& first) -> std::optional<DeviceAttribute> {
        using T = std::decay_t<decltype(first)>;
        if constexpr (requires { first.vector(); }) {
          return std::nullopt;
        } else {
          std::vector<T> values;
          for (const DeviceAttribute& each : scalars) {
            values.push_back(std::get<T>(each));
          }
          return DeviceAttribute(RareVector<T>(std::move(values)));
        }
      },
      scalars[0]);
}

}  // namespace

Selector::Selector(std::string text, Kind kind, Plan plan,
                   std::uint64_t max_cost)
    : text_(std::move(text)),
      kind_(kind),
      plan_(std::move(plan)),
      max_cost_(max_cost) {}

absl::StatusOr<std::shared_ptr<const Selector>> Selector::Compile(
    std::string_view text, Kind kind, CelProblem* problem) {
  const auto refuse = [&](CelProblem found) {
    absl::Status status = InvalidArgumentError("{}", found.ToString());
    if (problem != nullptr) *problem = std::move(found);
    return status;
  };
  const bool is_old = kind == Kind::kOldDevice;
  const Environment& environment =
      is_old ? OldDeviceEnvironment() : DeviceEnvironment();
  auto ast = Parse(text, environment.parse);
  if (const auto* found = std::get_if<Problem>(&ast)) {
    return refuse(Locate(text, *found));
  }
  auto checked = Check(std::get<Ast>(std::move(ast)), environment);
  if (const auto* found = std::get_if<Problem>(&checked)) {
    return refuse(Locate(text, *found));
  }
  const auto& expression = std::get<Checked>(checked);
  const Type& type = expression.TypeAt(expression.ast.root);
  if (kind == Kind::kDerivedAttribute) {
    if (!MayBeAttribute(type)) {
      return refuse({0, 0, NoAttribute(Describe(type)), ""});
    }
  } else if (type.kind != TypeKind::kBool && (is_old || !IsDyn(type))) {
    return refuse({0, 0,
                   fmt::format("must evaluate to bool{}, not {}",
                               is_old ? "" : " or the unknown type",
                               api::Readable(Describe(type), 200)),
                   ""});
  }
  auto plan = MakePlan(expression);
  if (const auto* found = std::get_if<Problem>(&plan)) {
    return refuse(Locate(text, *found));
  }
  return std::shared_ptr<const Selector>(
      new Selector(std::string(text), kind, std::get<Plan>(std::move(plan)),
                   EstimateDeviceCost(expression).max));
}

absl::StatusOr<Verdict> Selector::Evaluate(const Value& device,
                                           const EvaluationOptions& options,
                                           std::uint64_t* cost) const {
  assert(kind_ == Kind::kDevice);
  // `device` is the only variable. An expression may also use none.
  return Run(std::span(&device, 1), options, cost);
}

absl::StatusOr<Verdict> Selector::EvaluateOld(const OldDevice& device,
                                              const EvaluationOptions& options,
                                              std::uint64_t* cost) const {
  assert(kind_ == Kind::kOldDevice);
  std::vector<Value> globals;
  for (const std::string& name : plan_.globals) {
    const auto variable = device.find(name);
    assert(variable != device.end());
    globals.push_back(variable->second);
  }
  return Run(globals, options, cost);
}

absl::StatusOr<std::optional<DeviceAttribute>> Selector::EvaluateAttribute(
    const Value& device, const EvaluationOptions& options) const {
  assert(kind_ == Kind::kDerivedAttribute);
  std::uint64_t cost = 0;
  DEVMGR_ASSIGN_OR_RETURN(const Value value,
                          ValueOf(std::span(&device, 1), options, &cost));
  const List* list = value.As<List>();
  if (list != nullptr && (*list)->elements.empty()) return std::nullopt;
  auto attribute =
      list != nullptr ? ListOf((*list)->elements) : ScalarOf(value);
  if (!attribute) {
    return InvalidArgumentError("{}", NoAttribute(Describe(*TypeOf(value))));
  }
  return attribute;
}

absl::StatusOr<Value> Selector::ValueOf(std::span<const Value> globals,
                                        const EvaluationOptions& options,
                                        std::uint64_t* cost) const {
  Evaluation evaluation = cel::Evaluate(plan_, globals, options);
  *cost = evaluation.cost;
  DEVMGR_RETURN_IF_ERROR(ToStatus(evaluation.end, options));
  if (evaluation.value.IsError()) return FailedEvaluation(evaluation.value);
  return std::move(evaluation.value);
}

absl::StatusOr<Verdict> Selector::Run(std::span<const Value> globals,
                                      const EvaluationOptions& options,
                                      std::uint64_t* cost) const {
  std::uint64_t own_cost = 0;
  std::uint64_t& spent = cost != nullptr ? *cost : own_cost;
  DEVMGR_ASSIGN_OR_RETURN(const Value value, ValueOf(globals, options, &spent));
  const auto* matches = value.As<bool>();
  if (matches == nullptr) {
    return InvalidArgumentError(
        "the expression yields a value of type {}, not bool",
        TypeName(*TypeOf(value)));
  }
  return Verdict{*matches, spent};
}

}  // namespace devmgr::cel
