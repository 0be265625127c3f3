// SPDX-License-Identifier: Apache-2.0
//
// devmgrctl cel, over real files.
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
using ::testing::Not;

/// A slice of a driver with these devices, in flow style.
std::string Slice(const std::string& driver, const std::string& devices) {
  return "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n"
         "metadata: {name: slice-of-" +
         driver + "}\nspec:\n  driver: " + driver +
         "\n  nodeName: node\n"
         "  pool: {name: p, generation: 1, resourceSliceCount: 1}\n"
         "  devices: [" +
         devices + "]\n";
}

constexpr char kModel[] =
    "device.attributes['gpu.example.com'].model == 'A100'";

class CelCommandTest : public CommandLineTest {
 protected:
  CelCommandTest() {
    gpus_ = Write("gpus.yaml",
                  Slice("gpu.example.com",
                        "{name: gpu-10, attributes: {model: {string: A100}}}, "
                        "{name: gpu-2, attributes: {model: {string: H100}}}"));
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }

  TempFolder folder_;
  std::string gpus_;
};

TEST_F(CelCommandTest, ShowsWhichDevicesMatchAndTheCost) {
  const Result result = Run({"cel", kModel, "--slice", gpus_});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_EQ(result.out,
            "Worst cost:   5 of 1000000\n"
            "Matching:     1 of 2 devices\n"
            "\n"
            "DEVICE                     MATCHES   COST   ERROR\n"
            "gpu.example.com/p/gpu-2    no        5      -\n"
            "gpu.example.com/p/gpu-10   yes       5      -\n");
  EXPECT_THAT(endpoints_, IsEmpty()) << "no daemon is asked";
}

TEST_F(CelCommandTest, PrintsADocument) {
  const auto document = RunJson({"cel", kModel, "--slice", gpus_});
  EXPECT_EQ(document["kind"], "CelEvaluation");
  EXPECT_EQ(document["expression"], kModel);
  EXPECT_EQ(document["costLimit"], 1'000'000);
  EXPECT_EQ(document["worstCost"], 5);
  ASSERT_EQ(document["items"].size(), 2U);
  const auto& match = document["items"][1];
  EXPECT_EQ(match["driver"], "gpu.example.com");
  EXPECT_EQ(match["pool"], "p");
  EXPECT_EQ(match["device"], "gpu-10");
  EXPECT_EQ(match["slice"], "slice-of-gpu.example.com");
  EXPECT_EQ(match["file"], gpus_);
  EXPECT_EQ(match["matches"], true);
  EXPECT_EQ(match["cost"], 5);
  EXPECT_FALSE(match.contains("error"));
}

TEST_F(CelCommandTest, PrintsTheNamesOfMatches) {
  EXPECT_EQ(Run({"cel", kModel, "--slice", gpus_, "-o", "name"}).out,
            "gpu.example.com/p/gpu-10\n");
}

TEST_F(CelCommandTest, NamesTheMissingAttributeOfADevice) {
  const std::string file =
      Write("bare.yaml", Slice("gpu.example.com", "{name: bare}"));
  const std::vector<std::string> command = {"cel", kModel,    "--slice",
                                            gpus_, "--slice", file};
  const Result result = Run(command);
  EXPECT_EQ(result.code, kExitFailed);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("1 of 3 devices"),
                    HasSubstr("p/bare     error     5      no such key: model. "
                              "consider using CEL optional chaining")));
  EXPECT_THAT(result.err, HasSubstr("the expression fails on 1 of 3 devices"));
  std::vector<std::string> as_json = command;
  as_json.insert(as_json.end(), {"-o", "json"});
  const auto document = nlohmann::json::parse(Run(as_json).out);
  const auto& bare = document["items"][0];
  EXPECT_EQ(bare["device"], "bare");
  EXPECT_FALSE(bare.contains("matches"));
  EXPECT_THAT(bare["error"].get<std::string>(), HasSubstr("model"));
  EXPECT_EQ(bare["cost"], 5);
}

TEST_F(CelCommandTest, SeesListsAndSharedDevices) {
  const std::string file = Write(
      "lists.yaml",
      Slice("gpu.example.com",
            "{name: gpu-0, allowMultipleAllocations: true, attributes: {names: "
            "{strings: [a, b]}, sizes: {ints: [3, 4]}}}, {name: gpu-1}"));
  const Result result = Run({"cel",
                             R"(device.allowMultipleAllocations &&
              device.attributes['gpu.example.com'].names.includes('b') &&
              device.attributes['gpu.example.com'].sizes.sum() == 7)",
                             "--slice", file, "-o", "name"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "gpu.example.com/p/gpu-0\n");
}

