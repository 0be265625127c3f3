// SPDX-License-Identifier: Apache-2.0
#include "cdistore/spec_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "common/unique_fd.h"

namespace devmgr::cdistore {
namespace {

namespace fs = std::filesystem;

bool IsSpecName(std::string_view name) {
  return name.ends_with(".json") || name.ends_with(".yaml");
}

/// Names of spec files in a directory, sorted.
absl::StatusOr<std::vector<std::string>> NamesIn(const fs::path& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()),
                                                   ::closedir);
  if (stream == nullptr) {
    if (errno == ENOENT) return std::vector<std::string>();
    return ErrnoStatus(
        errno, fmt::format("cannot read directory '{}'", directory.string()));
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    if (!IsSpecName(entry->d_name)) continue;
    if (names.size() == kMaxSpecFiles) {
      return ResourceExhaustedError("'{}' has more than {} spec files",
                                    directory.string(), kMaxSpecFiles);
    }
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) {
    return ErrnoStatus(
        errno, fmt::format("cannot read directory '{}'", directory.string()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// InvalidArgument for what no reader of specs would read either.
absl::StatusOr<std::string> ReadText(const fs::path& path) {
  const auto failed = [&](int error) {
    return ErrnoStatus(error, fmt::format("cannot read '{}'", path.string()));
  };
  // O_NONBLOCK: a pipe must not hold us up.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return failed(errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return failed(errno);
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgumentError("not a regular file");
  }
  std::string text(kMaxSpecBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::pread(fd.get(), text.data() + size,
                                text.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxSpecBytes) {
    return ResourceExhaustedError("'{}' has more than {} bytes", path.string(),
                                  kMaxSpecBytes);
  }
  text.resize(size);
  return text;
}

/// A file that is no spec is an answer too; an error is that of the disk.
absl::StatusOr<cdi::SpecFile> ReadSpecFile(const fs::path& path) {
  cdi::SpecFile file;
  file.path = path.string();
  const auto text = ReadText(path);
  if (!text.ok() && !absl::IsInvalidArgument(text.status())) {
    return text.status();
  }
  auto spec = text.ok() ? cdi::ParseSpec(*text) : text.status();
  if (spec.ok()) {
    file.spec = *std::move(spec);
  } else {
    file.problem = MessageOf(spec.status());
  }
  return file;
}

}  // namespace

cdi::SpecFiles ReadSpecFiles(const std::vector<fs::path>& directories) {
  cdi::SpecFiles result;
  for (const fs::path& directory : directories) {
    const auto names = NamesIn(directory);
    if (!names.ok()) {
      result.unread.push_back(MessageOf(names.status()));
      continue;
    }
    for (const std::string& name : *names) {
      auto file = ReadSpecFile(directory / name);
      if (file.ok()) {
        result.files.push_back(*std::move(file));
      } else if (!absl::IsNotFound(file.status())) {  // gone is gone
        result.unread.push_back(MessageOf(file.status()));
      }
    }
  }
  return result;
}

fs::path AsidePath(const fs::path& file) { return file.string() + ".orphaned"; }

absl::Status SetAside(const cdi::SpecFile& file) {
  DEVMGR_ASSIGN_OR_RETURN(const cdi::SpecFile now, ReadSpecFile(file.path));
  if (now != file) {
    return FailedPreconditionError("'{}' has changed and was left alone",
                                   file.path);
  }
  if (::rename(file.path.c_str(), AsidePath(file.path).c_str()) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, fmt::format("cannot rename '{}'", file.path));
}

}  // namespace devmgr::cdistore
