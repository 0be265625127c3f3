// SPDX-License-Identifier: Apache-2.0
//
// The main job in process: watch a directory of manifests, have DRA drivers
// prepare what pods need, and print what each container gets. A CRI shim would
// call ContainerDevicesOf when the runtime creates a container.
//
//   embed ROOT NAMESPACE/POD     ROOT as for devmgrd --root
#include <devmgr/device_manager.h>
#include <devmgr/host.h>

#include <cstdio>
#include <future>
#include <string>

/// Waits until a pod is Ready or Rejected.
struct Waiter : devmgr::DeviceManagerObserver {
  explicit Waiter(std::string name) : pod(std::move(name)) {}
  void OnPod(const devmgr::PodInfo& info, bool) override {
    const bool final = info.state == devmgr::PodState::kReady ||
                       info.state == devmgr::PodState::kRejected;
    if (done || !final || info.name.ToString() != pod) return;
    done = true;
    result.set_value(info);
  }
  const std::string pod;
  bool done = false;
  std::promise<devmgr::PodInfo> result;
};

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: embed ROOT NS/POD\n"), 2;
  const std::filesystem::path root = argv[1];
  auto source = devmgr::WatchManifests(root / "manifests");
  Waiter waiter(argv[2]);
  devmgr::Host host;
  host.objects = source.get();
  host.observers = {&waiter};
  devmgr::DeviceManagerOptions options;
  options.state_dir = root / "state";
  options.plugin_registry_dir = root / "plugins_registry";
  options.actuate = devmgr::Actuate::kSource;
  auto manager = devmgr::DeviceManager::Open(options, host);
  if (!manager.ok()) {
    std::fprintf(stderr, "%s\n", manager.status().ToString().c_str());
    return 1;
  }

  const devmgr::PodInfo pod = waiter.result.get_future().get();
  const auto devices = (*manager)->PodDevicesOf(pod.uid);
  if (!devices.ok()) {
    std::fprintf(stderr, "%s\n", devices.status().ToString().c_str());
  } else {
    for (const auto& container : (*devices)->containers) {
      std::printf("%s:", container.name.value.c_str());
      for (const auto& device : container.cdi_devices) {
        std::printf(" %s", device.name.c_str());
      }
      std::printf("\n");
    }
  }
  return devices.ok() ? 0 : 1;
}
