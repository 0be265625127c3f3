// SPDX-License-Identifier: Apache-2.0
//
// The text of an expression. What compiles says the same of a device each time.
#include <string>

#include "api/quantity.h"
#include "cel/device.h"
#include "cel/selector.h"
#include "common/status.h"
#include "fuzz/fuzz.h"

namespace {

devmgr::cel::Value ExampleDevice() {
  devmgr::SliceDevice device;
  device.attributes["i"] = std::int64_t{7};
  device.attributes["s"] = devmgr::SharedText("A100");
  device.attributes["l"] = devmgr::RareVector<devmgr::SharedText>{"b", "a"};
  device.attributes["v"] = devmgr::DeviceVersion{"1.2.3"};
  device.capacity["m"].value = *devmgr::api::ParseQuantity("1Gi");
  return devmgr::cel::MakeDevice("a.b", device);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using devmgr::cel::Selector;
  using devmgr::fuzz::Require;
  static const devmgr::cel::Value device = ExampleDevice();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto selector = Selector::Compile(text);
  if (!selector.ok()) {
    devmgr::fuzz::RequireReadable(devmgr::MessageOf(selector.status()));
    return 0;
  }
  devmgr::cel::EvaluationOptions options;
  options.cost_limit = 20'000;
  options.work_limit = 500'000;
  const auto verdict = (*selector)->Evaluate(device, options);
  const auto again = (*selector)->Evaluate(device, options);
  Require(verdict.ok() == again.ok(), "an evaluation can be repeated");
  if (!verdict.ok()) {
    devmgr::fuzz::RequireReadable(devmgr::MessageOf(verdict.status()));
    return 0;
  }
  Require(verdict->matches == again->matches && verdict->cost == again->cost,
          "an evaluation says the same again");
  return 0;
}
