// SPDX-License-Identifier: Apache-2.0
//
// What a container holds against what the ledger says.
#include <devmgr/cri_shim.h>
#include <devmgr/runtime_inspection.h>
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cdi/cdi_world.h"
#include "shim/allocation_stamp.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = HeldDifference::Kind;

class ContainerDifferenceTest : public ::testing::Test {
 protected:
  ContainerDifferenceTest() {
    host_.AddChar("/dev/host-x", 240, 1);
    host_.AddChar("/dev/host-y", 240, 2);
    devices_.name = "c";
    devices_.cdi_devices = {{"v.com/c=1", {}}};
    devices_.env = {{"K", "gpu-1", "r"}};
    devices_.mounts = {{"/run/x", "/nowhere/x", true, "r"}};
    devices_.devices = {{"/dev/x", "/dev/host-x", "rw", "r"}};
    container_.id = "0f3a";
    container_.name = "c";
    container_.allocation = shim::AllocationDigest(&devices_);
  }

  /// All that the devices bring, as a runtime may have written it.
  std::string Config() const {
    const auto config = InjectIntoOciConfig(
        R"({"process": {"env": ["PATH=/bin", "HOME=/"]},
            "mounts": [{"destination": "/proc", "type": "proc",
                        "source": "proc"}],
            "linux": {"resources": {"devices": [
              {"allow": false, "access": "rwm"},
              {"allow": true, "type": "c", "major": 1, "minor": 3,
               "access": "rwm"}]},
              "devices": [{"path": "/dev/null", "type": "c", "major": 1,
                           "minor": 3}]}})",
        devices_, *registry_, host_.Host());
    EXPECT_THAT(config, IsOk());
    return config.value_or("");
  }

  std::vector<HeldDifference> Compare(const std::string& oci) {
    config_.oci = oci;
    const auto differences = CompareWithLedger(container_, config_, devices_,
                                               *registry_, host_.Host());
    EXPECT_THAT(differences, IsOk());
    return differences.value_or(std::vector<HeldDifference>());
  }
  /// `text` of the whole configuration as something else.
  std::vector<HeldDifference> CompareWith(const std::string& text,
                                          const std::string& other) {
    std::string config = Config();
    const std::size_t at = config.find(text);
    EXPECT_NE(at, std::string::npos) << text << " in " << config;
    if (at == std::string::npos) return {};
    return Compare(config.replace(at, text.size(), other));
  }

  FakeCdiHost host_;
  std::shared_ptr<const CdiRegistry> registry_ = MakeRegistry(
      {{"/etc/cdi/v.yaml",
        SpecText({{"1",
                   "env: [CDI=1], hooks: [{hookName: createContainer, path: "
                   "/bin/h, args: [h, a]}], deviceNodes: [{path: /dev/y, "
                   "hostPath: /dev/host-y}], additionalGids: [27]"}})}});
  ContainerDevices devices_;
  RuntimeContainer container_;
  RuntimeContainerConfig config_;
};

TEST_F(ContainerDifferenceTest, NothingDiffersWhereAllIsThere) {
  EXPECT_THAT(Compare(Config()), IsEmpty());
}

TEST_F(ContainerDifferenceTest, WhatAContainerLacksIsMissing) {
  EXPECT_THAT(
      Compare("{}"),
      ElementsAre(
          HeldDifference{Kind::kMissing, "device node", "/dev/x", "c 240:1 rw",
                         ""},
          HeldDifference{Kind::kMissing, "device node", "/dev/y", "c 240:2 rwm",
                         ""},
          HeldDifference{Kind::kMissing, "environment", "CDI", "1", ""},
          HeldDifference{Kind::kMissing, "environment", "K", "gpu-1", ""},
          HeldDifference{Kind::kMissing, "group", "27", "", ""},
          HeldDifference{Kind::kMissing, "hook", "createContainer /bin/h a", "",
                         ""},
          HeldDifference{Kind::kMissing, "mount", "/run/x", "/nowhere/x ro",
                         ""}));
}

