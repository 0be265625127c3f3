// SPDX-License-Identifier: Apache-2.0
//
// get, describe, resolve, status, version: what is shown, and in which shape.
#include <gmock/gmock.h>
#include <yaml-cpp/yaml.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class ViewsTest : public CommandLineTest {
 protected:
  PodInfo WaitingPod() {
    PodInfo pod = MakePod("default", "p", PodState::kWaiting);
    pod.reason = "ClaimNotFound";
    pod.message = "claim 'default/c' does not exist";
    pod.waiting_for = {{WaitingFor::Kind::kClaim, "default/c"}};
    pod.first_seen = now_ - std::chrono::minutes(192);
    return pod;
  }

  static ClaimInfo PreparedClaim() {
    ClaimInfo claim;
    claim.name = {"default", "c"};
    claim.uid = {"uid-c"};
    claim.state = ClaimState::kPrepared;
    claim.pods = {"default/p"};
    claim.drivers = {{"gpu.example.com",
                      ClaimState::kPrepared,
                      {"pool/gpu-0"},
                      {"v.com/c=x"},
                      ""}};
    return claim;
  }

  static PodDevices Answer() {
    PodDevices devices;
    devices.name = {"default", "p"};
    devices.uid = {"uid-p"};
    ContainerDevices main;
    main.name = "main";
    main.cdi_devices = {
        {"v.com/c=x",
         {"c", "gpu", "gpu.example.com", "pool", "gpu-0", "example.com/gpu"}}};
    ContainerDevices init;
    init.name = "init";
    init.init = true;
    devices.containers = {init, main};
    return devices;
  }
};

// BO-159
TEST_F(ViewsTest, NothingIsANoteAndNoError) {
  const Result table = Run({"get", "devices"});
  EXPECT_EQ(table.code, 0);
  EXPECT_THAT(table.out, IsEmpty());
  EXPECT_EQ(table.err, "No resources found\n");
  const Result names = Run({"get", "devices", "-o", "name"});
  EXPECT_EQ(names.code, 0);
  EXPECT_THAT(names.out, IsEmpty());
  EXPECT_EQ(RunJson({"get", "devices"}),
            ordered_json({{"apiVersion", "devmgr/v1alpha1"},
                          {"kind", "DeviceList"},
                          {"items", ordered_json::array()}}));
  EXPECT_EQ(Run({"get", "devices", "-o", "yaml"}).out,
            "apiVersion: devmgr/v1alpha1\nkind: DeviceList\nitems: []\n");
}

TEST_F(ViewsTest, PodsInEveryFormat) {
  node_.pods = {WaitingPod()};
  EXPECT_EQ(RunJson({"get", "pods"}).dump(),
            R"({"apiVersion":"devmgr/v1alpha1","kind":"PodList","items":[{)"
            R"("metadata":{"namespace":"default","name":"p","uid":"uid-p"},)"
            R"("status":{"state":"Waiting","reason":"ClaimNotFound",)"
            R"("message":"claim 'default/c' does not exist",)"
            R"("waitingFor":[{"kind":"claim","name":"default/c"}]}}]})");
  EXPECT_EQ(Run({"get", "pods"}).out,
            "NAMESPACE   NAME   STATE     REASON          WAITING FOR       "
            "AGE\n"
            "default     p      Waiting   ClaimNotFound   claim/default/c   "
            "3h12m\n");
  EXPECT_THAT(
      Run({"get", "pod", "-o", "wide"}).out,
      AllOf(HasSubstr("UID"), HasSubstr("uid-p"), HasSubstr("does not exist")));
  EXPECT_EQ(Run({"get", "pods", "-o", "name"}).out, "pod/p\n");
  EXPECT_THAT(Run({"get", "pods", "--no-headers"}).out, StartsWith("default"));
  const YAML::Node yaml = YAML::Load(Run({"get", "pods", "-o", "yaml"}).out);
  EXPECT_EQ(yaml["items"][0]["status"]["waitingFor"][0]["kind"].Scalar(),
            "claim");
}

TEST_F(ViewsTest, ReadyPodsHaveEveryMember) {
  node_.pods = {MakePod("default", "p", PodState::kReady)};
  EXPECT_EQ(RunJson({"get", "pods"})["items"][0]["status"].dump(),
            R"({"state":"Ready","reason":"","message":"","waitingFor":[]})");
}

