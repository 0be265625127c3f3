// SPDX-License-Identifier: Apache-2.0
#include "server/convert.h"

#include <gtest/gtest.h>

namespace devmgr::server {
namespace {

/// Through the bytes of the wire, not only through the struct.
template <typename Message>
Message OverTheWire(const Message& message) {
  Message copy;
  EXPECT_TRUE(copy.ParseFromString(message.SerializeAsString()));
  return copy;
}

WallTime At(int seconds) { return WallTime(std::chrono::seconds(seconds)); }

TEST(ValidUtf8Test, KeepsTextAndReplacesForeignBytes) {
  EXPECT_EQ(ValidUtf8("plain"), "plain");
  EXPECT_EQ(ValidUtf8("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(ValidUtf8("a\xFFz"), "a" + bad + "z");
  EXPECT_EQ(ValidUtf8("\xC3"), bad);                      // Cut off.
  EXPECT_EQ(ValidUtf8("\xC0\x80"), bad + bad);            // Overlong.
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), bad + bad + bad);  // Surrogate.
  EXPECT_EQ(ValidUtf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);
}

ForeignHolder SomeHolder() {
  return {"c1",
          {"u-p"},
          {"default", "p"},
          "main",
          {{"example.com/gpu", {"0", "1"}}, {"example.com/nic", {"x"}}},
          {"v.com/c=1"},
          "its pod is not known"};
}

TEST(ConvertTest, ForeignHoldersKeepEveryField) {
  const ForeignHolderInfo info{SomeHolder(), "/run/r.sock", At(7), "it hangs"};
  LedgerView view;
  view.holders = {info};
  const auto view_back = FromProto(OverTheWire(ToProto(view)));
  ASSERT_TRUE(view_back.ok());
  ASSERT_EQ(view_back->holders.size(), 1u);
  for (const ForeignHolderInfo& back :
       {FromProto(OverTheWire(ToProto(info))), view_back->holders[0]}) {
    EXPECT_EQ(back.holder, info.holder);
    EXPECT_EQ(back.endpoint, info.endpoint);
    EXPECT_EQ(back.since, info.since);
    EXPECT_EQ(back.freed, info.freed);
  }
}

TEST(ConvertTest, DeviceHoldersKeepEveryField) {
  const DeviceHolderInfo info{
      {"ns", "p"},
      {"u-p"},
      "main",
      "abc",
      "running",
      At(7),
      {{"example.com/gpu", {}, "", "", "0", {"example.com/gpu=0"}, "u", "pci"},
       {{}, {"ns", "c"}, "d.example.com", "pool", "dev", {}, "", ""}},
      {"example.com/gpu=all"}};
  EXPECT_EQ(FromProto(OverTheWire(ToProto(info))), info);
  EXPECT_EQ(FromProto(OverTheWire(ToProto(DeviceHolderInfo()))),
            DeviceHolderInfo());
}

TEST(ConvertTest, ReportsKeepTheirHolders) {
  RuntimeReport report;
  report.holders = {SomeHolder(), ForeignHolder()};
  report.all_holders = true;
  report.name = "shim-1";
  const RuntimeReport back = FromProto(OverTheWire(ToProto(report)));
  EXPECT_EQ(back.holders, report.holders);
  EXPECT_TRUE(back.all_holders);
  EXPECT_EQ(back.name, "shim-1");
  EXPECT_FALSE(FromProto(OverTheWire(ToProto(RuntimeReport()))).all_holders);
}

TEST(ConvertTest, ReportsKeepWhatRuns) {
  auto runs = std::make_shared<RuntimeSnapshot>();
  runs->known = true;
  runs->since = WallTime(std::chrono::milliseconds(5'000));
  runs->reason = "no answer";
  runs->runtime = "containerd 1.7.0";
  PodRun pod;
  pod.name = {"ns", "p"};
  pod.sandboxes = {{"s",
                    2,
                    true,
                    WallTime(std::chrono::seconds(7)),
                    {"10.0.0.1", "fd00::1"}}};
  ContainerRun container;
  container.id = "i";
  container.name = "c";
  container.attempt = 3;
  container.state = RuntimeContainer::State::kExited;
  container.image = "image:v1";
  container.image_id = "sha256:1";
  container.created_at = WallTime(std::chrono::seconds(8));
  container.started_at = WallTime(std::chrono::seconds(9));
  container.finished_at = WallTime(std::chrono::seconds(10));
  container.exit_code = 137;
  container.reason = "OOMKilled";
  container.message = "two\nlines";
  pod.containers = {container, ContainerRun()};
  runs->pods[PodUid{"u"}] = std::make_shared<const PodRun>(pod);
  RuntimeReport report;
  report.runs = runs;
  report.look = 12;
  const RuntimeReport back = FromProto(OverTheWire(ToProto(report)));
  EXPECT_EQ(back.look, 12u);
  ASSERT_NE(back.runs, nullptr);
  EXPECT_TRUE(back.runs->known);
  EXPECT_EQ(back.runs->since, runs->since);
  EXPECT_EQ(back.runs->reason, "no answer");
  EXPECT_EQ(back.runs->runtime, "containerd 1.7.0");
  ASSERT_EQ(back.runs->pods.size(), 1u);
  EXPECT_EQ(*back.runs->pods.at(PodUid{"u"}), pod);
  EXPECT_EQ(FromProto(OverTheWire(ToProto(RuntimeReport()))).runs, nullptr);
}

TEST(ConvertTest, PodInfoKeepsEveryState) {
  for (const PodState state :
       {PodState::kWaiting, PodState::kPreparing, PodState::kReady,
        PodState::kRejected, PodState::kReleasing, PodState::kEvicting}) {
    PodInfo pod;
    pod.state = state;
    const auto back = FromProto(OverTheWire(ToProto(pod)));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->state, state);
  }
}

TEST(ConvertTest, PodInfoKeepsEveryField) {
  PodInfo pod;
  pod.name = {"default", "p"};
  pod.uid = {"u1"};
  pod.reason = "ClaimMissing";
  pod.message = "claim 'c' is missing";
  pod.waiting_for = {{WaitingFor::Kind::kClaim, "default/c"},
                     {WaitingFor::Kind::kDriver, "gpu.example.com"},
                     {WaitingFor::Kind::kPod, "default/old"},
                     {WaitingFor::Kind::kResource, "example.com/gpu"},
                     {WaitingFor::Kind::kRuntime, "/r.sock"},
                     {WaitingFor::Kind::kDevices, "gpu.example.com"},
                     {WaitingFor::Kind::kDeviceClass, "gpu"},
                     {WaitingFor::Kind::kQuota, "default/pods"},
                     {WaitingFor::Kind::kFreeDevices, "gpu.example.com"},
                     {WaitingFor::Kind::kFewerDevices, "gpu.example.com"},
                     {WaitingFor::Kind::kTaint, "gpu.example.com/n1/gpu-0"},
                     {WaitingFor::Kind::kClaimTemplate, "default/t"},
                     {WaitingFor::Kind::kAuthority, "scheduler"}};
  pod.first_seen = At(7);
  pod.containers = {"a", "b"};
  pod.claims = {"c"};
  pod.allocated_resources = {
      {"a",
       {{"example.com/gpu", {{"0", DeviceHealth::kUnhealthy, "hot", At(9)}}}}}};
  const auto back = FromProto(OverTheWire(ToProto(pod)));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->name, pod.name);
  EXPECT_EQ(back->uid, pod.uid);
  EXPECT_EQ(back->reason, pod.reason);
  EXPECT_EQ(back->message, pod.message);
  EXPECT_EQ(back->waiting_for, pod.waiting_for);
  EXPECT_EQ(back->first_seen, pod.first_seen);
  EXPECT_EQ(back->containers, pod.containers);
  EXPECT_EQ(back->claims, pod.claims);
  EXPECT_EQ(back->allocated_resources, pod.allocated_resources);
}

TEST(ConvertTest, StatesOfAnotherVersionAreErrors) {
  pb::PodInfo pod;
  EXPECT_EQ(FromProto(pod).status().code(), absl::StatusCode::kInvalidArgument);
  pod.set_state(static_cast<pb::PodState>(77));
  EXPECT_EQ(FromProto(OverTheWire(pod)).status().code(),
            absl::StatusCode::kInvalidArgument);
  pod.set_state(pb::POD_STATE_READY);
  EXPECT_TRUE(FromProto(pod).ok());
  // What it waits for is in its message, too.
  pod.add_waiting_for();
  pod.add_waiting_for()->set_kind(static_cast<pb::WaitingFor::Kind>(77));
  pod.add_waiting_for()->set_kind(pb::WaitingFor::KIND_POD);
  const auto back = FromProto(OverTheWire(pod));
  ASSERT_TRUE(back.ok());
  ASSERT_EQ(back->waiting_for.size(), 1u);
  EXPECT_EQ(back->waiting_for[0].kind, WaitingFor::Kind::kPod);
}

// A daemon that is newer than its client may have more states and kinds.
TEST(ConvertTest, WordsOfANewerDaemonStayAsTheyCame) {
  pb::ClaimInfo claim;
  claim.set_state("Thawing");
  claim.add_drivers()->set_state("Freezing");
  const ClaimInfo claim_back = FromProto(OverTheWire(claim));
  EXPECT_EQ(claim_back.state.name(), "Thawing");
  EXPECT_EQ(claim_back.state.known(), std::nullopt);
  EXPECT_EQ(claim_back.drivers[0].state.name(), "Freezing");
  EXPECT_EQ(ToProto(claim_back).state(), "Thawing");
  EXPECT_EQ(ToProto(claim_back).drivers(0).state(), "Freezing");

  pb::DeviceInfo device;
  device.set_health("Feverish");
  const DeviceInfo device_back = FromProto(OverTheWire(device));
  ASSERT_TRUE(device_back.health.has_value());
  EXPECT_EQ(device_back.health->name(), "Feverish");
  EXPECT_EQ(ToProto(device_back).health(), "Feverish");

  pb::PodInfo pod;
  pod.set_state(pb::POD_STATE_READY);
  pod.add_allocated_resources()->add_resources()->add_resources()->set_health(
      "Feverish");
  const auto pod_back = FromProto(OverTheWire(pod));
  ASSERT_TRUE(pod_back.ok());
  EXPECT_EQ(
      pod_back->allocated_resources[0].resources[0].resources[0].health.name(),
      "Feverish");

  pb::ResourceInfo resource;
  resource.set_owner("Moon");
  resource.set_state("Waning");
  const ResourceInfo resource_back = FromProto(OverTheWire(resource));
  ASSERT_TRUE(resource_back.owner.has_value());
  EXPECT_EQ(resource_back.owner->name(), "Moon");
  ASSERT_TRUE(resource_back.state.has_value());
  EXPECT_EQ(resource_back.state->name(), "Waning");
  EXPECT_EQ(ToProto(resource_back).SerializeAsString(),
            resource.SerializeAsString());

  pb::PluginInfo plugin;
  plugin.set_kind("network");
  plugin.set_state("Moving");
  plugin.set_via("mail");
  plugin.set_breaker("Molten");
  const PluginInfo plugin_back = FromProto(OverTheWire(plugin));
  EXPECT_EQ(plugin_back.kind.name(), "network");
  EXPECT_EQ(plugin_back.state.name(), "Moving");
  ASSERT_TRUE(plugin_back.via.has_value());
  EXPECT_EQ(plugin_back.via->name(), "mail");
  EXPECT_EQ(plugin_back.breaker.name(), "Molten");
  EXPECT_EQ(ToProto(plugin_back).SerializeAsString(),
            plugin.SerializeAsString());

  pb::DecisionInfo decision;
  decision.set_kind("Lent");
  EXPECT_EQ(FromProto(OverTheWire(decision)).kind.name(), "Lent");
  EXPECT_EQ(ToProto(FromProto(decision)).kind(), "Lent");
}

// An older daemon does not send all of them.
TEST(ConvertTest, WordsThatAreNotSentStayEmpty) {
  const PluginInfo plugin = FromProto(pb::PluginInfo());
  EXPECT_EQ(plugin.kind.name(), "");
  EXPECT_EQ(plugin.via, std::nullopt);
  EXPECT_EQ(plugin.breaker.name(), "");
  EXPECT_EQ(FromProto(pb::DeviceInfo()).health, std::nullopt);
  EXPECT_EQ(FromProto(pb::ResourceInfo()).owner, std::nullopt);
  EXPECT_EQ(FromProto(pb::ResourceInfo()).state, std::nullopt);
}

TEST(ConvertTest, BrokenTextDoesNotBreakTheMessage) {
  PluginInfo plugin;
  plugin.name = "gpu.example.com";
  plugin.last_error = "boom \xFF";
  const PluginInfo back = FromProto(OverTheWire(ToProto(plugin)));
  EXPECT_EQ(back.last_error, "boom \xEF\xBF\xBD");
}

TEST(ConvertTest, PodDevicesKeepEveryField) {
  ContainerDevices container;
  container.name = "main";
  container.init = true;
  container.cdi_devices = {
      {"v.com/c=x", {"claim", "request", "driver", "pool", "device", "res"}}};
  container.env = {{"A", "1"}};
  container.mounts = {{"/in", "/on/host", true}};
  container.devices = {{"/dev/in", "/dev/host", "rw"}};
  container.annotations = {{"k", "v"}};
  PodDevices devices;
  devices.name = {"default", "p"};
  devices.uid = {"u1"};
  devices.containers = {container, ContainerDevices{"second"}};
  EXPECT_EQ(FromProto(OverTheWire(ToProto(devices))), devices);
}

TEST(ConvertTest, ClaimsPluginsAndDevicesKeepTheirFields) {
  ClaimInfo claim;
  claim.name = {"default", "c"};
  claim.uid = {"u2"};
  claim.state = ClaimState::kPrepared;
  claim.pods = {"default/p"};
  claim.drivers = {{"gpu.example.com",
                    ClaimState::kPrepared,
                    {"pool/gpu-0"},
                    {"v/c=x"},
                    "old error"}};
  const ClaimInfo claim_back = FromProto(OverTheWire(ToProto(claim)));
  EXPECT_EQ(claim_back.name, claim.name);
  EXPECT_EQ(claim_back.uid, claim.uid);
  EXPECT_EQ(claim_back.state, claim.state);
  EXPECT_EQ(claim_back.pods, claim.pods);
  ASSERT_EQ(claim_back.drivers.size(), 1u);
  EXPECT_EQ(claim_back.drivers[0].driver, "gpu.example.com");
  EXPECT_EQ(claim_back.drivers[0].state, ClaimState::kPrepared);
  EXPECT_EQ(claim_back.drivers[0].devices, claim.drivers[0].devices);
  EXPECT_EQ(claim_back.drivers[0].cdi_devices, claim.drivers[0].cdi_devices);
  EXPECT_EQ(claim_back.drivers[0].last_error, "old error");

  PluginInfo plugin{"n",
                    PluginKind::kDra,
                    "/s.sock",
                    "v1.DRAPlugin",
                    PluginState::kConnected,
                    At(9),
                    "e"};
  plugin.via = PluginVia::kDirectory;
  plugin.breaker = PluginBreaker::kOpen;
  plugin.serves = true;
  plugin.calling_since = At(11);
  const PluginInfo plugin_back = FromProto(OverTheWire(ToProto(plugin)));
  EXPECT_EQ(plugin_back.name, plugin.name);
  EXPECT_EQ(plugin_back.kind, plugin.kind);
  EXPECT_EQ(plugin_back.endpoint, plugin.endpoint);
  EXPECT_EQ(plugin_back.version, plugin.version);
  EXPECT_EQ(plugin_back.state, plugin.state);
  EXPECT_EQ(plugin_back.registered_since, plugin.registered_since);
  EXPECT_EQ(plugin_back.last_error, plugin.last_error);
  EXPECT_EQ(plugin_back.via, PluginVia::kDirectory);
  EXPECT_EQ(plugin_back.breaker, PluginBreaker::kOpen);
  EXPECT_TRUE(plugin_back.serves);
  EXPECT_EQ(plugin_back.calling_since, plugin.calling_since);

  ResourceInfo resource;
  resource.owner = ResourceOwner::kDeviceClass;
  resource.state = ResourceState::kStopped;
  resource.device_class = "gpu";
  resource.drivers = {"a.example.com", "b.example.com"};
  const ResourceInfo resource_back = FromProto(OverTheWire(ToProto(resource)));
  EXPECT_EQ(resource_back.owner, ResourceOwner::kDeviceClass);
  EXPECT_EQ(resource_back.state, ResourceState::kStopped);
  EXPECT_EQ(resource_back.device_class, "gpu");
  EXPECT_EQ(resource_back.drivers, resource.drivers);

  DeviceInfo device{"d", "pool", "gpu-0", {"default/p"}, {"v/c=x"}};
  device.health = DeviceHealth::kUnhealthy;
  const DeviceInfo device_back = FromProto(OverTheWire(ToProto(device)));
  EXPECT_EQ(device_back.driver, device.driver);
  EXPECT_EQ(device_back.pool, device.pool);
  EXPECT_EQ(device_back.device, device.device);
  EXPECT_EQ(device_back.health, DeviceHealth::kUnhealthy);
  EXPECT_EQ(device_back.used_by, device.used_by);
  EXPECT_EQ(device_back.cdi_devices, device.cdi_devices);

  const DeviceClassInfo cls{"gpu", "example.com/gpu", "implicit/gpu", "note",
                            "newer"};
  const DeviceClassInfo cls_back = FromProto(OverTheWire(ToProto(cls)));
  EXPECT_EQ(cls_back.name, cls.name);
  EXPECT_EQ(cls_back.extended_resource_name, cls.extended_resource_name);
  EXPECT_EQ(cls_back.implicit_resource_name, cls.implicit_resource_name);
  EXPECT_EQ(cls_back.note, cls.note);
  EXPECT_EQ(cls_back.shadowed_by, cls.shadowed_by);
}

TEST(ConvertTest, NodeEventsAndDecisionsKeepTheirFields) {
  NodeInfo node;
  node.version = "1";
  node.node_name = "n";
  node.boot_id = "b";
  node.authority = Authority::kScheduler;
  node.authority_since = WallTime(std::chrono::milliseconds(1'700'000'000'000));
  node.authority_to = Authority::kNode;
  node.authority_wait = "the source has not listed all of its objects yet";
  node.authority_by_operator = "so";
  node.profile = Profile::kStrictKubelet;
  node.actuate = Actuate::kSource;
  node.state_dir = "/s";
  node.ledger_sequence = 42;
  node.ledger_error = "full";
  node.recovery = {false, true, 41, {"torn"}, 2, {"p/1", "p/2"}, "/k", "m"};
  node.started = At(5);
  node.source = "directory /m";
  node.source_complete = true;
  node.source_problems = {"a.yaml:1: bad"};
  node.object_problems = {{"Pod", {"default", "p"}, "a.yaml:1: bad"}};
  node.runtime = {"runtime /r.sock", true, At(6), "away", "cri 1", 7};
  node.pods = 1;
  node.pods_ready = 2;
  node.pods_waiting = 3;
  node.pods_rejected = 4;
  node.claims = 5;
  node.plugins = 6;
  const NodeInfo back = FromProto(OverTheWire(ToProto(node)));
  EXPECT_EQ(back.version, "1");
  EXPECT_EQ(back.node_name, "n");
  EXPECT_EQ(back.boot_id, "b");
  EXPECT_EQ(back.authority, Authority::kScheduler);
  EXPECT_EQ(back.authority_since, node.authority_since);
  EXPECT_EQ(back.authority_to, Authority::kNode);
  EXPECT_EQ(back.authority_wait, node.authority_wait);
  EXPECT_EQ(back.authority_by_operator, "so");
  EXPECT_EQ(back.profile, Profile::kStrictKubelet);
  EXPECT_EQ(back.actuate, Actuate::kSource);
  EXPECT_EQ(back.state_dir, "/s");
  EXPECT_EQ(back.ledger_sequence, 42u);
  EXPECT_EQ(back.ledger_error, "full");
  EXPECT_EQ(back.object_problems, node.object_problems);
  EXPECT_FALSE(back.recovery.closed_cleanly);
  EXPECT_TRUE(back.recovery.damaged);
  EXPECT_EQ(back.recovery.last_sequence, 41u);
  EXPECT_EQ(back.recovery.dropped, node.recovery.dropped);
  EXPECT_EQ(back.recovery.skipped, 2u);
  EXPECT_EQ(back.recovery.skipped_records, node.recovery.skipped_records);
  EXPECT_EQ(back.recovery.kept, "/k");
  EXPECT_EQ(back.recovery.message, "m");
  EXPECT_EQ(back.started, At(5));
  EXPECT_EQ(back.source, "directory /m");
  EXPECT_TRUE(back.source_complete);
  EXPECT_EQ(back.source_problems, node.source_problems);
  EXPECT_EQ(back.runtime, node.runtime);
  EXPECT_FALSE(FromProto(OverTheWire(ToProto(NodeInfo()))).runtime.has_value());
  EXPECT_EQ(back.pods, 1);
  EXPECT_EQ(back.pods_ready, 2);
  EXPECT_EQ(back.pods_waiting, 3);
  EXPECT_EQ(back.pods_rejected, 4);
  EXPECT_EQ(back.claims, 5);
  EXPECT_EQ(back.plugins, 6);

  EventInfo event{3,  At(1), true, "FailedPrepare", "Pod", {"default", "p"},
                  "m"};
  event.count = 313;
  event.first_time = At(7);
  const EventInfo event_back = FromProto(OverTheWire(ToProto(event)));
  EXPECT_EQ(event_back.sequence, 3u);
  EXPECT_EQ(event_back.time, At(1));
  EXPECT_TRUE(event_back.warning);
  EXPECT_EQ(event_back.reason, "FailedPrepare");
  EXPECT_EQ(event_back.object_kind, "Pod");
  EXPECT_EQ(event_back.object, event.object);
  EXPECT_EQ(event_back.message, "m");
  EXPECT_EQ(event_back.count, 313u);
  EXPECT_EQ(event_back.first_time, At(7));
  EXPECT_EQ(FromProto(pb::EventInfo()).count, 1u);  // an older daemon

  const DecisionInfo decision{
      9, At(2), DecisionKind::kRelease, {"a/p"}, {"a/c"}, "m", {"u"}};
  const DecisionInfo decision_back = FromProto(OverTheWire(ToProto(decision)));
  EXPECT_EQ(decision_back.sequence, 9u);
  EXPECT_EQ(decision_back.time, At(2));
  EXPECT_EQ(decision_back.kind, DecisionKind::kRelease);
  EXPECT_EQ(decision_back.pods, decision.pods);
  EXPECT_EQ(decision_back.claims, decision.claims);
  EXPECT_EQ(decision_back.message, "m");
  EXPECT_EQ(decision_back.uids, decision.uids);
}

TEST(ConvertTest, SourcesKeepEveryField) {
  SourceInfo info;
  info.name = "API server of /etc/k (node n1)";
  info.state = "Watching";
  info.server = "https://api.test";
  info.api_version = "resource.k8s.io/v1";
  info.resource_version = "501";
  info.last_list = At(1);
  info.last_event = At(2);
  info.known_at = At(3);
  info.last_error = "refused";
  info.queued = 4;
  info.complete = true;
  info.watch_restarts = 5;
  info.requests = {{"list", "pods", 200, 6}, {"watch", "pods", 0, 7}};
  const SourceInfo back = FromProto(OverTheWire(ToProto(info)));
  EXPECT_EQ(back.name, info.name);
  EXPECT_EQ(back.state, info.state);
  EXPECT_EQ(back.server, info.server);
  EXPECT_EQ(back.api_version, info.api_version);
  EXPECT_EQ(back.resource_version, info.resource_version);
  EXPECT_EQ(back.last_list, info.last_list);
  EXPECT_EQ(back.last_event, info.last_event);
  EXPECT_EQ(back.known_at, info.known_at);
  EXPECT_EQ(back.last_error, info.last_error);
  EXPECT_EQ(back.queued, 4u);
  EXPECT_TRUE(back.complete);
  EXPECT_EQ(back.watch_restarts, 5u);
  EXPECT_EQ(back.requests, info.requests);
  EXPECT_EQ(FromProto(OverTheWire(ToProto(SourceInfo()))).known_at, WallTime());
}

TEST(ConvertTest, ImpossibleTimesDoNotOverflow) {
  pb::EventInfo event;
  event.set_time_ms(std::numeric_limits<std::int64_t>::max());
  EXPECT_GT(FromProto(event).time, WallTime());
  event.set_time_ms(std::numeric_limits<std::int64_t>::min());
  EXPECT_LT(FromProto(event).time, WallTime());
}

}  // namespace
}  // namespace devmgr::server
