// SPDX-License-Identifier: Apache-2.0
//
// Scenarios BO-036 and BO-050 to BO-069: edits of an OCI configuration.
#include <devmgr/cdi.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cdi/cdi_world.h"
#include "cdi/status_codes.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class OciConfigTest : public ::testing::Test {
 protected:
  /// Edits of these devices, defined in one file in this order.
  CdiEdits EditsOf(
      const std::vector<std::pair<std::string, std::string>>& devices,
      const std::string& more = "") {
    registry_ = MakeRegistry({{"/etc/cdi/x.yaml", SpecText(devices, more)}});
    EXPECT_EQ(registry_->files()[0].problem, "");
    std::vector<std::string> names;
    for (const auto& [name, edits] : devices)
      names.push_back("v.com/c=" + name);
    const auto edits = CdiEditsOf(*registry_, names);
    EXPECT_THAT(edits, IsOk());
    return edits.value_or(CdiEdits());
  }

  absl::StatusOr<std::string> Inject(const std::string& config,
                                     const CdiEdits& edits) {
    return InjectCdiIntoOciConfig(config, edits, host_.Host());
  }
  /// One device with these edits.
  absl::StatusOr<std::string> Inject(const std::string& config,
                                     const std::string& edits) {
    return Inject(config, EditsOf({{"d", edits}}));
  }

  Json Injected(const std::string& config, const CdiEdits& edits) {
    const auto text = Inject(config, edits);
    EXPECT_THAT(text, IsOk());
    return text.ok() ? Json::parse(*text) : Json::object();
  }
  Json Injected(const std::string& config, const std::string& edits) {
    return Injected(config, EditsOf({{"d", edits}}));
  }

  FakeCdiHost host_;
  std::shared_ptr<const CdiRegistry> registry_;
};

TEST_F(OciConfigTest, ListsAllUnresolvableNames) {  // BO-050
  const auto registry =
      MakeRegistry({{"/etc/cdi/x.yaml", SpecText({{"d", "env: [A=1]"}})}});
  ContainerDevices devices;
  for (const char* name : {"v.com/c=x", "v.com/c=d", "v.com/c=y"}) {
    devices.cdi_devices.push_back({name, {}});
  }
  EXPECT_THAT(
      InjectIntoOciConfig("{}", devices, *registry, host_.Host()),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr("unresolvable CDI devices v.com/c=x, v.com/c=y")));
}

TEST_F(OciConfigTest, AppliesEditsOfTheSpecOnceAndFirst) {  // BO-051
  const std::string hook = "hooks: [{hookName: prestart, path: /";
  const Json config = Injected(
      "{}", EditsOf({{"a", hook + "a}]"}, {"b", hook + "b}]"}},
                    "containerEdits: {env: [G=1], " + hook + "g}]}\n"));
  EXPECT_EQ(config["process"]["env"], Json({"G=1"}));
  EXPECT_EQ(config["hooks"]["prestart"],
            Json::parse(R"([{"path":"/g"},{"path":"/a"},{"path":"/b"}])"));
}

TEST_F(OciConfigTest, AppliesEditsOfEachSpecOfOneKind) {  // BO-036
  const auto registry = MakeRegistry(
      {{"/etc/cdi/a.yaml",
        SpecText({{"a", "env: [A=1]"}}, "containerEdits: {env: [GA=1]}\n")},
       {"/etc/cdi/b.yaml",
        SpecText({{"b", "env: [B=1]"}}, "containerEdits: {env: [GB=1]}\n")}});
  const auto edits = CdiEditsOf(*registry, {"v.com/c=a", "v.com/c=b"});
  ASSERT_THAT(edits, IsOk());
  EXPECT_EQ(Injected("{}", *edits)["process"]["env"],
            Json({"GA=1", "A=1", "GB=1", "B=1"}));
}

