// SPDX-License-Identifier: Apache-2.0
//
// Scenarios BO-080 to BO-086, as far as they are decided here.
#include <devmgr/cdi.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cdi/cdi_world.h"
#include "cdi/status_codes.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Propagation = CriMount::Propagation;

class CriExpansionTest : public ::testing::Test {
 protected:
  CriExpansionTest() {
    target_.pod = "ns/p";
    target_.container = "train";
    target_.runtime = "containerd 1.6.33";
    host_.AddChar("/dev/a", 195, 0, 0660);
    host_.AddDirectory("/lib");
  }

  CriExpansion Expand(
      const std::vector<std::pair<std::string, std::string>>& devices) {
    const CdiRegistry registry(
        {MakeCdiSpecFile("/etc/cdi/x.yaml", 0, SpecText(devices))});
    EXPECT_EQ(registry.files()[0].problem, "");
    std::vector<std::string> names;
    for (const auto& [name, edits] : devices)
      names.push_back("v.com/c=" + name);
    const auto edits = CdiEditsOf(registry, names);
    EXPECT_THAT(edits, IsOk());
    return ExpandCdiForCri(edits.value_or(CdiEdits()), target_, host_.Host());
  }
  CriExpansion Expand(const std::string& edits) {
    return Expand({{"d", edits}});
  }
  void ExpectRefused(const std::string& edits, const std::string& why) {
    const CriExpansion expansion = Expand(edits);
    EXPECT_THAT(expansion.verdict, StatusIs(kFailed, HasSubstr(why)));
    EXPECT_EQ(expansion.edits, CriEdits());
    EXPECT_EQ(expansion.obstacles.size(), 1u);
  }

  FakeCdiHost host_;
  CriTarget target_;
};

TEST_F(CriExpansionTest, ExpressesWhatCriHasWordsFor) {  // BO-080
  const CriExpansion expansion = Expand(
      "env: [A=b=c], deviceNodes: [{path: /dev/a}], mounts: [{hostPath: /lib, "
      "containerPath: /l, options: [ro, rbind]}]");
  EXPECT_THAT(expansion.verdict, IsOk());
  EXPECT_THAT(expansion.obstacles, IsEmpty());
  EXPECT_THAT(expansion.edits.env, ElementsAre(NamedValue{"A", "b=c"}));
  EXPECT_THAT(expansion.edits.devices,
              ElementsAre(DeviceNode{"/dev/a", "/dev/a", "rwm"}));
  EXPECT_THAT(
      expansion.edits.mounts,
      ElementsAre(CriMount{"/l", "/lib", true, Propagation::kPrivate, {}}));
}

TEST_F(CriExpansionTest, NamesOccurOnceAndTheLastCounts) {  // BO-081
  host_.AddChar("/dev/b", 195, 1);
  const CriExpansion expansion =
      Expand({{"a",
               "env: [A=1, B=1], deviceNodes: [{path: /dev/a}], mounts: "
               "[{hostPath: /lib, containerPath: /l}]"},
              {"b",
               "env: [A=2], deviceNodes: [{path: /dev/a, hostPath: "
               "/dev/b, permissions: r}], mounts: [{hostPath: /lib, "
               "containerPath: /l, options: [rw, rslave]}]"}});
  EXPECT_THAT(expansion.edits.env,
              ElementsAre(NamedValue{"B", "1"}, NamedValue{"A", "2"}));
  EXPECT_THAT(expansion.edits.devices,
              ElementsAre(DeviceNode{"/dev/a", "/dev/b", "r"}));
  EXPECT_THAT(expansion.edits.mounts,
              ElementsAre(CriMount{
                  "/l", "/lib", false, Propagation::kHostToContainer, {}}));
}

TEST_F(CriExpansionTest, RefusesHooksAndSaysAll) {  // BO-082
  const CriExpansion expansion =
      Expand("hooks: [{hookName: createContainer, path: /bin/ctk}]");
  EXPECT_THAT(
      expansion.verdict,
      StatusIs(kFailed,
               AllOf(HasSubstr("container 'train' of pod 'ns/p'"),
                     HasSubstr("v.com/c=d"), HasSubstr("/etc/cdi/x.yaml"),
                     HasSubstr("createContainer hook '/bin/ctk'"),
                     HasSubstr("containerd 1.6.33"), HasSubstr("enable CDI"),
                     HasSubstr("1.7.2"))));
}