TEST_F(ContainerDifferenceTest, OtherValuesDiffer) {
  EXPECT_THAT(CompareWith("K=gpu-1", "K=gpu-2"),
              ElementsAre(HeldDifference{Kind::kDiffers, "environment", "K",
                                         "gpu-1", "gpu-2"}));
  EXPECT_THAT(CompareWith("/nowhere/x", "/nowhere/y"),
              ElementsAre(HeldDifference{Kind::kDiffers, "mount", "/run/x",
                                         "/nowhere/x ro", "/nowhere/y ro"}));
  EXPECT_THAT(CompareWith("\"ro\"", "\"rw\""),
              ElementsAre(HeldDifference{Kind::kDiffers, "mount", "/run/x",
                                         "/nowhere/x ro", "/nowhere/x rw"}));
}

// The node alone is worth nothing, and more than was given is told, too.
TEST_F(ContainerDifferenceTest, AccessByTheDeviceCgroupCounts) {
  const HeldDifference closed{Kind::kDiffers, "device node", "/dev/x",
                              "c 240:1 rw", "c 240:1 "};
  const HeldDifference open{Kind::kDiffers, "device node", "/dev/x",
                            "c 240:1 rw", "c 240:1 rwm"};
  EXPECT_THAT(CompareWith("\"rw\"", "\"\""), ElementsAre(open));
  EXPECT_THAT(CompareWith("\"rw\"", "\"rwm\""), ElementsAre(open));
  auto config = nlohmann::json::parse(Config());
  config["linux"]["resources"]["devices"].push_back(
      {{"allow", false}, {"type", "c"}, {"major", 240}, {"minor", 1}});
  EXPECT_THAT(Compare(config.dump()), ElementsAre(closed));
}

TEST_F(ContainerDifferenceTest, NodesThatNobodyGaveAreAdditional) {
  auto config = nlohmann::json::parse(Config());
  config["linux"]["devices"].push_back(
      {{"path", "/dev/z/"}, {"type", "c"}, {"major", 5}, {"minor", 6}});
  EXPECT_THAT(Compare(config.dump()),
              ElementsAre(HeldDifference{Kind::kAdditional, "device node",
                                         "/dev/z", "", "c 5:6 "}));
}

TEST_F(ContainerDifferenceTest, PrivilegedContainersReachAllDevices) {
  auto config = nlohmann::json::parse(Config());
  config["linux"]["resources"]["devices"] = {
      {{"allow", true}, {"access", "rwm"}}};
  config["linux"]["devices"].push_back(
      {{"path", "/dev/z"}, {"type", "c"}, {"major", 5}, {"minor", 6}});
  EXPECT_THAT(Compare(config.dump()),
              ElementsAre(HeldDifference{Kind::kAdditional, "device node",
                                         "all of the host", "", "rwm"}));
}

TEST_F(ContainerDifferenceTest, NamesCountWhereTheRuntimeTellsAny) {
  config_.cdi_devices = {"v.com/c=1"};
  EXPECT_THAT(Compare(Config()), IsEmpty());
  config_.cdi_devices = {"v.com/c=2"};
  EXPECT_THAT(Compare(Config()),
              ElementsAre(HeldDifference{Kind::kMissing, "CDI device",
                                         "v.com/c=1", "", ""},
                          HeldDifference{Kind::kAdditional, "CDI device",
                                         "v.com/c=2", "", ""}));
}

// A plugin that gives its device by annotation gives it all the same.
TEST_F(ContainerDifferenceTest, NamesInAnnotationsOfPluginsCount) {
  const std::string config = Config();
  devices_.annotations = {{"cdi.k8s.io/r_x", "v.com/c=1", "r"}};
  devices_.cdi_devices.clear();
  container_.allocation.clear();
  EXPECT_THAT(Compare(config), IsEmpty());
  config_.cdi_devices = {"v.com/c=1"};
  EXPECT_THAT(Compare(config), IsEmpty());
  EXPECT_THAT(Compare("{}"), Not(IsEmpty()));
}

