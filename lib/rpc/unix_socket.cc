// SPDX-License-Identifier: Apache-2.0
#include "rpc/unix_socket.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "common/status.h"

namespace devmgr::rpc {
namespace {

constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

/// Somebody may replace the file between our look and our move; how often we
/// look again.
constexpr int kListenAttempts = 5;

/// Nothing when `path` does not fit.
std::optional<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof(address.sun_path)) return std::nullopt;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

std::string PathOfFd(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

int CallConnect(int fd, const sockaddr_un& address) {
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return connect(fd, generic, sizeof(address)) == 0 ? 0 : errno;
}

/// Returns 0 or an errno; ENOTSOCK when the file is something else.
int TryConnect(const std::string& path, UniqueFd* connected) {
  UniqueFd fd(socket(AF_UNIX, kSocketFlags, 0));
  if (!fd.valid()) return errno;
  std::optional<sockaddr_un> address = AddressOf(path);
  UniqueFd file;
  if (!address) {
    file.Reset(open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!file.valid()) return errno;
    address = AddressOf(PathOfFd(file.get()));
  }
  const int error = CallConnect(fd.get(), *address);
  if (error == 0) *connected = std::move(fd);
  // A file that is no socket refuses too.
  struct stat status {};
  if (error == ECONNREFUSED && stat(path.c_str(), &status) == 0 &&
      !S_ISSOCK(status.st_mode)) {
    return ENOTSOCK;
  }
  return error;
}

absl::Status ConnectError(int error, const std::string& path) {
  switch (error) {
    case ECONNREFUSED:
      return UnavailableError("nobody listens on '{}' (a stale socket)", path);
    case EAGAIN:
      return UnavailableError(
          "the queue of '{}' is full: its owner does not "
          "accept connections",
          path);
    case ENOTSOCK:
      return FailedPreconditionError("'{}' is not a socket", path);
    case EPROTOTYPE:
      return FailedPreconditionError("'{}' is not a stream socket", path);
    case ENOTDIR:
      return NotFoundError("cannot connect to '{}': {}", path,
                           ErrnoText(error));
    default:
      return ErrnoStatus(error, fmt::format("cannot connect to '{}'", path));
  }
}

/// Such as `devmgrd (pid 4711)`.
std::string DescribePeer(int fd) {
  const absl::StatusOr<PeerCredentials> peer = CredentialsOf(fd);
  // In another pid namespace the kernel tells us 0.
  if (!peer.ok() || peer->pid == 0) return "a process we cannot see";
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", peer->pid)), name);
  if (name.empty()) return fmt::format("pid {}", peer->pid);
  return fmt::format("{} (pid {})", name, peer->pid);
}

absl::StatusOr<std::string> TemporaryName() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
    return ErrnoStatus(errno, "cannot get random bytes");
  }
  // Watchers of such directories ignore names that begin with a dot.
  return fmt::format(".devmgr-{:016x}", number);
}

/// A file may be replaced between two looks; this is what tells.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};

/// Work on one file name below an open directory.
class Placement {
 public:
  Placement(int directory, std::string name, std::string path)
      : directory_(directory), name_(std::move(name)), path_(std::move(path)) {}

