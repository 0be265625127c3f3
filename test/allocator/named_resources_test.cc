// SPDX-License-Identifier: Apache-2.0
//
// Structured parameters of Kubernetes 1.30, searched like everything else.
#include "allocator/named_resources.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/bed.h"
#include "common/status.h"

namespace devmgr::allocator {
namespace {

using Requests = std::vector<ResourceClaimParameters::Request>;

/// The class c of driver a, which has structured parameters, and a claim of it
/// that refers to the parameters p.
struct OldBed : Bed {
  OldBed() {
    ResourceClass& made = resource_classes.emplace_back();
    made.metadata.name = "c";
    made.driver = "a";
    made.has_structured_parameters = true;
    spec.class_name = "c";
  }

  /// As api::DecodeNamedResources() makes them: a slice of the pool n1.
  void Instances(std::vector<SliceDevice> devices,
                 const std::string& driver = "a") {
    Slice("n1", "n1", std::move(devices), driver);
  }
  /// The parameters of the claim, to which it refers.
  ResourceClaimParameters& Asks(Requests requests,
                                const std::string& driver = "a") {
    if (claim_parameters.empty()) {
      claim_parameters.emplace_back().metadata = Meta("p");
      spec.parameters = Direct("ResourceClaimParameters", "", "p");
    }
    claim_parameters[0].driver_requests.push_back(
        {driver, "", std::move(requests)});
    return claim_parameters[0];
  }

  static ObjectMeta Meta(const std::string& name) {
    ObjectMeta meta;
    meta.ns = "ns";
    meta.name = name;
    return meta;
  }
  static ParametersReference Direct(const std::string& kind,
                                    const std::string& ns,
                                    const std::string& name) {
    return {"resource.k8s.io", kind, ns, name};
  }

  absl::StatusOr<NamedResourceClaim> Make() const {
    return MakeNamedResourceClaim(
        Want(), spec, {resource_classes, class_parameters, claim_parameters});
  }
  /// As Bed::Solve(), or why there is no claim.
  std::string SolveOld() {
    auto made = Make();
    if (!made.ok()) return MessageOf(made.status());
    classes.push_back(made->device_class);
    std::string text = Solve({made->claim});
    classes.pop_back();
    return text;
  }