TEST_F(ContainerDifferenceTest, TheStampIsComparedByWhatTheLedgerGave) {
  container_.allocation += ".0123456789abcdef";
  EXPECT_THAT(Compare(Config()), IsEmpty());
  const std::string digest = shim::AllocationDigest(&devices_);
  container_.allocation = "0000000000000000";
  EXPECT_THAT(Compare(Config()),
              ElementsAre(HeldDifference{Kind::kDiffers, "annotation",
                                         "devmgr/allocation", digest,
                                         "0000000000000000"}));
  container_.allocation.clear();
  EXPECT_THAT(Compare(Config()), IsEmpty());
}

TEST_F(ContainerDifferenceTest, AnnotationsOfPluginsAreCompared) {
  devices_.annotations = {{"a", "1", "r"}, {"b", "2", "r"}};
  container_.allocation.clear();
  config_.annotations = {{"a", "other"}, {"of-the-pod", "1"}};
  EXPECT_THAT(
      Compare(Config()),
      ElementsAre(
          HeldDifference{Kind::kDiffers, "annotation", "a", "1", "other"},
          HeldDifference{Kind::kMissing, "annotation", "b", "2", ""}));
}

// Foreign input: whatever its members are, nothing is asserted on.
TEST_F(ContainerDifferenceTest, ConfigurationsOfAnyShapeAreRead) {
  for (const char* oci :
       {R"({"process": 7, "mounts": "x", "linux": [], "hooks": [1]})",
        R"({"process": {"env": [7, null]}, "mounts": [1, {"options": 3}],
            "linux": {"devices": [3, {"path": 4, "type": "c"}],
            "resources": {"devices": [0, {"type": 1}]}, "netDevices": 2},
            "hooks": {"a": 1, "b": [{"args": 5}, 6]}})"}) {
    EXPECT_GE(Compare(oci).size(), 7u);
  }
  config_.oci = "[]";
  EXPECT_THAT(
      CompareWithLedger(container_, config_, devices_, *registry_,
                        host_.Host()),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("0f3a")));
}

TEST_F(ContainerDifferenceTest, DeepConfigurationsAreRefused) {
  config_.oci = R"({"linux": {"intelRdt": {"x": )" + std::string(200'000, '[') +
                std::string(200'000, ']') + "}}}";
  EXPECT_THAT(CompareWithLedger(container_, config_, devices_, *registry_,
                                host_.Host()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("nested deeper than 256 levels")));
}

TEST_F(ContainerDifferenceTest, WhatCannotBeHadNowIsNoDifference) {
  devices_.cdi_devices.push_back({"v.com/c=gone", {}});
  config_.oci = "{}";
  EXPECT_THAT(CompareWithLedger(container_, config_, devices_, *registry_,
                                host_.Host()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("v.com/c=gone")));
}

class RuntimeFsckTest : public ::testing::Test {
 protected:
  RuntimeFsckTest() {
    devices_.name = "c";
    devices_.env = {{"K", "1", "r"}};
    container_.id = "0f3a";
    container_.name = "c";
    container_.state = RuntimeContainer::State::kRunning;
    container_.pod_uid = {"uid"};
    container_.pod = {"ns", "p"};
    container_.allocation = shim::AllocationDigest(&devices_);
    Know();
  }
  void Know() {
    answers_.clear();
    answers_.emplace(container_.pod_uid,
                     PodDevices{{"ns", "p"}, {"uid"}, {devices_}});
  }
  /// `error check`, or nothing.
  std::string Found() {
    const auto findings = CheckRuntimeContainers({container_}, answers_);
    if (findings.empty()) return "";
    message_ = findings[0].message;
    EXPECT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].object, object_);
    EXPECT_THAT(findings[0].message, HasSubstr("0f3a"));
    EXPECT_EQ(findings[0].repair, "");
    return (findings[0].error ? "error " : "warning ") + findings[0].check;
  }

  ContainerDevices devices_;
  RuntimeContainer container_;
  LedgerAnswers answers_;
  std::string object_ = "container/ns/p/c";
  std::string message_;
};

TEST_F(RuntimeFsckTest, WhatTheLedgerGaveIsFine) { EXPECT_EQ(Found(), ""); }

