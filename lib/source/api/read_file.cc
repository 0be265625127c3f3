// SPDX-License-Identifier: Apache-2.0
#include "source/api/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "api/quote.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace devmgr::apiserver {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::filesystem::path& file) {
  const std::string name = api::Quoted(file.string(), 300);
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot open " + name);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return ErrnoStatus(errno, "cannot look at " + name);
  }
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgumentError("{} is no regular file", name);
  }
  std::string text;
  char bytes[16384];
  for (;;) {
    const ssize_t got = ::read(fd.get(), bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read " + name);
    if (got == 0) return text;
    text.append(bytes, static_cast<std::size_t>(got));
    if (text.size() > kMaxFileBytes) {
      return InvalidArgumentError("{} exceeds {} bytes", name, kMaxFileBytes);
    }
  }
}

}  // namespace devmgr::apiserver
