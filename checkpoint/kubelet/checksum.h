// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace devmgr::kubelet_checkpoint {

/// FNV-1a of 32 bits of nothing.
inline constexpr std::uint32_t kFnv1a32OfNothing = 0x811C9DC5U;

/// FNV-1a of 32 bits, which the kubelet takes over the Go dump of a value
/// (`pkg/util/hash`): of a text whose beginning has the hash `before`, and
/// which goes on with `text`.
std::uint32_t ExtendFnv1a32(std::uint32_t before, std::string_view text);

/// CRC-32 of IEEE 802.3, reflected, which the kubelet takes over the inner text
/// of `dra_manager_state` (`hash/crc32`). The ledger has another one, CRC-32C.
std::uint32_t Crc32(std::string_view text);

}  // namespace devmgr::kubelet_checkpoint