TEST_F(RuntimeFsckTest, APodThatTheLedgerDoesNotKnowIsFound) {
  answers_.clear();
  EXPECT_EQ(Found(), "error unaccounted-container");
  container_.state = RuntimeContainer::State::kCreated;
  EXPECT_EQ(Found(), "error unaccounted-container");
  container_.pod = {};
  container_.pod_uid = {};
  object_ = "container/0f3a";
  EXPECT_EQ(Found(), "error unaccounted-container");
  EXPECT_THAT(message_, HasSubstr("belongs to no pod"));
}

TEST_F(RuntimeFsckTest, WhoHoldsNothingOfOursIsFine) {
  answers_.clear();
  container_.state = RuntimeContainer::State::kExited;
  EXPECT_EQ(Found(), "");
  container_.state = RuntimeContainer::State::kRunning;
  container_.allocation.clear();
  EXPECT_EQ(Found(), "");
}

TEST_F(RuntimeFsckTest, AContainerThatTheLedgerDoesNotKnowIsFound) {
  devices_.name = "d";
  Know();
  EXPECT_EQ(Found(), "error unaccounted-container");
}

TEST_F(RuntimeFsckTest, OtherDevicesThanTheLedgersAreFound) {
  devices_.env[0].value = "2";
  Know();
  EXPECT_EQ(Found(), "error different-allocation");
  EXPECT_THAT(message_, HasSubstr(shim::AllocationDigest(&devices_)));
}

TEST_F(RuntimeFsckTest, DevicesThatWereGivenBackAreFound) {
  devices_.devices_released = true;
  Know();
  EXPECT_EQ(Found(), "error unaccounted-container");
}

TEST_F(RuntimeFsckTest, APodWithoutAnAnswerIsToldWithTheReason) {
  answers_.clear();
  answers_.emplace(container_.pod_uid, absl::UnavailableError("is Preparing"));
  EXPECT_EQ(Found(), "warning unaccounted-container");
  EXPECT_THAT(message_, HasSubstr("is Preparing"));
  answers_.clear();
  answers_.emplace(container_.pod_uid,
                   absl::FailedPreconditionError("is Rejected"));
  EXPECT_EQ(Found(), "error unaccounted-container");
}

// With a client that manages devices by itself they are not the ledger's.
TEST_F(RuntimeFsckTest, DevicesThatTheClientNamedAreAWarning) {
  container_.allocation += "." + shim::NamesDigest({"v.com/c=1"});
  EXPECT_EQ(Found(), "warning unaccounted-container");
  container_.allocation = shim::WriteStamp(
      {shim::AllocationDigest(nullptr), shim::NamesDigest({"v.com/c=1"})});
  answers_.clear();
  EXPECT_EQ(Found(), "warning unaccounted-container");
}

class UnmarkedContainersTest : public ::testing::Test {
 protected:
  UnmarkedContainersTest() {
    host_.AddChar("/dev/host-x", 240, 1);
    host_.AddChar("/dev/host-y", 240, 2);
    host_.AddChar("/dev/control", 240, 9);
    host_.AddChar("/dev/plugin", 241, 1);
    host_.AddChar("/dev/null", 1, 3);
    unmarked_.container.id = "0f3a";
    unmarked_.container.name = "c";
    unmarked_.container.pod_uid = {"uid-q"};
    unmarked_.container.pod = {"ns", "q"};
    Hold({"v.com/c=1"});
  }
  /// What the ledger gives to pod `p`.
  void Hold(const std::vector<std::string>& names) {
    ContainerDevices devices;
    devices.name = "c";
    devices.devices = {{"/dev/z", "/dev/plugin", "rw", "v.com/r"}};
    for (const auto& name : names) devices.cdi_devices.push_back({name, {}});
    answers_.clear();
    answers_.emplace(PodUid{"uid-p"},
                     PodDevices{{"ns", "p"}, {"uid-p"}, {devices}});
  }
  static std::string Node(const std::string& path, int major, int minor) {
    return fmt::format(
        R"({{"path": "{}", "type": "c", "major": {}, "minor": {}}})", path,
        major, minor);
  }
  /// What is found of a container with this node.
  std::string Found(const std::string& node, const std::string& rules = "") {
    unmarked_.config.oci = R"({"linux": {"devices": [)" + node +
                           R"(], "resources": {"devices": [)" + rules + "]}}}";
    const auto findings = CheckUnmarkedContainers({unmarked_}, answers_,
                                                  *registry_, host_.Host());
    if (findings.empty()) return "";
    EXPECT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].check, "unaccounted-container");
    EXPECT_EQ(findings[0].object, "container/ns/q/c");
    EXPECT_TRUE(findings[0].error);
    return findings[0].message;
  }

  FakeCdiHost host_;
  std::shared_ptr<const CdiRegistry> registry_ = MakeRegistry(
      {{"/etc/cdi/v.yaml",
        SpecText({{"1", "deviceNodes: [{path: /dev/x, hostPath: /dev/host-x}]"},
                  {"2", "deviceNodes: [{path: /dev/y, hostPath: /dev/host-y}]"},
                  {"gone", "deviceNodes: [{path: /dev/none}]"}},
                 "containerEdits: {deviceNodes: [{path: /dev/control}, {path: "
                 "/dev/null}]}\n")}});
  LedgerAnswers answers_;
  UnmarkedContainer unmarked_;
};

