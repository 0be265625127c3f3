// SPDX-License-Identifier: Apache-2.0
//
// Scenarios BO-011 to BO-033: reading and checking spec files.
#include <devmgr/cdi_spec.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/status.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A spec with one device, whose edits are this YAML in flow style.
std::string WithEdits(const std::string& edits,
                      const std::string& version = "1.1.0") {
  return fmt::format(
      "cdiVersion: {}\nkind: v.com/c\ndevices:\n- name: d\n"
      "  containerEdits: {{{}}}\n",
      version, edits);
}

CdiSpec Read(const std::string& text) {
  const auto spec = ParseCdiSpec(text, "x.yaml");
  EXPECT_THAT(spec, IsOk()) << text;
  return spec.value_or(CdiSpec());
}

CdiContainerEdits ReadEdits(const std::string& edits,
                            const std::string& version = "1.1.0") {
  const CdiSpec spec = Read(WithEdits(edits, version));
  return spec.devices.empty() ? CdiContainerEdits() : spec.devices[0].edits;
}

std::string ProblemOf(const std::string& text) {
  const auto spec = ParseCdiSpec(text, "x.yaml");
  EXPECT_THAT(spec, StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  EXPECT_THAT(MessageOf(spec.status()), HasSubstr("x.yaml")) << text;
  return MessageOf(spec.status());
}

std::string ProblemOfEdits(const std::string& edits,
                           const std::string& version = "1.1.0") {
  return ProblemOf(WithEdits(edits, version));
}

TEST(SpecReaderTest, ReadsTheSmallestSpec) {  // BO-011
  const CdiSpec spec = Read(
      R"({"cdiVersion": "0.3.0", "kind": "v.com/c",
          "devices": [{"name": "d", "containerEdits": {"env": ["A=b"]}}]})");
  EXPECT_EQ(spec.version, "0.3.0");
  EXPECT_EQ(spec.kind, "v.com/c");
  ASSERT_EQ(spec.devices.size(), 1u);
  EXPECT_EQ(spec.devices[0].name, "d");
  EXPECT_THAT(spec.devices[0].edits.env, ElementsAre("A=b"));
}

TEST(SpecReaderTest, ReadsAllMembers) {
  const CdiSpec spec = Read(R"(
cdiVersion: 1.1.0
kind: v.com/c
annotations: {a.com/b: c}
containerEdits:
  env: [G=1]
devices:
- name: d
  annotations: {x: z}
  containerEdits:
    deviceNodes:
    - {path: /dev/a, hostPath: /dev/b, type: c, major: 195, minor: -1,
       fileMode: 438, permissions: rw, uid: 0, gid: 4294967295}
    netDevices: [{hostInterfaceName: eth0, name: net0}]
    mounts: [{hostPath: /h, containerPath: /c, options: [ro, bind], type: bind}]
    hooks: [{hookName: prestart, path: /p, args: [p, q], env: [E=1],
             timeout: 5}]
    intelRdt: {closID: g, l3CacheSchema: l, memBwSchema: m, schemata: [s],
               enableMonitoring: true}
    additionalGids: [5, 0]
)");
  CdiSpec expected;
  expected.version = "1.1.0";
  expected.kind = "v.com/c";
  expected.annotations = {{"a.com/b", "c"}};
  expected.edits.env = {"G=1"};
  CdiSpecDevice device;
  device.name = "d";
  device.annotations = {{"x", "z"}};
  device.edits.device_nodes = {
      {"/dev/a", "/dev/b", "c", 195, -1, 438, "rw", 0, 4294967295}};
  device.edits.net_devices = {{"eth0", "net0"}};
  device.edits.mounts = {{"/h", "/c", {"ro", "bind"}, "bind"}};
  device.edits.hooks = {{"prestart", "/p", {"p", "q"}, {"E=1"}, 5}};
  device.edits.intel_rdt = {
      "g",  "l",          "m",         std::vector<std::string>{"s"},
      true, std::nullopt, std::nullopt};
  device.edits.additional_gids = {5, 0};
  expected.devices = {device};
  EXPECT_EQ(spec, expected);
  EXPECT_EQ(device.edits.Count(), 7u);
}