TEST_F(ViewsTest, OrderIsNaturalAndStable) {
  for (const char* name : {"gpu10", "gpu2", "a"}) {
    node_.pods.push_back(MakePod("default", name, PodState::kReady));
  }
  node_.pods.push_back(MakePod("abc", "z", PodState::kReady));
  EXPECT_EQ(Run({"get", "pods", "-o", "name"}).out,
            "pod/z\npod/a\npod/gpu2\npod/gpu10\n");
}

TEST_F(ViewsTest, AllNamespacesUnlessOneIsGiven) {
  node_.pods = {MakePod("a", "p1", PodState::kReady),
                MakePod("b", "p2", PodState::kReady)};
  EXPECT_EQ(Run({"get", "pods", "-o", "name"}).out, "pod/p1\npod/p2\n");
  EXPECT_EQ(Run({"get", "pods", "-A", "-o", "name"}).out, "pod/p1\npod/p2\n");
  EXPECT_EQ(Run({"get", "pods", "-n", "b", "-o", "name"}).out, "pod/p2\n");
}

TEST_F(ViewsTest, ClaimsInEveryFormat) {
  node_.claims = {PreparedClaim()};
  EXPECT_EQ(RunJson({"get", "claims"})["items"][0].dump(),
            R"({"metadata":{"namespace":"default","name":"c","uid":"uid-c"},)"
            R"("status":{"state":"Prepared","pods":["default/p"],"drivers":[{)"
            R"("name":"gpu.example.com","state":"Prepared",)"
            R"("devices":["pool/gpu-0"],"cdiDevices":["v.com/c=x"],)"
            R"("lastError":""}]}})");
  EXPECT_THAT(Run({"get", "claims"}).out,
              AllOf(HasSubstr("Prepared   gpu.example.com   default/p")));
  EXPECT_THAT(Run({"get", "claim", "-o", "wide"}).out,
              AllOf(HasSubstr("pool/gpu-0"), HasSubstr("v.com/c=x")));
  EXPECT_EQ(Run({"get", "claims", "-o", "name"}).out, "claim/c\n");
}

// As a newer daemon may send them.
TEST_F(ViewsTest, WordsThatAreNotKnownAreShownAsTheyCame) {
  node_.claims = {PreparedClaim()};
  node_.claims[0].state = OpenClaimState::OfWord("Thawing");
  node_.claims[0].drivers[0].state = OpenClaimState::OfWord("Freezing");
  const auto claim = RunJson({"get", "claims"})["items"][0]["status"];
  EXPECT_EQ(claim["state"], "Thawing");
  EXPECT_EQ(claim["drivers"][0]["state"], "Freezing");
  EXPECT_THAT(Run({"get", "claims"}).out, HasSubstr("Thawing"));
  EXPECT_THAT(Run({"describe", "claim/c"}).out,
              AllOf(HasSubstr("Thawing"), HasSubstr("Freezing")));

  PluginInfo plugin;
  plugin.name = "example.com/gpu";
  plugin.kind = OpenPluginKind::OfWord("network");
  plugin.state = OpenPluginState::OfWord("Moving");
  plugin.breaker = OpenPluginBreaker::OfWord("Molten");
  node_.plugins = {plugin};
  EXPECT_THAT(
      RunJson({"get", "plugins"}).dump(),
      AllOf(HasSubstr("network"), HasSubstr("Moving"), HasSubstr("Molten")));
  EXPECT_THAT(
      Run({"get", "plugins", "-o", "wide"}).out,
      AllOf(HasSubstr("network"), HasSubstr("Moving"), HasSubstr("Molten")));

  ResourceInfo resource;
  resource.name = "example.com/gpu";
  resource.owner = OpenResourceOwner::OfWord("Moon");
  resource.state = OpenResourceState::OfWord("Waning");
  node_.resources = {resource};
  const auto item = RunJson({"get", "resources"})["items"][0]["status"];
  EXPECT_EQ(item["owner"], "Moon");
  EXPECT_EQ(item["state"], "Waning");
  EXPECT_THAT(Run({"get", "resources"}).out,
              AllOf(HasSubstr("Moon"), HasSubstr("Waning")));

  DeviceInfo device;
  device.resource = "example.com/gpu";
  device.device = "0";
  device.health = OpenDeviceHealth::OfWord("Feverish");
  node_.devices = {device};
  EXPECT_EQ(RunJson({"get", "devices"})["items"][0]["status"]["health"],
            "Feverish");
  EXPECT_THAT(Run({"get", "devices"}).out, HasSubstr("Feverish"));

  node_.history.resize(1);
  node_.history[0].sequence = 1;
  node_.history[0].kind = OpenDecisionKind::OfWord("Lent");
  EXPECT_EQ(RunJson({"history"})["items"][0]["kind"], "Lent");
  EXPECT_THAT(Run({"history"}).out, HasSubstr("Lent"));
}

