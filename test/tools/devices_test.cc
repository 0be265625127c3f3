// SPDX-License-Identifier: Apache-2.0
//
// get, describe and resolve of what device plugins bring.
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using std::chrono::minutes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class DevicesTest : public CommandLineTest {
 protected:
  DevicesTest() {
    node_.resources = {{"example.com/fpga", ResourceOwner::kDevicePlugin,
                        ResourceState::kLive, now_ - minutes(5), 3, 2, 1},
                       {"example.com/gpu", ResourceOwner::kDeviceClass,
                        std::nullopt, now_ - minutes(192), 0, 0, 4}};
    node_.devices = {Device("fpga-10", DeviceHealth::kUnhealthy),
                     Device("fpga-2", DeviceHealth::kHealthy),
                     Device("fpga-1", DeviceHealth::kHealthy),
                     {"gpu.example.com", "pool", "gpu-0", {"default/d"}, {}}};
    node_.devices[0].health_reason = "the plugin is gone";
    node_.devices[1].used_by = {"default/p"};
    node_.devices[1].numa_nodes = {0, 1};
    PluginInfo plugin;
    plugin.name = "example.com/fpga";
    plugin.kind = PluginKind::kDevicePlugin;
    plugin.endpoint = "/dp/fpga.sock";
    plugin.version = "v1beta1.DevicePlugin";
    plugin.state = PluginState::kLive;
    plugin.registered_since = now_ - minutes(5);
    plugin.via = PluginVia::kSocket;
    plugin.breaker = PluginBreaker::kHalfOpen;
    plugin.devices = 3;
    plugin.calls = 1;
    plugin.queued = 7;
    node_.plugins = {plugin};
  }

  DeviceInfo Device(const std::string& id, DeviceHealth health) const {
    DeviceInfo device;
    device.device = id;
    device.resource = "example.com/fpga";
    device.health = health;
    device.health_reason = "reported by the plugin";
    device.since = now_ - minutes(2);
    return device;
  }

  void AddEvent(const std::string& kind, const std::string& object,
                const std::string& message) {
    EventInfo event;
    event.sequence = node_.events.size() + 1;
    event.time = now_ - minutes(3);
    event.reason = "PluginGone";
    event.object_kind = kind;
    event.object = {"", object};
    event.message = message;
    node_.events.push_back(event);
  }
};

TEST_F(DevicesTest, ResourcesInEveryFormat) {
  EXPECT_EQ(Run({"get", "resources"}).out,
            "NAME               OWNER          STATE       CAPACITY    "
            "ALLOCATABLE   HELD   AGE\n"
            "example.com/fpga   DevicePlugin   Live        3           2      "
            "       1      5m\n"
            "example.com/gpu    DeviceClass    <unknown>   <unknown>   "
            "<unknown>     4      3h12m\n");
  EXPECT_EQ(Run({"get", "resource", "-o", "name"}).out,
            "resource/example.com/fpga\nresource/example.com/gpu\n");
  const auto list = RunJson({"get", "resources"});
  EXPECT_EQ(list["kind"], "ResourceList");
  EXPECT_EQ(list["items"][0].dump(),
            R"({"metadata":{"name":"example.com/fpga"},"status":{)"
            R"("owner":"DevicePlugin","state":"Live",)"
            R"("since":"2019-12-19T23:55:00.000Z",)"
            R"("capacity":3,"allocatable":2,"held":1}})");
  // What is not known is absent.
  EXPECT_FALSE(list["items"][1]["status"].contains("capacity"));
  EXPECT_FALSE(list["items"][1]["status"].contains("allocatable"));
}

