// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/types.h>

#include <functional>
#include <string>

#include "manager/device_book.h"
#include "plugin/plugins.h"
#include "state/state.h"

namespace devmgr::manager {

/// Asks the plugins for PreStartContainer that are to be asked before this
/// container of a Ready pod starts, all at once. What the ledger holds decides
/// whom to ask, so that nobody is left out because he is not back yet. For the
/// manager's thread; `done` runs there once, with the first error. The plugins
/// are borrowed.
///   NotFound            the pod does not exist, or has no such container
///   FailedPrecondition  the pod is not Ready, or not in this boot
///   Unavailable         a plugin that is to be asked is not there
///   others              as the plugin answered
void AskBeforeStart(const state::State& state, const std::string& boot_id,
                    const DeviceBook& devices, plugin::Plugins& plugins,
                    const PodUid& pod, const std::string& container,
                    std::function<void(absl::Status)> done);

}  // namespace devmgr::manager