TEST(SpecReaderTest, ToleratesALeadingV) {  // BO-012
  EXPECT_EQ(Read(WithEdits("env: [A=b]", "v0.3.0")).version, "0.3.0");
  ProblemOf(WithEdits("env: [A=b]", "vv0.3.0"));
}

TEST(SpecReaderTest, RefusesVersionsThatAreTooOld) {  // BO-013
  for (const char* version : {"0.1.0", "0.2.0"}) {
    EXPECT_THAT(ProblemOfEdits("env: [A=b]", version),
                HasSubstr("must be at least 0.3.0"));
  }
}

TEST(SpecReaderTest, RefusesVersionsThatDoNotExist) {  // BO-014
  for (const char* version : {"0.3.1", "1.2.0", "latest", "''", "null"}) {
    EXPECT_THAT(ProblemOfEdits("env: [A=b]", version),
                HasSubstr("invalid version"));
  }
}

TEST(SpecReaderTest, RefusesUnknownMembersAndNamesThem) {  // BO-015
  EXPECT_THAT(ProblemOf(WithEdits("env: [A=b]") + "extra: 1\n"),
              HasSubstr("x.yaml:6: unknown member 'extra'"));
  EXPECT_THAT(ProblemOfEdits("env: [A=b], envs: [A=b]"),
              HasSubstr("devices[0].containerEdits: unknown member 'envs'"));
  EXPECT_THAT(
      ProblemOfEdits("mounts: [{hostPath: /a, containerPath: /b, opts: []}]"),
      HasSubstr("mounts[0]: unknown member 'opts'"));
}

TEST(SpecReaderTest, RefusesMembersWrittenTwice) {  // BO-016
  const std::string text = WithEdits("env: [A=b]");
  EXPECT_THAT(ProblemOf(text + text.substr(text.find("devices:"))),
              HasSubstr("'devices'"));
  EXPECT_THAT(
      ProblemOf(R"({"cdiVersion": "0.3.0", "devices": [], "devices": []})"),
      HasSubstr("'devices'"));
  // Upstream lets one of them win.
  EXPECT_THAT(ProblemOfEdits("additionalGids: [1], additionalGIDs: [2]"),
              HasSubstr("are the same member"));
}

TEST(SpecReaderTest, DoesNotCareAboutTheCaseOfMembers) {  // BO-017
  const CdiContainerEdits edits = ReadEdits(
      "deviceNodes: [{path: /a, hostpath: /b}], additionalGIDs: [7]", "0.7.0");
  EXPECT_EQ(edits.device_nodes[0].host_path, "/b");
  EXPECT_THAT(edits.additional_gids, ElementsAre(7u));
}

TEST(SpecReaderTest, ReadsOctalNumbersAsYamlDoes) {  // BO-018
  EXPECT_EQ(ReadEdits("deviceNodes: [{path: /a, fileMode: 0666}]")
                .device_nodes[0]
                .file_mode,
            438u);
}

TEST(SpecReaderTest, SaysWhenThereIsNothing) {  // BO-019
  for (const char* text : {"", "\n \n", "# nothing\n", "null\n"}) {
    EXPECT_THAT(ProblemOf(text), HasSubstr("no spec data")) << text;
  }
}

TEST(SpecReaderTest, RefusesSpecsWithoutDevices) {  // BO-020
  const std::string head = "cdiVersion: 0.3.0\nkind: v/c\n";
  EXPECT_THAT(ProblemOf(head), HasSubstr("no devices"));
  EXPECT_THAT(ProblemOf(head + "devices: []\n"), HasSubstr("no devices"));
}

