// SPDX-License-Identifier: Apache-2.0
#include "allocator/refusals.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "allocator/bed.h"

namespace devmgr::allocator {
namespace {

/// `q0 1/2: d2 busy(ns/held-0), d3 capacity(...)`, a line for each request.
std::string Explain(Bed& bed, const std::vector<ResourceClaim>& claims) {
  bed.options.explain = true;
  std::string text;
  for (const RequestRefusals& each : bed.Run(claims).refusals) {
    text += fmt::format("{}{} {}/{}:", text.empty() ? "" : "\n", each.request,
                        each.found, each.wanted);
    for (const DeviceRefusal& refusal : each.devices) {
      text += fmt::format(" {} {}({})", refusal.device.device,
                          RefusalName(refusal.reason), refusal.detail);
    }
  }
  return text;
}
std::string Explain(Bed& bed, const Ask& ask) {
  return Explain(bed, {Want().One(ask)});
}

TEST(AllocatorRefusals, NameTheSelector) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Int("numa", 1), Dev("d2")}, "b");
  EXPECT_EQ(Explain(bed, Ask("A")),
            R"(q0 0/1: d1 class-selector(device.driver == "a"))"
            R"( d2 class-selector(device.driver == "a"))");
  EXPECT_EQ(Explain(bed, Ask("B").If("has(device.attributes['b'].numa) && "
                                     "device.attributes['b'].numa == 2")),
            "q0 0/1: d1 request-selector(has(device.attributes['b'].numa) && "
            "device.attributes['b'].numa == 2) d2 request-selector(has("
            "device.attributes['b'].numa) && device.attributes['b'].numa == "
            "2)");
}

TEST(AllocatorRefusals, NameTheAttributeThatASelectorMisses) {
  Bed bed;
  bed.options.selector_errors = SelectorErrors::kNoMatch;
  bed.Slice("n1", "p1", {Dev("d1")});
  const std::string text =
      Explain(bed, Ask("A").If("device.attributes['a'].numa == 2"));
  EXPECT_TRUE(text.starts_with(
      "q0 0/1: d1 cel-error(device.attributes['a'].numa == 2: no such key: "
      "numa"))
      << text;
}

TEST(AllocatorRefusals, NameTheHolder) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  bed.Held("d1");
  EXPECT_EQ(Explain(bed, Ask("A")), "q0 0/1: d1 busy(ns/held-0)");
  bed.held = AllocatedState();
  EXPECT_EQ(Explain(bed, {Want().One(Ask("A")).One(Ask("A"))}),
            "q0 1/1:\n"
            "q1 0/1: d1 taken-in-this-run(ns/claim, request q0)");
}

TEST(AllocatorRefusals, HaveNeedAndWhatIsFree) {
  Bed bed;
  bed.Counters("p1", "set", {{"memory", "8Gi"}});
  bed.Slice("n1", "p1",
            {Dev("d1").Uses("set", {{"memory", "6Gi"}}),
             Dev("d2").Uses("set", {{"memory", "4Gi"}})});
  bed.Slice("n1", "p2", {Dev("d3").Shared().Cap("memory", "4")});
  bed.HeldShare("d3", {{"memory", "3"}}, "p2");
  EXPECT_EQ(Explain(bed, Ask("A", 2)),
            "q0 1/2: d2 counter(set/memory: needs 4Gi, free 2Gi) "
            "d3 capacity(memory: needs 4, free 1)");
  EXPECT_EQ(Explain(bed, Ask("A").Cap("cores", "1")),
            "q0 0/1: d1 capacity(cores: the device has none of that name) "
            "d2 capacity(cores: the device has none of that name) "
            "d3 capacity(cores: the device has none of that name)");
  EXPECT_EQ(Explain(bed, Ask("A").Cap("memory", "2")),
            "q0 0/1: d1 capacity(memory: the device has none of that name) "
            "d2 capacity(memory: the device has none of that name) "
            "d3 capacity(memory: needs 2, free 1)");
}

TEST(AllocatorRefusals, NameTaintsAndConstraints) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Int("numa", 1), Dev("d2").Int("numa", 2), Dev("d3"),
             Dev("d4").Taint("t", "NoExecute")});
  EXPECT_EQ(Explain(bed, {Want().One(Ask("A", 2)).Match("a/numa")}),
            "q0 1/2: d2 constraint(a/numa: has 2, needs 1) "
            "d3 constraint(a/numa: the device lacks it) "
            "d4 taint(t:NoExecute)");
  bed.slices.front().devices[1].attributes["numa"] = std::int64_t{1};
  EXPECT_EQ(Explain(bed, {Want().One(Ask("A", 2)).Distinct("a/numa")}),
            "q0 1/2: d2 constraint(a/numa: has 1, may not have 1) "
            "d3 constraint(a/numa: the device lacks it) "
            "d4 taint(t:NoExecute)");
}

