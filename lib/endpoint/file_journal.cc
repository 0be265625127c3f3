// SPDX-License-Identifier: Apache-2.0
#include "endpoint/file_journal.h"

#include <fmt/core.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "api/quote.h"
#include "common/atomic_file.h"
#include "common/status.h"

namespace devmgr::endpoint {
namespace {

namespace fs = std::filesystem;

constexpr char kLastRevision[] = "last-revision";
constexpr char kReservedRevision[] = "reserved-revision";
constexpr char kNoGroup[] = "core";
constexpr char kNoNamespace[] = "_";
constexpr std::size_t kParts = 4;

std::vector<std::string> Parts(std::string_view key) {
  std::vector<std::string> parts(1);
  for (const char c : key) {
    if (c == '/') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// A part of a path that stays below the folder, and is no temporary file.
bool IsPlain(const std::string& part) {
  return !part.empty() && part != "." && part != ".." &&
         part.find('\0') == std::string::npos && !part.ends_with(".tmp");
}

absl::StatusOr<fs::path> PathOf(const std::string& key) {
  std::vector<std::string> parts = Parts(key);
  if (parts.size() == kParts) {
    if (parts[0].empty()) parts[0] = kNoGroup;
    if (parts[2].empty()) parts[2] = kNoNamespace;
  }
  fs::path path;
  for (const std::string& part : parts) {
    if (parts.size() != kParts || !IsPlain(part)) {
      return InvalidArgumentError("no object can be kept under the key {}",
                                  api::Quoted(key));
    }
    path /= part;
  }
  return path;
}

std::string KeyOf(const fs::path& path) {
  std::vector<std::string> parts(path.begin(), path.end());
  if (parts.size() != kParts) return "";
  if (parts[0] == kNoGroup) parts[0].clear();
  if (parts[2] == kNoNamespace) parts[2].clear();
  return fmt::format("{}/{}/{}/{}", parts[0], parts[1], parts[2], parts[3]);
}

absl::StatusOr<std::string> Contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in.is_open() || in.bad()) {
    return UnavailableError("cannot read '{}': {}", file.string(),
                            std::generic_category().message(errno));
  }
  return text;
}

/// Takes the number off the first line of `text`; false when there is none.
bool TakeRevision(std::string_view& text, std::uint64_t& revision) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  const char* const last = text.data() + end;
  const auto [stop, error] = std::from_chars(text.data(), last, revision);
  if (error != std::errc() || stop != last || end == 0) return false;
  text.remove_prefix(end + 1);
  return true;
}

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

/// Not necessarily on disk on return.
absl::Status Unlink(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (!error || error == std::errc::not_a_directory) return absl::OkStatus();
  return UnavailableError("cannot remove '{}': {}", file.string(),
                          error.message());
}

absl::Status CannotRead(const fs::path& folder, const std::error_code& error) {
  return UnavailableError("cannot read '{}': {}", folder.string(),
                          error.message());
}

absl::Status NotWrittenHere(const fs::path& file) {
  return DataLossError(
      "'{}' is not as the endpoint for drivers wrote it; when it is removed, "
      "the driver publishes what it held anew",
      file.string());
}

}  // namespace

absl::Status FileJournal::KeepRevision(const char* name,
                                       std::uint64_t revision) const {
  return WriteFileAtomically(folder_ / name, fmt::format("{}\n", revision),
                             IfPresent::kReplace, FileMode::kPrivate);
}

absl::Status FileJournal::Append(const JournalEntry& entry) {
  DEVMGR_ASSIGN_OR_RETURN(const fs::path path, PathOf(entry.key));
  const fs::path file = folder_ / path;
  if (entry.value.empty()) {
    // First, so that its number is not given again.
    DEVMGR_RETURN_IF_ERROR(KeepRevision(kLastRevision, entry.revision));
    DEVMGR_RETURN_IF_ERROR(RemoveFile(file));
  } else {
    DEVMGR_RETURN_IF_ERROR(WriteFileAtomically(
        file, fmt::format("{}\n{}", entry.revision, entry.value),
        IfPresent::kReplace, FileMode::kPrivate));
  }
  return Unlink(later_ / path);
}

absl::Status FileJournal::AppendLater(const JournalEntry& entry) {
  DEVMGR_ASSIGN_OR_RETURN(const fs::path path, PathOf(entry.key));
  if (entry.value.empty()) return Unlink(later_ / path);
  return WriteFileAtomically(later_ / path,
                             fmt::format("{} {:016x}\n{}", entry.revision,
                                         ChecksumOf(entry.value), entry.value),
                             IfPresent::kReplace, FileMode::kPrivate,
                             Durability::kLater);
}

absl::Status FileJournal::Reserve(std::uint64_t revision) {
  return KeepRevision(kReservedRevision, revision);
}

absl::Status FileJournal::End(std::uint64_t last_revision) {
  DEVMGR_RETURN_IF_ERROR(KeepRevision(kLastRevision, last_revision));
  return RemoveFile(folder_ / kReservedRevision);
}

absl::StatusOr<JournalContent> FileJournal::Replay() {
  JournalContent content;
  DEVMGR_RETURN_IF_ERROR(ReplayFolder(content));
  DEVMGR_RETURN_IF_ERROR(ReplayLater(content));
  return content;
}

absl::Status FileJournal::ReplayFolder(JournalContent& content) const {
  std::error_code error;
  fs::recursive_directory_iterator files(folder_, error);
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  for (; !error && files != fs::recursive_directory_iterator();
       files.increment(error)) {
    const fs::path& file = files->path();
    if (files->is_directory() || file.extension() == ".tmp") continue;
    DEVMGR_ASSIGN_OR_RETURN(const std::string text, Contents(file));
    std::string_view rest = text;
    JournalEntry entry;
    if (!TakeRevision(rest, entry.revision)) return NotWrittenHere(file);
    content.last_revision = std::max(content.last_revision, entry.revision);
    if (file == folder_ / kLastRevision ||
        file == folder_ / kReservedRevision) {
      continue;
    }
    entry.key = KeyOf(file.lexically_relative(folder_));
    entry.value = rest;
    if (entry.key.empty() || rest.empty()) return NotWrittenHere(file);
    content.entries.push_back(std::move(entry));
  }
  if (!error) return absl::OkStatus();
  return CannotRead(folder_, error);
}

absl::Status FileJournal::ReplayLater(JournalContent& content) const {
  std::set<std::string> durable;
  for (const JournalEntry& entry : content.entries) durable.insert(entry.key);
  std::error_code error;
  fs::recursive_directory_iterator files(later_, error);
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  for (; !error && files != fs::recursive_directory_iterator();
       files.increment(error)) {
    const fs::path& file = files->path();
    if (files->is_directory()) continue;
    DEVMGR_ASSIGN_OR_RETURN(const std::string text, Contents(file));
    JournalEntry entry;
    entry.is_later = true;
    entry.key = KeyOf(file.lexically_relative(later_));
    if (!ReadLater(text, entry) || entry.key.empty() ||
        durable.contains(entry.key)) {
      DEVMGR_RETURN_IF_ERROR(Unlink(file));
      continue;
    }
    content.last_revision = std::max(content.last_revision, entry.revision);
    content.entries.push_back(std::move(entry));
  }
  if (!error) return absl::OkStatus();
  return CannotRead(later_, error);
}

}  // namespace devmgr::endpoint
