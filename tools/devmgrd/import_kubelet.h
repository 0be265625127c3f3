// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <string>

namespace devmgrd {

/// Takes over what the pods of a kubelet hold, once (`--import-kubelet`). OK,
/// too, when there are no files of a kubelet, when the ledger holds something
/// already, and when files are damaged: that is logged, and the daemon starts.
/// `boot_id` is the ID of this boot; the kernel's when empty.
///   PermissionDenied, Unavailable
///     a file cannot be read or written. The daemon must not start: devices
///     that pods hold would be free, and the next start would find a ledger
///     that holds something
absl::Status ImportFromKubelet(const std::filesystem::path& state_dir,
                               const std::filesystem::path& kubelet_dir,
                               const std::string& boot_id);

}  // namespace devmgrd
