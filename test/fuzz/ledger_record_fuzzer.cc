// SPDX-License-Identifier: Apache-2.0
//
// The ledger's records may come back damaged. What is accepted must survive
// another way to the disk and back, and must not break the projection.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "checkpoint/codec.h"

using devmgr::checkpoint::DecodeBatch;
using devmgr::checkpoint::DecodeClaim;
using devmgr::checkpoint::DecodeIdentity;
using devmgr::checkpoint::DecodePod;
using devmgr::checkpoint::EncodeBatch;
using devmgr::checkpoint::EncodeClaim;
using devmgr::checkpoint::EncodeIdentity;
using devmgr::checkpoint::EncodePod;

namespace {

/// Aborts when what was decoded does not come back as the same bytes.
template <typename Decode, typename Encode>
void CheckRoundTrip(std::string_view bytes, Decode decode, Encode encode) {
  const auto first = decode(bytes);
  if (!first.ok()) return;
  const auto written = encode(*first);
  const auto second = decode(written);
  if (!second.ok() || encode(*second) != written) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckRoundTrip(
      bytes, [](std::string_view b) { return DecodePod(b, "pod/x"); },
      [](const auto& pod) { return EncodePod(*pod); });
  CheckRoundTrip(
      bytes, [](std::string_view b) { return DecodeClaim(b, "claim/x"); },
      [](const auto& claim) { return EncodeClaim(*claim); });
  CheckRoundTrip(
      bytes, [](std::string_view b) { return DecodeIdentity(b, "id/x"); },
      [](const auto& identity) { return EncodeIdentity(*identity); });
  CheckRoundTrip(
      bytes, [](std::string_view b) { return DecodeBatch(b, "batch/1"); },
      [](const auto& batch) { return EncodeBatch(batch); });
  return 0;
}