// What is left out can be judged only with what the hook would have done.
TEST_F(CriExpansionTest, NamesTheArgumentsOfAHookThatIsLeftOut) {
  target_.hooks = CriPolicy::kWarn;
  EXPECT_THAT(Expand("hooks: [{hookName: createContainer, path: /bin/ctk, "
                     "args: [ctk, hook, update-ldcache, --folder, /a b]}]")
                  .warnings,
              ElementsAre(AllOf(
                  HasSubstr("hooks left out: runs the createContainer hook "
                            "'/bin/ctk' with the arguments 'hook' "
                            "'update-ldcache' '--folder' '/a b'"),
                  HasSubstr("v.com/c=d"), HasSubstr("/etc/cdi/x.yaml"))));
  EXPECT_THAT(
      Expand("hooks: [{hookName: poststop, path: /bin/ctk, args: [ctk]}]")
          .warnings,
      ElementsAre(testing::EndsWith("runs the poststop hook '/bin/ctk'")));
}

TEST_F(CriExpansionTest, ListsAllObstacles) {  // BO-083
  const CriExpansion expansion =
      Expand({{"a", "netDevices: [{hostInterfaceName: e0, name: n}]"},
              {"b",
               "env: [A=1], mounts: [{hostPath: t, containerPath: /t, "
               "type: tmpfs}], intelRdt: {closID: x}"}});
  EXPECT_THAT(
      expansion.verdict,
      StatusIs(kFailed, AllOf(HasSubstr("'v.com/c=a'"), HasSubstr("'e0'"),
                              HasSubstr("'v.com/c=b'"), HasSubstr("'tmpfs'"),
                              HasSubstr("RDT"))));
  EXPECT_EQ(expansion.edits, CriEdits());
  ASSERT_EQ(expansion.obstacles.size(), 3u);
  EXPECT_EQ(expansion.obstacles[0].edit, "netDevices");
  EXPECT_EQ(expansion.obstacles[1].edit, "mounts");
  EXPECT_EQ(expansion.obstacles[2].edit, "intelRdt");
}

TEST_F(CriExpansionTest, RefusesMountsWithoutSource) {  // BO-084
  ExpectRefused("mounts: [{hostPath: /gone, containerPath: /c}]",
                "lacks its source: cannot look at '/gone'");
}

TEST_F(CriExpansionTest, PassesMountOptionsWhereTheRuntimeTakesThem) {
  const std::string edits =  // BO-085
      "mounts: [{hostPath: /lib, containerPath: /l, options: [nosuid, ro]}]";
  ExpectRefused(edits, "has the option 'nosuid'");
  target_.mount_options = true;
  EXPECT_THAT(Expand(edits).edits.mounts,
              ElementsAre(CriMount{
                  "/l", "/lib", true, Propagation::kPrivate, {"nosuid"}}));
  ExpectRefused(
      "mounts: [{hostPath: /lib, containerPath: /l, options: [ridmap]}]",
      "has the option 'ridmap'");
}

TEST_F(CriExpansionTest, TellsOfNodesThatDiffer) {
  host_.AddChar("/dev/other", 7, 7);
  const auto warnings = [&](const std::string& second) {
    return Expand("deviceNodes: [{path: /dev/a}, {path: /dev/a" + second + "}]")
        .warnings;
  };
  EXPECT_THAT(warnings(""), IsEmpty());
  EXPECT_THAT(warnings(", hostPath: /dev/other"),
              ElementsAre(AllOf(HasSubstr("another node '/dev/a'"),
                                HasSubstr("v.com/c="))));
  EXPECT_THAT(warnings(", permissions: r"), SizeIs(1));
}

TEST_F(CriExpansionTest, GivesGroupsOnce) {  // BO-086
  EXPECT_THAT(
      Expand("additionalGids: [44, 0, 50, 44]").edits.supplemental_groups,
      ElementsAre(44u, 50u));
}

