// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/witness.h"

#include <fmt/core.h>

#include <charconv>
#include <string>
#include <string_view>

#include "checkpoint/disk.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kText = "devmgr ledger held batch ";
constexpr std::string_view kOpen = "open";
constexpr std::string_view kClosed = "closed";

std::string Print(const Witness& witness) {
  return fmt::format("{}{}\n{}\n", kText, witness.seq,
                     witness.closed ? kClosed : kOpen);
}

std::optional<Witness> Parse(std::string_view text) {
  Witness witness;
  if (!text.starts_with(kText)) return std::nullopt;
  text.remove_prefix(kText.size());
  std::from_chars(text.data(), text.data() + text.size(), witness.seq);
  for (const bool closed : {false, true}) {
    witness.closed = closed;
    if (Print(witness).substr(kText.size()) == text) return witness;
  }
  return std::nullopt;
}

}  // namespace

fs::path WitnessPath(const fs::path& directory) {
  return directory / "witness";
}

absl::StatusOr<std::optional<Witness>> ReadWitness(rocksdb::FileSystem& disk,
                                                   const fs::path& directory) {
  const fs::path path = WitnessPath(directory);
  DEVMGR_ASSIGN_OR_RETURN(const auto bytes, ReadFileIfAny(disk, path));
  if (!bytes.has_value()) return std::optional<Witness>();
  if (const auto text = Unseal(*bytes)) {
    if (const auto witness = Parse(*text)) return witness;
  }
  return DataLossError("'{}' is damaged", path.string());
}

absl::Status WriteWitness(rocksdb::FileSystem& disk, const fs::path& directory,
                          const Witness& witness) {
  DEVMGR_RETURN_IF_ERROR(
      ReplaceFile(disk, WitnessPath(directory), Seal(Print(witness))));
  return SyncDirectory(disk, directory);
}

}  // namespace devmgr::checkpoint
