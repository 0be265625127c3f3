// SPDX-License-Identifier: Apache-2.0
//
// Constraints and configuration, scenario by scenario.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "allocator/bed.h"

namespace devmgr::allocator {
namespace {

// AL-036
TEST(AllocatorConstraints, MatchValuesOfEachKind) {
  const auto device = [](const std::string& name) {
    return Dev(name)
        .Int("numa", 1)
        .Text("model", "x")
        .Attr("fast", true)
        .Version("firmware", "1.0.0");
  };
  Bed bed;
  bed.Slice("n1", "p1", {device("d1"), device("d2")});
  EXPECT_EQ(bed.Solve({Want()
                           .One(Ask("A"))
                           .One(Ask("A"))
                           .Match("a/numa")
                           .Match("a/model")
                           .Match("a/fast")
                           .Match("a/firmware")}),
            "q0=p1/d1 q1=p1/d2");
}

TEST(AllocatorFigures, CountWhatWasAskedAndWhatRefused) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Int("numa", 1), Dev("d2").Int("numa", 2),
             Dev("d3").Int("numa", 1).Int("old", 1)});
  bed.Class("C", {});
  bed.Class("D", {});
  const std::string odd = "device.attributes['a'].numa != 3";
  EXPECT_EQ(bed.Solve({Want()
                           .One(Ask("C").If(odd))
                           .One(Ask("D").If(odd))
                           .One(Ask("D").If(odd))
                           .Match("a/numa", {"q0", "q1"})}),
            "q0=p1/d1 q1=p1/d3 q2=p1/d2");
  const SearchFigures& figures = bed.outcome.figures;
  EXPECT_EQ(figures.evaluated.matches, 3U);
  EXPECT_EQ(figures.evaluated.mismatches, 0U);
  EXPECT_EQ(figures.evaluated.errors, 0U);
  EXPECT_GT(figures.known.matches, 0U);
  EXPECT_GT(figures.cost, 0U);
  EXPECT_EQ(figures.constraint, 1U);
  EXPECT_EQ(figures.capacity, 0U);
  EXPECT_EQ(bed.Verdict(Ask("C").If("device.attributes['a'].old == 2")),
            "bad-input");
  EXPECT_EQ(bed.outcome.figures.evaluated.errors, 1U);
}

// AL-037
TEST(AllocatorConstraints, RefuseADeviceWithoutTheAttribute) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  EXPECT_EQ(bed.Solve({Want().One(Ask("A")).Match("a/numa")}), "no-solution");
  EXPECT_EQ(bed.Solve({Want().One(Ask("A")).Distinct("a/numa")}),
            "no-solution");
}

// AL-038
TEST(AllocatorConstraints, RefuseValuesThatDiffer) {
  const std::vector<std::pair<DeviceAttribute, DeviceAttribute>> pairs = {
      {std::int64_t{1}, std::int64_t{2}},
      {SharedText("x"), SharedText("y")},
      {true, false},
      {DeviceVersion{"1.0.0"}, DeviceVersion{"1.0.0+build"}},
      {std::int64_t{1}, SharedText("1")},
      {SharedText("1.0.0"), DeviceVersion{"1.0.0"}},
  };
  for (const auto& [one, other] : pairs) {
    Bed bed;
    bed.Slice("n1", "p1",
              {Dev("d1").Attr("x", one), Dev("d2").Attr("x", other)});
    EXPECT_EQ(bed.Solve({Want().One(Ask("A", 2)).Match("a/x")}), "no-solution");
    EXPECT_EQ(bed.Solve({Want().One(Ask("A", 2)).Distinct("a/x")}),
              "q0=p1/d1 q0=p1/d2");
  }
}

TEST(AllocatorConstraints, LookANameUpWithItsDomainFirst) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Int("x", 1).Int("a/x", 2), Dev("d2").Int("x", 2),
             Dev("d3").Int("b/x", 2)});
  EXPECT_EQ(bed.Solve({Want().One(Ask("A", 2)).Match("a/x")}),
            "q0=p1/d1 q0=p1/d2");
  EXPECT_EQ(bed.Solve({Want().One(Ask("A")).Match("b/x")}), "q0=p1/d3");
}

// AL-039
TEST(AllocatorConstraints, AreForTheRequestsThatTheyName) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Version("firmware", "1.0.0"),
             Dev("d2").Version("firmware", "2.0.0")});
  EXPECT_EQ(bed.Solve({Want().One(Ask("A")).One(Ask("A")).Match("a/firmware",
                                                                {"q0"})}),
            "q0=p1/d1 q1=p1/d2");
}

// AL-040
TEST(AllocatorConstraints, MakeTheSearchGoBack) {
  const auto device = [](const std::string& name, const std::string& version,
                         const std::string& text) {
    return Dev(name).Version("firmware", version).Text("model", text);
  };
  Bed bed;
  bed.Slice("n1", "p1",
            {device("d1", "1.0.0", "a"), device("d2", "2.0.0", "b"),
             device("d3", "3.0.0", "b")});
  EXPECT_EQ(
      bed.Solve({Want().One(Ask("A")).One(Ask("A")).Match("a/model").Match(
          "a/firmware", {"q0"})}),
      "q0=p1/d2 q1=p1/d3");
}