TEST_F(ViewsTest, PluginsDevicesAndClasses) {
  node_.plugins = {{"gpu.example.com", PluginKind::kDra, "/s.sock",
                    "v1.DRAPlugin", PluginState::kConnected,
                    now_ - std::chrono::minutes(5), "late"}};
  EXPECT_EQ(Run({"get", "plugins", "--no-headers"}).out,
            "gpu.example.com   dra   v1.DRAPlugin   Connected   no   5m\n");
  EXPECT_THAT(Run({"get", "plugins", "-o", "wide"}).out,
              AllOf(HasSubstr("/s.sock"), HasSubstr("late")));
  const auto plugin = RunJson({"get", "plugins"})["items"][0];
  EXPECT_EQ(plugin["metadata"]["name"], "gpu.example.com");
  EXPECT_EQ(plugin["status"]["state"], "Connected");
  EXPECT_EQ(plugin["status"]["endpoint"], "/s.sock");

  node_.devices = {{"gpu.example.com", "pool", "gpu-0", {"default/p"}, {}}};
  EXPECT_EQ(Run({"get", "devices", "--no-headers"}).out,
            "gpu.example.com   pool/gpu-0   <none>   default/p\n");
  EXPECT_EQ(Run({"get", "device", "-o", "name"}).out,
            "device/gpu.example.com/pool/gpu-0\n");

  node_.classes = {{"gpu", "", "deviceclass.resource.kubernetes.io/gpu", ""}};
  EXPECT_EQ(Run({"get", "classes", "--no-headers"}).out,
            "gpu   <none>   <none>   deviceclass.resource.kubernetes.io/gpu\n");
  EXPECT_EQ(Run({"get", "class", "-o", "name"}).out, "class/gpu\n");
}

TEST_F(ViewsTest, ClassesTellWhichOfThemHasAName) {
  const std::string implicit = "deviceclass.resource.kubernetes.io/";
  node_.classes = {
      {"new", "example.com/gpu", implicit + "new", "", ""},
      {"old", "example.com/gpu", implicit + "old", "", "new"},
      {"long", "example.com/nic", "", "no implicit name: ...", ""}};
  EXPECT_EQ(Run({"get", "classes"}).out,
            "NAME   EXTENDED RESOURCE   SHADOWED BY   IMPLICIT RESOURCE\n"
            "long   example.com/nic     <none>        <none>\n"
            "new    example.com/gpu     <none>        "
            "deviceclass.resource.kubernetes.io/new\n"
            "old    example.com/gpu     new           "
            "deviceclass.resource.kubernetes.io/old\n");
  const auto items = RunJson({"get", "classes"})["items"];
  ASSERT_EQ(items.size(), 3u);
  EXPECT_FALSE(items[1]["status"].contains("shadowedBy"));
  EXPECT_EQ(items[2]["status"]["shadowedBy"], "new");
}

TEST_F(ViewsTest, ForeignTextDoesNotDriveTheTerminal) {
  PodInfo pod = WaitingPod();
  pod.reason = "Bad\033[2J\nReason";
  node_.pods = {pod};
  const std::string out = Run({"get", "pods"}).out;
  EXPECT_THAT(out, HasSubstr("Bad?[2J Reason"));
  pod.message = "no UTF-8: \xFF";
  node_.pods = {pod};
  EXPECT_EQ(RunJson({"get", "pods"})["items"][0]["status"]["message"],
            "no UTF-8: \xEF\xBF\xBD");
  EXPECT_EQ(Run({"get", "pods", "-o", "yaml"}).code, 0);
}