TEST(SpecReaderTest, RefusesTwoDevicesOfOneName) {  // BO-021
  EXPECT_THAT(ProblemOf("cdiVersion: 0.3.0\nkind: v/c\ndevices:\n"
                        "- {name: gpu0, containerEdits: {env: [A=b]}}\n"
                        "- {name: gpu0, containerEdits: {env: [A=c]}}\n"),
              AllOf(HasSubstr("x.yaml:5: devices[1].name"),
                    HasSubstr("multiple devices 'gpu0'")));
}

TEST(SpecReaderTest, RefusesEmptyDeviceEditsAndSaysWhy) {  // BO-022
  EXPECT_THAT(ProblemOf(WithEdits("") + "containerEdits: {env: [A=b]}\n"),
              AllOf(HasSubstr("empty device edits"),
                    HasSubstr("those of the whole spec do not count")));
  EXPECT_THAT(
      ProblemOf("cdiVersion: 0.3.0\nkind: v/c\ndevices: [{name: d}]"),
      AllOf(HasSubstr("empty device edits"), Not(HasSubstr("do not count"))));
}

TEST(SpecReaderTest, ChecksEnv) {  // BO-023
  EXPECT_THAT(ReadEdits("env: ['A=', 'A=b=c']").env,
              ElementsAre("A=", "A=b=c"));
  EXPECT_THAT(ProblemOfEdits("env: ['=x']"), HasSubstr("env[0]: '=x'"));
  EXPECT_THAT(ProblemOfEdits("env: [A=b, NOEQ]"), HasSubstr("env[1]: 'NOEQ'"));
  EXPECT_THAT(ProblemOfEdits("env: [null]"), HasSubstr("env[0]"));
}

TEST(SpecReaderTest, ChecksDeviceTypes) {  // BO-024
  for (const char* type : {"''", "b", "c", "u", "p"}) {
    ReadEdits(fmt::format("deviceNodes: [{{path: /a, type: {}}}]", type));
  }
  for (const char* type : {"x", "cb"}) {
    EXPECT_THAT(ProblemOfEdits(
                    fmt::format("deviceNodes: [{{path: /a, type: {}}}]", type)),
                HasSubstr("deviceNodes[0].type"));
  }
  EXPECT_THAT(ProblemOfEdits("deviceNodes: [{type: c}]"),
              HasSubstr("deviceNodes[0].path: must not be empty"));
}

TEST(SpecReaderTest, ChecksPermissions) {  // BO-025
  for (const char* access : {"''", "r", "mwr", "rr", "none"}) {
    ReadEdits(
        fmt::format("deviceNodes: [{{path: /a, permissions: {}}}]", access));
  }
  for (const char* access : {"rx", "RW"}) {
    EXPECT_THAT(ProblemOfEdits(fmt::format(
                    "deviceNodes: [{{path: /a, permissions: {}}}]", access)),
                HasSubstr("deviceNodes[0].permissions"));
  }
}

TEST(SpecReaderTest, ChecksHooks) {  // BO-026
  ReadEdits("hooks: [{hookName: createContainer, path: /p}]");
  for (const char* name : {"preStart", "''"}) {
    EXPECT_THAT(ProblemOfEdits(
                    fmt::format("hooks: [{{hookName: {}, path: /p}}]", name)),
                HasSubstr("hooks[0].hookName"));
  }
  EXPECT_THAT(ProblemOfEdits("hooks: [{hookName: prestart, path: ''}]"),
              HasSubstr("hooks[0].path"));
  EXPECT_THAT(
      ProblemOfEdits("hooks: [{hookName: prestart, path: /p, env: ['=1']}]"),
      HasSubstr("hooks[0].env[0]"));
}

TEST(SpecReaderTest, ChecksMounts) {  // BO-027
  EXPECT_THAT(ProblemOfEdits("mounts: [{containerPath: /a}]"),
              HasSubstr("mounts[0].hostPath"));
  EXPECT_THAT(ProblemOfEdits("mounts: [{hostPath: /a}]"),
              HasSubstr("mounts[0].containerPath"));
}

