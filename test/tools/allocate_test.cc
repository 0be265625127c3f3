// SPDX-License-Identifier: Apache-2.0
//
// devmgrctl allocate, over real files.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/temp_folder.h"
#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSlice[] = R"(
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {model: {string: A100}}}
  - {name: gpu-1, attributes: {model: {string: H100}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
)";

std::string Claim(const std::string& name, int count = 1,
                  const std::string& more = "") {
  return "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
         "metadata: {name: " +
         name +
         ", namespace: default}\nspec:\n  devices:\n    requests:\n    - name: "
         "r\n      exactly: {deviceClassName: gpu, count: " +
         std::to_string(count) + more + "}\n";
}

constexpr char kH100[] =
    ", selectors: [{cel: {expression: "
    "'device.attributes[\"gpu.example.com\"].model == \"H100\"'}}]";

class AllocateCommandTest : public CommandLineTest {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }
  Result RunOn(const std::string& claims, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"allocate",
                                          "-f",
                                          Write("slices.yaml", kSlice),
                                          "-f",
                                          Write("claims.yaml", claims),
                                          "--node",
                                          "node-1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }

  TempFolder folder_;
};

TEST_F(AllocateCommandTest, ShowsWhichDevicesTheClaimsWouldGet) {
  const Result result = RunOn(Claim("b", 1, kH100) + Claim("a"));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_EQ(result.out,
            "CLAIM       REQUEST   DEVICE\n"
            "default/b   r         gpu.example.com/p/gpu-1\n"
            "default/a   r         gpu.example.com/p/gpu-0\n");
  EXPECT_EQ(RunOn(Claim("a"), {"-o", "name"}).out, "default/a\n");
}

constexpr char kOldObjects[] = R"(
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceSlice
metadata: {name: old}
nodeName: node-1
driverName: a.example.com
namedResources: {instances: [{name: i1}, {name: i2}]}
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClass
metadata: {name: s}
driverName: a.example.com
structuredParameters: true
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaimParameters
metadata: {name: p, namespace: default}
driverRequests:
- driverName: a.example.com
  vendorParameters: {split: 2}
  requests: [{namedResources: {selector: 'true'}}]
)";

TEST_F(AllocateCommandTest, TakesFeatureGates) {
  const std::string claim =
      Claim("c", 2,
            ", derivedAttributes: [{name: derived/x, expression: "
            "device.driver}]") +
      "    constraints: [{matchAttribute: derived/x}]\n";
  const Result off = RunOn(claim);
  EXPECT_EQ(off.code, 1);
  EXPECT_THAT(off.err, HasSubstr("the feature DRADerivedAttributes is "
                                 "disabled"));
  const Result on = RunOn(
      claim,
      {"--feature-gates", "DRADerivedAttributes=true,DRAAdminAccess=false"});
  EXPECT_EQ(on.code, 0) << on.err;
  for (const char* wrong :
       {"DRADerivedAttributes", "X=yes", "DRADerived=true"}) {
    const Result result = RunOn(claim, {"--feature-gates", wrong});
    EXPECT_GT(result.code, 1);
    EXPECT_THAT(result.err, HasSubstr("--feature-gates: ")) << wrong;
  }
}

TEST_F(AllocateCommandTest, ServesClaimsOfKubernetes130) {
  const std::string objects = Write("old.yaml", kOldObjects);
  const auto claim = [](const std::string& name) {
    return "---\napiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\n"
           "metadata: {name: " +
           name +
           "}\nspec: {resourceClassName: s, parametersRef: {apiGroup: "
           "resource.k8s.io, kind: ResourceClaimParameters, name: p}}\n";
  };
  const Result first = RunOn(claim("c1"), {"-f", objects, "-o", "yaml"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("resource.k8s.io/v1alpha2"),
                               HasSubstr("- dra.k8s.io/delete-protection"),
                               HasSubstr("split: 2"), HasSubstr("name: i1")));
  // What it printed holds its device.
  const std::string held = Write("held.yaml", first.out);
  const Result second = RunOn(claim("c2"), {"-f", objects, "-f", held});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.out,
            "CLAIM        REQUEST   DEVICE\n"
            "default/c2   r-0-0     a.example.com/node-1/i2\n");
  const Result missing = RunOn(claim("c1"));
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err,
              HasSubstr("(NoSolution): claim default/c1: ResourceClass s is "
                        "missing"));
}

