// SPDX-License-Identifier: Apache-2.0
#include <devmgr/runtime_source.h>

#include <algorithm>

namespace devmgr {

bool PodRun::IsRunning() const {
  return std::any_of(sandboxes.begin(), sandboxes.end(),
                     [](const SandboxRun& one) { return one.ready; }) ||
         std::any_of(containers.begin(), containers.end(),
                     [](const ContainerRun& one) {
                       return one.state != RuntimeContainer::State::kExited;
                     });
}

bool RuntimeSource::Refresh(std::function<void()>) { return false; }

void RuntimeSource::Expect(bool) {}

}  // namespace devmgr