TEST(SpecReaderTest, ChecksClosId) {  // BO-028
  for (const std::string& id :
       {std::string("/"), std::string("''"), std::string(4095, 'x')}) {
    ReadEdits("intelRdt: {closID: " + id + "}");
  }
  for (const std::string& id :
       {std::string("a/b"), std::string(".."), std::string("."),
        std::string(4096, 'x'), std::string(R"("a\nb")")}) {
    EXPECT_THAT(ProblemOfEdits("intelRdt: {closID: " + id + "}"),
                HasSubstr("intelRdt.closID"));
  }
}

TEST(SpecReaderTest, ChecksNetDevices) {  // BO-029
  const std::string a = "{hostInterfaceName: e0, name: n0}";
  ReadEdits("netDevices: [" + a + "]");
  EXPECT_THAT(ProblemOfEdits("netDevices: [" + a +
                             ", {hostInterfaceName: e0, name: n1}]"),
              HasSubstr("netDevices[1].hostInterfaceName: 'e0' is there"));
  EXPECT_THAT(ProblemOfEdits("netDevices: [" + a +
                             ", {hostInterfaceName: e1, name: n0}]"),
              HasSubstr("netDevices[1].name: 'n0' is there"));
  EXPECT_THAT(ProblemOfEdits("netDevices: [{hostInterfaceName: e1}]"),
              HasSubstr("netDevices[0].name: must not be empty"));
}

TEST(SpecReaderTest, KnowsWhatNewVersionsTookAway) {  // BO-030
  for (const char* version : {"0.7.0", "0.8.0", "1.0.0"}) {
    EXPECT_EQ(
        ReadEdits("intelRdt: {enableCMT: true}", version).intel_rdt->enable_cmt,
        true);
  }
  EXPECT_THAT(ProblemOfEdits("intelRdt: {enableCMT: true}"),
              HasSubstr("intelRdt.enableCMT"));
  EXPECT_THAT(ProblemOfEdits("intelRdt: {enableMBM: false}"),
              HasSubstr("intelRdt.enableMBM"));
}

TEST(SpecReaderTest, ComputesTheMinimumVersion) {  // BO-031
  const auto needs = [](const std::string& edits) {
    return MinimumCdiVersion(Read(WithEdits(edits)));
  };
  const auto spec_needs = [](const std::string& kind, const std::string& name,
                             const std::string& more = "") {
    return MinimumCdiVersion(
        Read(fmt::format("cdiVersion: 1.1.0\nkind: {}\ndevices:\n- name: {}\n"
                         "  containerEdits: {{env: [A=b]}}\n{}",
                         kind, name, more)));
  };
  EXPECT_EQ(needs("env: [A=b]"), "0.3.0");
  EXPECT_EQ(needs("mounts: [{hostPath: /a, containerPath: /b, type: x}]"),
            "0.4.0");
  EXPECT_EQ(needs("deviceNodes: [{path: /a, hostPath: /b}]"), "0.5.0");
  EXPECT_EQ(spec_needs("v/c", "0a"), "0.5.0");
  EXPECT_EQ(spec_needs("v/c.d", "a"), "0.6.0");
  EXPECT_EQ(spec_needs("v.d/c", "a"), "0.3.0");
  EXPECT_EQ(spec_needs("v/c", "a", "  annotations: {x: y}"), "0.6.0");
  EXPECT_EQ(spec_needs("v/c", "a", "annotations: {x: y}"), "0.6.0");
  EXPECT_EQ(needs("intelRdt: {}"), "0.7.0");
  EXPECT_EQ(needs("additionalGids: [5]"), "0.7.0");
  EXPECT_EQ(needs("intelRdt: {enableMonitoring: true}"), "1.1.0");
  EXPECT_EQ(needs("intelRdt: {schemata: []}"), "1.1.0");
  EXPECT_EQ(needs("intelRdt: {schemata: null}"), "0.7.0");
  EXPECT_EQ(needs("netDevices: [{hostInterfaceName: a, name: b}]"), "1.1.0");
  EXPECT_EQ(spec_needs("v/c", "a", "containerEdits: {additionalGids: [1]}"),
            "0.7.0");
}

