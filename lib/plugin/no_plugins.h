// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/executor.h"
#include "plugin/plugins.h"

namespace devmgr::plugin {

/// A node without device plugins: every call ends with Unavailable. `executor`
/// is borrowed.
std::unique_ptr<Plugins> NewNoPlugins(Executor& executor);

}  // namespace devmgr::plugin