TEST_F(OciConfigTest, ReplacesVariablesInPlace) {  // BO-052
  const std::string config = R"({"process":{"env":["A=1","B=2"]}})";
  EXPECT_EQ(*Inject(config, "env: [A=9, C=3]"),
            R"({"process":{"env":["A=9","B=2","C=3"]}})");
  EXPECT_EQ(*Inject(R"({"process":{"env":["A=1","B","A=2"]}})", "env: [A=9]"),
            R"({"process":{"env":["A=1","B","A=9"]}})");
}

TEST_F(OciConfigTest, LetsTheLastValueWin) {  // BO-053
  EXPECT_EQ(Injected("{}", EditsOf({{"a", "env: [X=1]"}, {"b", "env: [X=2]"}}))
                .dump(),
            R"({"process":{"env":["X=2"]}})");
  EXPECT_EQ(Injected("{}", EditsOf({{"b", "env: [X=2]"}, {"a", "env: [X=1]"}}))
                .dump(),
            R"({"process":{"env":["X=1"]}})");
}

TEST_F(OciConfigTest, AppliesRepeatedNamesOnce) {  // BO-054
  host_.AddChar("/dev/a", 1, 2);
  EditsOf({{"d",
            "deviceNodes: [{path: /dev/a}], hooks: [{hookName: poststop, "
            "path: /h}]"}});
  const auto edits = CdiEditsOf(*registry_, {"v.com/c=d", "v.com/c=d"});
  ASSERT_THAT(edits, IsOk());
  const Json config = Injected("{}", *edits);
  EXPECT_EQ(config["hooks"]["poststop"].size(), 1u);
  EXPECT_EQ(config["linux"]["devices"].size(), 1u);
  EXPECT_EQ(config["linux"]["resources"]["devices"].size(), 1u);
}

TEST_F(OciConfigTest, TakesNodesAsTheHostHasThem) {  // BO-055
  host_.AddChar("/dev/a", 195, 0, 0666);
  const Json config = Injected("{}", "deviceNodes: [{path: /dev/a}]");
  EXPECT_EQ(config["linux"].dump(),
            R"({"devices":[{"path":"/dev/a","type":"c","major":195,"minor":0,)"
            R"("fileMode":438}],"resources":{"devices":[{"allow":true,)"
            R"("type":"c","major":195,"minor":0,"access":"rwm"}]}})");
}

TEST_F(OciConfigTest, TakesCompleteNodesAsWritten) {  // BO-056
  const Json config = Injected(
      "{}", "deviceNodes: [{path: /dev/a, type: c, major: 10, minor: 200}]");
  EXPECT_EQ(config["linux"]["devices"][0].dump(),
            R"({"path":"/dev/a","type":"c","major":10,"minor":200})");
  host_.Add("/dev/a", {HostPath::Type::kBlockNode, 7, 7, 0600, 0, 0});
  EXPECT_EQ(
      Injected("{}",
               "deviceNodes: [{path: /dev/a, type: c, major: 10, minor: 200}]")
          ["linux"]["devices"][0]
              .dump(),
      R"({"path":"/dev/a","type":"c","major":10,"minor":200,"fileMode":384})");
}

TEST_F(OciConfigTest, NeedsTheHostsNodeForWhatIsOpen) {  // BO-057
  EXPECT_THAT(
      Inject("{}", "deviceNodes: [{path: /dev/a, hostPath: /h, type: c}]"),
      StatusIs(kFailed, AllOf(HasSubstr("failed to stat '/h'"),
                              HasSubstr("CDI device 'v.com/c=d'"),
                              HasSubstr("/etc/cdi/x.yaml"))));
}

TEST_F(OciConfigTest, RefusesHostNodesOfAnotherType) {  // BO-058
  host_.AddChar("/dev/a", 1, 2);
  for (const char* type : {"b", "u"}) {
    EXPECT_THAT(Inject("{}", "deviceNodes: [{path: /dev/a, type: " +
                                 std::string(type) + "}]"),
                StatusIs(kFailed, HasSubstr("host type mismatch")));
  }
}

