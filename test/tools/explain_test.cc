// SPDX-License-Identifier: Apache-2.0
//
// explain pod NAME.
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ExplainTest : public CommandLineTest {
 protected:
  PodInfo& AddPod(PodState state) {
    PodInfo pod = MakePod("default", "p", state);
    pod.first_seen = now_ - minutes(5);
    node_.pods.push_back(pod);
    return node_.pods.back();
  }

  void AddDecision(DecisionKind kind, WallTime time,
                   std::vector<std::string> uids) {
    DecisionInfo decision;
    decision.sequence = node_.history.size() + 1;
    decision.kind = kind;
    decision.time = time;
    decision.pods = {"default/p"};
    decision.uids = std::move(uids);
    node_.history.push_back(decision);
  }

  void AddEvent(const std::string& name, const std::string& message) {
    EventInfo event;
    event.sequence = node_.events.size() + 1;
    event.time = now_ - minutes(2);
    event.reason = "Waits";
    event.object_kind = "Pod";
    event.object = {"default", name};
    event.message = message;
    node_.events.push_back(event);
  }

  void AddResource(int devices) {
    ResourceInfo resource;
    resource.name = "example.com/fpga";
    resource.owner = ResourceOwner::kDevicePlugin;
    resource.state = ResourceState::kLive;
    resource.since = now_ - minutes(7);
    resource.capacity = devices;
    resource.allocatable = devices;
    resource.held = 1;
    node_.resources = {resource};
    for (int i = 0; i < devices; ++i) {
      DeviceInfo device;
      device.resource = resource.name;
      device.device = "fpga-" + std::to_string(i);
      device.health =
          i == 0 ? DeviceHealth::kUnhealthy : DeviceHealth::kHealthy;
      if (i == 1) device.used_by = {"default/holder"};
      node_.devices.push_back(device);
    }
    PluginInfo plugin;
    plugin.name = resource.name;
    plugin.kind = PluginKind::kDevicePlugin;
    plugin.state = PluginState::kLive;
    plugin.breaker = PluginBreaker::kOpen;
    plugin.last_error = "too slow";
    node_.plugins = {plugin};
  }

  std::string Text() {
    const Result result = Run({"explain", "pod", "p"});
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }
};

TEST_F(ExplainTest, WaitingForDevicesNamesThemAndTheirHolders) {
  PodInfo& pod = AddPod(PodState::kWaiting);
  pod.reason = "NotEnoughFreeDevices";
  pod.message = "needs 2, 1 is free";
  pod.waiting_for = {{WaitingFor::Kind::kResource, "example.com/fpga"}};
  AddResource(3);
  AddDecision(DecisionKind::kSeen, now_ - minutes(5), {"uid-p"});
  AddDecision(DecisionKind::kRelease, now_ - minutes(60),
              {"uid-of-an-earlier-p"});
  AddEvent("p", "waits for fpga");
  AddEvent("other", "of another pod");
  EXPECT_EQ(Text(),
            "Name:         p\n"
            "Namespace:    default\n"
            "UID:          uid-p\n"
            "State:        Waiting\n"
            "Reason:       NotEnoughFreeDevices\n"
            "Message:      needs 2, 1 is free\n"
            "First seen:   2019-12-19T23:55:00.000Z, 5m ago\n"
            "\n"
            "Waits for resource example.com/fpga\n"
            "Owner:         DevicePlugin\n"
            "State:         Live\n"
            "Age:           7m\n"
            "Capacity:      3\n"
            "Allocatable:   3\n"
            "Held:          1\n"
            "\n"
            "DEVICE   HEALTH      REASON   NUMA     USED BY\n"
            "fpga-0   Unhealthy   <none>   <none>   <none>\n"
            "fpga-1   Healthy     <none>   <none>   default/holder\n"
            "fpga-2   Healthy     <none>   <none>   <none>\n"
            "\n"
            "Plugin:              example.com/fpga\n"
            "Kind:                device-plugin\n"
            "Endpoint:            <none>\n"
            "Version:             <none>\n"
            "State:               Live\n"
            "Registered:          <none>\n"
            "Serves:              no\n"
            "Calls:               0 under way, 0 queued\n"
            "Via:                 <none>\n"
            "Devices:             0\n"
            "Breaker:             Open\n"
            "Quarantined until:   <none>\n"
            "Last error:          too slow\n"
            "\n"
            "Holds\n"
            "Nothing.\n"
            "\n"
            "STEP   TIME                       AFTER   MESSAGE\n"
            "Seen   2019-12-19T23:55:00.000Z   0s      <none>\n"
            "Now    2019-12-20T00:00:00.000Z   5m      still Waiting\n"
            "\n"
            "EVENT   AGE   TYPE     MESSAGE\n"
            "Waits   2m    Normal   waits for fpga\n");
}