TEST_F(UnmarkedContainersTest, OrdinaryContainersAreFine) {
  EXPECT_EQ(Found(""), "");
  EXPECT_EQ(Found(Node("/dev/null", 1, 3)), "");
  EXPECT_EQ(Found(Node("/dev/fuse", 10, 229)), "");
  unmarked_.config.cdi_devices = {"w.com/nobody=knows"};
  EXPECT_EQ(Found(""), "");
}

TEST_F(UnmarkedContainersTest, DevicesOfOthersAreFoundByTheirNodes) {
  EXPECT_THAT(Found(Node("/dev/renamed", 240, 1)),
              AllOf(HasSubstr("'/dev/renamed' (c 240:1)"),
                    HasSubstr("'v.com/c=1'"), HasSubstr("pod 'ns/p'")));
  EXPECT_THAT(Found(Node("/dev/z", 241, 1)),
              AllOf(HasSubstr("'v.com/r'"), HasSubstr("pod 'ns/p'")));
  // All devices of the kind have it.
  EXPECT_THAT(Found(Node("/dev/control", 240, 9)), HasSubstr("pod 'ns/p'"));
}

TEST_F(UnmarkedContainersTest, DevicesThatAreFreeAreFound) {
  EXPECT_THAT(Found(Node("/dev/y", 240, 2)),
              AllOf(HasSubstr("'v.com/c=2'"), HasSubstr("to no pod")));
  unmarked_.config.cdi_devices = {"v.com/c=gone", "v.com/c=1"};
  EXPECT_THAT(
      Found(""),
      AllOf(HasSubstr("'v.com/c=gone', which the ledger gives to no pod"),
            HasSubstr("pod 'ns/p'")));
}

TEST_F(UnmarkedContainersTest, WhatThePodHoldsIsFine) {
  unmarked_.container.pod_uid = {"uid-p"};
  unmarked_.config.cdi_devices = {"v.com/c=1"};
  for (const auto& node : {Node("/dev/x", 240, 1), Node("/dev/control", 240, 9),
                           Node("/dev/z", 241, 1)}) {
    EXPECT_EQ(Found(node), "");
  }
  EXPECT_NE(Found(Node("/dev/y", 240, 2)), "");
  // It is being prepared: nobody can tell.
  answers_.clear();
  answers_.emplace(PodUid{"uid-p"}, absl::UnavailableError("is Preparing"));
  EXPECT_EQ(Found(Node("/dev/y", 240, 2)), "");
}

TEST_F(UnmarkedContainersTest, NodesOfPrivilegedContainersSayNothing) {
  const std::string all = R"({"allow": true, "access": "rwm"})";
  EXPECT_EQ(Found(Node("/dev/x", 240, 1), all), "");
  unmarked_.config.cdi_devices = {"v.com/c=1"};
  EXPECT_NE(Found(Node("/dev/x", 240, 1), all), "");
}

}  // namespace
}  // namespace devmgr