TEST_F(OciConfigTest, DoesNotFollowLinksToNodes) {  // BO-059
  host_.AddChar("/dev/a", 1, 2);
  host_.AddLink("/dev/l", "/dev/a");
  host_.AddDirectory("/dev/dir");
  for (const char* path : {"/dev/l", "/dev/dir"}) {
    EXPECT_THAT(
        Inject("{}", "deviceNodes: [{path: " + std::string(path) + "}]"),
        StatusIs(kFailed, HasSubstr("is not a device node")));
  }
}

TEST_F(OciConfigTest, FillsInTypeAndNumbersAsTheTableSays) {
  host_.AddChar("/dev/a", 1, 2, 0600);
  const auto device = [&](const std::string& more) {
    return Injected("{}", "deviceNodes: [{path: /dev/a" + more +
                              "}]")["linux"]["devices"][0]
        .dump();
  };
  EXPECT_EQ(device(", major: 5, minor: 6, fileMode: 1"),
            R"({"path":"/dev/a","type":"c","major":5,"minor":6,"fileMode":1})");
  EXPECT_EQ(
      device(", type: c, minor: 9"),
      R"({"path":"/dev/a","type":"c","major":1,"minor":2,"fileMode":384})");
}

TEST_F(OciConfigTest, GivesFifosWithoutNumbersAndRules) {  // BO-060
  host_.Add("/run/f", {HostPath::Type::kFifo, 0, 0, 0644, 0, 0});
  for (const char* type : {"", ", type: p"}) {
    const Json config = Injected(
        "{}", "deviceNodes: [{path: /run/f" + std::string(type) + "}]");
    EXPECT_EQ(config["linux"].dump(),
              R"({"devices":[{"path":"/run/f","type":"p","fileMode":420}]})");
  }
}

TEST_F(OciConfigTest, WritesNoRuleForPermissionsNone) {  // BO-061
  host_.AddChar("/dev/a", 1, 2);
  const Json config =
      Injected("{}", "deviceNodes: [{path: /dev/a, permissions: none}]");
  EXPECT_EQ(config["linux"]["devices"].size(), 1u);
  EXPECT_FALSE(config["linux"].contains("resources"));
}

TEST_F(OciConfigTest, GivesNodesToTheProcess) {  // BO-062
  host_.AddChar("/dev/a", 1, 2);
  const std::string edits = "deviceNodes: [{path: /dev/a}]";
  const Json device =
      Injected(R"({"process":{"user":{"uid":1000,"gid":2000}}})",
               edits)["linux"]["devices"][0];
  EXPECT_EQ(device["uid"], 1000);
  EXPECT_EQ(device["gid"], 2000);
  const Json root = Injected(R"({"process":{"user":{"uid":0,"gid":0}}})",
                             edits)["linux"]["devices"][0];
  EXPECT_FALSE(root.contains("uid"));
  EXPECT_FALSE(root.contains("gid"));
  const Json own =
      Injected(R"({"process":{"user":{"uid":1000,"gid":2000}}})",
               "deviceNodes: [{path: /dev/a, uid: 0}]")["linux"]["devices"][0];
  EXPECT_EQ(own["uid"], 0);
  EXPECT_EQ(own["gid"], 2000);
}

TEST_F(OciConfigTest, ReplacesADeviceOfTheSamePath) {  // BO-063
  host_.AddChar("/dev/x", 1, 2);
  EXPECT_EQ(Injected(R"({"linux":{"devices":[{"path":"/dev/x","type":"b"},
                         {"path":"/dev/y"}]}})",
                     "deviceNodes: [{path: /dev/x}]")["linux"]["devices"]
                .dump(),
            R"([{"path":"/dev/y"},{"path":"/dev/x","type":"c","major":1,)"
            R"("minor":2,"fileMode":438}])");
}

// One old node stayed beside the new one, and runc made the old one.
TEST_F(OciConfigTest, ReplacesEveryDeviceOfTheSamePath) {
  host_.AddChar("/dev/x", 1, 2);
  const std::string config =
      R"({"linux":{"devices":[{"path":"/dev/x","type":"c","major":9},)"
      R"({"path":"/dev/y"},{"path":"/dev/x","type":"c","major":8}]}})";
  EXPECT_EQ(
      Injected(config, "deviceNodes: [{path: /dev/x}]")["linux"]["devices"]
          .dump(),
      R"([{"path":"/dev/y"},{"path":"/dev/x","type":"c","major":1,)"
      R"("minor":2,"fileMode":438}])");
}

