// SPDX-License-Identifier: Apache-2.0
//
// Judges expressions for cel/cel_test.py: JSON strings come in, one a line, and
// what became of each goes out, in the form of cel/main.go.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "cel/checker.h"
#include "cel/device.h"
#include "cel/estimate.h"
#include "cel/evaluator.h"
#include "cel/example_device.h"
#include "cel/parser.h"
#include "cel/plan.h"

namespace devmgr::cel {
namespace {

/// The steps of Selector::Compile(), since the cost of what fails counts, too.
nlohmann::json Judge(const std::string& text, const Value& device) {
  const auto failed = [](const Problem& problem) {
    return nlohmann::json{{"compile", problem.message}};
  };
  auto ast = Parse(text);
  if (const auto* problem = std::get_if<Problem>(&ast)) return failed(*problem);
  auto checked = Check(std::get<Ast>(std::move(ast)), DeviceEnvironment());
  if (const auto* problem = std::get_if<Problem>(&checked)) {
    return failed(*problem);
  }
  const auto& expression = std::get<Checked>(checked);
  const auto plan = MakePlan(expression);
  if (const auto* problem = std::get_if<Problem>(&plan)) {
    return failed(*problem);
  }
  const std::vector<Value> globals(std::get<Plan>(plan).globals.size(), device);
  const Evaluation evaluation = Evaluate(std::get<Plan>(plan), globals);
  nlohmann::json result = {{"cost", evaluation.cost},
                           {"max", EstimateDeviceCost(expression).max}};
  const auto* value = evaluation.value.As<bool>();
  if (evaluation.end != Evaluation::End::kDone) {
    result["error"] = "stopped";
  } else if (evaluation.value.IsError()) {
    result["error"] = evaluation.value.message();
  } else if (value == nullptr) {
    result["error"] = "no bool";
  } else {
    result["value"] = *value;
  }
  return result;
}

}  // namespace
}  // namespace devmgr::cel

int main() {
  const devmgr::cel::Value device = devmgr::cel::MakeDevice(
      devmgr::cel::kExampleDriver, devmgr::cel::ExampleDevice());
  for (std::string line; std::getline(std::cin, line);) {
    const auto text = nlohmann::json::parse(line).get<std::string>();
    std::cout << devmgr::cel::Judge(text, device).dump() << '\n';
  }
  return 0;
}
