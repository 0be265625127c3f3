// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace devmgr::checkpoint {

/// Whether RocksDB can open a table of these bytes, whatever may have happened
/// to the records in it: its footer, and all blocks that are not records', are
/// as they were written. RocksDB reads some of them before it checks them, and
/// may end the process over what it finds.
bool FrameIsWhole(std::string_view table);

}  // namespace devmgr::checkpoint