TEST_F(ViewsTest, YamlKeepsTextThatLooksLikeSomethingElse) {
  for (const char* name :
       {"true", "12", "1e3", "null", "~", "0x10", "no", ""}) {
    PodInfo pod = MakePod("default", "p", PodState::kWaiting);
    pod.reason = name;
    node_.pods = {pod};
    const std::string out = Run({"get", "pods", "-o", "yaml"}).out;
    EXPECT_THAT(out, HasSubstr("reason: \"" + std::string(name) + "\""));
  }
}

TEST_F(ViewsTest, ResolveShapeIsFixed) {
  node_.pods = {MakePod("default", "p", PodState::kReady)};
  node_.answer = Answer();
  EXPECT_EQ(
      RunJson({"resolve", "p"}).dump(),
      R"({"apiVersion":"devmgr/v1alpha1","kind":"PodDevices",)"
      R"("metadata":{"namespace":"default","name":"p","uid":"uid-p"},)"
      R"("containers":[)"
      R"({"name":"init","init":true,"cdiDevices":[],"env":[],"mounts":[],)"
      R"("devices":[],"annotations":[],"resources":[]},)"
      R"({"name":"main","init":false,"cdiDevices":[{"name":"v.com/c=x",)"
      R"("origin":{"claim":"c","request":"gpu","driver":"gpu.example.com",)"
      R"("pool":"pool","device":"gpu-0","resource":"example.com/gpu"}}],)"
      R"("env":[],"mounts":[],"devices":[],"annotations":[],"resources":[]}]})");
}

TEST_F(ViewsTest, ResolveNamesAllDevicesBehindOneCdiName) {
  node_.pods = {MakePod("default", "p", PodState::kReady)};
  node_.answer = Answer();
  const auto device = [](const std::string& name, const std::string& pod) {
    return DeviceInfo{"gpu.example.com", "pool", name, {pod}, {"v.com/c=x"}};
  };
  node_.devices = {device("gpu-0", "default/p"), device("gpu-1", "default/p"),
                   device("gpu-2", "default/other")};
  const char* const kBoth = "(for pool/gpu-0, pool/gpu-1)";
  EXPECT_THAT(Run({"resolve", "p"}).out, HasSubstr(kBoth));
  EXPECT_THAT(Run({"describe", "pod", "p"}).out, HasSubstr(kBoth));
  EXPECT_EQ(
      RunJson({"resolve", "p"})["containers"][1]["cdiDevices"][0]["devices"]
          .dump(),
      R"(["pool/gpu-0","pool/gpu-1"])");
}

TEST_F(ViewsTest, ResolveForPeopleAndScripts) {
  node_.pods = {MakePod("default", "p", PodState::kReady)};
  node_.answer = Answer();
  const Result table = Run({"resolve", "p"});
  EXPECT_EQ(table.code, 0);
  EXPECT_THAT(table.out, AllOf(StartsWith("CONTAINER"), HasSubstr("v.com/c=x"),
                               HasSubstr("pool/gpu-0"), HasSubstr("init ")));
  EXPECT_EQ(Run({"resolve", "p", "-o", "name"}).out, "v.com/c=x\n");
  const auto one = RunJson({"resolve", "p", "-c", "main"});
  ASSERT_EQ(one["containers"].size(), 1u);
  EXPECT_EQ(one["containers"][0]["name"], "main");
  const Result none = Run({"resolve", "p", "-c", "nope"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, AllOf(HasSubstr("'nope'"), HasSubstr("init, main")));
  EXPECT_THAT(none.out, IsEmpty());
}

TEST_F(ViewsTest, PodThatIsNotReadyIsNeverAnEmptyList) {
  node_.pods = {WaitingPod()};
  node_.answer = absl::FailedPreconditionError(
      "pod 'default/p' is Waiting: ClaimNotFound");
  for (const char* format : {"table", "json", "yaml", "name"}) {
    const Result result = Run({"resolve", "p", "-o", format});
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr("ClaimNotFound"));
  }
  EXPECT_EQ(Run({"resolve", "unknown"}).code, 3);
}

