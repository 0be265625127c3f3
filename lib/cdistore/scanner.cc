// SPDX-License-Identifier: Apache-2.0
#include "cdistore/scanner.h"

#include <fmt/core.h>

#include <system_error>
#include <utility>

#include "common/status.h"

namespace devmgr::cdistore {

namespace fs = std::filesystem;

namespace {

/// Of a path that leads to no file: is there a link, which dangles?
bool LeadsNowhere(const std::string& path) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(path, error));
}

}  // namespace

Scan Scanner::Look() {
  Scan scan;
  scan.directories.resize(options_.directories.size());
  total_bytes_ = 0;
  KnownFiles now;
  for (std::size_t i = 0; i < options_.directories.size(); ++i) {
    LookInto(i, now, scan);
  }
  known_ = std::move(now);
  return scan;
}

void Scanner::LookInto(std::size_t index, KnownFiles& now, Scan& scan) {
  const std::string prefix = options_.directories[index].string() + "/";
  for (const std::string& name : NamesIn(index, scan)) {
    const std::string path = prefix + name;
    // A directory that is listed twice was looked at already.
    auto seen = now.find(path);
    if (seen == now.end()) {
      const auto before = known_.find(path);
      seen = now.emplace(path, Examine(path, static_cast<int>(index),
                                       before != known_.end() ? &before->second
                                                              : nullptr))
                 .first;
    }
    const Known& known = seen->second;
    if (!known.unread.empty()) {
      scan.unread.push_back(known.unread);
    } else if (known.file.path.empty()) {
      continue;  // gone meanwhile
    } else {
      scan.files.push_back(known.file);
      scan.files.back().priority = static_cast<int>(index);
    }
    ++scan.directories[index].files;
  }
}

std::set<std::string> Scanner::NamesIn(std::size_t index, Scan& scan) const {
  const fs::path& directory = options_.directories[index];
  auto listing = ListSpecs(directory, options_.max_files);
  if (!listing.ok()) {
    Scan::Directory& info = scan.directories[index];
    info.is_missing = absl::IsNotFound(listing.status());
    info.is_unreadable = !info.is_missing;
    info.problem =
        info.is_missing
            ? fmt::format("directory '{}' does not exist", directory.string())
            : MessageOf(listing.status());
    // Of a directory that does not exist we know all that it defines.
    if (info.is_unreadable) scan.unread.push_back(info.problem);
    return {};
  }
  if (listing->left_out > 0) {
    scan.directories[index].problem = fmt::format(
        "'{}' has more than {} spec files; the last {} by name are left out",
        directory.string(), options_.max_files, listing->left_out);
    scan.unread.push_back(scan.directories[index].problem);
    return std::move(listing->names);
  }
  // The kernel may not list a file that is replaced at that moment.
  const std::string prefix = directory.string() + "/";
  for (auto it = known_.lower_bound(prefix);
       it != known_.end() && it->first.starts_with(prefix); ++it) {
    const std::string name = it->first.substr(prefix.size());
    if (name.find('/') != std::string::npos) continue;  // of another directory
    if (listing->names.contains(name)) continue;
    if (SignatureOf(it->first).ok()) listing->names.insert(name);
  }
  return std::move(listing->names);
}

/// An empty path in the result: the file is gone.
Scanner::Known Scanner::Examine(const std::string& path, int priority,
                                const Known* known) {
  Known now;
  const auto signature = SignatureOf(path);
  if (absl::IsNotFound(signature.status())) {
    if (!LeadsNowhere(path)) return now;
    now.file.path = path;
    now.file.priority = priority;
    now.file.problem = "a symbolic link without a target";
    return now;
  }
  const bool is_same = known != nullptr && known->signature.has_value() &&
                       signature.ok() && *known->signature == *signature;
  if (is_same && total_bytes_ + known->bytes <= options_.max_total_bytes) {
    total_bytes_ += known->bytes;
    return *known;
  }
  ++reads_;
  const auto reading = ReadSpecText(path, options_.max_file_bytes);
  if (absl::IsNotFound(reading.status())) return now;
  if (absl::IsInvalidArgument(reading.status())) {
    now.file.path = path;
    now.file.priority = priority;
    now.file.problem = "not a regular file";
    return now;
  }
  if (!reading.ok()) {
    now.unread = MessageOf(reading.status());
    return now;
  }
  now.bytes = reading->text.size();
  if (total_bytes_ + now.bytes > options_.max_total_bytes) {
    now.unread =
        fmt::format("'{}' is left out: all specs have more than {} bytes", path,
                    options_.max_total_bytes);
    return now;
  }
  total_bytes_ += now.bytes;
  if (reading->settled) now.signature = reading->signature;
  now.file = MakeCdiSpecFile(path, priority, reading->text);
  // Who holds the old value, and whoever compares, need not look at the new.
  if (known != nullptr && known->file.spec != nullptr &&
      now.file.spec != nullptr && *known->file.spec == *now.file.spec) {
    now.file.spec = known->file.spec;
  }
  return now;
}

}  // namespace devmgr::cdistore
