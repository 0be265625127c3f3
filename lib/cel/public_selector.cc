// SPDX-License-Identifier: Apache-2.0
//
// The public face of the room: devmgr/cel.h.
#include <devmgr/cel.h>
#include <fmt/core.h>

#include <utility>

#include "cel/device.h"
#include "cel/selector.h"

namespace devmgr {

std::string CelProblem::ToString() const {
  if (line == 0) return message;
  return fmt::format("{}:{}: {}\n{}", line, column, message, excerpt);
}

CelDevice::CelDevice(std::string_view driver, const SliceDevice& device)
    : value_(
          std::make_shared<const cel::Value>(cel::MakeDevice(driver, device))) {
}

CelSelector::CelSelector(std::shared_ptr<const cel::Selector> selector)
    : selector_(std::move(selector)) {}

absl::StatusOr<CelSelector> CelSelector::Compile(std::string_view expression,
                                                 CelProblem* problem) {
  auto selector =
      cel::Selector::Compile(expression, cel::Selector::Kind::kDevice, problem);
  if (!selector.ok()) return selector.status();
  return CelSelector(*std::move(selector));
}

CelVerdict CelSelector::Evaluate(const CelDevice& device,
                                 const CelLimits& limits) const {
  cel::EvaluationOptions options;
  options.cost_limit = limits.cost;
  options.interrupted = limits.interrupted;
  CelVerdict verdict{false};
  const auto judged =
      selector_->Evaluate(*device.value_, options, &verdict.cost);
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
