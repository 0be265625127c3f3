// SPDX-License-Identifier: Apache-2.0
//
// get slices, describe slice, delete slices, endpoint kubeconfig, and claims as
// objects.
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class SlicesTest : public CommandLineTest {
 protected:
  SlicesTest() {
    SliceInfo slice;
    slice.name = "n1-gpu.example.com-x7k2p";
    slice.driver = "gpu.example.com";
    slice.pool = "n1";
    slice.generation = 3;
    slice.pool_slices = 1;
    slice.known_slices = 1;
    slice.node = "n1";
    slice.devices = {"gpu-0", "gpu-1"};
    slice.origin = "endpoint";
    node_.slices = {slice};
    DeviceInfo held;
    held.driver = slice.driver;
    held.pool = slice.pool;
    held.device = "gpu-1";
    held.used_by = {"default/p"};
    node_.devices = {held};
  }
  SliceInfo& slice() { return node_.slices.front(); }
  std::string State() {
    return RunJson({"get", "slices"})["items"][0]["status"]["state"];
  }
};

TEST_F(SlicesTest, AreListed) {
  const Result result = Run({"get", "slices"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("NAME"), HasSubstr("n1-gpu.example.com-x7k2p"),
                    HasSubstr("endpoint"), HasSubstr("Complete")));
  const Result wide = Run({"get", "slices", "-o", "wide"});
  EXPECT_THAT(wide.out, HasSubstr("1/1"));
}

TEST_F(SlicesTest, TheStateSaysWhetherTheirDevicesCount) {
  EXPECT_EQ(State(), "Complete");
  slice().hidden = true;
  EXPECT_EQ(State(), "Hidden");
  EXPECT_THAT(Run({"get", "slices", "-o", "wide"}).out,
              HasSubstr("driver 'gpu.example.com' is not registered"));
  slice().problem = "duplicate device name 'gpu-0'";
  EXPECT_EQ(State(), "Invalid");
  EXPECT_THAT(Run({"get", "slices", "-o", "wide"}).out,
              HasSubstr("the slices of the pool contradict each other: "
                        "duplicate device name 'gpu-0'"));
  slice().complete = false;
  slice().pool_slices = 2;
  EXPECT_EQ(State(), "Incomplete");
  EXPECT_THAT(Run({"get", "slices", "-o", "wide"}).out,
              HasSubstr("1 of 2 slices of the pool are there"));
  slice().obsolete = true;
  EXPECT_EQ(State(), "Obsolete");
}

TEST_F(SlicesTest, OneIsDescribedWithItsHolders) {
  const Result result = Run({"describe", "slice", slice().name});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("gpu.example.com"), HasSubstr("Generation"),
                    HasSubstr("gpu-0"), HasSubstr("default/p")));
  const auto json = RunJson({"describe", "slice", slice().name});
  EXPECT_EQ(json["kind"], "Slice");
  EXPECT_EQ(json["status"]["pool"]["generation"], 3);
  EXPECT_THAT(json["status"]["devices"], SizeIs(2));
  const Result missing = Run({"describe", "slice", "other"});
  EXPECT_NE(missing.code, 0);
  EXPECT_THAT(missing.err, HasSubstr("slice 'other' is not known"));
}

TEST_F(SlicesTest, AreDeletedOnlyWhenThatIsMeant) {
  SliceInfo manifest = slice();
  manifest.name = "of-a-file";
  manifest.origin = "manifest";
  node_.slices.push_back(manifest);
  std::vector<std::string> command = {"delete",   "slices",
                                      "--driver", "gpu.example.com",
                                      "--reason", "card is gone"};
  const Result shown = Run(command);
  EXPECT_NE(shown.code, 0);
  EXPECT_THAT(shown.err, AllOf(HasSubstr("1 slices that driver"),
                               HasSubstr("add --yes to do it")));
  EXPECT_THAT(node_.decisions, IsEmpty());
  command.emplace_back("--yes");
  const Result done = Run(command);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("1 slices of driver 'gpu.example.com' are "
                                  "deleted"));
  EXPECT_THAT(node_.decisions,
              ElementsAre("delete slices of gpu.example.com: card is gone"));
}

TEST_F(SlicesTest, ADeletionNeedsDriverAndReason) {
  EXPECT_EQ(Run({"delete", "slices", "--reason", "r", "--yes"}).code, 2);
  const Result reason = Run({"delete", "slices", "--driver", "d", "--yes"});
  EXPECT_EQ(reason.code, 2);
  EXPECT_THAT(reason.err, HasSubstr("--reason"));
  const Result kind =
      Run({"delete", "pods", "--driver", "d", "--reason", "r", "--yes"});
  EXPECT_EQ(kind.code, 2);
  EXPECT_THAT(kind.err, HasSubstr("slices"));
  EXPECT_THAT(node_.decisions, IsEmpty());
}

TEST_F(SlicesTest, ADriversKubeconfigIsPrinted) {
  const Result result = Run({"endpoint", "kubeconfig", "d.example.com"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "/kubeconfig/d\n");
  EXPECT_THAT(node_.decisions, ElementsAre("kubeconfig of d.example.com"));
  EXPECT_EQ(RunJson({"endpoint", "kubeconfig", "d.example.com"})["path"],
            "/kubeconfig/d");
  node_.kubeconfig = absl::InvalidArgumentError("driver 'D': no name");
  const Result refused = Run({"endpoint", "kubeconfig", "D"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("driver 'D': no name"));
  EXPECT_EQ(Run({"endpoint", "kubeconfig"}).code, 2);
  EXPECT_EQ(Run({"endpoint"}).code, 2);
}

TEST_F(SlicesTest, ProgramsGetClaimsAsObjects) {
  ClaimInfo claim;
  claim.name = {"default", "c"};
  claim.uid = {"u"};
  claim.object =
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim"})";
  node_.claims = {claim};
  const auto json = RunJson({"get", "claims"});
  EXPECT_EQ(json["items"][0]["object"]["kind"], "ResourceClaim");
  EXPECT_EQ(RunJson({"get", "claim", "c"})["object"]["kind"], "ResourceClaim");
  EXPECT_THAT(Run({"get", "claims", "-o", "yaml"}).out,
              HasSubstr("kind: ResourceClaim"));
  EXPECT_THAT(Run({"get", "claims"}).out, Not(HasSubstr("ResourceClaim")));
}

}  // namespace
}  // namespace devmgr::ctl