  std::vector<ResourceClass> resource_classes;
  std::vector<ResourceClassParameters> class_parameters;
  std::vector<ResourceClaimParameters> claim_parameters;
  OldClaimSpec spec;
};

TEST(NamedResources, WithoutParametersAnyDeviceOfTheDriverWillDoAL116) {
  OldBed bed;
  bed.Instances({Dev("i0")}, "0");
  bed.Instances({Dev("i1"), Dev("i2")});
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i1");
  EXPECT_TRUE(bed.Make()->is_shareable);
}

TEST(NamedResources, ParametersAreReadInTheirNamespaceAL117) {
  OldBed bed;
  bed.Instances({Dev("i1")});
  bed.Asks({{"", "true"}}).metadata.ns = "other";
  EXPECT_EQ(bed.SolveOld(), "ResourceClaimParameters ns/p is missing");
  EXPECT_TRUE(absl::IsUnavailable(bed.Make().status()));
  bed.claim_parameters[0].metadata.ns = "ns";
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i1");
  EXPECT_FALSE(bed.Make()->is_shareable);

  bed.resource_classes[0].parameters =
      OldBed::Direct("ResourceClassParameters", "x", "q");
  bed.class_parameters.emplace_back().metadata = OldBed::Meta("q");
  EXPECT_EQ(bed.SolveOld(), "ResourceClassParameters x/q is missing");
  bed.class_parameters[0].metadata.ns = "x";
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i1");
}

TEST(NamedResources, ParametersMayBeGeneratedFromAnObjectAL118) {
  OldBed bed;
  bed.Instances({Dev("i1")});
  const ParametersReference from{"fake.example.com", "FakeClaimParameters", "",
                                 "x"};
  bed.spec.parameters = from;
  EXPECT_EQ(bed.SolveOld(),
            "generated parameters for FakeClaimParameters.fake.example.com "
            "ns/x are missing; the driver's controller writes them");
  const auto generate = [&](const std::string& name) {
    auto& parameters = bed.claim_parameters.emplace_back();
    parameters.metadata = OldBed::Meta(name);
    parameters.generated_from = from;
    parameters.driver_requests = {{"a", "", {{"", "true"}}}};
  };
  generate("r-7f");
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i1");
  generate("r-2c");
  EXPECT_EQ(bed.SolveOld(),
            "there are several generated parameters for "
            "FakeClaimParameters.fake.example.com ns/x: r-2c, r-7f");
  EXPECT_TRUE(absl::IsInvalidArgument(bed.Make().status()));
  bed.claim_parameters.pop_back();
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i1");
}

TEST(NamedResources, ClassesMayHaveParametersForClaimsWithoutAny) {
  OldBed bed;
  bed.Instances({Dev("i1"), Dev("i2")});
  bed.Asks({{"", "true"}, {"", "true"}});
  auto& by_default = bed.resource_classes[0].default_claim_parameters;
  by_default = std::exchange(bed.spec.parameters, std::nullopt);
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i1 r-0-1=n1/i2");
  by_default->ns = "x";
  EXPECT_EQ(bed.SolveOld(), "ResourceClaimParameters x/p is missing");
  // A claim's parameters are where the claim is.
  bed.spec.parameters = by_default;
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i1 r-0-1=n1/i2");
}

TEST(NamedResources, FourOfAModelAL119) {
  OldBed bed;
  std::vector<SliceDevice> instances;
  for (int i = 1; i <= 8; ++i) {
    instances.push_back(Dev(fmt::format("i{}", i))
                            .Text("model", i % 2 ? "ULTRA_10" : "ULTRA_100"));
  }
  bed.Instances(instances);
  auto& parameters = bed.Asks(
      Requests(4, {"", R"(attributes.string["model"] == "ULTRA_10")"}));
  parameters.driver_requests[0].vendor_parameters = R"({"count":4,"split":2})";
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i1 r-0-1=n1/i3 r-0-2=n1/i5 r-0-3=n1/i7");
  const auto& config = bed.outcome.allocations[0].allocation.config;
  ASSERT_EQ(config.size(), 1);
  EXPECT_EQ(config[0].source, "FromClaim");
  EXPECT_EQ(config[0].opaque.parameters, R"({"count":4,"split":2})");
}

TEST(NamedResources, KindsAndNamesOfAttributesAL120) {
  OldBed bed;
  bed.Instances({Dev("i1")
                     .Version("driver-version", "1.10.0")
                     .Cap("mem.example.com", "8Gi")
                     .Ints("n", {1, 2})
                     .Int("i", 3)
                     .Text("s", "text")
                     .Attr("b", true)
                     .Attr("t", RareVector<SharedText>())});
  const auto solve = [&](const std::string& selector) {
    bed.claim_parameters.clear();
    bed.Asks({{"", selector}});
    return bed.SolveOld();
  };
  EXPECT_EQ(
      solve(R"(attributes.version["driver-version"].isGreaterThan()"
            R"(semver("1.2.0")) && attributes.quantity["mem.example.com"])"
            R"(.compareTo(quantity("8192Mi")) == 0 && )"
            R"(attributes.intslice["n"].isSorted() && )"
            R"(attributes.int["i"] == 3 && attributes.string["s"] == "text")"
            R"( && attributes.bool["b"] && )"
            R"(attributes.stringslice["t"].size() == 0)"),
      "r-0-0=n1/i1");
  for (const char* selector :
       {R"(attributes.intSlice["n"].isSorted())", R"(device.driver == "a")",
        R"(attributes.string["s"])"}) {
    EXPECT_TRUE(solve(selector).starts_with(
        "bad-input: claim ns/claim: selector #0 on device a/n1/i1: "))
        << solve(selector);
  }
}

TEST(NamedResources, AMissingKeyIsBadInputAL121) {
  OldBed bed;
  bed.Instances({Dev("i1"), Dev("i2").Text("model", "m")});
  bed.Asks({{"", R"(attributes.string["model"] == "m")"}});
  EXPECT_TRUE(bed.SolveOld().starts_with(
      "bad-input: claim ns/claim: selector #0 on device a/n1/i1: no such key: "
      "model"));
  bed.claim_parameters[0].driver_requests[0].requests[0].selector =
      R"("model" in attributes.string && attributes.string["model"] == "m")";
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i2");
}

TEST(NamedResources, FiltersAreForTheirDriverAloneAL122) {
  OldBed bed;
  bed.Instances({Dev("i1").Attr("ok", false), Dev("i2").Attr("ok", true)});
  bed.Instances({Dev("j1")}, "b");
  bed.resource_classes[0].parameters =
      OldBed::Direct("ResourceClassParameters", "ns", "q");
  auto& parameters = bed.class_parameters.emplace_back();
  parameters.metadata = OldBed::Meta("q");
  parameters.filters = {{"a", R"(attributes.bool["ok"])"}, {"a", "false"}};
  parameters.vendor_parameters = {{"a", "{}"}, {"b", "null"}};
  bed.Asks({{R"({"x":1})", "true"}});
  bed.Asks({{"", "true"}}, "b");
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i2 r-1-0=n1/j1");
  const auto& allocation = bed.outcome.allocations[0].allocation;
  EXPECT_EQ(ConfigText(allocation), "FromClass[]:a FromClaim[r-0-0]:a");
}

TEST(NamedResources, LargeIsNotSpentOnSmallAL123) {
  OldBed bed;
  bed.Instances({Dev("i1").Int("size", 2), Dev("i2").Int("size", 1)});
  bed.Asks({{"", "true"}, {"", R"(attributes.int["size"] == 2)"}});
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i2 r-0-1=n1/i1");
  std::swap(bed.slices[0].devices[0], bed.slices[0].devices[1]);
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i2 r-0-1=n1/i1");
}

TEST(NamedResources, NoRequestsAreServedWithoutDevicesAL127) {
  OldBed bed;
  bed.Instances({Dev("i1")});
  bed.Asks({});
  EXPECT_EQ(bed.SolveOld(), "");
  EXPECT_EQ(bed.outcome.result, Result::kSolved);
}

TEST(NamedResources, AnInstanceInTwoSlicesMakesThePoolInvalidAL130) {
  OldBed bed;
  bed.Instances({Dev("i1")});
  bed.Instances({Dev("i1")});
  EXPECT_EQ(bed.SolveOld(),
            "here-not-now: invalid resource pools were encountered: a/n1: "
            "duplicate device name 'i1'");
}

TEST(NamedResources, MeetSlicesAndClaimsOfTodayAL131) {
  OldBed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Text("a/model", "m").Cap("mem", "2"),
             Dev("d2").Text("model", "m").Cap("mem", "8")});
  bed.Asks({{"", R"(attributes.quantity["mem"].compareTo(quantity("4")) > 0)"
                 R"( && attributes.string["model"] == "m")"}});
  EXPECT_EQ(bed.SolveOld(), "r-0-0=p1/d2");
  auto made = bed.Make();
  bed.classes.push_back(made->device_class);
  Want today =
      Want("today").One(Ask("A").If("device.attributes['a'].model == 'm'"));
  EXPECT_EQ(bed.Solve({made->claim, today}), "r-0-0=p1/d2 | q0=p1/d1");
}

