// SPDX-License-Identifier: Apache-2.0
//
// A kubelet for the test of a device plugin, in milliseconds: it serves the
// registry socket, asks for devices as a pod would, and shows what a container
// gets. Here the plugin is the library's fake; put yours in its place, in this
// process or another, with `DIR/device-plugins/kubelet.sock` as the registry.
#include <devmgr/device_manager.h>
#include <devmgr/testing.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>

namespace {

constexpr char kResource[] = "example.com/gpu";
constexpr std::chrono::seconds kPatience(10);

/// Waits until the pod has its devices.
struct Waiter : devmgr::DeviceManagerObserver {
  void OnPod(const devmgr::PodInfo& pod, bool) override {
    if (done || pod.state != devmgr::PodState::kReady) return;
    done = true;
    ready.set_value();
  }
  bool done = false;
  std::promise<void> ready;
};

devmgr::Pod PodThatWants(int count) {
  devmgr::Pod pod;
  pod.metadata.ns = "default";
  pod.metadata.name = "test";
  pod.metadata.uid = "uid-of-test";
  pod.spec.containers.resize(1);
  pod.spec.containers[0].name = "main";
  pod.spec.containers[0].resources.limits[kResource] = {count, 0,
                                                        std::to_string(count)};
  return pod;
}

int Fail(const std::string& why) {
  std::fprintf(stderr, "plugin-test: %s\n", why.c_str());
  return 1;
}

int Test(const std::filesystem::path& dir) {
  devmgr::DeviceManagerOptions options;
  options.ledger.in_memory = true;
  options.device_plugin_dir = dir / "device-plugins";
  options.actuate = devmgr::Actuate::kWanted;
  Waiter waiter;
  devmgr::Host host;
  host.observers = {&waiter};
  auto manager = devmgr::DeviceManager::Open(options, host);
  if (!manager.ok()) return Fail(manager.status().ToString());
  const devmgr::Pod pod = PodThatWants(2);
  const absl::Status wanted = (*manager)->WantPod(pod);
  if (!wanted.ok()) return Fail(wanted.ToString());

  // Your plugin comes here. It may come late: the pod waits for it.
  devmgr::testing::FakeDevicePluginOptions plugin_options;
  plugin_options.resource = kResource;
  plugin_options.root = dir;
  plugin_options.pre_start = true;
  auto plugin = devmgr::testing::FakeDevicePlugin::Start(plugin_options);
  if (!plugin.ok()) return Fail(plugin.status().ToString());

  const devmgr::PodUid uid{pod.metadata.uid};
  auto ready = waiter.ready.get_future();
  if (ready.wait_for(kPatience) != std::future_status::ready) {
    return Fail((*manager)->View()->PodInfoOf(uid)->message);
  }
  const auto devices = (*manager)->ContainerDevicesOf(uid, "main");
  if (!devices.ok()) return Fail(devices.status().ToString());
  for (const auto& variable : (*devices)->env) {
    std::printf("env %s=%s\n", variable.name.c_str(), variable.value.c_str());
  }
  for (const auto& node : (*devices)->devices) {
    std::printf("device %s\n", node.container_path.c_str());
  }
  const absl::Status start = (*manager)->BeforeContainerStart(uid, "main");
  if (!start.ok()) return Fail(start.ToString());
  const bool as_asked = (*devices)->devices.size() == 2;
  return as_asked ? 0 : Fail("two devices were asked for");
}

}  // namespace

int main() {
  std::string dir = "/tmp/plugin-test-XXXXXX";
  if (mkdtemp(dir.data()) == nullptr) return Fail("no temporary folder");
  const int code = Test(dir);
  std::filesystem::remove_all(dir);
  return code;
}
