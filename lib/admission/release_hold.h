// SPDX-License-Identifier: Apache-2.0
//
// Whether the devices of a pod that is not wanted any more may be taken from
// it. The kubelet does so when it has ended the pod's containers itself; here
// others end them. Pure.
#pragma once

#include <devmgr/runtime_source.h>
#include <devmgr/status_types.h>

#include <optional>
#include <string>

namespace devmgr::admission {

/// Reasons of the waits.
inline constexpr char kContainersRunning[] = "ContainersRunning";
inline constexpr char kRuntimeUnknown[] = "RuntimeUnknown";

/// What is waited for at a runtime that describes itself as `source`: without
/// the word `runtime`, which is its kind.
WaitingFor RuntimeAwaited(const std::string& source);

/// What the release of `pod` waits for: the end of what `runtime` runs of it,
/// or until it is known what it runs. Nothing: it runs nothing. `source` is the
/// runtime as it describes itself.
std::optional<Verdict> WhyReleaseWaits(const RuntimeSnapshot& runtime,
                                       const PodUid& pod,
                                       const std::string& source);

/// What a pod waits for that has to leave its devices, where no runtime says
/// what runs: until it is gone.
Verdict WhyEvictionWaits();

/// What it waits for while the runtime is asked.
Verdict WhyReleaseAsks(const std::string& source, WallTime since);

}  // namespace devmgr::admission