TEST(AllocatorRefusals, NameFeaturesNodesAndPools) {
  Bed bed;
  bed.features.device_binding_and_status = false;
  bed.Slice("n1", "p1", {Dev("d1").Binds("Ready", "Failed")});
  bed.Slice("n1", "p2", {Dev("d2")}).skip_node_operations = {"*"};
  bed.Slice("n2", "p3", {Dev("d3")});
  bed.Slice("n1", "p4", {Dev("d4")}).pool_slice_count = 2;
  bed.Slice("n1", "p5", {Dev("d5"), Dev("d5")});
  bed.Slice("", "p6", {Dev("d6").On("n2"), Dev("d7").On("n1")})
      .per_device_node_selection = true;
  bed.Held("d7", "p6");
  EXPECT_EQ(Explain(bed, Ask("A")),
            "q0 0/1: d2 feature-off(DRAOptionalNodeOperations) "
            "d7 busy(ns/held-0) d1 feature-off(DRADeviceBindingConditions) "
            "d3 not-on-node() "
            "d4 pool-incomplete(1 of 2 slices of generation 1 are there) "
            "d5 pool-invalid(duplicate device name 'd5') "
            "d5 pool-invalid(duplicate device name 'd5') d6 not-on-node()");
}

TEST(AllocatorRefusals, AreOfTheAttemptThatGotFurthest) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Text("type", "x"), Dev("d2")});
  const std::string is_x = "device.attributes['a'].?type.orValue('') == 'x'";
  EXPECT_EQ(
      Explain(bed,
              {Want().First({Ask("B"), Ask("A")}).One(Ask("A", 2).If(is_x))}),
      "q0/s0 0/1: d1 class-selector(device.driver == \"b\") "
      "d2 class-selector(device.driver == \"b\")\n"
      "q0/s1 1/1: d2 none()\n"
      "q1 0/2: d1 taken-in-this-run(ns/claim, request q0/s1) "
      "d2 request-selector(" +
          is_x + ")");
}

TEST(AllocatorRefusals, OfAnAlternativeAreItsOwn) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Int("numa", 1), Dev("d2").Int("numa", 2)});
  const std::string is_2 = "device.attributes['a'].numa == 2";
  // The first alternative has d1 in the attempt that got furthest: that is no
  // reason against it for the second one, but is for the request after them.
  EXPECT_EQ(Explain(bed, {Want()
                              .First({Ask("A"), Ask("A").Cap("cores", "1"),
                                      Ask("A").If(is_2)})
                              .One(Ask("A", 2))
                              .Match("a/numa", {"q0"})}),
            "q0/s0 1/1: d2 constraint(a/numa: has 2, needs 1)\n"
            "q0/s1 0/1: d1 capacity(cores: the device has none of that name) "
            "d2 capacity(cores: the device has none of that name)\n"
            "q0/s2 0/1: d1 request-selector(" +
                is_2 +
                ") d2 none()\n"
                "q1 1/2: d1 taken-in-this-run(ns/claim, request q0/s0)");
}

TEST(AllocatorRefusals, AreCountedBeyondAThousand) {
  Bed bed;
  for (int i = 0; i < 10; ++i) {
    std::vector<SliceDevice> devices;
    for (int j = 0; j < 128; ++j) devices.push_back(Dev(fmt::format("d{}", j)));
    bed.Slice("n1", fmt::format("p{}", i), devices, i < 5 ? "b" : "c");
  }
  bed.Slice("n2", "p", {Dev("d1"), Dev("d2")});
  bed.options.explain = true;
  const auto& refusals = bed.Run({Want().One(Ask("A"))}).refusals;
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(refusals[0].devices.size(), 1000U);
  EXPECT_EQ(refusals[0].counts.at(Refusal::kClassSelector), 1280U);
  EXPECT_EQ(refusals[0].counts.at(Refusal::kNotOnNode), 2U);
}

TEST(AllocatorRefusals, AreNotWorkedOutUnasked) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")}, "b");
  EXPECT_TRUE(bed.Run({Want().One(Ask("A"))}).refusals.empty());
}

}  // namespace
}  // namespace devmgr::allocator