TEST_F(OciConfigTest, ReplacesEveryMountOfTheSameDestination) {
  EXPECT_EQ(
      Injected(R"({"mounts":[{"destination":"/a","source":"/1"},)"
               R"({"destination":"/b"},{"destination":"/a","source":"/2"}]})",
               "mounts: [{hostPath: /g, containerPath: /a}]")["mounts"]
          .dump(),
      R"([{"destination":"/b"},{"destination":"/a","source":"/g"}])");
}

TEST_F(OciConfigTest, SortsMountsByDepth) {  // BO-064
  const Json config = Injected(
      R"({"mounts":[{"destination":"/a/b/c"},{"destination":"/a"}]})",
      "mounts: [{hostPath: /h, containerPath: /a/b, type: bind, options: "
      "[rbind, ro]}, {hostPath: /g, containerPath: /a}]");
  EXPECT_EQ(config["mounts"].dump(),
            R"([{"destination":"/a","source":"/g"},)"
            R"({"destination":"/a/b","type":"bind","source":"/h",)"
            R"("options":["rbind","ro"]},{"destination":"/a/b/c"}])");
  // `/` ties with `/a`, what is not clean counts as cleaned.
  EXPECT_EQ(
      Injected(R"({"mounts":[{"destination":"/x//y/"},
                         {"destination":"/b"},{"destination":"/"}]})",
               "mounts: [{hostPath: /g, containerPath: /c/../a}]")["mounts"]
          .dump(),
      R"([{"destination":"/b"},{"destination":"/"},)"
      R"({"destination":"/c/../a","source":"/g"},)"
      R"({"destination":"/x//y/"}])");
}

TEST_F(OciConfigTest, DoesNotSortWithoutMountsOfItsOwn) {
  const std::string config =
      R"({"mounts":[{"destination":"/a/b"},{"destination":"/"}]})";
  EXPECT_EQ(Injected(config, "env: [A=1]")["mounts"],
            Json::parse(config)["mounts"]);
}

TEST_F(OciConfigTest, MapsIdsOfBindsInUserNamespaces) {
  const std::string config =
      R"({"linux":{"namespaces":[{"type":"pid"},{"type":"user"}]}})";
  const auto options = [&](const std::string& mount) {
    return Injected(config, "mounts: [{hostPath: /h, containerPath: /c, " +
                                mount + "}]")["mounts"][0]["options"]
        .dump();
  };
  EXPECT_EQ(options("options: [bind, ro]"), R"(["bind","ro","idmap"])");
  EXPECT_EQ(options("options: [rbind]"), R"(["rbind","ridmap"])");
  EXPECT_EQ(options("type: bind, options: [ro]"), R"(["ro","idmap"])");
  EXPECT_EQ(options("options: [rbind, idmap]"), R"(["rbind","idmap"])");
  EXPECT_EQ(options("type: tmpfs, options: [ro]"), R"(["ro"])");
}

TEST_F(OciConfigTest, TheLastIntelRdtReplacesOthers) {  // BO-065
  const Json config = Injected(
      R"({"linux":{"intelRdt":{"closID":"old"},"x":1}})",
      EditsOf({{"a", "intelRdt: {closID: a}"},
               {"b", "intelRdt: {l3CacheSchema: b, enableMonitoring: true}"}}));
  EXPECT_EQ(
      config["linux"].dump(),
      R"({"intelRdt":{"l3CacheSchema":"b","enableMonitoring":true},"x":1})");
}