TEST_F(AllocateCommandTest, PrintsClaimsThatCanBeReadAgainAndHoldTheirDevices) {
  const Result first = RunOn(Claim("a"), {"-o", "yaml"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out,
              AllOf(HasSubstr("kind: List"), HasSubstr("device: gpu-0")));
  const Result second = Run({"allocate", "-f", Write("slices.yaml", kSlice),
                             "-f", Write("held.yaml", first.out), "-f",
                             Write("b.yaml", Claim("b")), "--node", "node-1"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("default/b   r         "
                                    "gpu.example.com/p/gpu-1\n"));
  const Result third =
      Run({"allocate", "-f", Write("slices.yaml", kSlice), "-f",
           Write("held.yaml", first.out), "-f", Write("b.yaml", Claim("b", 2)),
           "--node", "node-1"});
  EXPECT_EQ(third.code, 1);
  EXPECT_THAT(third.out, IsEmpty());
  EXPECT_THAT(third.err,
              AllOf(HasSubstr("claim default/b, request r: 2 wanted, 1 found"),
                    HasSubstr("busy"), HasSubstr("default/a")));
}

TEST_F(AllocateCommandTest, ShowsTheExpressionThatDoesNotCompile) {
  const Result result = RunOn(
      Claim("a", 1, ", selectors: [{cel: {expression: 'device.drivr == 1'}}]"));
  EXPECT_GT(result.code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("claims.yaml:9: spec.devices.requests[0].exactly."
                              "selectors[0].cel.expression: line 1, column 7"),
                    HasSubstr("\n | device.drivr == 1\n | ......^\n")));
}

TEST_F(AllocateCommandTest, AllocatesAllClaimsOrNone) {
  const Result result = RunOn(Claim("a", 1, kH100) + Claim("b", 1, kH100));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("claim default/b, request r: 1 wanted, 0 found"),
                    HasSubstr("1 device: request-selector"),
                    HasSubstr("cannot be allocated on node 'node-1' "
                              "(NoSolution)")));
}

TEST_F(AllocateCommandTest, SaysOfAClaimThatIsNotToBlameThatDevicesWouldDo) {
  std::string other = kH100;
  other.replace(other.find("H100"), 4, "B200");
  const Result result = RunOn(Claim("a", 1, other) + Claim("b"));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(
      result.err,
      HasSubstr("claim default/b, request r: 1 wanted, 0 found\n"
                "  2 devices: would do (gpu.example.com/p/gpu-0, ...)\n"));
}

TEST_F(AllocateCommandTest, AnotherNodeHasNoneOfTheDevices) {
  const Result result =
      Run({"allocate", "-f", Write("slices.yaml", kSlice), "-f",
           Write("claims.yaml", Claim("a")), "--node", "node-2"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("2 devices: not-on-node"));
}

TEST_F(AllocateCommandTest, LabelsOfTheNodeSelectSlices) {
  std::string slice = kSlice;
  const std::string by_name = "  nodeName: node-1\n";
  slice.replace(slice.find(by_name), by_name.size(),
                "  nodeSelector: {nodeSelectorTerms: [{matchExpressions: "
                "[{key: zone, operator: In, values: [a]}]}]}\n");
  const std::string slices = Write("zone.yaml", slice);
  const std::string claims = Write("claims.yaml", Claim("a"));
  const std::vector<std::string> words = {"allocate", "-f",     slices,  "-f",
                                          claims,     "--node", "node-1"};
  EXPECT_EQ(Run(words).code, 1);
  std::vector<std::string> labelled = words;
  labelled.insert(labelled.end(), {"--node-labels", "zone=a,disk=ssd"});
  EXPECT_EQ(Run(labelled).code, 0);
  labelled.back() = "zone";
  const Result wrong = Run(labelled);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("'zone' is not KEY=VALUE"));
}

TEST_F(AllocateCommandTest, NamesFilesThatCannotBeUsed) {
  EXPECT_EQ(RunOn("kind: [").code, 8);
  const Result twice = Run({"allocate", "-f", Write("a.yaml", Claim("a")), "-f",
                            Write("b.yaml", Claim("a")), "--node", "node-1"});
  EXPECT_EQ(twice.code, 8);
  EXPECT_THAT(twice.err, AllOf(HasSubstr("ResourceClaim default/a is in '"),
                               HasSubstr("a.yaml' and in '")));
  EXPECT_EQ(Run({"allocate", "-f", "/no/such/file", "--node", "n"}).code, 3);
  const Result no_class = Run(
      {"allocate", "-f", Write("claims.yaml", Claim("a")), "--node", "node-1"});
  EXPECT_EQ(no_class.code, 1);
  EXPECT_THAT(no_class.err, HasSubstr("gpu"));
}

}  // namespace
}  // namespace devmgr::ctl
