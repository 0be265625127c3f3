// SPDX-License-Identifier: Apache-2.0
#include "endpoint/later_files.h"

#include <fmt/core.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>
#include <string_view>

#include "common/atomic_file.h"
#include "common/status.h"
#include "endpoint/object_files.h"

namespace devmgr::endpoint {
namespace {

namespace fs = std::filesystem;

/// FNV-1a: what a power failure has cut short, or left as zeros, has another.
std::uint64_t ChecksumOf(std::string_view text) {
  std::uint64_t sum = 0xCBF29CE484222325U;
  for (const char c : text) {
    sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  return sum;
}

std::string Sha256Of(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest.data());
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

/// False: it is not whole. Reads the key from the text when there is none yet.
bool ReadLater(std::string_view text, JournalEntry& entry) {
  const std::size_t end = text.find('\n');
  const std::size_t space = text.find(' ');
  if (end == std::string_view::npos || space >= end) return false;
  const char* const last = text.data() + space;
  const auto [stop, error] = std::from_chars(text.data(), last, entry.revision);
  std::string_view rest = text.substr(end + 1);
  if (error != std::errc() || stop != last ||
      text.substr(space + 1, end - space - 1) !=
          fmt::format("{:016x}", ChecksumOf(rest))) {
    return false;
  }
  if (entry.key.empty()) {
    const std::size_t key_end = rest.find('\n');
    if (key_end == std::string_view::npos) return false;
    entry.key = rest.substr(0, key_end);
    rest.remove_prefix(key_end + 1);
  }
  entry.value = rest;
  return !entry.value.empty();
}

}  // namespace

absl::Status LaterFiles::Put(const JournalEntry& entry) const {
  const bool has_path = ObjectPath(entry.key).has_value();
  const std::string rest =
      has_path ? entry.value : entry.key + "\n" + entry.value;
  return WriteFileAtomically(
      PathOf(entry.key),
      fmt::format("{} {:016x}\n{}", entry.revision, ChecksumOf(rest), rest),
      IfPresent::kReplace, FileMode::kPrivate, Durability::kLater);
}

absl::Status LaterFiles::Remove(const std::string& key) const {
  return UnlinkFile(PathOf(key));
}

absl::Status LaterFiles::AddTo(JournalContent& content) const {
  std::set<std::string> durable;
  for (const JournalEntry& entry : content.entries) durable.insert(entry.key);
  return VisitFilesBelow(folder_, [&](const fs::path& file) -> absl::Status {
    DEVMGR_ASSIGN_OR_RETURN(const std::string text, ReadObjectFile(file));
    JournalEntry entry;
    entry.is_later = true;
    entry.key = ObjectKeyOf(file.lexically_relative(folder_));
    // A temporary file is whole, too, when a kill kept it from its place.
    if (!ReadLater(text, entry) || PathOf(entry.key) != file ||
        durable.contains(entry.key)) {
      return UnlinkFile(file);
    }
    content.last_revision = std::max(content.last_revision, entry.revision);
    content.entries.push_back(std::move(entry));
    return absl::OkStatus();
  });
}

fs::path LaterFiles::PathOf(const std::string& key) const {
  return folder_ / ObjectPath(key).value_or(Sha256Of(key));
}

}  // namespace devmgr::endpoint
