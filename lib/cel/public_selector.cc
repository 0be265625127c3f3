// SPDX-License-Identifier: Apache-2.0
//
// The public face of the room: devmgr/cel.h.
#include <devmgr/cel.h>
#include <fmt/core.h>

#include <utility>

#include "cel/device.h"
#include "cel/selector.h"
#include "common/status.h"

namespace devmgr {

std::string CelProblem::ToString() const {
  if (line == 0) return message;
  return fmt::format("{}:{}: {}\n{}", line, column, message, excerpt);
}

CelDevice::CelDevice(std::string_view driver, const SliceDevice& device,
                     CelVariables variables) {
  if (variables == CelVariables::kDevice) {
    value_ =
        std::make_shared<const cel::Value>(cel::MakeDevice(driver, device));
  } else {
    old_ = std::make_shared<const cel::OldDevice>(
        cel::MakeOldDevice(driver, device));
  }
}

CelSelector::CelSelector(std::shared_ptr<const cel::Selector> selector)
    : selector_(std::move(selector)) {}

absl::StatusOr<CelSelector> CelSelector::Compile(std::string_view expression,
                                                 CelProblem* problem,
                                                 CelVariables variables) {
  const auto kind = variables == CelVariables::kDevice
                        ? cel::Selector::Kind::kDevice
                        : cel::Selector::Kind::kOldDevice;
  auto selector = cel::Selector::Compile(expression, kind, problem);
  if (!selector.ok()) return selector.status();
  return CelSelector(*std::move(selector));
}

CelVerdict CelSelector::Evaluate(const CelDevice& device,
                                 const CelLimits& limits) const {
  cel::EvaluationOptions options;
  options.cost_limit = limits.cost;
  options.interrupted = limits.interrupted;
  CelVerdict verdict{false};
  const bool is_old = selector_->kind() == cel::Selector::Kind::kOldDevice;
  if (is_old ? device.old_ == nullptr : device.value_ == nullptr) {
    verdict.matches =
        InvalidArgumentError("the device was made for other variables");
    return verdict;
  }
  const auto judged =
      is_old ? selector_->EvaluateOld(*device.old_, options, &verdict.cost)
             : selector_->Evaluate(*device.value_, options, &verdict.cost);
  if (judged.ok()) {
    verdict.matches = judged->matches;
  } else {
    verdict.matches = judged.status();
  }
  return verdict;
}

const std::string& CelSelector::text() const { return selector_->text(); }

std::uint64_t CelSelector::worst_cost() const { return selector_->max_cost(); }

}  // namespace devmgr
