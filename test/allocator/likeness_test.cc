// SPDX-License-Identifier: Apache-2.0
//
// Devices that are alike but for one thing, which has to be enough for the
// second one to be tried when the first has failed.
#include "allocator/likeness.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "allocator/bed.h"

namespace devmgr::allocator {
namespace {

/// One device of any kind, then the one of model x.
Want AnyThenX() {
  return Want().One(Ask("A")).One(
      Ask("A").If("device.attributes['a'].?model.orValue('') == 'x'"));
}

// The first device takes what x needs; the second does not.
TEST(Likeness, IsOneOfCounters) {
  Bed bed;
  bed.Counters("p1", "set", {{"one", "1"}, {"two", "1"}});
  bed.Slice("n1", "p1",
            {Dev("d1").Uses("set", {{"one", "1"}}),
             Dev("d2").Uses("set", {{"two", "1"}}),
             Dev("d3").Text("model", "x").Uses("set", {{"one", "1"}})});
  EXPECT_EQ(bed.Solve({AnyThenX()}), "q0=p1/d2 q1=p1/d3");
  bed.slices.back().devices[0] = Dev("d1").Uses("set", {{"two", "1"}});
  bed.slices.back().devices[1] = Dev("d2").Uses("set", {{"two", "0"}});
  bed.slices.back().devices[2] =
      Dev("d3").Text("model", "x").Uses("set", {{"two", "1"}});
  EXPECT_EQ(bed.Solve({AnyThenX()}), "q0=p1/d2 q1=p1/d3");
}

TEST(Likeness, IsOneOfPoolsWithCounters) {
  Bed bed;
  for (const char* pool : {"p1", "p2"}) {
    bed.Counters(pool, "set", {{"one", "1"}});
    bed.Slice("n1", pool, {Dev("d1").Uses("set", {{"one", "1"}})});
  }
  bed.slices[1].devices.push_back(
      Dev("d2").Text("model", "x").Uses("set", {{"one", "1"}}));
  EXPECT_EQ(bed.Solve({AnyThenX()}), "q0=p2/d1 q1=p1/d2");
}

TEST(Likeness, IsOneOfGroups) {
  Bed bed;
  bed.Counters("p1", "set", {{"one", "9"}});
  bed.Slice(
      "n1", "p1",
      {Dev("d1").Uses("set", {{"one", "1"}}, {"vgpu"}),
       Dev("d2").Uses("set", {{"one", "1"}}, {"mig"}),
       Dev("d3").Text("model", "x").Uses("set", {{"one", "1"}}, {"mig"})});
  EXPECT_EQ(bed.Solve({AnyThenX()}), "q0=p1/d2 q1=p1/d3");
}

TEST(Likeness, IsOneOfAttributesInConstraints) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Int("numa", 1), Dev("d2").Int("numa", 2),
             Dev("d3").Text("model", "x").Int("numa", 2)});
  EXPECT_EQ(bed.Solve({AnyThenX().Match("a/numa")}), "q0=p1/d2 q1=p1/d3");
}

TEST(Likeness, IsOneOfWhatSharesTake) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Shared().Cap("memory", "3"),
             Dev("d2").Shared().Cap("memory", "4")});
  EXPECT_EQ(bed.Solve({Want()
                           .One(Ask("A").Cap("memory", "2"))
                           .One(Ask("A").Cap("memory", "2"))
                           .One(Ask("A").Cap("memory", "3"))}),
            "q0=p1/d2 q1=p1/d2 q2=p1/d1");
}

// Nor is a device that a claim holds like one that is free.
TEST(Likeness, IsNotOfDevicesThatAreHeld) {
  Bed bed;
  bed.Counters("p1", "set", {{"one", "2"}});
  bed.Slice("n1", "p1",
            {Dev("d1").Shared().Uses("set", {{"one", "1"}}),
             Dev("d2").Shared().Uses("set", {{"one", "1"}}),
             Dev("d3").Text("model", "x").Uses("set", {{"one", "1"}})});
  bed.HeldShare("d2");
  EXPECT_EQ(bed.Solve({AnyThenX()}), "q0=p1/d2 q1=p1/d3");
}

}  // namespace
}  // namespace devmgr::allocator