// AL-041
TEST(AllocatorConstraints, OfARequestCoverItsAlternatives) {
  const auto device = [](const std::string& name, const std::string& memory,
                         const std::string& version) {
    return Dev(name).Cap("memory", memory).Version("firmware", version);
  };
  Bed bed;
  bed.Slice("n1", "p1", {device("d1", "8Gi", "1.0.0")});
  bed.Slice("n1", "p2",
            {device("d2", "2Gi", "2.0.0"), device("d3", "1Gi", "1.0.0")});
  const Want claim =
      Want()
          .One(Ask("A").If(AtLeast("8Gi")))
          .First({Ask("A").If(AtLeast("2Gi")), Ask("A").If(AtLeast("1Gi"))});
  EXPECT_EQ(bed.Solve({Want(claim).Match("a/firmware", {"q0", "q1"})}),
            "q0=p1/d1 q1/s1=p2/d3");
  EXPECT_EQ(bed.Solve({Want(claim).Match("a/firmware", {"q0", "q1/s1"})}),
            "q0=p1/d1 q1/s0=p2/d2");
}

// AL-042
TEST(AllocatorConstraints, TakeADeviceThatIsSharedTwiceAsTheSame) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Shared().Int("x", 1)});
  const Want claim = Want().One(Ask("A")).One(Ask("A")).Distinct("a/x");
  EXPECT_EQ(bed.Solve({claim}), "no-solution");
  bed.slices.front().devices.push_back(Dev("d2").Shared().Int("x", 2));
  EXPECT_EQ(bed.Solve({claim}), "q0=p1/d1 q1=p1/d2");
}

// AL-043
TEST(AllocatorConstraints, RestoreWhatListsHaveInCommon) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Ints("numa", {1, 2}), Dev("d2").Ints("numa", {1}),
             Dev("d3").Ints("numa", {2}), Dev("d4").Int("numa", 2)});
  EXPECT_EQ(bed.Solve({Want().One(Ask("A", 3)).Match("a/numa")}),
            "q0=p1/d1 q0=p1/d3 q0=p1/d4");
  // A list is comparable with nothing, as upstream has it: one may come first.
  bed.features.list_type_attributes = false;
  EXPECT_EQ(bed.Solve({Want().One(Ask("A")).Match("a/numa")}), "q0=p1/d1");
  EXPECT_EQ(bed.Solve({Want().One(Ask("A", 2)).Match("a/numa")}),
            "no-solution");
  EXPECT_EQ(bed.Solve({Want().One(Ask("A", 2)).Distinct("a/numa")}),
            "q0=p1/d1 q0=p1/d4");
}

// AL-044
TEST(AllocatorConstraints, FailOnAnAttributeWithoutAValue) {
  Bed bed;
  bed.Class("any", {});
  bed.Slice("n1", "p1", {Dev("d1").Ints("numa", {})});
  EXPECT_EQ(bed.Solve({Want().One(Ask("any")).Match("a/numa")}),
            "bad-input: claim ns/claim, request q0: unsupported attribute "
            "value of 'a/numa' on device a/p1/d1");
  EXPECT_EQ(bed.Solve({Want().One(Ask("A"))}),
            "bad-input: class A: selector #0 on device a/p1/d1: unsupported "
            "attribute value");
  EXPECT_EQ(bed.Solve({Want().One(Ask("any"))}), "q0=p1/d1");
}

// AL-108
TEST(AllocatorConstraints, WantDistinctListsToHaveNothingInCommon) {
  const auto device = [](const std::string& name,
                         std::vector<DeviceVersion> versions) {
    return Dev(name).Attr("v", RareVector<DeviceVersion>(std::move(versions)));
  };
  Bed bed;
  bed.Slice("n1", "p1",
            {device("d1", {{"1.0.0"}, {"1.1.0"}}),
             device("d2", {{"1.1.0"}, {"2.0.0"}}),
             device("d3", {{"2.0.0"}, {"2.1.0"}})});
  EXPECT_EQ(bed.Solve({Want().One(Ask("A", 2)).Distinct("a/v")}),
            "q0=p1/d1 q0=p1/d3");
  EXPECT_EQ(bed.Solve({Want().One(Ask("A", 3)).Distinct("a/v")}),
            "no-solution");
}

std::string Config(Bed& bed, const Want& claim) {
  const Outcome& outcome = bed.Run({claim});
  return outcome.result == Result::kSolved
             ? ConfigText(outcome.allocations[0].allocation)
             : TextOf(outcome);
}

Bed BedWithBoth() {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1"), Dev("d2")});
  bed.Slice("n1", "p1", {Dev("d1")}, "b");
  return bed;
}

// AL-045
TEST(AllocatorConfig, HasThatOfEachClassOnce) {
  Bed bed = BedWithBoth();
  bed.classes[0].config = {{"a", "{}"}};
  bed.classes[1].config = {{"b", "{}"}};
  EXPECT_EQ(Config(bed, Want().One(Ask("A")).One(Ask("A")).One(Ask("B"))),
            "FromClass[q0,q1]:a FromClass[q2]:b");
  EXPECT_EQ(Config(bed, Want().One(Ask("A"))), "FromClass[]:a");
}

// AL-046
TEST(AllocatorConfig, LacksThatOfAlternativesThatWereNotChosen) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1"), Dev("d2")}, "b");
  EXPECT_EQ(Config(bed, Want()
                            .First({Ask("A"), Ask("B", 2)})
                            .Config("a", {"q0/s0"})
                            .Config("b", {"q0/s1"})),
            "FromClaim[]:b");
}

// AL-047
TEST(AllocatorConfig, KeepsTheNamesOfAClaim) {
  Bed bed = BedWithBoth();
  EXPECT_EQ(Config(bed, Want()
                            .First({Ask("A"), Ask("B")})
                            .One(Ask("A"))
                            .Config("a", {"q0/s0", "q0/s1"})
                            .Config("b", {"q1"})
                            .Config("c")
                            .Config("d", {"q0", "q1"})),
            "FromClaim[q0/s0,q0/s1]:a FromClaim[q1]:b FromClaim[]:c "
            "FromClaim[]:d");
}

}  // namespace
}  // namespace devmgr::allocator
