// SPDX-License-Identifier: Apache-2.0
//
// A driver's answer is input: it is checked here, and comes out as one word
// per claim that was asked for.
#pragma once

#include <string>
#include <vector>

#include "dra/api_version.h"
#include "dra/claims.h"

namespace devmgr::dra {

/// Bounds of one claim's answer.
inline constexpr std::size_t kMaxDevicesPerClaim = 256;
inline constexpr std::size_t kMaxCdiDevicesPerDevice = 256;
inline constexpr std::size_t kMaxRequestsPerDevice = 256;
inline constexpr std::size_t kMaxNameBytes = 1024;
/// Of an error text, which is made readable (api/quote.h).
inline constexpr std::size_t kMaxErrorBytes = 4096;

/// Checks what came for `asked`. A claim without an answer, with an error, or
/// with devices that cannot be (names, sizes, CDI names that are not fully
/// qualified) has an error; an answer for a claim that was not asked about
/// fails all of them.
PrepareAnswer CheckPrepareAnswer(const std::vector<ClaimReference>& asked,
                                 const absl::StatusOr<RawAnswer>& raw);
UnprepareAnswer CheckUnprepareAnswer(const std::vector<ClaimReference>& asked,
                                     const absl::StatusOr<RawAnswer>& raw);

}  // namespace devmgr::dra