TEST(SpecReaderTest, RefusesVersionsTooOldForTheContent) {  // BO-032
  EXPECT_THAT(ProblemOfEdits("additionalGids: [5]", "0.5.0"),
              AllOf(HasSubstr("at least 0.7.0"), HasSubstr("0.5.0")));
}

TEST(SpecReaderTest, EmptyThingsNeedNoNewVersion) {  // BO-033
  Read(WithEdits("env: [A=b], additionalGids: []", "0.3.0") +
       "  annotations: {}\n");
}

TEST(SpecReaderTest, TurnsScalarsIntoText) {
  const CdiSpec spec = Read(
      "cdiVersion: 1.0.0\nkind: v/c\ndevices:\n"
      "- {name: 0, containerEdits: {env: [A=b]}}\n"
      "- {name: yes, containerEdits: {env: [A=b]}}\n"
      "- {name: 1.50, containerEdits: {env: [A=b]}}\n");
  EXPECT_EQ(spec.devices[0].name, "0");
  EXPECT_EQ(spec.devices[1].name, "true");
  EXPECT_EQ(spec.devices[2].name, "1.5");
  EXPECT_EQ(Read(R"({"cdiVersion": "1.0.0", "kind": "v/c", "devices":
                     [{"name": 7, "containerEdits": {"env": ["A=b"]}}]})")
                .devices[0]
                .name,
            "7");
}

// Without quotes YAML makes a number of it, which is none of the versions.
TEST(SpecReaderTest, ANumberIsNoVersion) {
  for (const std::string number : {"0.5", "1.0", "1"}) {
    EXPECT_THAT(ProblemOf("cdiVersion: " + number +
                          "\nkind: v/c\ndevices:\n"
                          "- {name: a, containerEdits: {env: [A=b]}}\n"),
                HasSubstr("cdiVersion: invalid version"))
        << number;
  }
}

TEST(SpecReaderTest, RefusesOtherTypes) {
  EXPECT_THAT(ProblemOf("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(ProblemOfEdits("env: A=b"), HasSubstr("env: must be a list"));
  EXPECT_THAT(ProblemOfEdits("env: [[]]"), HasSubstr("env[0]: must be a text"));
  EXPECT_THAT(ProblemOfEdits("mounts: [1]"),
              HasSubstr("mounts[0]: must be an object"));
  EXPECT_THAT(ProblemOfEdits("deviceNodes: [{path: /a, major: '1'}]"),
              HasSubstr("major: must be an integer"));
  EXPECT_THAT(ProblemOfEdits("deviceNodes: [{path: /a, uid: -1}]"),
              HasSubstr("uid: '-1' is out of range, 0 to 4294967295"));
  EXPECT_THAT(ProblemOfEdits("additionalGids: [4294967296]"),
              HasSubstr("out of range"));
  EXPECT_THAT(ProblemOfEdits("intelRdt: {enableMonitoring: 1}"),
              HasSubstr("must be true or false"));
}

TEST(SpecReaderTest, TellsAllThatIsWrong) {
  const std::string problem = ProblemOf(
      "cdiVersion: 9\nkind: gpu\ndevices:\n"
      "- {name: -x, containerEdits: {env: [X]}}\n");
  EXPECT_THAT(problem, HasSubstr("x.yaml:1: cdiVersion"));
  EXPECT_THAT(problem, HasSubstr("x.yaml:2: kind: 'gpu' is not"));
  EXPECT_THAT(problem, HasSubstr("x.yaml:4: devices[0].name: invalid"));
  EXPECT_THAT(problem, HasSubstr("x.yaml:4: devices[0].containerEdits.env[0]"));
  std::string many;
  for (int i = 0; i < 500; ++i) many += "X, ";
  EXPECT_THAT(ProblemOfEdits("env: [" + many + "]"), HasSubstr("and 49"));
}

TEST(SpecReaderTest, NeedsNoFileName) {
  EXPECT_EQ(MessageOf(ParseCdiSpec("", "").status()), "no spec data");
}

}  // namespace
}  // namespace devmgr
