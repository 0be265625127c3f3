// SPDX-License-Identifier: Apache-2.0
#include "endpoint/file_journal.h"

#include <fmt/core.h>

#include <charconv>
#include <fstream>
#include <iterator>
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

absl::Status NotWrittenHere(const fs::path& file) {
  return DataLossError(
      "'{}' is not as the endpoint for drivers wrote it; when it is removed, "
      "the driver publishes what it held anew",
      file.string());
}

}  // namespace

absl::Status FileJournal::Append(const JournalEntry& entry) {
  DEVMGR_ASSIGN_OR_RETURN(const fs::path path, PathOf(entry.key));
  const fs::path file = folder_ / path;
  if (!entry.value.empty()) {
    return WriteFileAtomically(
        file, fmt::format("{}\n{}", entry.revision, entry.value),
        IfPresent::kReplace, FileMode::kPrivate);
  }
  // First, so that its number is not given again.
  DEVMGR_RETURN_IF_ERROR(WriteFileAtomically(
      folder_ / kLastRevision, fmt::format("{}\n", entry.revision),
      IfPresent::kReplace, FileMode::kPrivate));
  return RemoveFile(file);
}

absl::StatusOr<JournalContent> FileJournal::Replay() {
  JournalContent content;
  std::error_code error;
  fs::recursive_directory_iterator files(folder_, error);
  if (error == std::errc::no_such_file_or_directory) return content;
  for (; !error && files != fs::recursive_directory_iterator();
       files.increment(error)) {
    const fs::path& file = files->path();
    if (files->is_directory() || file.extension() == ".tmp") continue;
    DEVMGR_ASSIGN_OR_RETURN(const std::string text, Contents(file));
    std::string_view rest = text;
    JournalEntry entry;
    if (!TakeRevision(rest, entry.revision)) return NotWrittenHere(file);
    content.last_revision = std::max(content.last_revision, entry.revision);
    if (file == folder_ / kLastRevision) continue;
    entry.key = KeyOf(file.lexically_relative(folder_));
    entry.value = rest;
    if (entry.key.empty() || rest.empty()) return NotWrittenHere(file);
    content.entries.push_back(std::move(entry));
  }
  if (error) {
    return UnavailableError("cannot read '{}': {}", folder_.string(),
                            error.message());
  }
  return content;
}

}  // namespace devmgr::endpoint
