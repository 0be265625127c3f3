// SPDX-License-Identifier: Apache-2.0
//
// devmgrctl simulate: what it asks the daemon for, and how it shows the answer.
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kPod[] =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: "
    "[{name: "
    "c}]}\n";

class SimulateCommandTest : public CommandLineTest {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }
  Result RunOn(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"simulate", "-f",
                                          Write("p.yaml", kPod)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }

  /// One pod that is admitted, and one that waits.
  static Simulation Answer(bool all) {
    Simulation simulation;
    SimulatedPod& first = simulation.pods.emplace_back();
    first.pod = {"default", "p"};
    ResourceClaim& claim = first.claims.emplace_back();
    claim.metadata.ns = "default";
    claim.metadata.name = "c";
    auto& result = claim.status.allocation.emplace().results.emplace_back();
    result.request = "r";
    result.driver = "d.example.com";
    result.pool = "n1";
    result.device = "g0";
    first.containers = {{"c", {{"example.com/nic", {"0"}}}}};
    if (all) return simulation;
    SimulatedPod& second = simulation.pods.emplace_back();
    second.pod = {"default", "q"};
    second.verdict.kind = Verdict::Kind::kWait;
    second.verdict.reason = "NotEnoughFreeDevices";
    second.verdict.message = "too few";
    RefusedRequest& refused = second.refusals.emplace_back();
    refused.request = "c/example.com/nic";
    refused.wanted = 1;
    refused.devices = {
        {"example.com/nic", "", "0", "taken-in-this-run", "pod default/p"}};
    refused.counts = {{"taken-in-this-run", 1}};
    return simulation;
  }

  TempFolder folder_;
};

TEST_F(SimulateCommandTest, ShowsWhatPodsWouldGet) {
  node_.simulation = EncodeSimulation(Answer(true));
  const Result result = RunOn();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_EQ(result.out,
            "POD         VERDICT   REASON   DEVICES\n"
            "default/p   admit     <none>   d.example.com/n1/g0, "
            "example.com/nic/0\n");
}

TEST_F(SimulateCommandTest, SaysWhyAPodDoesNotGetItsDevices) {
  node_.simulation = EncodeSimulation(Answer(false));
  const Result result = RunOn();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("default/q   wait"));
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("pod default/q: too few"),
                    HasSubstr("request c/example.com/nic: 1 wanted, 0 found"),
                    HasSubstr("1 device: taken-in-this-run: pod default/p "
                              "(example.com/nic/0)"),
                    HasSubstr("1 of 2 pods would not be admitted")));
  const Result json = RunOn({"-o", "json"});
  EXPECT_EQ(json.code, 1);
  const auto document = nlohmann::json::parse(json.out);
  EXPECT_EQ(document["kind"], "Simulation");
  EXPECT_EQ(document["pods"][1]["verdict"], "wait");
}

TEST_F(SimulateCommandTest, AsksForTheViewOfTheFlags) {
  node_.simulation = EncodeSimulation(Answer(true));
  ASSERT_EQ(RunOn({"--minus", "a", "--minus", "other/b", "--plugin",
                   "example.com/gpu=4", "--like", "n9", "--count"})
                .code,
            0);
  ASSERT_THAT(node_.simulations, SizeIs(1));
  const SimulationDocuments& asked = node_.simulations[0];
  EXPECT_THAT(asked.documents, SizeIs(1));
  EXPECT_EQ(asked.documents[0].text, kPod);
  EXPECT_EQ(asked.view.base, SimulationBase::kLikeNode);
  EXPECT_EQ(asked.view.node_name, "n9");
  EXPECT_THAT(asked.view.minus, ElementsAre(ObjectName{"default", "a"},
                                            ObjectName{"other", "b"}));
  ASSERT_THAT(asked.view.plugins, SizeIs(1));
  EXPECT_EQ(asked.view.plugins[0].resource, ResourceName("example.com/gpu"));
  EXPECT_EQ(asked.view.plugins[0].count, 4);
  EXPECT_TRUE(asked.count_fits);
  ASSERT_EQ(RunOn({"--node", "n8", "--independent"}).code, 0);
  EXPECT_EQ(node_.simulations[1].view.base, SimulationBase::kEmpty);
  EXPECT_TRUE(node_.simulations[1].independent);
}

TEST_F(SimulateCommandTest, CountsCopies) {
  Simulation simulation = Answer(false);
  simulation.fit = SimulatedFit{3, "taken-in-this-run"};
  node_.simulation = EncodeSimulation(simulation);
  const Result result = RunOn({"--count"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("3 copies fit; then taken-in-this-run\n"));
  simulation.fit = SimulatedFit{0, "busy"};
  node_.simulation = EncodeSimulation(simulation);
  EXPECT_EQ(RunOn({"--count"}).code, 1);
}

TEST_F(SimulateCommandTest, WhatIsNoVerdictHasAnotherExitCode) {
  Simulation simulation = Answer(true);
  simulation.interrupted = true;
  node_.simulation = EncodeSimulation(simulation);
  EXPECT_EQ(RunOn().code, 1);
  EXPECT_THAT(RunOn().err, HasSubstr("was given up"));
  node_.simulation = "no document";
  EXPECT_EQ(RunOn().code, 8);
  node_.simulation = absl::ResourceExhaustedError("busy");
  EXPECT_EQ(RunOn().code, 8);
  EXPECT_EQ(Run({"simulate", "-f", "/nowhere.yaml"}).code, 3);
  EXPECT_EQ(RunOn({"--plugin", "gpu"}).code, 2);
  EXPECT_EQ(RunOn({"--like", "a", "--node", "b"}).code, 2);
  EXPECT_EQ(RunOn({"--state-dir", "/x"}).code, 8);
}

}  // namespace
}  // namespace devmgr::ctl
