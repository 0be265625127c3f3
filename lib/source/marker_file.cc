// SPDX-License-Identifier: Apache-2.0
#include "source/marker_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "common/status.h"
#include "common/unique_fd.h"

namespace devmgr::source {
namespace {

constexpr char kDraftName[] = ".devmgr-source.new";
constexpr std::size_t kMaxId = 128;

bool IsId(std::string_view text) {
  return !text.empty() && text.size() <= kMaxId &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c <= '~'; });
}

Marker Problem(const char* what, int error_number) {
  return {"", fmt::format("its marker '{}' cannot be {}: {}", kMarkerName, what,
                          ErrnoText(error_number))};
}

/// 0, or the errno.
int WriteDraft(int directory, const std::string& text) {
  const UniqueFd file(
      ::openat(directory, kDraftName,
               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.valid()) return errno;
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written < 0) return errno;
  if (written != static_cast<ssize_t>(text.size())) return ENOSPC;
  return ::fsync(file.get()) == 0 ? 0 : errno;
}

}  // namespace

DirectoryId DirectoryIdOf(int directory) {
  struct stat info {};
  if (::fstat(directory, &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

Marker ReadMarker(int directory) {
  const UniqueFd file(
      ::openat(directory, kMarkerName,
               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) {
    return errno == ENOENT ? Marker{} : Problem("read", errno);
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Problem("read", errno);
  if (!S_ISREG(info.st_mode)) return Problem("read", EINVAL);
  std::array<char, kMaxId + 2> text;
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0) return Problem("read", errno);
  std::string_view id(text.data(), static_cast<std::size_t>(size));
  if (id.ends_with('\n')) id.remove_suffix(1);
  if (!IsId(id)) return {"", fmt::format("'{}' is no marker", kMarkerName)};
  return {std::string(id), ""};
}

Marker WriteMarker(const std::filesystem::path& path,
                   const DirectoryId& directory, const std::string& id) {
  const UniqueFd folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return Problem("written", errno);
  // Something was mounted over it meanwhile: that must not be marked.
  if (DirectoryIdOf(folder.get()) != directory) return {};
  int error = WriteDraft(folder.get(), id + "\n");
  if (error == 0 &&
      ::renameat(folder.get(), kDraftName, folder.get(), kMarkerName) != 0) {
    error = errno;
  }
  if (error != 0) {
    ::unlinkat(folder.get(), kDraftName, 0);
    return Problem("written", error);
  }
  // Some file systems cannot sync a directory; then a marker may be lost.
  ::fsync(folder.get());
  return ReadMarker(folder.get());
}

}  // namespace devmgr::source
