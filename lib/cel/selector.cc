// SPDX-License-Identifier: Apache-2.0
#include "cel/selector.h"

#include <fmt/core.h>

#include <cassert>
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
  if (type.kind != TypeKind::kBool && (is_old || !IsDyn(type))) {
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

absl::StatusOr<Verdict> Selector::EvaluateOld(
    const OldDevice& device, const EvaluationOptions& options) const {
  assert(kind_ == Kind::kOldDevice);
  std::vector<Value> globals;
  for (const std::string& name : plan_.globals) {
    const auto variable = device.find(name);
    assert(variable != device.end());
    globals.push_back(variable->second);
  }
  return Run(globals, options, nullptr);
}

absl::StatusOr<Verdict> Selector::Run(std::span<const Value> globals,
                                      const EvaluationOptions& options,
                                      std::uint64_t* cost) const {
  const Evaluation evaluation = cel::Evaluate(plan_, globals, options);
  if (cost != nullptr) *cost = evaluation.cost;
  DEVMGR_RETURN_IF_ERROR(ToStatus(evaluation.end, options));
  if (evaluation.value.IsError()) return FailedEvaluation(evaluation.value);
  const auto* matches = evaluation.value.As<bool>();
  if (matches == nullptr) {
    return InvalidArgumentError(
        "the expression yields a value of type {}, not bool",
        TypeName(*TypeOf(evaluation.value)));
  }
  return Verdict{*matches, evaluation.cost};
}

}  // namespace devmgr::cel