TEST_F(DevicesTest, StoppedStoreKnowsOwnersAndHolders) {
  const Result result = Run({"get", "resources", "--state-dir", "/s"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("DeviceClass    <unknown>"));
  EXPECT_THAT(result.err, HasSubstr("known to a running daemon only"));
  const Result described =
      Run({"describe", "resource", "example.com/gpu", "--state-dir", "/s"});
  EXPECT_EQ(described.code, 0);
  EXPECT_THAT(described.out, HasSubstr("Held:          4\n"));
}

TEST_F(DevicesTest, BothKindsShareOneTable) {
  EXPECT_EQ(Run({"get", "devices"}).out,
            "RESOURCE/DRIVER    DEVICE       HEALTH      USED BY\n"
            "gpu.example.com    pool/gpu-0   <none>      default/d\n"
            "example.com/fpga   fpga-1       Healthy     <none>\n"
            "example.com/fpga   fpga-2       Healthy     default/p\n"
            "example.com/fpga   fpga-10      Unhealthy   <none>\n");
  EXPECT_THAT(Run({"get", "devices", "-o", "wide"}).out,
              AllOf(HasSubstr("NUMA"), HasSubstr("   0,1 "),
                    HasSubstr("the plugin is gone"), HasSubstr("   2m ")));
  EXPECT_EQ(Run({"get", "devices", "-o", "name"}).out,
            "device/gpu.example.com/pool/gpu-0\n"
            "device/example.com/fpga/fpga-1\n"
            "device/example.com/fpga/fpga-2\n"
            "device/example.com/fpga/fpga-10\n");
}

TEST_F(DevicesTest, OnlyThoseOfAResourceOrDriver) {
  const auto names = [&](const std::string& owner) {
    const Result result = Run({"get", "devices", owner, "-o", "name"});
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(names("gpu.example.com"), "device/gpu.example.com/pool/gpu-0\n");
  EXPECT_THAT(names("example.com/fpga"),
              AllOf(HasSubstr("fpga-10"), Not(HasSubstr("gpu.example"))));
  EXPECT_THAT(names("example.com/nope"), IsEmpty());
}

TEST_F(DevicesTest, DeviceOfAPluginForPrograms) {
  const auto items = RunJson({"get", "devices"})["items"];
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[2].dump(),
            R"({"metadata":{"name":"example.com/fpga/fpga-2"},"status":{)"
            R"("id":"fpga-2","resource":"example.com/fpga",)"
            R"("health":"Healthy","healthReason":"reported by the plugin",)"
            R"("since":"2019-12-19T23:58:00.000Z","numa":[0,1],)"
            R"("holder":"default/p"}})");
  EXPECT_EQ(items[1]["status"]["holder"], "");
  EXPECT_EQ(items[1]["status"]["numa"], nlohmann::ordered_json::array());
  EXPECT_EQ(items[0]["status"].dump(),
            R"({"driver":"gpu.example.com","pool":"pool","device":"gpu-0",)"
            R"("usedBy":["default/d"],"cdiDevices":[]})");
}

TEST_F(DevicesTest, PluginsShowTheirBulkheads) {
  node_.plugins[0].quarantined_until = now_ + minutes(1);
  EXPECT_EQ(Run({"get", "plugins", "-o", "wide", "--no-headers"}).out,
            "example.com/fpga   device-plugin   v1beta1.DevicePlugin   Live   "
            "no   5m   socket   3   HalfOpen   2019-12-20T00:01:00.000Z   1   "
            "7   <none>   /dp/fpga.sock   <none>\n");
  EXPECT_EQ(RunJson({"get", "plugins"})["items"][0]["status"].dump(),
            R"({"kind":"device-plugin","endpoint":"/dp/fpga.sock",)"
            R"("version":"v1beta1.DevicePlugin","state":"Live",)"
            R"("registeredSince":"2019-12-19T23:55:00.000Z","lastError":"",)"
            R"("serves":false,"calls":1,"queued":7,)"
            R"("via":"socket","breaker":"HalfOpen",)"
            R"("quarantinedUntil":"2019-12-20T00:01:00.000Z","devices":3})");
  EXPECT_THAT(Run({"get", "plugins", "--color=always"}).out,
              HasSubstr("\033[32mLive"));
}

TEST_F(DevicesTest, PluginsShowWhichInstanceServesAndSinceWhenADriverIsAsked) {
  PluginInfo driver;
  driver.name = "gpu.example.com";
  driver.kind = PluginKind::kDra;
  driver.endpoint = "/old.sock";
  node_.plugins = {driver, driver};
  node_.plugins[1].endpoint = "/new.sock";
  node_.plugins[1].serves = true;
  node_.plugins[1].calls = 2;
  node_.plugins[1].calling_since = now_ - minutes(1);
  const Result table = Run({"get", "plugins", "-o", "wide", "--no-headers"});
  EXPECT_THAT(table.out,
              AllOf(HasSubstr("2   0   2019-12-19T23:59:00.000Z   /new.sock"),
                    HasSubstr("0   0   <none>")));
  EXPECT_THAT(
      Run({"describe", "plugin", "gpu.example.com"}).out,
      AllOf(HasSubstr("2 under way"), HasSubstr("2019-12-19T23:59:00.000Z")));
  const auto items = RunJson({"get", "plugins"})["items"];
  EXPECT_EQ(items[0]["status"]["serves"], true);
  EXPECT_EQ(items[0]["status"]["callingSince"], "2019-12-19T23:59:00.000Z");
  EXPECT_EQ(items[1]["status"]["serves"], false);
}

TEST_F(DevicesTest, HealthThatADriverReportsIsShown) {
  node_.devices[3].health = DeviceHealth::kUnhealthy;
  node_.devices[3].health_reason = "too hot";
  EXPECT_THAT(Run({"get", "devices", "gpu.example.com", "-o", "wide"}).out,
              AllOf(HasSubstr("Unhealthy"), HasSubstr("too hot")));
  EXPECT_THAT(Run({"describe", "device", "gpu.example.com/pool/gpu-0"}).out,
              AllOf(HasSubstr("Unhealthy"), HasSubstr("too hot")));
}

TEST_F(DevicesTest, ANameOfAClassShowsItsClassAndDrivers) {
  node_.resources[1].device_class = "gpus";
  node_.resources[1].drivers = {"gpu.example.com"};
  EXPECT_THAT(Run({"get", "resources", "-o", "wide"}).out,
              HasSubstr("gpus     gpu.example.com"));
  EXPECT_THAT(
      Run({"describe", "resource", "example.com/gpu"}).out,
      AllOf(HasSubstr("Device class:   gpus"), HasSubstr("gpu.example.com")));
  const auto status = RunJson({"get", "resources"})["items"][1]["status"];
  EXPECT_EQ(status["deviceClass"], "gpus");
  EXPECT_EQ(status["drivers"][0], "gpu.example.com");
}

TEST_F(DevicesTest, DescribePluginShowsEveryInstance) {
  PluginInfo old = node_.plugins[0];
  old.state = PluginState::kDisconnected;
  old.last_error = "stream ended";
  node_.plugins.push_back(old);
  AddEvent("Plugin", "example.com/fpga", "went away");
  EXPECT_THAT(
      Run({"describe", "plugin", "example.com/fpga"}).out,
      AllOf(HasSubstr("Live"), HasSubstr("HalfOpen"),
            HasSubstr("1 under way, 7 queued"), HasSubstr("Disconnected"),
            HasSubstr("stream ended"), HasSubstr("went away")));
}

TEST_F(DevicesTest, DescribeResourceTellsFiguresHealthAndHolders) {
  AddEvent("Plugin", "example.com/fpga", "went away");
  AddEvent("Plugin", "example.com/other", "of another");
  const Result result = Run({"describe", "resource", "example.com/fpga"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(StartsWith("Name:          example.com/fpga\n"),
            HasSubstr("Capacity:      3\n"), HasSubstr("Allocatable:   2\n"),
            HasSubstr("HEALTH      DEVICES   HELD   REASON\n"),
            HasSubstr("Healthy     2         1      reported by the plugin\n"),
            HasSubstr("Unhealthy   1         0      the plugin is gone\n"),
            HasSubstr("default/p   fpga-2\n"), HasSubstr("went away"),
            Not(HasSubstr("default/d")), Not(HasSubstr("of another"))));
  EXPECT_EQ(RunJson({"describe", "resource", "example.com/fpga"})["kind"],
            "Resource");
  EXPECT_EQ(Run({"describe", "resource", "example.com/none"}).code, 3);
}

TEST_F(DevicesTest, DescribeDeviceByNameOrUniqueId) {
  const std::string expected =
      "Name:         fpga-2\n"
      "Resource:     example.com/fpga\n"
      "Health:       Healthy\n"
      "Reason:       reported by the plugin\n"
      "Since:        2019-12-19T23:58:00.000Z\n"
      "NUMA nodes:   0,1\n"
      "Used by:      default/p\n";
  EXPECT_EQ(Run({"describe", "device", "example.com/fpga/fpga-2"}).out,
            expected);
  EXPECT_EQ(Run({"describe", "device", "fpga-2"}).out, expected);
  EXPECT_THAT(Run({"describe", "device", "gpu.example.com/pool/gpu-0"}).out,
              AllOf(HasSubstr("Pool:"), Not(HasSubstr("Health"))));
  EXPECT_EQ(RunJson({"describe", "device", "fpga-2"})["status"]["id"],
            "fpga-2");
  EXPECT_EQ(Run({"describe", "device", "fpga-3"}).code, 3);

  node_.devices.push_back(Device("fpga-2", DeviceHealth::kHealthy));
  node_.devices.back().resource = "example.com/other";
  const Result ambiguous = Run({"describe", "device", "fpga-2"});
  EXPECT_EQ(ambiguous.code, 1);
  EXPECT_THAT(ambiguous.err, AllOf(HasSubstr("example.com/fpga/fpga-2"),
                                   HasSubstr("example.com/other/fpga-2")));
  EXPECT_EQ(Run({"describe", "device", "example.com/fpga/fpga-2"}).code, 0);
}

TEST_F(DevicesTest, ForeignIdsDoNotDriveTheTerminal) {
  node_.devices = {Device("bad\033[2J", DeviceHealth::kHealthy)};
  for (const char* format : {"table", "wide", "name"}) {
    EXPECT_THAT(Run({"get", "devices", "-o", format}).out,
                HasSubstr("bad?[2J"));
    EXPECT_THAT(Run({"describe", "device", "bad\033[2J", "-o", format}).out,
                HasSubstr("bad?[2J"));
  }
}

class ResolvePluginTest : public CommandLineTest {
 protected:
  ResolvePluginTest() {
    const std::string fpga = "example.com/fpga";
    ContainerDevices main;
    main.name = "main";
    main.cdi_devices.push_back({"v.com/c=x", {}});
    main.cdi_devices[0].origin.resource = fpga;
    main.env = {{"FPGAS", "secret", fpga}};
    main.mounts = {{"/in", "/host", true, fpga}};
    main.devices = {{"/dev/f", "/dev/f1", "rw", fpga}};
    main.annotations = {{"a", "b", fpga}};
    main.resources = {{fpga, {"fpga-1", "fpga-2"}}};
    PodDevices devices;
    devices.name = {"default", "p"};
    devices.uid = {"uid-p"};
    devices.containers = {main};
    node_.pods = {MakePod("default", "p", PodState::kReady)};
    node_.answer = devices;
  }
};

TEST_F(ResolvePluginTest, ProgramsGetOriginsAndNothingMasked) {
  const auto container = RunJson({"resolve", "p"})["containers"][0];
  const std::string origin = R"("origin":{"resource":"example.com/fpga",)"
                             R"("devices":["fpga-1","fpga-2"]}}])";
  EXPECT_EQ(container["env"].dump(),
            R"([{"name":"FPGAS","value":"secret",)" + origin);
  EXPECT_EQ(container["mounts"].dump(),
            R"([{"containerPath":"/in","hostPath":"/host","readOnly":true,)" +
                origin);
  EXPECT_EQ(container["devices"].dump(),
            R"([{"containerPath":"/dev/f","hostPath":"/dev/f1",)"
            R"("permissions":"rw",)" +
                origin);
  EXPECT_EQ(container["annotations"].dump(),
            R"([{"name":"a","value":"b",)" + origin);
  EXPECT_EQ(container["resources"].dump(),
            R"([{"name":"example.com/fpga","devices":["fpga-1","fpga-2"]}])");
}

TEST_F(ResolvePluginTest, PeopleSeeWhatComesFromWhere) {
  const std::string from = "   example.com/fpga fpga-1,fpga-2\n";
  const std::string expected =
      "CONTAINER   INJECTED      VALUE               FROM\n"
      "main        CDI device    v.com/c=x        " +
      from + "main        environment   FPGAS=***        " + from +
      "main        mount         /host:/in:ro     " + from +
      "main        device node   /dev/f1:/dev/f:rw" + from +
      "main        annotation    a=b              " + from;
  EXPECT_EQ(Run({"resolve", "p"}).out, expected);
  EXPECT_THAT(Run({"describe", "pod", "p"}).out, HasSubstr(expected));
  EXPECT_THAT(Run({"resolve", "p", "--show-env"}).out,
              HasSubstr("FPGAS=secret"));
}

}  // namespace
}  // namespace devmgr::ctl
