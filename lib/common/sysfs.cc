// SPDX-License-Identifier: Apache-2.0
#include "common/sysfs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/status.h"
#include "common/unique_fd.h"

namespace devmgr {
namespace {

class HostFiles : public SysfsFiles {
 public:
  explicit HostFiles(std::string root) : root_(std::move(root)) {}

  absl::StatusOr<std::string> Read(std::string_view path) const override {
    const std::string full = Full(path);
    const UniqueFd file(::open(full.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return ErrnoStatus(errno, full);
    std::string text;
    char piece[4096];
    for (;;) {
      const ssize_t got = ::read(file.get(), piece, sizeof(piece));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, full);
      if (got == 0) return text;
      text.append(piece, static_cast<std::size_t>(got));
      if (text.size() > kMaxSysfsFile) {
        return DataLossError("{} has more than {} bytes", full, kMaxSysfsFile);
      }
    }
  }

  absl::StatusOr<std::vector<std::string>> List(
      std::string_view path) const override {
    const std::string full = Full(path);
    std::error_code error;
    std::filesystem::directory_iterator entry(full, error);
    std::vector<std::string> names;
    while (!error && entry != std::filesystem::directory_iterator()) {
      names.push_back(entry->path().filename().string());
      entry.increment(error);
    }
    if (error) return ErrnoStatus(error.value(), full);
    return names;
  }

 private:
  std::string Full(std::string_view path) const {
    return root_ + "/" + std::string(path);
  }

  const std::string root_;
};

}  // namespace

std::unique_ptr<SysfsFiles> HostSysfs(std::string root) {
  return std::make_unique<HostFiles>(std::move(root));
}

}  // namespace devmgr
