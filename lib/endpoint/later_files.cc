// SPDX-License-Identifier: Apache-2.0
#include "endpoint/later_files.h"

#include <fmt/core.h>

#include <algorithm>
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

/// False: it is not whole.
bool ReadLater(std::string_view text, JournalEntry& entry) {
  const std::size_t end = text.find('\n');
  const std::size_t space = text.find(' ');
  if (end == std::string_view::npos || space >= end) return false;
  const char* const last = text.data() + space;
  const auto [stop, error] = std::from_chars(text.data(), last, entry.revision);
  entry.value = text.substr(end + 1);
  return error == std::errc() && stop == last && !entry.value.empty() &&
         text.substr(space + 1, end - space - 1) ==
             fmt::format("{:016x}", ChecksumOf(entry.value));
}

}  // namespace

absl::Status LaterFiles::Put(const JournalEntry& entry) const {
  DEVMGR_ASSIGN_OR_RETURN(const fs::path path, ObjectPath(entry.key));
  return WriteFileAtomically(folder_ / path,
                             fmt::format("{} {:016x}\n{}", entry.revision,
                                         ChecksumOf(entry.value), entry.value),
                             IfPresent::kReplace, FileMode::kPrivate,
                             Durability::kLater);
}

absl::Status LaterFiles::Remove(const std::string& key) const {
  DEVMGR_ASSIGN_OR_RETURN(const fs::path path, ObjectPath(key));
  return UnlinkFile(folder_ / path);
}

absl::Status LaterFiles::AddTo(JournalContent& content) const {
  std::set<std::string> durable;
  for (const JournalEntry& entry : content.entries) durable.insert(entry.key);
  return VisitFilesBelow(folder_, [&](const fs::path& file) -> absl::Status {
    DEVMGR_ASSIGN_OR_RETURN(const std::string text, ReadObjectFile(file));
    JournalEntry entry;
    entry.is_later = true;
    entry.key = ObjectKeyOf(file.lexically_relative(folder_));
    if (!ReadLater(text, entry) || entry.key.empty() ||
        durable.contains(entry.key)) {
      return UnlinkFile(file);
    }
    content.last_revision = std::max(content.last_revision, entry.revision);
    content.entries.push_back(std::move(entry));
    return absl::OkStatus();
  });
}

}  // namespace devmgr::endpoint
