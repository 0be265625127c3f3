// SPDX-License-Identifier: Apache-2.0
//
// Lists of device plugins as values: a whole list, and one in which one device
// is different, beside what protobuf takes to parse the same bytes.
#include <devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h>
#include <fmt/core.h>
#include <malloc.h>

#include "bench/support.h"
#include "device/inventory.h"
#include "plugin/api_version.h"

namespace devmgr::bench {
namespace {

namespace wire = wire::deviceplugin::v1beta1;

/// A list of `count` devices on two NUMA nodes; number `unhealthy` is.
std::string ListBytes(int count, int unhealthy) {
  wire::ListAndWatchResponse list;
  for (int i = 0; i < count; ++i) {
    wire::Device* device = list.add_devices();
    device->set_id(fmt::format("device-{}", i));
    device->set_health(i == unhealthy ? "Unhealthy" : "Healthy");
    device->mutable_topology()->add_nodes()->set_id(i % 2);
  }
  return list.SerializeAsString();
}

void Parse(const std::string& bytes) {
  wire::ListAndWatchResponse list;
  if (!list.ParseFromString(bytes)) Fail("no list");
}

/// A list as it comes in: decoded, checked, applied.
void Apply(device::Inventory& inventory, const std::string& bytes) {
  auto list = Must(plugin::ApiVersions().front().decode_list(bytes));
  inventory.Report(
      1, std::move(list.devices), [](const std::string&) { return false; }, 1);
}

double MegabytesInUse() {
  return static_cast<double>(mallinfo2().uordblks) / 1e6;
}

void Lists(Report& report, int count, double apply_goal, double flip_goal) {
  const std::string first = ListBytes(count, 0);
  Samples parse;
  Samples apply;
  Samples flip;
  double growth = 0;
  Rounds rounds(report.brief() ? 2 : 20, std::chrono::seconds(20));
  while (rounds.Next()) {
    const double before = MegabytesInUse();
    device::Inventory inventory({0, 1});
    inventory.Connect(1, 0);
    parse.Add(Microseconds([&] { Parse(first); }) / 1'000);
    apply.Add(Microseconds([&] { Apply(inventory, first); }) / 1'000);
    growth = MegabytesInUse() - before;
    const std::string flipped = ListBytes(count, count / 2);
    flip.Add(Microseconds([&] { Apply(inventory, flipped); }) / 1'000);
  }
  const auto goal = [&](double ratio) -> std::optional<double> {
    if (ratio <= 0) return std::nullopt;
    return ratio * parse.Median();
  };
  report.Add({fmt::format("list of {} devices, applied", count), "ms",
              apply.Median(), parse.Median(), "protobuf parse",
              goal(apply_goal)});
  report.Add({fmt::format("list of {} devices, two differ", count), "ms",
              flip.Median(), parse.Median(), "protobuf parse",
              goal(flip_goal)});
  report.Add({fmt::format("list of {} devices: memory", count), "MB", growth,
              std::nullopt, "",
              apply_goal > 0 ? std::optional(50.0) : std::nullopt});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Lists(report, 60'000, 2, 1.3);
  devmgr::bench::Lists(report, 655'360, 0, 0);
}