TEST_F(ExplainTest, ANameThatAClassHasNamesClassDriverAndWhoAllocates) {
  AddPod(PodState::kWaiting).waiting_for = {
      {WaitingFor::Kind::kResource, "example.com/gpu"}};
  ResourceInfo resource;
  resource.name = "example.com/gpu";
  resource.owner = ResourceOwner::kDeviceClass;
  resource.device_class = "gpus";
  resource.drivers = {"gpu.example.com"};
  node_.resources = {resource};
  EXPECT_THAT(Text(),
              AllOf(HasSubstr("DeviceClass 'gpus'"),
                    HasSubstr("come from DRA driver gpu.example.com"),
                    HasSubstr("a scheduler allocates them"),
                    HasSubstr("extendedResourceClaimStatus"),
                    Not(HasSubstr("No device plugin has served it here.\n"))));
}

TEST_F(ExplainTest, ShowsTheFirstDevicesOfMany) {
  AddPod(PodState::kWaiting).waiting_for = {
      {WaitingFor::Kind::kResource, "example.com/fpga"}};
  AddResource(60);
  EXPECT_THAT(Text(), AllOf(HasSubstr("fpga-19 "), Not(HasSubstr("fpga-20")),
                            HasSubstr("... and 40 more, see 'get devices "
                                      "example.com/fpga'\n")));
  const auto awaited = RunJson({"explain", "pod", "p"})["waitingFor"][0];
  EXPECT_EQ(awaited["deviceCount"], 60);
  EXPECT_EQ(awaited["devices"].size(), 20u);
  EXPECT_EQ(awaited["devices"][1]["status"]["holder"], "default/holder");
  EXPECT_EQ(awaited["resource"]["status"]["capacity"], 60);
  EXPECT_EQ(awaited["plugins"][0]["status"]["breaker"], "Open");
}

TEST_F(ExplainTest, ShowsTheRuntimeForWhichAReleaseWaits) {
  AddPod(PodState::kReady).waiting_for = {
      {WaitingFor::Kind::kRuntime, "/r.sock"}};
  EXPECT_THAT(Text(), HasSubstr("runtime /r.sock\nThere is no such"));
  node_.node.runtime = {"runtime /r.sock",
                        false,
                        now_ - std::chrono::hours(2),
                        "connection refused",
                        "containerd 1.7",
                        3};
  EXPECT_THAT(Text(), AllOf(HasSubstr("containerd 1.7"), HasSubstr("2h"),
                            HasSubstr("connection refused")));
  const auto awaited = RunJson({"explain", "pod", "p"})["waitingFor"][0];
  EXPECT_EQ(awaited["kind"], "runtime");
  EXPECT_EQ(awaited["runtime"]["known"], false);
}

TEST_F(ExplainTest, TellsWhatIsKnownOfEverythingElse) {
  AddPod(PodState::kWaiting).waiting_for = {
      {WaitingFor::Kind::kResource, "example.com/never"},
      {WaitingFor::Kind::kClaim, "default/c"},
      {WaitingFor::Kind::kClaim, "default/none"},
      {WaitingFor::Kind::kDriver, "gpu.example.com"},
      {WaitingFor::Kind::kDriver, "none.example.com"},
      {WaitingFor::Kind::kPod, "default/q"},
      {WaitingFor::Kind::kPod, "default/gone"}};
  ClaimInfo claim;
  claim.name = {"default", "c"};
  claim.state = ClaimState::kPreparing;
  claim.drivers = {{"gpu.example.com", ClaimState::kPreparing, {}, {}, "busy"}};
  node_.claims = {claim};
  node_.plugins = {{"gpu.example.com", PluginKind::kDra, "/s.sock",
                    "v1.DRAPlugin", PluginState::kDisconnected, now_,
                    "refused"}};
  node_.pods.push_back(MakePod("default", "q", PodState::kReleasing));
  EXPECT_THAT(
      Text(),
      AllOf(HasSubstr("resource example.com/never\nNo device plugin has"),
            HasSubstr("claim default/c\nUID"), HasSubstr("busy"),
            HasSubstr("claim default/none\nNo pod holds it"),
            HasSubstr("driver gpu.example.com\n"), HasSubstr("refused"),
            HasSubstr("driver none.example.com\nNo such driver"),
            HasSubstr("pod default/q\nName:"), HasSubstr("Releasing"),
            HasSubstr("pod default/gone\nIt is not known any more.")));
  const auto awaited = RunJson({"explain", "pod", "p"})["waitingFor"];
  ASSERT_EQ(awaited.size(), 7u);
  EXPECT_FALSE(awaited[0].contains("resource"));
  EXPECT_EQ(awaited[0]["deviceCount"], 0);
  EXPECT_EQ(awaited[1]["claims"][0]["status"]["state"], "Preparing");
  EXPECT_TRUE(awaited[2]["claims"].empty());
  EXPECT_EQ(awaited[3]["plugins"][0]["status"]["lastError"], "refused");
  EXPECT_EQ(awaited[5]["pod"]["status"]["state"], "Releasing");
  EXPECT_FALSE(awaited[6].contains("pod"));
}

