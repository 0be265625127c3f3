// SPDX-License-Identifier: Apache-2.0
//
// Attributes that a claim derives for its constraints (KEP-6080).
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "allocator/bed.h"

namespace devmgr::allocator {
namespace {

constexpr char kName[] = "derived/x";

Ask Deriving(const std::string& expression, std::int64_t count = 1) {
  Ask ask("A", count);
  ask.derived_attributes.push_back({kName, expression});
  return ask;
}

/// Four devices in a row, with the feature on.
struct DerivedBed : Bed {
  DerivedBed() {
    features.derived_attributes = true;
    Slice("n1", "p1",
          {Dev("d0").Int("i", 0), Dev("d1").Int("i", 1), Dev("d2").Int("i", 2),
           Dev("d3").Int("i", 3)});
  }
};

constexpr char kIndex[] = "device.attributes['a'].i";

TEST(DerivedAttributes, AreWhatDevicesHaveInCommon) {
  DerivedBed bed;
  const std::string parity = std::string(kIndex) + " % 2";
  EXPECT_EQ(bed.Solve({Want().One(Deriving(parity, 2)).Match(kName)}),
            "q0=p1/d0 q0=p1/d2");
  EXPECT_EQ(bed.Solve({Want().One(Deriving(parity, 2)).Distinct(kName)}),
            "q0=p1/d0 q0=p1/d1");
  EXPECT_EQ(bed.Verdict({Want().One(Deriving(parity, 3)).Match(kName)}),
            "no-solution");
  EXPECT_EQ(bed.Solve({Want().One(Deriving("device.driver", 4)).Match(kName)}),
            "q0=p1/d0 q0=p1/d1 q0=p1/d2 q0=p1/d3");
}

TEST(DerivedAttributes, NeedTheirGate) {
  DerivedBed bed;
  bed.features.derived_attributes = false;
  EXPECT_EQ(bed.Solve({Want().One(Deriving("1")).Match(kName)}),
            "bad-input: claim ns/claim, request q0: has derived attributes, "
            "but the feature DRADerivedAttributes is disabled");
}

TEST(DerivedAttributes, HaveALimitOfCostPerClaim) {
  DerivedBed bed;
  // About 10,000 at worst each, as the size of an attribute is bounded.
  std::string costly = "[";
  for (int i = 0; i < 100; ++i) costly += "'0123456789', ";
  costly += "''].exists(a, [" + costly.substr(1) +
            "''].exists(b, a + b == device.driver))";
  const auto claim = [&](int requests, const std::string& end = "") {
    Want want;
    for (int i = 0; i < requests; ++i) want.One(Deriving(costly + end));
    return want.Match(kName);
  };
  EXPECT_EQ(bed.Verdict({claim(1)}), "solved");
  const std::string many = bed.Solve({claim(32)});
  EXPECT_TRUE(many.starts_with(
      "bad-input: claim ns/claim: the CEL expressions of its derived "
      "attributes may cost "))
      << many;
  EXPECT_TRUE(many.ends_with(" in all, at most 1000000 are allowed")) << many;
  // Alternatives count like requests.
  Want both = Want().First({Deriving(costly), Deriving(costly)}).Match(kName);
  EXPECT_EQ(bed.Verdict({both}), "solved");
  for (int i = 0; i < 16; ++i) {
    both.First({Deriving(costly), Deriving(costly)});
  }
  EXPECT_EQ(bed.Verdict({both}), "bad-input");
  // Of another claim they do not.
  EXPECT_EQ(bed.Verdict({claim(1), claim(1)}), "solved");
}

TEST(DerivedAttributes, StandInForWhatIsPublished) {
  DerivedBed bed;
  for (SliceDevice& device : bed.slices[0].devices) {
    device.attributes[kName] = std::int64_t{7};
  }
  const std::string index = kIndex;
  EXPECT_EQ(bed.Verdict({Want().One(Deriving(index, 2)).Match(kName)}),
            "no-solution");
  // A request without an expression has what is published.
  EXPECT_EQ(
      bed.Solve(
          {Want().One(Deriving(index + " + 4")).One(Ask("A")).Match(kName)}),
      "q0=p1/d3 q1=p1/d0");
}

TEST(DerivedAttributes, AreHiddenFromSelectors) {
  DerivedBed bed;
  EXPECT_EQ(
      bed.Verdict(
          {Want()
               .One(Deriving("1").If("'x' in device.attributes['derived']"))
               .Match(kName)}),
      "no-solution");
}

TEST(DerivedAttributes, HaveAnExpressionForEachAlternative) {
  DerivedBed bed;
  const std::string index = kIndex;
  EXPECT_EQ(bed.Solve({Want()
                           .First({Deriving(index, 2), Deriving("true", 2)})
                           .Match(kName)}),
            "q0/s1=p1/d0 q0/s1=p1/d1");
}

TEST(DerivedAttributes, MayBeLists) {
  DerivedBed bed;
  const std::string index = "int(device.attributes['a'].i)";
  EXPECT_EQ(
      bed.Solve({Want()
                     .One(Deriving("[" + index + ", " + index + " + 2]", 2))
                     .Match(kName)}),
      "q0=p1/d0 q0=p1/d2");
  // One without entries is as if there was none.
  EXPECT_EQ(
      bed.Solve(
          {Want().One(Deriving(index + " < 2 ? [] : [1]", 2)).Match(kName)}),
      "q0=p1/d2 q0=p1/d3");
}

// A list is the value of the first device then, whatever is in it, and of no
// other.
TEST(DerivedAttributes, AreNotLookedIntoWithoutListAttributes) {
  for (const char* list : {"true ? [] : [1]", "[1]"}) {
    DerivedBed bed;
    bed.features.list_type_attributes = false;
    EXPECT_EQ(bed.Solve({Want().One(Deriving(list)).Match(kName)}), "q0=p1/d0");
    EXPECT_EQ(bed.Verdict({Want().One(Deriving(list, 2)).Match(kName)}),
              "no-solution");
  }
}

// A kind is part of the value.
TEST(DerivedAttributes, AreOfTheKindsOfAttributes) {
  DerivedBed bed;
  const auto solve = [&](const std::string& one, const std::string& other) {
    return bed.Verdict(
        {Want().One(Deriving(one)).One(Deriving(other)).Match(kName)});
  };
  EXPECT_EQ(solve("'1.0.0'", "'1.0.0'"), "solved");
  EXPECT_EQ(solve("semver('1.0.0')", "semver('1.0.0')"), "solved");
  EXPECT_EQ(solve("semver('1.0.0')", "'1.0.0'"), "no-solution");
  EXPECT_EQ(solve("semver('1.0.0-a.1')", "semver('1.0.0')"), "no-solution");
  EXPECT_EQ(solve("1", "true"), "no-solution");
  EXPECT_EQ(solve("1 == 1", "true"), "solved");
}

TEST(DerivedAttributes, EndTheSearchWhenTheyFail) {
  DerivedBed bed;
  const auto solve = [&](const std::string& expression) {
    return bed.Solve({Want().One(Deriving(expression)).Match(kName)});
  };
  EXPECT_TRUE(solve("((").starts_with(
      "bad-input: claim ns/claim, request q0: compile derived attribute "
      "derived/x failed: "))
      << solve("((");
  EXPECT_EQ(solve("1.5"),
            "bad-input: claim ns/claim, request q0: compile derived attribute "
            "derived/x failed: must evaluate to a primitive scalar (string, "
            "integer, boolean, semver) or a list of these scalars, not double");
  EXPECT_EQ(solve("1 / device.attributes['a'].i"),
            "bad-input: claim ns/claim, request q0: evaluate derived attribute "
            "derived/x on device a/p1/d0 failed: division by zero");
  EXPECT_TRUE(solve("[dyn(1), dyn('x')]")
                  .starts_with("bad-input: claim ns/claim, request q0: "
                               "evaluate derived attribute derived/x on device "
                               "a/p1/d0 failed: must evaluate to"))
      << solve("[dyn(1), dyn('x')]");
}

// No device is asked that a selector refuses.
TEST(DerivedAttributes, AreDerivedAfterSelectors) {
  DerivedBed bed;
  EXPECT_EQ(bed.Solve({Want()
                           .One(Deriving("1 / device.attributes['a'].i")
                                    .If("device.attributes['a'].i > 1"))
                           .Match(kName)}),
            "q0=p1/d2");
}

}  // namespace
}  // namespace devmgr::allocator
