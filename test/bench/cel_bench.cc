// SPDX-License-Identifier: Apache-2.0
//
// CEL selectors as drivers and classes have them: what it takes to compile one,
// to evaluate it on a device, and to keep it.
//
//   cel_bench [--brief] [--json FILE]   as the other benchmarks
//   cel_bench --list                    the selectors, as JSON strings, one a
//   line cel_bench --measure                 reads such lines and prints for
//   each how
//                                       many nanoseconds it takes (see cel_go)
#include <devmgr/cel.h>
#include <fmt/core.h>
#include <malloc.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support.h"
#include "cel/example_device.h"

namespace devmgr::bench {
namespace {

using cel::ExampleDevice;
using cel::kExampleDriver;

/// What selectors of real drivers, classes and claims look like.
constexpr std::string_view kSelectors[] = {
    "device.driver == 'gpu.example.com'",
    "device.attributes['gpu.example.com'].flag",
    "device.attributes['gpu.example.com'].index >= 7",
    R"(device.driver == 'gpu.example.com' &&
       device.attributes['gpu.example.com'].model == 'A100' &&
       device.attributes['gpu.example.com'].index != 3)",
    R"(device.attributes['gpu.example.com'].version
       .isGreaterThan(semver('1.2.0')))",
    R"(device.capacity['gpu.example.com'].memory
       .compareTo(quantity('10Gi')) >= 0)",
    "device.capacity['gpu.example.com'].memory == quantity('80Gi')",
    R"(device.attributes['gpu.example.com'].model
       .lowerAscii().matches('^a[0-9]+$'))",
    "device.attributes['gpu.example.com'].model in ['H100', 'A100']",
    R"(has(device.attributes['gpu.example.com'].model) &&
       device.attributes['gpu.example.com'].model == 'A100')",
    "device.attributes['gpu.example.com'].?partition.orValue('') == ''",
    R"(cel.bind(a, device.attributes['gpu.example.com'],
       a.flag && a.index == 7))",
    "device.attributes['gpu.example.com'].model.split('1')[0] == 'A'",
    R"(device.attributes['gpu.example.com'].flag ?
       device.attributes['gpu.example.com'].index == 7 : false)",
    "device.allowMultipleAllocations == true",
    "device.attributes['gpu.example.com'].names.exists(n, n == 'a')",
    "lists.range(100).all(x, x >= 0)",
};

/// How many nanoseconds one call of `work` takes, over `enough`.
template <typename Work>
double Nanoseconds(Work work, double enough_us = 20'000) {
  for (int count = 1;; count *= 2) {
    const double took = Microseconds([&] {
      for (int i = 0; i < count; ++i) work();
    });
    if (took >= enough_us) return took * 1'000 / count;
  }
}

CelSelector Compile(std::string_view text) {
  return Must(CelSelector::Compile(text));
}

bool Matches(const CelSelector& selector, const CelDevice& device) {
  return Must(selector.Evaluate(device).matches);
}

int MeasureLines() {
  const SliceDevice parts = ExampleDevice();
  const CelDevice device(kExampleDriver, parts);
  for (std::string line; std::getline(std::cin, line);) {
    const auto text = nlohmann::json::parse(line).get<std::string>();
    const CelSelector selector = Compile(text);
    const nlohmann::json result = {
        {"cost", selector.Evaluate(device).cost},
        {"compile", Nanoseconds([&] { Compile(text); })},
        {"evaluate", Nanoseconds([&] { Matches(selector, device); })},
        {"convertAndEvaluate", Nanoseconds([&] {
           Matches(selector, CelDevice(kExampleDriver, parts));
         })}};
    std::cout << result.dump() << '\n';
  }
  return 0;
}

/// The geometric mean, so that each selector counts the same.
class Mean {
 public:
  void Add(double value) {
    logarithms_ += std::log(value);
    ++count_;
  }
  double Value() const { return std::exp(logarithms_ / count_); }

 private:
  double logarithms_ = 0;
  int count_ = 0;
};

double KilobytesPerSelector(int copies) {
  std::vector<CelSelector> kept;
  kept.reserve(std::size(kSelectors) * static_cast<std::size_t>(copies));
  const auto before = static_cast<double>(mallinfo2().uordblks);
  for (int i = 0; i < copies; ++i) {
    for (const std::string_view text : kSelectors)
      kept.push_back(Compile(text));
  }
  const auto after = static_cast<double>(mallinfo2().uordblks);
  return (after - before) / static_cast<double>(kept.size()) / 1e3;
}

void Measure(Report& report) {
  const SliceDevice parts = ExampleDevice();
  const CelDevice device(kExampleDriver, parts);
  const double enough_us = report.brief() ? 100 : 20'000;
  Samples compile, evaluate, convert, unit;
  for (Rounds rounds(report.brief() ? 2 : 5, std::chrono::seconds(20));
       rounds.Next();) {
    Mean compile_mean, evaluate_mean;
    for (const std::string_view text : kSelectors) {
      const CelSelector selector = Compile(text);
      compile_mean.Add(Nanoseconds([&] { Compile(text); }, enough_us));
      evaluate_mean.Add(
          Nanoseconds([&] { Matches(selector, device); }, enough_us));
    }
    compile.Add(compile_mean.Value() / 1e3);
    evaluate.Add(evaluate_mean.Value());
    convert.Add(
        Nanoseconds([&] { CelDevice(kExampleDriver, parts); }, enough_us));
    const CelSelector loop = Compile("lists.range(1000).all(x, x >= 0)");
    unit.Add(Nanoseconds([&] { Matches(loop, device); }, enough_us) /
             static_cast<double>(loop.Evaluate(device).cost));
  }
  report.Add({"CEL selector, compiled", "us", compile.Median(), std::nullopt,
              "", 100.0});
  report.Add({"CEL selector, evaluated on a device", "ns", evaluate.Median(),
              std::nullopt, "", 1'400.0});
  report.Add({"CEL selector: a unit of cost in a loop", "ns", unit.Median(),
              std::nullopt, "", 100.0});
  report.Add({"device made a value for selectors", "ns", convert.Median(),
              std::nullopt, "", std::nullopt});
  report.Add({"CEL selector, compiled: memory", "kB",
              KilobytesPerSelector(report.brief() ? 1 : 100), std::nullopt, "",
              16.0});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  using namespace devmgr::bench;
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const std::string_view text : kSelectors) {
      std::cout << nlohmann::json(text).dump() << '\n';
    }
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--measure") {
    return MeasureLines();
  }
  Report report(argc, argv);
  Measure(report);
  return 0;
}