TEST_F(ExplainTest, ReadyPodTellsWhatItHoldsAndWhatTookHowLong) {
  AddPod(PodState::kReady);
  AddResource(2);
  node_.devices[1].used_by = {"default/p"};
  ClaimInfo claim;
  claim.name = {"default", "c"};
  claim.state = ClaimState::kPrepared;
  claim.pods = {"default/p"};
  node_.claims = {claim};
  const WallTime seen = node_.pods[0].first_seen;
  AddDecision(DecisionKind::kReserve, seen + seconds(90), {"uid-p"});
  AddDecision(DecisionKind::kAllocated,
              seen + std::chrono::milliseconds(90'250), {"uid-p"});
  EXPECT_THAT(Text(),
              AllOf(HasSubstr("claim    default/c                 Prepared\n"),
                    HasSubstr("device   example.com/fpga/fpga-1   Healthy\n"),
                    HasSubstr("Seen        2019-12-19T23:55:00.000Z   0s "),
                    HasSubstr("Reserve     2019-12-19T23:56:30.000Z   1m30s "),
                    HasSubstr("Allocated   2019-12-19T23:56:30.250Z   250ms "),
                    Not(HasSubstr("Now")), Not(HasSubstr("fpga-0"))));
  const auto all = RunJson({"explain", "pod", "p"});
  EXPECT_EQ(all["kind"], "PodExplanation");
  EXPECT_EQ(all["metadata"]["uid"], "uid-p");
  EXPECT_EQ(all["status"]["state"], "Ready");
  EXPECT_EQ(all["status"]["firstSeen"], "2019-12-19T23:55:00.000Z");
  EXPECT_EQ(all["holds"]["claims"][0]["metadata"]["name"], "c");
  EXPECT_EQ(all["holds"]["devices"][0]["status"]["id"], "fpga-1");
  EXPECT_EQ(all["steps"].size(), 3u);
  EXPECT_EQ(all["steps"][2].dump(),
            R"({"name":"Allocated","time":"2019-12-19T23:56:30.250Z",)"
            R"("afterMs":250,"message":""})");
  EXPECT_TRUE(all["waitingFor"].empty());
}

TEST_F(ExplainTest, RejectedPodTellsWhy) {
  PodInfo& pod = AddPod(PodState::kRejected);
  pod.reason = "UnexpectedAdmissionError";
  pod.message = "Allocate failed due to no devices";
  AddDecision(DecisionKind::kReject, pod.first_seen + seconds(1), {"uid-p"});
  AddEvent("p", "refused");
  EXPECT_THAT(Text(),
              AllOf(HasSubstr("Allocate failed due to no devices"),
                    HasSubstr("Holds\nNothing.\n"), HasSubstr("Reject "),
                    HasSubstr("refused"), Not(HasSubstr("Waits for"))));
  EXPECT_EQ(RunJson({"explain", "pod", "p"})["events"][0]["message"],
            "refused");
}

TEST_F(ExplainTest, ABadManifestIsNamedForKnownAndForUnknownPods) {
  AddPod(PodState::kReady);
  node_.node.object_problems = {
      {"Pod", {"default", "p"}, "/m/x.yaml:12: spec: bad; kept"},
      {"Pod", {"default", "new"}, "/m/x.yaml:30: spec: worse"}};
  EXPECT_THAT(Text(), HasSubstr("/m/x.yaml:12: spec: bad; kept"));
  EXPECT_THAT(Run({"describe", "pod", "p"}).out, HasSubstr("/m/x.yaml:12"));
  for (const char* verb : {"explain", "describe"}) {
    const Result unknown = Run({verb, "pod", "new"});
    EXPECT_EQ(unknown.code, 3);
    EXPECT_THAT(unknown.err, HasSubstr("/m/x.yaml:30: spec: worse"));
  }
  const Result pods = Run({"get", "pods"});
  EXPECT_EQ(pods.code, 0);
  EXPECT_THAT(pods.err, AllOf(HasSubstr("Pod 'default/p': /m/x.yaml:12"),
                              HasSubstr("Pod 'default/new': /m/x.yaml:30")));
  EXPECT_THAT(Run({"get", "pods", "-n", "other"}).err,
              Not(HasSubstr("x.yaml")));
  EXPECT_THAT(Run({"get", "claims"}).err, Not(HasSubstr("x.yaml")));
  EXPECT_EQ(RunJson({"status"})["status"]["source"]["objects"][1]["name"],
            "new");
}

TEST_F(ExplainTest, RepeatedEventsAreShownWithTheirCount) {
  AddPod(PodState::kWaiting);
  AddEvent("p", "no devices");
  node_.events.back().count = 40;
  EXPECT_THAT(Text(), HasSubstr("no devices (repeated 39 times"));
}

TEST_F(ExplainTest, StoppedStoreExplainsWhatItKnows) {
  AddPod(PodState::kReady);
  AddEvent("p", "of a daemon");
  const Result result = Run({"explain", "pod", "p", "--state-dir", "/s"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("Ready"), Not(HasSubstr("of a daemon"))));
  EXPECT_EQ(Run({"explain", "pod", "unknown"}).code, 3);
}

}  // namespace
}  // namespace devmgr::ctl
