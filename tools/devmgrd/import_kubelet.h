// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace devmgrd {

/// Takes over what the pods of a kubelet hold, once (`--import-kubelet`).
/// Whatever its files are like, the daemon starts: what is wrong with them is
/// logged. `boot_id` is the ID of this boot; the kernel's when empty.
void ImportFromKubelet(const std::filesystem::path& state_dir,
                       const std::filesystem::path& kubelet_dir,
                       const std::string& boot_id);

}  // namespace devmgrd
