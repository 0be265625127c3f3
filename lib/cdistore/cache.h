// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cdi_cache.h>

#include <memory>

#include "watcher/directory_watcher.h"

namespace devmgr::cdistore {

/// CdiCache::Open with a watcher's options, for tests.
absl::StatusOr<std::unique_ptr<CdiCache>> OpenCdiCache(
    CdiCacheOptions options, watcher::WatchOptions watch);

}  // namespace devmgr::cdistore
