// SPDX-License-Identifier: Apache-2.0
#include <devmgr/runtime_inspection.h>
#include <devmgr/runtime_source.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "common/enum_names.h"

namespace devmgr {

std::string_view RuntimeContainerStateName(RuntimeContainer::State state) {
  using enum RuntimeContainer::State;
  static constexpr auto kNames = EnumTable<RuntimeContainer::State>({
      {kCreated, "created"},
      {kRunning, "running"},
      {kExited, "exited"},
      {kUnknown, "unknown"},
  });
  return kNames.Of(state, "unknown");
}

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
