// SPDX-License-Identifier: Apache-2.0
#include "endpoint/object_files.h"

#include <fmt/core.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::endpoint {
namespace {

namespace fs = std::filesystem;

constexpr char kNoGroup[] = "core";
constexpr char kNoNamespace[] = "_";
constexpr std::size_t kParts = 4;
/// Of the temporary file, `NAME.XXXXXX.tmp`, a file system takes 255 bytes.
constexpr std::size_t kLongestName = 255 - 11;

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
  return part.size() <= kLongestName && !part.empty() && part != "." &&
         part != ".." && part.find('\0') == std::string::npos &&
         !part.ends_with(".tmp");
}

absl::Status CannotRead(const fs::path& folder, const std::error_code& error) {
  return UnavailableError("cannot read '{}': {}", folder.string(),
                          error.message());
}

}  // namespace

absl::Status CheckObjectKey(const std::string& key) {
  const std::vector<std::string> parts = Parts(key);
  if (parts.size() == kParts && !parts[1].empty() && !parts[3].empty()) {
    return absl::OkStatus();
  }
  return InvalidArgumentError("no object can be kept under the key {}",
                              api::Quoted(key));
}

std::optional<fs::path> ObjectPath(const std::string& key) {
  std::vector<std::string> parts = Parts(key);
  if (parts.size() != kParts) return std::nullopt;
  if (parts[0].empty()) parts[0] = kNoGroup;
  if (parts[2].empty()) parts[2] = kNoNamespace;
  fs::path path;
  for (const std::string& part : parts) {
    if (!IsPlain(part)) return std::nullopt;
    path /= part;
  }
  return path;
}

std::string ObjectKeyOf(const fs::path& path) {
  std::vector<std::string> parts(path.begin(), path.end());
  if (parts.size() != kParts) return "";
  if (parts[0] == kNoGroup) parts[0].clear();
  if (parts[2] == kNoNamespace) parts[2].clear();
  return fmt::format("{}/{}/{}/{}", parts[0], parts[1], parts[2], parts[3]);
}

absl::Status VisitFilesBelow(
    const fs::path& folder,
    const std::function<absl::Status(const fs::path&)>& visit) {
  std::error_code error;
  fs::recursive_directory_iterator files(folder, error);
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  for (; !error && files != fs::recursive_directory_iterator();
       files.increment(error)) {
    if (files->is_directory(error)) continue;
    DEVMGR_RETURN_IF_ERROR(visit(files->path()));
  }
  return error ? CannotRead(folder, error) : absl::OkStatus();
}

absl::StatusOr<std::string> ReadObjectFile(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in.is_open() || in.bad()) {
    return CannotRead(file, {errno, std::generic_category()});
  }
  return text;
}

absl::Status UnlinkFile(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (!error || error == std::errc::not_a_directory) return absl::OkStatus();
  return UnavailableError("cannot remove '{}': {}", file.string(),
                          error.message());
}

std::string WithRevision(std::uint64_t revision, std::string_view rest) {
  return fmt::format("{}\n{}", revision, rest);
}

bool TakeRevision(std::string_view& text, std::uint64_t& revision) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  const char* const last = text.data() + end;
  const auto [stop, error] = std::from_chars(text.data(), last, revision);
  if (error != std::errc() || stop != last || end == 0) return false;
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace devmgr::endpoint