TEST_F(CriExpansionTest, TranslatesPropagation) {
  const auto propagation = [&](const std::string& option) {
    const CriExpansion expansion =
        Expand("mounts: [{hostPath: /lib, containerPath: /l, options: [" +
               option + "]}]");
    EXPECT_THAT(expansion.verdict, IsOk());
    return expansion.edits.mounts.front().propagation;
  };
  for (const char* prefix : {"", "r"}) {
    const std::string text = prefix;
    EXPECT_EQ(propagation(text + "private"), Propagation::kPrivate);
    EXPECT_EQ(propagation(text + "slave"), Propagation::kHostToContainer);
    EXPECT_EQ(propagation(text + "shared"), Propagation::kBidirectional);
  }
}

TEST_F(CriExpansionTest, RefusesNodesThatARuntimeWouldMakeDifferent) {
  host_.AddLink("/dev/l", "/dev/a");
  host_.Add("/dev/f", {HostPath::Type::kFifo, 0, 0, 0644, 0, 0});
  const auto node = [](const std::string& text) {
    return "deviceNodes: [{path: " + text + "}]";
  };
  ExpectRefused(node("/dev/gone"), "needs a host node: cannot look at");
  ExpectRefused(node("/dev/l"), "'/dev/l' is none");
  ExpectRefused(node("/lib"), "'/lib' is none");
  ExpectRefused(node("/dev/f"), "is a fifo");
  ExpectRefused(node("/dev/a, type: b"), "has type 'b', the host's has 'c'");
  ExpectRefused(node("/dev/a, type: c, major: 195, minor: 1"),
                "has the numbers 195:1, the host's has 195:0");
  ExpectRefused(node("/dev/a, fileMode: 0666"),
                "has mode 0666, the host's has 0660");
  ExpectRefused(node("/dev/a, uid: 5"), "has an owner");
  ExpectRefused(node("/dev/a, gid: 5"), "has an owner");
  ExpectRefused(node("/dev/a, permissions: none"), "has permissions 'none'");
  EXPECT_THAT(
      Expand(node("/x, hostPath: /dev/a, type: c, major: 195, minor: 0, "
                  "fileMode: 0660, uid: 0, gid: 0"))
          .edits.devices,
      ElementsAre(DeviceNode{"/x", "/dev/a", "rwm"}));
}

TEST_F(CriExpansionTest, LeavesOutWhatASiteAllows) {
  target_.net_devices = target_.mounts = target_.intel_rdt =
      target_.device_nodes = target_.hooks = CriPolicy::kWarn;
  const CriExpansion expansion = Expand(
      "env: [A=1], netDevices: [{hostInterfaceName: e0, name: n}], "
      "mounts: [{hostPath: /gone, containerPath: /c}], intelRdt: {}, "
      "deviceNodes: [{path: /gone}], hooks: [{hookName: prestart, path: /p}]");
  EXPECT_THAT(expansion.verdict, IsOk());
  EXPECT_EQ(expansion.obstacles.size(), 5u);
  for (const CriObstacle& obstacle : expansion.obstacles) {
    EXPECT_TRUE(obstacle.is_skipped) << obstacle.what;
  }
  EXPECT_THAT(expansion.edits.env, ElementsAre(NamedValue{"A", "1"}));
}

TEST_F(CriExpansionTest, LeavesOutListedHooksOnly) {
  target_.hooks = CriPolicy::kAllowList;
  target_.allowed_hooks = {"ldconfig", "nvidia-ctk hook update-ldcache"};
  const auto is_allowed = [&](const std::string& hook) {
    return Expand("hooks: [{hookName: prestart, " + hook + "}]").verdict.ok();
  };
  EXPECT_TRUE(is_allowed("path: /sbin/ldconfig, args: [ldconfig, -r, /]"));
  EXPECT_TRUE(
      is_allowed("path: /usr/bin/nvidia-ctk, args: [nvidia-ctk, hook, "
                 "update-ldcache, --folder, /x]"));
  EXPECT_FALSE(
      is_allowed("path: /usr/bin/nvidia-ctk, args: [nvidia-ctk, hook, "
                 "create-symlinks]"));
  EXPECT_FALSE(is_allowed("path: /sbin/ldconfig2"));
  EXPECT_FALSE(is_allowed("path: /ldconfig/x"));
}

}  // namespace
}  // namespace devmgr