// BO-166
TEST_F(ViewsTest, UnknownObjectsExitWithThree) {
  const Result pod = Run({"describe", "pod", "x"});
  EXPECT_EQ(pod.code, 3);
  EXPECT_THAT(pod.err, HasSubstr("default/x"));
  EXPECT_THAT(pod.out, IsEmpty());
  EXPECT_EQ(Run({"describe", "claim", "x"}).code, 3);
  EXPECT_EQ(Run({"describe", "plugin", "x"}).code, 3);
}

TEST_F(ViewsTest, GetTakesANameAsKubectlDoes) {
  node_.pods = {MakePod("default", "a", PodState::kReady),
                MakePod("default", "b", PodState::kReady),
                MakePod("other", "b", PodState::kReady)};
  EXPECT_EQ(Run({"get", "pod", "b", "-o", "name"}).out, "pod/b\n");
  EXPECT_EQ(Run({"get", "pods", "b", "-o", "name"}).out, "pod/b\n");
  EXPECT_EQ(Run({"get", "pod/b", "-o", "name"}).out, "pod/b\n");
  const Result row = Run({"get", "pod", "b", "--no-headers", "-n", "other"});
  EXPECT_EQ(row.code, 0) << row.err;
  EXPECT_THAT(row.out, ::testing::StartsWith("other"));
  EXPECT_EQ(std::count(row.out.begin(), row.out.end(), '\n'), 1);
  // Programs get the object, no list of one.
  const auto pod = RunJson({"get", "pod", "b"});
  EXPECT_EQ(pod["kind"], "Pod");
  EXPECT_EQ(pod, RunJson({"describe", "pod", "b"}));
  EXPECT_EQ(RunJson({"get", "pods"})["kind"], "PodList");
  const Result none = Run({"get", "pod", "x"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("default/x"));
  EXPECT_THAT(none.out, IsEmpty());
}

TEST_F(ViewsTest, GetTakesNamesOfAllKinds) {
  ClaimInfo old_claim;
  old_claim.name = {"default", "c"};
  old_claim.uid = {"u1"};
  ClaimInfo new_claim = old_claim;
  new_claim.uid = {"u2"};
  node_.claims = {old_claim, new_claim};
  PluginInfo plugin;
  plugin.name = "gpu.example.com";
  node_.plugins = {plugin};
  ResourceInfo resource;
  resource.name = "example.com/gpu";
  node_.resources = {resource};
  DeviceClassInfo device_class;
  device_class.name = "gpu";
  node_.classes = {device_class};
  DeviceInfo device;
  device.resource = "example.com/gpu";
  device.device = "gpu-0";
  node_.devices = {device};
  DebtInfo debt;
  debt.claim = {"default", "c"};
  debt.driver = "gpu.example.com";
  node_.debts = {debt};

  // One that was re-created is two objects.
  EXPECT_EQ(RunJson({"get", "claim", "c"})["items"].size(), 2u);
  const std::pair<std::vector<std::string>, const char*> table[] = {
      {{"get", "plugin", "gpu.example.com"}, "Plugin"},
      {{"get", "resource", "example.com/gpu"}, "Resource"},
      {{"get", "resource/example.com/gpu"}, "Resource"},
      {{"get", "class/gpu"}, "DeviceClass"},
      {{"get", "device", "gpu-0"}, "Device"},
      {{"get", "device/example.com/gpu/gpu-0"}, "Device"},
      {{"get", "devices", "example.com/gpu"}, "DeviceList"},
      {{"get", "debt", "c"}, "Debt"},
      {{"get", "debt/c/gpu.example.com"}, "Debt"},
  };
  for (const auto& [arguments, kind] : table) {
    EXPECT_EQ(RunJson(arguments)["kind"], kind) << arguments[1];
  }
  for (const char* kind : {"plugin", "resource", "class", "claim", "debt"}) {
    const Result none = Run({"get", kind, "x"});
    EXPECT_EQ(none.code, 3) << kind;
    EXPECT_THAT(none.err, HasSubstr("x'")) << kind;
  }
  // A stopped store cannot know.
  EXPECT_EQ(Run({"get", "plugin", "x", "--state-dir", "/s"}).code, 1);
  EXPECT_EQ(Run({"get", "class", "x", "--state-dir", "/s"}).code, 1);
}

TEST_F(ViewsTest, DescribeTellsAllAndWhatHappened) {
  PodInfo pod = MakePod("default", "p", PodState::kReady);
  pod.claims = {"c"};
  node_.pods = {pod};
  node_.answer = Answer();
  EventInfo event{1,
                  now_ - std::chrono::minutes(2),
                  true,
                  "FailedPrepare",
                  "Pod",
                  {"default", "p"},
                  "driver was late"};
  EventInfo other = event;
  other.object.name = "q";
  other.message = "of another pod";
  node_.events = {event, other};
  const Result result = Run({"describe", "pod", "p"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("State:"), HasSubstr("Ready"), HasSubstr("v.com/c=x"),
            HasSubstr("driver was late"), Not(HasSubstr("of another pod"))));
  EXPECT_EQ(RunJson({"describe", "pod", "p"})["kind"], "Pod");

  node_.claims = {PreparedClaim()};
  node_.claims[0].drivers[0].last_error = "was slow";
  EXPECT_THAT(Run({"describe", "claim", "c"}).out,
              AllOf(HasSubstr("Prepared"), HasSubstr("default/p"),
                    HasSubstr("was slow")));
  node_.plugins = {{"gpu.example.com", PluginKind::kDra, "/s.sock",
                    "v1.DRAPlugin", PluginState::kConnected, now_, "was late"}};
  EXPECT_THAT(Run({"describe", "plugin", "gpu.example.com"}).out,
              AllOf(HasSubstr("/s.sock"), HasSubstr("was late")));
}

TEST_F(ViewsTest, DescribeTellsHowHeldDevicesFare) {
  PodInfo pod = MakePod("default", "p", PodState::kReady);
  pod.allocated_resources = {
      {"c",
       {{"example.com/gpu",
         {{"7", DeviceHealth::kUnhealthy, "too hot", now_}}}}}};
  node_.pods = {pod};
  PodDevices answer = Answer();
  answer.containers[0].devices_released = true;
  node_.answer = answer;
  EXPECT_THAT(Run({"describe", "pod", "p"}).out,
              AllOf(HasSubstr("example.com/gpu"), HasSubstr("Unhealthy"),
                    HasSubstr("too hot"), HasSubstr("(released)")));
  const auto status = RunJson({"describe", "pod", "p"})["status"];
  const auto& device =
      status["containers"][0]["allocatedResourcesStatus"][0]["resources"][0];
  EXPECT_EQ(device["resourceID"], "7");
  EXPECT_EQ(device["health"], "Unhealthy");
  EXPECT_EQ(RunJson({"resolve", "p"})["containers"][0]["devicesReleased"],
            true);
}

TEST_F(ViewsTest, SecretsAreMaskedForPeopleOnly) {
  PodDevices answer = Answer();
  answer.containers[1].env = {{"TOKEN", "hunter2"}};
  node_.pods = {MakePod("default", "p", PodState::kReady)};
  node_.answer = answer;
  EXPECT_THAT(Run({"describe", "pod", "p"}).out,
              AllOf(HasSubstr("TOKEN"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(Run({"resolve", "p"}).out,
              AllOf(HasSubstr("TOKEN"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(Run({"resolve", "p", "-o", "json"}).out, HasSubstr("hunter2"));
  EXPECT_THAT(Run({"describe", "pod", "p", "--show-env"}).out,
              HasSubstr("TOKEN=hunter2"));
  EXPECT_THAT(Run({"resolve", "p", "--show-env"}).out,
              HasSubstr("TOKEN=hunter2"));
}

class StatusTest : public CommandLineTest {
 protected:
  void SetUp() override {
    node_.node.version = "0.1.0";
    node_.node.source = "directory /m";
    node_.node.source_complete = false;
    node_.node.source_problems = {"/m/" + std::string(300, 'x') +
                                  ".yaml:3: bad"};
    node_.node.started = now_ - std::chrono::hours(3);
  }
};

// BO-161
TEST_F(StatusTest, PipeGetsNoColoursAndAllOfTheText) {
  const Result result = Run({"status"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("\033")));
  EXPECT_THAT(result.out, HasSubstr(node_.node.source_problems[0]));
  EXPECT_THAT(result.out, AllOf(HasSubstr("3h"), HasSubstr("incomplete")));
}

TEST_F(StatusTest, SaysWhetherItIsKnownWhatTheRuntimeRuns) {
  EXPECT_THAT(Run({"status"}).out, Not(HasSubstr("Runtime")));
  EXPECT_FALSE(RunJson({"status"})["status"].contains("runtime"));
  node_.node.runtime = {
      "runtime /r.sock", true, now_ - std::chrono::hours(2), "",
      "containerd 1.7",  3};
  EXPECT_THAT(
      Run({"status"}).out,
      HasSubstr("runtime /r.sock, containerd 1.7, known for 2h, 3 pods\n"));
  node_.node.runtime->known = false;
  node_.node.runtime->reason = "connection refused";
  EXPECT_THAT(Run({"status"}).out,
              HasSubstr("runtime /r.sock, not known for 2h what it runs, "
                        "releases wait: connection refused\n"));
  const auto runtime = RunJson({"status"})["status"]["runtime"];
  EXPECT_EQ(runtime["known"], false);
  EXPECT_EQ(runtime["reason"], "connection refused");
  EXPECT_EQ(runtime["pods"], 3);
}

// BO-162
TEST_F(StatusTest, ColourFlagWinsOverTheEnvironment) {
  terminal_ = true;
  EXPECT_THAT(Run({"status"}).out, HasSubstr("\033["));
  variables_["NO_COLOR"] = "1";
  EXPECT_THAT(Run({"status"}).out, Not(HasSubstr("\033[")));
  EXPECT_THAT(Run({"status", "--color=always"}).out, HasSubstr("\033["));
  variables_["NO_COLOR"] = "";
  EXPECT_THAT(Run({"status"}).out, HasSubstr("\033["));
  EXPECT_THAT(Run({"status", "--color=never"}).out, Not(HasSubstr("\033[")));
  variables_["TERM"] = "dumb";
  EXPECT_THAT(Run({"status"}).out, Not(HasSubstr("\033[")));
  terminal_ = false;
  EXPECT_THAT(Run({"status", "--color", "always"}).out, HasSubstr("\033["));
}

TEST_F(StatusTest, ColoursDoNotMoveColumns) {
  node_.pods = {MakePod("default", "p", PodState::kReady)};
  std::string coloured = Run({"get", "pods", "--color=always"}).out;
  for (std::size_t at; (at = coloured.find("\033[")) != std::string::npos;) {
    coloured.erase(at, coloured.find('m', at) - at + 1);
  }
  EXPECT_EQ(coloured, Run({"get", "pods"}).out);
}

TEST_F(StatusTest, DocumentHasWhatTheDashboardHas) {
  node_.node.ledger_sequence = 7;
  const auto status = RunJson({"status"});
  EXPECT_EQ(status["kind"], "NodeStatus");
  EXPECT_EQ(status["status"]["ledger"]["sequence"], 7);
  EXPECT_EQ(status["status"]["source"]["complete"], false);
  EXPECT_EQ(status["status"]["source"]["problems"].size(), 1u);
}

TEST_F(StatusTest, StoppedStoreDoesNotKnowWhatOnlyADaemonKnows) {
  const Result text = Run({"status", "--state-dir", "/s"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("Plugins:           <unknown>"),
                              HasSubstr("Source:            <unknown>")));
  const auto status = RunJson({"status", "--state-dir", "/s"})["status"];
  EXPECT_FALSE(status.contains("plugins"));
  EXPECT_FALSE(status.contains("source"));
  EXPECT_TRUE(status.contains("pods"));
}

TEST_F(StatusTest, VersionWorksWithoutADaemon) {
  const Result both = Run({"version"});
  EXPECT_EQ(both.code, 0);
  EXPECT_THAT(both.out, AllOf(HasSubstr("Client:"), HasSubstr("Server:"),
                              Not(HasSubstr("unknown"))));
  EXPECT_EQ(RunJson({"version"})["server"], "0.1.0");
  connect_error_ = absl::UnavailableError("down");
  const Result alone = Run({"version"});
  EXPECT_EQ(alone.code, 0);
  EXPECT_THAT(alone.out, HasSubstr("<unknown>"));
  EXPECT_THAT(alone.err, HasSubstr("down"));
  EXPECT_FALSE(RunJson({"version"}).contains("server"));
}

}  // namespace
}  // namespace devmgr::ctl
