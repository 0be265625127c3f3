// SPDX-License-Identifier: Apache-2.0
//
// Follows what happens to the devices of this node: changes [SOCKET]. Survives
// restarts of devmgrd without missing an allocation or a release.
#include <devmgr/inspection.h>

#include <iostream>
#include <thread>

int main(int argc, char** argv) {
  using std::chrono::seconds;
  const char* socket = argc > 1 ? argv[1] : "/run/devmgr/devmgr.sock";
  devmgr::ChangesFrom from = devmgr::FromSnapshot();
  for (;; std::this_thread::sleep_for(seconds(1))) {
    auto devmgrd = devmgr::Inspector::Connect(socket, seconds(2));
    while (devmgrd.ok()) {
      const auto some = (*devmgrd)->Changes(from, seconds(30));
      // We were away for too long: what we know does not count any more.
      if (absl::IsOutOfRange(some.status())) from = devmgr::FromSnapshot();
      if (!some.ok()) break;
      for (const devmgr::DeviceChange& change : some->changes) {
        std::cout << change.kind.name() << " " << change.pod.ToString() << "/"
                  << change.container.value << " " << change.resource.value
                  << change.driver;
        for (const auto& device : change.devices)
          std::cout << " " << device.value;
        std::cout << std::endl;
      }
      from = some->next;
    }
  }
}