TEST_F(OciConfigTest, TakesOldMonitoringFlagsAsMonitoring) {  // BO-030
  const auto registry = MakeRegistry(
      {{"/etc/cdi/x.yaml",
        "cdiVersion: 0.7.0\nkind: v/c\ndevices: [{name: d, containerEdits: "
        "{intelRdt: {enableCMT: true, enableMBM: false}}}]\n"}});
  const auto edits = CdiEditsOf(*registry, {"v/c=d"});
  ASSERT_THAT(edits, IsOk());
  EXPECT_EQ(Injected("{}", *edits).dump(),
            R"({"linux":{"intelRdt":{"enableMonitoring":true}}})");
}

TEST_F(OciConfigTest, AddsGroupsThatAreNew) {  // BO-066
  const std::string config = R"({"process":{"user":{"additionalGids":[44]}}})";
  EXPECT_EQ(*Inject(config, "additionalGids: [0, 44, 44]"), config);
  EXPECT_EQ(*Inject(config, "additionalGids: [50, 44, 50]"),
            R"({"process":{"user":{"additionalGids":[44,50]}}})");
}

TEST_F(OciConfigTest, MovesNetDevices) {
  EXPECT_EQ(
      *Inject(R"({"linux":{"netDevices":{"e0":{"name":"old"},"x":{}}}})",
              "netDevices: [{hostInterfaceName: e0, name: n0}, "
              "{hostInterfaceName: e1, name: n1}]"),
      R"({"linux":{"netDevices":{"e0":{"name":"n0"},"x":{},"e1":{"name":"n1"}}}})");
}

TEST_F(OciConfigTest, WritesHooksInFull) {
  EXPECT_EQ(*Inject(R"({"hooks":{"poststop":[{"path":"/x"}]}})",
                    "hooks: [{hookName: poststop, path: /p, args: [p, q], "
                    "env: [E=1], timeout: 0}]"),
            R"({"hooks":{"poststop":[{"path":"/x"},{"path":"/p",)"
            R"("args":["p","q"],"env":["E=1"],"timeout":0}]}})");
}

TEST_F(OciConfigTest, LooksAtTheHostEachTime) {  // BO-067
  host_.AddChar("/dev/a", 195, 0);
  const CdiEdits edits = EditsOf({{"d", "deviceNodes: [{path: /dev/a}]"}});
  EXPECT_EQ(Injected("{}", edits)["linux"]["devices"][0]["minor"], 0);
  host_.AddChar("/dev/a", 195, 1);
  EXPECT_EQ(Injected("{}", edits)["linux"]["devices"][0]["minor"], 1);
}

TEST_F(OciConfigTest, GivesNothingWhenOneNodeFails) {  // BO-068
  host_.AddChar("/dev/a", 195, 0);
  EXPECT_THAT(
      Inject("{}", "env: [A=1], deviceNodes: [{path: /dev/a}, {path: /x}]"),
      StatusIs(kFailed, HasSubstr("nothing injected of v.com/c=d")));
}

TEST_F(OciConfigTest, NeedsAConfiguration) {  // BO-069
  for (const char* config : {"null", "", "[]", "1", "{", "{\"a\":1}x"}) {
    EXPECT_THAT(
        Inject(config, "env: [A=1]"),
        StatusIs(kInvalid, AllOf(HasSubstr("not "), HasSubstr("v.com/c=d"))))
        << config;
  }
}

TEST_F(OciConfigTest, NamesWhatHasAnotherType) {
  const auto problem = [&](const char* config, const char* edits) {
    const auto text = Inject(config, edits);
    EXPECT_THAT(text, StatusIs(kInvalid));
    return MessageOf(text.status());
  };
  EXPECT_THAT(problem(R"({"process":1})", "env: [A=1]"),
              HasSubstr("'process' must be an object"));
  EXPECT_THAT(problem(R"({"process":{"env":{}}})", "env: [A=1]"),
              HasSubstr("process: 'env' must be a list"));
  EXPECT_THAT(problem(R"({"process":{"env":[1]}})", "env: [A=1]"),
              HasSubstr("process.env[0] must be a text"));
  EXPECT_THAT(problem(R"({"process":{"env":[],"env":[]}})", "env: [A=1]"),
              HasSubstr("'env' is there twice"));
  EXPECT_THAT(problem(R"({"mounts":[{}]})",
                      "mounts: [{hostPath: /h, containerPath: /c}]"),
              HasSubstr("mounts: item 0 must be an object with a text"));
  EXPECT_THAT(problem(R"({"process":{"user":{"uid":-1}}})",
                      "deviceNodes: [{path: /a, type: c, major: 1}]"),
              HasSubstr("process.user.uid is no ID"));
}