TEST(NamedResources, TwoEntriesOfADriverAreOne) {
  OldBed bed;
  bed.Instances({Dev("i1"), Dev("i2")});
  bed.Asks({{"", "true"}});
  bed.Asks({{"", "true"}}).driver_requests[0].vendor_parameters = "{}";
  bed.claim_parameters[0].driver_requests[1].vendor_parameters = "[]";
  EXPECT_EQ(bed.SolveOld(), "r-0-0=n1/i1 r-1-0=n1/i2");
  const auto made = bed.Make();
  ASSERT_EQ(made->claim.spec.config.size(), 1);
  EXPECT_EQ(made->claim.spec.config[0].opaque.parameters, "{}");
  EXPECT_EQ(made->claim.spec.config[0].requests,
            (std::vector<std::string>{"r-0-0", "r-1-0"}));
}

TEST(NamedResources, HaveMoreThan32Devices) {
  OldBed bed;
  bed.Instances(Devices(100));
  bed.Asks(Requests(100, {"", "true"}));
  EXPECT_TRUE(bed.SolveOld().ends_with("r-0-99=n1/d99"));
  bed.claim_parameters[0].driver_requests[0].requests.resize(257, {"", "true"});
  EXPECT_EQ(bed.SolveOld(),
            "bad-input: claim ns/claim, request r-0-256: adding 1 devices "
            "exceeds the claim limit of 256, with 256 already accounted for");
}

TEST(NamedResources, ClassesMustHaveStructuredParameters) {
  OldBed bed;
  bed.resource_classes[0].has_structured_parameters = false;
  EXPECT_TRUE(absl::IsFailedPrecondition(bed.Make().status()));
  EXPECT_EQ(bed.SolveOld(),
            "ResourceClass c has no structured parameters: the controller of "
            "driver a allocates its claims");
  bed.resource_classes.clear();
  EXPECT_EQ(bed.SolveOld(), "ResourceClass c is missing");
}

}  // namespace
}  // namespace devmgr::allocator