  /// What stands at the name: nothing, or a socket nobody answers on. All
  /// else is an error.
  absl::StatusOr<std::optional<FileId>> Probe() const {
    struct stat status {};
    if (fstatat(directory_, name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return std::nullopt;
      return ErrnoStatus(errno, fmt::format("cannot look at '{}'", path_));
    }
    if (!S_ISSOCK(status.st_mode)) {
      return FailedPreconditionError("'{}' exists and is not a socket", path_);
    }
    UniqueFd connected;
    const int error =
        TryConnect(PathOfFd(directory_) + "/" + name_, &connected);
    switch (error) {
      case 0:
        return FailedPreconditionError("{} listens on '{}' already",
                                       DescribePeer(connected.get()), path_);
      case EAGAIN:
      case EPROTOTYPE:
        return FailedPreconditionError("another process uses '{}' already",
                                       path_);
      case ENOENT:
        return std::nullopt;
      case ECONNREFUSED:
        return FileId{status.st_dev, status.st_ino};
      default:
        return ConnectError(error, path_);
    }
  }

  /// Moves `from` to the name in one step. False: somebody came between since
  /// `found` was probed, look again.
  absl::StatusOr<bool> Move(const std::string& from,
                            const std::optional<FileId>& found) const {
    if (!found) {
      if (Rename(from, RENAME_NOREPLACE) == 0) return true;
      if (errno == EEXIST) return false;
      return RenamePlainly(from);
    }
    // Exchanged first and looked at then: a live socket that appeared just now
    // goes back to its place.
    if (Rename(from, RENAME_EXCHANGE) != 0) {
      if (errno == ENOENT) return false;
      return RenamePlainly(from);
    }
    struct stat status {};
    const bool same =
        fstatat(directory_, from.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        FileId{status.st_dev, status.st_ino} == *found;
    if (same) {
      unlinkat(directory_, from.c_str(), 0);
      return true;
    }
    Rename(from, RENAME_EXCHANGE);
    return false;
  }

 private:
  int Rename(const std::string& from, unsigned flags) const {
    return renameat2(directory_, from.c_str(), directory_, name_.c_str(),
                     flags);
  }

  /// For file systems that know no flags; without the guard.
  absl::StatusOr<bool> RenamePlainly(const std::string& from) const {
    if ((errno == EINVAL || errno == ENOSYS) && Rename(from, 0) == 0) {
      return true;
    }
    return ErrnoStatus(errno, fmt::format("cannot place '{}'", path_));
  }

  const int directory_;
  const std::string name_;
  const std::string path_;
};

/// A socket that listens under `name`, with its mode from the first moment.
absl::StatusOr<UniqueFd> ListenAt(int directory, const std::string& name,
                                  mode_t mode, const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, kSocketFlags, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a socket");
  const std::optional<sockaddr_un> address =
      AddressOf(PathOfFd(directory) + "/" + name);
  const auto* generic = reinterpret_cast<const sockaddr*>(&*address);
  if (bind(fd.get(), generic, sizeof(*address)) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot make '{}'", path));
  }
  // Nobody connects before listen, so the mode of bind does not matter.
  if (fchmodat(directory, name.c_str(), mode, 0) == 0 &&
      listen(fd.get(), SOMAXCONN) == 0) {
    return fd;
  }
  const int error = errno;
  unlinkat(directory, name.c_str(), 0);
  return ErrnoStatus(error, fmt::format("cannot listen on '{}'", path));
}

}  // namespace

absl::StatusOr<UniqueFd> ConnectUnix(const std::filesystem::path& path) {
  UniqueFd connected;
  const int error = TryConnect(path.string(), &connected);
  if (error != 0) return ConnectError(error, path.string());
  return connected;
}

absl::StatusOr<PeerCredentials> CredentialsOf(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return ErrnoStatus(errno, "cannot read the peer's credentials");
  }
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

absl::StatusOr<std::unique_ptr<SocketFile>> SocketFile::Listen(
    const std::filesystem::path& path, mode_t mode) {
  std::filesystem::path parent = path.parent_path();
  if (parent.empty()) parent = ".";
  UniqueFd directory(open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) {
    return ErrnoStatus(errno, fmt::format("cannot open '{}' to make '{}'",
                                          parent.string(), path.string()));
  }
  const Placement placement(directory.get(), path.filename(), path);
  DEVMGR_ASSIGN_OR_RETURN(std::optional<FileId> found, placement.Probe());
  DEVMGR_ASSIGN_OR_RETURN(const std::string temporary, TemporaryName());
  DEVMGR_ASSIGN_OR_RETURN(UniqueFd listener,
                          ListenAt(directory.get(), temporary, mode, path));

  // From here on the destructor removes the file, first under this name.
  std::unique_ptr<SocketFile> file(
      new SocketFile(std::move(directory), temporary, std::move(listener)));
  struct stat status {};
  if (fstatat(file->directory_.get(), temporary.c_str(), &status,
              AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoStatus(errno,
                       fmt::format("cannot look at '{}'", path.string()));
  }
  file->device_ = status.st_dev;
  file->inode_ = status.st_ino;
  for (int attempt = 0; attempt < kListenAttempts; ++attempt) {
    DEVMGR_ASSIGN_OR_RETURN(const bool placed,
                            placement.Move(temporary, found));
    if (placed) {
      file->name_ = path.filename();
      return file;
    }
    DEVMGR_ASSIGN_OR_RETURN(found, placement.Probe());
  }
  return UnavailableError("'{}' is replaced by somebody all the time",
                          path.string());
}

SocketFile::~SocketFile() {
  // Before the listener is closed: while it is open nobody gets our inode.
  struct stat status {};
  if (fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) ==
          0 &&
      status.st_dev == device_ && status.st_ino == inode_) {
    unlinkat(directory_.get(), name_.c_str(), 0);
  }
}

}  // namespace devmgr::rpc