TEST_F(OciConfigTest, LeavesAllElseAsItIs) {
  const std::string config = R"(
{ "ociVersion" : "1.0.2",
  "big": 12345678901234567890123, "exp": 1.0e+2, "\u0061": "\/\u00e9",
  "process": {
    "cwd": "/",
    "env": [
      "PATH=/bin",
      "T=\u0041\\\""
    ],
    "rlimits": [ ]
  },
  "null": null , "list": [1 , 2,{ } ]
}

)";
  std::string expected = config;
  const std::string last = R"("T=\u0041\\\"")";
  expected.replace(expected.find(last), last.size(), last + ",\n      \"A=1\"");
  EXPECT_EQ(*Inject(config, "env: [A=1]"), expected);
  EXPECT_EQ(*Inject(config, CdiEdits()), config);
}

// The JSON library takes a NUL for the end.
TEST_F(OciConfigTest, RefusesNulBytes) {
  using namespace std::string_literals;
  for (const std::string& config :
       {"{}\0,\"linux\":[]}"s, "{}\0"s, "\0{}"s, "{\"a\":\"\0\"}"s}) {
    EXPECT_THAT(Inject(config, CdiEdits()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NUL")));
  }
}

TEST_F(OciConfigTest, RefusesDeepConfigurations) {
  const auto nested = [](std::size_t levels) {
    return R"({"process":{"user":{"additionalGids":[)" +
           std::string(levels, '[') + std::string(levels, ']') + "]}}}";
  };
  EXPECT_THAT(Inject(nested(200'000), "additionalGids: [27]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nested deeper than 256 levels")));
  EXPECT_THAT(Inject(nested(252), "additionalGids: [27]"), IsOk());
  EXPECT_FALSE(Inject(nested(253), "additionalGids: [27]").ok());
  // Brackets in texts are none.
  EXPECT_THAT(Inject(R"({"a":")" + std::string(300, '[') + R"(\"[{"})",
                     "additionalGids: [27]"),
              IsOk());
}

TEST_F(OciConfigTest, HasLimits) {
  EXPECT_THAT(Inject("{\"a\":\"" + std::string(kMaxOciConfigBytes, 'x') + "\"}",
                     "env: [A=1]"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  auto spec = std::make_shared<CdiSpec>();
  spec->version = "0.3.0";
  spec->kind = "v/c";
  spec->devices.push_back({"d", {}, {}});
  spec->devices[0].edits.env.assign(kMaxCdiEdits, "A=1");
  const CdiRegistry registry({{"/x", 0, spec, ""}});
  EXPECT_THAT(CdiEditsOf(registry, {"v/c=d"}), IsOk());
  spec->devices[0].edits.env.push_back("B=1");
  EXPECT_THAT(CdiEditsOf(registry, {"v/c=d"}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(OciConfigTest, GivesWhatPluginsAskForBeforeCdi) {
  host_.AddChar("/dev/gpu0", 195, 0, 0660);
  host_.AddChar("/dev/dri/card0", 226, 0);
  host_.AddChar("/dev/dri/pts/x", 1, 1);
  host_.AddDirectory("/dev/dri");
  host_.AddDirectory("/dev/dri/pts");
  host_.AddLink("/dev/link", "/dev/gpu0");
  EditsOf({{"d",
            "env: [P=cdi], mounts: [{hostPath: /cdi, containerPath: "
            "/m}]"}});
  ContainerDevices devices;
  devices.name = "train";
  devices.cdi_devices = {{"v.com/c=d", {}}};
  devices.env = {
      {"P", "plugin", "r"}, {"POD", "plugin", "r"}, {"NEW", "plugin", "r"}};
  devices.devices = {{"/dev/x", "/dev/link", "rw", "r"},
                     {"/dev/dri", "/dev/dri", "r", "r"}};
  devices.mounts = {{"/m", "/plugin", true, "r"}, {"/n", "/p2", false, "r"}};
  devices.annotations = {{"there", "plugin", "r"}, {"new", "plugin", "r"}};
  const auto text =
      InjectIntoOciConfig(R"({"process":{"env":["POD=pod"],"user":{"uid":7}},)"
                          R"("annotations":{"there":"pod"}})",
                          devices, *registry_, host_.Host());
  ASSERT_THAT(text, IsOk());
  const Json config = Json::parse(*text);
  EXPECT_EQ(config["process"]["env"], Json({"POD=pod", "P=cdi", "NEW=plugin"}));
  EXPECT_EQ(config["annotations"].dump(), R"({"there":"pod","new":"plugin"})");
  EXPECT_EQ(config["linux"]["devices"].dump(),
            R"([{"path":"/dev/x","type":"c","major":195,"minor":0,)"
            R"("fileMode":432,"uid":0,"gid":0},)"
            R"({"path":"/dev/dri/card0","type":"c","major":226,"minor":0,)"
            R"("fileMode":438,"uid":0,"gid":0}])");
  EXPECT_EQ(config["linux"]["resources"]["devices"][1]["access"], "r");
  EXPECT_EQ(config["mounts"].dump(),
            R"([{"destination":"/n","type":"bind","source":"/p2",)"
            R"("options":["rbind","rprivate","rw"]},)"
            R"({"destination":"/m","source":"/cdi"}])");
}

// Whoever runs the configuration reads no annotations of CDI.
TEST_F(OciConfigTest, InjectsWhatPluginsNameByAnnotation) {
  EditsOf({{"field", "env: [F=1]"}, {"noted", "env: [N=1]"}});
  ContainerDevices devices;
  devices.name = "train";
  devices.cdi_devices = {{"v.com/c=field", {}}};
  devices.annotations = {{"cdi.k8s.io/r_x", "v.com/c=noted,v.com/c=field", "r"},
                         {"other", "1", "r"}};
  const auto text =
      InjectIntoOciConfig("{}", devices, *registry_, host_.Host());
  ASSERT_THAT(text, IsOk());
  const Json config = Json::parse(*text);
  EXPECT_EQ(config["process"]["env"], Json({"F=1", "N=1"}));
  EXPECT_EQ(config["annotations"].dump(), R"({"other":"1"})");

  devices.annotations = {{"cdi.k8s.io/r_x", "v.com/c=none", "r"}};
  EXPECT_THAT(InjectIntoOciConfig("{}", devices, *registry_, host_.Host()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("v.com/c=none")));
  devices.annotations = {{"cdi.k8s.io/r_x", "no name", "r"}};
  EXPECT_THAT(InjectIntoOciConfig("{}", devices, *registry_, host_.Host()),
              StatusIs(kFailed, AllOf(HasSubstr("container 'train'"),
                                      HasSubstr("cdi.k8s.io/r_x"))));
}

TEST_F(OciConfigTest, NamesTheResourceWhoseNodeIsMissing) {
  const CdiRegistry registry;
  ContainerDevices devices;
  devices.name = "train";
  host_.AddDirectory("/dev/empty");
  for (const char* path : {"/dev/gone", "/dev/empty"}) {
    devices.devices = {{"/dev/x", path, "rw", "a.com/gpu"}};
    EXPECT_THAT(InjectIntoOciConfig("{}", devices, registry, host_.Host()),
                StatusIs(kFailed, AllOf(HasSubstr("container 'train'"),
                                        HasSubstr("resource 'a.com/gpu'"),
                                        HasSubstr(path))));
  }
  devices.devices = {{"/dev/x", "/dev/x", "", "a.com/gpu"}};
  EXPECT_THAT(InjectIntoOciConfig("{}", devices, registry, host_.Host()),
              StatusIs(kFailed, HasSubstr("no permissions")));
}

}  // namespace
}  // namespace devmgr
