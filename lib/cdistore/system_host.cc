// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi.h>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "common/status.h"

namespace devmgr {
namespace {

HostPath::Type TypeOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFCHR:
      return HostPath::Type::kCharNode;
    case S_IFBLK:
      return HostPath::Type::kBlockNode;
    case S_IFIFO:
      return HostPath::Type::kFifo;
    case S_IFLNK:
      return HostPath::Type::kSymlink;
    case S_IFDIR:
      return HostPath::Type::kDirectory;
    default:
      return HostPath::Type::kFile;
  }
}

absl::StatusOr<HostPath> LookAt(const std::string& path, bool follow_links) {
  struct stat info {};
  const int result =
      follow_links ? ::stat(path.c_str(), &info) : ::lstat(path.c_str(), &info);
  if (result != 0) {
    return ErrnoStatus(errno, fmt::format("cannot look at '{}'", path));
  }
  HostPath found;
  found.type = TypeOf(info.st_mode);
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) {
    found.major = ::major(info.st_rdev);
    found.minor = ::minor(info.st_rdev);
  }
  found.mode = info.st_mode & 07777;
  found.uid = info.st_uid;
  found.gid = info.st_gid;
  return found;
}

absl::StatusOr<std::vector<std::string>> List(const std::string& directory) {
  const auto failed = [&](int error) {
    return ErrnoStatus(error, fmt::format("cannot list '{}'", directory));
  };
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()),
                                                   ::closedir);
  if (stream == nullptr) return failed(errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  if (errno != 0) return failed(errno);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

CdiHost SystemCdiHost() { return {LookAt, List}; }

}  // namespace devmgr