TEST_F(CelCommandTest, ReadsSelectorsOfKubernetes130) {
  const std::string slice =
      Write("old.yaml",
            "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceSlice\n"
            "metadata: {name: old}\nnodeName: node\ndriverName: a\n"
            "namedResources: {instances: [{name: i1, attributes: [{name: "
            "driver-version, version: 1.10.0}]}, {name: i2}]}\n");
  const std::string text =
      "\"driver-version\" in attributes.version && "
      "attributes.version[\"driver-version\"].major() == 1";
  const Result result =
      Run({"cel", text, "--v1alpha2", "--slice", slice, "-o", "name"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "a/node/i1\n");
  EXPECT_EQ(Run({"cel", text, "--slice", slice}).code, 1);
  EXPECT_THAT(Run({"cel", "attributes.string[\"x\"] == \"\" || true",
                   "--v1alpha2", "--slice", slice})
                  .out,
              Not(HasSubstr("refuses new objects")));
}

TEST_F(CelCommandTest, LooksAtOneDriver) {
  const std::string file =
      Write("two.yaml", Slice("a.example.com", "{name: g0}, {name: g1}") +
                            "---\n" + Slice("b.example.com", "{name: g2}"));
  const std::string any = "device.driver != ''";
  const Result one = Run(
      {"cel", any, "--slice", file, "--driver", "b.example.com", "-o", "name"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, "b.example.com/p/g2\n");
  const Result none =
      Run({"cel", any, "--slice", file, "--driver", "c.example.com"});
  EXPECT_EQ(none.code, kExitNotFound);
  EXPECT_THAT(none.err, HasSubstr("no slice is of driver 'c.example.com'; the "
                                  "files have slices of: a.example.com, "
                                  "b.example.com"));
}

TEST_F(CelCommandTest, ShowsWhereTheExpressionIsWrong) {
  const Result result = Run({"cel", "true &&\n  nope", "--slice", gpus_});
  EXPECT_EQ(result.code, kExitFailed);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_EQ(result.err,
            "2:3: undeclared reference to 'nope' (in container '')\n"
            " |   nope\n"
            " | ..^\n"
            "devmgrctl: the expression does not compile\n");
  const Result document =
      Run({"cel", "true &&\n  nope", "--slice", gpus_, "-o", "json"});
  EXPECT_EQ(document.code, kExitFailed);
  const auto problem = nlohmann::json::parse(document.out)["problem"];
  EXPECT_EQ(problem["line"], 2);
  EXPECT_EQ(problem["column"], 3);
  EXPECT_EQ(problem["message"],
            "undeclared reference to 'nope' (in container '')");
}

TEST_F(CelCommandTest, RefusesTextThatIsNoExpression) {
  const Result type = Run({"cel", "device.driver", "--slice", gpus_});
  EXPECT_EQ(type.code, kExitFailed);
  EXPECT_THAT(type.err, HasSubstr("must evaluate to bool or the unknown type, "
                                  "not string"));
  const Result bytes =
      Run({"cel", "'\xff\x1b'", "--slice", gpus_, "-o", "json"});
  EXPECT_EQ(bytes.code, kExitFailed);
  EXPECT_THAT(bytes.err, AllOf(HasSubstr("1:2: "), HasSubstr("not UTF-8"),
                               Not(HasSubstr("\xff")), Not(HasSubstr("\x1b"))));
  EXPECT_FALSE(nlohmann::json::parse(bytes.out).is_discarded());
  const std::string large = "true" + std::string(10 * 1024, ' ');
  const Result size = Run({"cel", large, "--slice", gpus_});
  EXPECT_EQ(size.code, kExitFailed);
  EXPECT_THAT(size.err, HasSubstr("10244 characters, the limit is 10240"));
  EXPECT_LT(size.err.size(), 1000U);
}

TEST_F(CelCommandTest, SaysThatTheWorstCostIsTooHigh) {
  const std::string all =
      "device.attributes.all(a, device.attributes.all(b, "
      "device.attributes.all(c, device.attributes.all(d, a + b != c + d))))";
  const Result result = Run({"cel", all, "--slice", gpus_});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" of 1000000: an API server refuses new "
                                    "objects with it"));
}

TEST_F(CelCommandTest, NamesTheFileThatCannotBeUsed) {
  const std::string bad =
      Write("bad.yaml", Slice("gpu.example.com",
                              "{name: g, attributes: {model: {string: [1]}}}"));
  const Result result = Run({"cel", kModel, "--slice", gpus_, "--slice", bad});
  EXPECT_EQ(result.code, kExitTrouble);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, AllOf(HasSubstr("devmgrctl: " + bad + ":8: "),
                                HasSubstr("spec.devices[0].attributes"),
                                HasSubstr("'" + bad + "' has 1 error")));
  const std::string gone = (folder_.path() / "gone.yaml").string();
  const Result missing = Run({"cel", kModel, "--slice", gone});
  EXPECT_EQ(missing.code, kExitNotFound);
  EXPECT_THAT(missing.err, HasSubstr("cannot read '" + gone + "'"));
  const Result folder =
      Run({"cel", kModel, "--slice", folder_.path().string()});
  EXPECT_EQ(folder.code, kExitTrouble);
  EXPECT_THAT(folder.err, HasSubstr("is not a regular file"));
}

TEST_F(CelCommandTest, SaysThatAFileHasNoSlice) {
  const std::string other =
      Write("other.yaml",
            "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
            "metadata: {name: c}\nspec: {}\n");
  const Result result = Run({"cel", kModel, "--slice", other});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("'" + other +
                                          "' has no "
                                          "ResourceSlice"),
                                HasSubstr("No resources found")));
}

TEST_F(CelCommandTest, WantsAnExpressionAndAFile) {
  const Result no_file = Run({"cel", "true"});
  EXPECT_EQ(no_file.code, kExitUsage);
  EXPECT_THAT(no_file.err,
              AllOf(HasSubstr("--slice is required"),
                    HasSubstr("Expected: devmgrctl cel EXPR --slice FILE")));
  EXPECT_EQ(Run({"cel", "--slice", gpus_}).code, kExitUsage);
  EXPECT_EQ(Run({"cel", "", "--slice", gpus_}).code, kExitUsage);
}

}  // namespace
}  // namespace devmgr::ctl
