// SPDX-License-Identifier: Apache-2.0
//
// The ledger's records may come back damaged. What is accepted must survive
// another way to the disk and back, and must not break the projection.
#include <string_view>

#include "checkpoint/codec.h"
#include "checkpoint/keys.h"
#include "common/status.h"
#include "fuzz/fuzz.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::fuzz {
namespace {

/// What was decoded comes back as the same bytes.
template <typename Decode, typename Encode>
void CheckRoundTrip(std::string_view bytes, Decode decode, Encode encode) {
  const auto first = decode(bytes);
  if (!first.ok()) {
    RequireReadable(MessageOf(first.status()));
    return;
  }
  const auto written = encode(*first);
  const auto second = decode(written);
  Require(second.ok(), "what was written is read");
  Require(encode(*second) == written, "what was read is written as it was");
}

void CheckRecords(std::string_view bytes) {
  using namespace checkpoint;  // NOLINT(google-build-using-namespace)
  CheckRoundTrip(
      bytes, [](auto b) { return DecodePod(b, "pod/x"); },
      [](const auto& pod) { return EncodePod(*pod); });
  CheckRoundTrip(
      bytes, [](auto b) { return DecodeClaim(b, "claim/x"); },
      [](const auto& claim) { return EncodeClaim(*claim); });
  CheckRoundTrip(
      bytes, [](auto b) { return DecodeIdentity(b, "id/x"); },
      [](const auto& identity) { return EncodeIdentity(*identity); });
  CheckRoundTrip(
      bytes, [](auto b) { return DecodeHolder(b, "f/x"); },
      [](const auto& holder) { return EncodeHolder(*holder); });
  CheckRoundTrip(
      bytes, [](auto b) { return DecodeBatch(b, "batch/1"); },
      [](const auto& batch) { return EncodeBatch(batch); });
}

/// Keys of records, as a store lists them.
void CheckKey(std::string_view key) {
  const auto kind = checkpoint::KindOf(key);
  const auto seq = checkpoint::HistorySeq(key);
  if (seq.has_value()) {
    Require(kind == checkpoint::KeyKind::kHistory, "only history is numbered");
    Require(checkpoint::HistoryKey(*seq) == key, "a number makes its key");
  }
  if (!key.empty()) RequireReadable(checkpoint::PrintKey(key));
}

/// A batch is taken whole or not at all, and what it left can be judged.
void CheckProjection(std::string_view bytes) {
  const auto batch = checkpoint::DecodeBatch(bytes, "batch/1");
  if (!batch.ok()) return;
  state::State before;
  before.seq = batch->seq - 1;
  state::State after = before;
  const absl::Status applied = state::Apply(after, *batch);
  if (applied.ok()) {
    Require(after.seq == batch->seq, "a batch that was applied is counted");
  } else {
    RequireReadable(MessageOf(applied));
    Require(after == before, "a batch that is refused changes nothing");
  }
  for (const std::string& violation : state::CheckInvariants(after)) {
    RequireReadable(violation);
  }
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  devmgr::fuzz::CheckRecords(bytes);
  devmgr::fuzz::CheckKey(bytes.substr(0, 256));
  devmgr::fuzz::CheckProjection(bytes);
  return 0;
}
