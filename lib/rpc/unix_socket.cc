// SPDX-License-Identifier: Apache-2.0
#include "rpc/unix_socket.h"

#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "common/status.h"

namespace devmgr::rpc {
namespace {

constexpr mode_t kPermissions = 0777;
constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

/// A file may appear between our look and our move; how often we look again.
constexpr int kPlacingAttempts = 5;

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

/// Without the path: whoever dials says of what socket it is.
absl::Status ConnectError(int error) {
  switch (error) {
    case ECONNREFUSED:
      return UnavailableError("no process listens there (a stale socket)");
    case EAGAIN:
      return UnavailableError(
          "its queue is full: its owner does not accept connections");
    case ENOTSOCK:
      return FailedPreconditionError("it is not a socket");
    case EPROTOTYPE:
      return FailedPreconditionError("it is not a stream socket");
    case ENOTDIR:
      return NotFoundError("cannot connect: {}", ErrnoText(error));
    default:
      return ErrnoStatus(error, "cannot connect");
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

/// Held while a stale socket is replaced, so that of several that find it one
/// goes first and the others find a live one. Short: nobody waits under it.
class ReplacementLock {
 public:
  static absl::StatusOr<std::unique_ptr<ReplacementLock>> Take(int directory) {
    for (;;) {
      UniqueFd file(
          openat(directory, kName,
                 O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
      if (!file.valid() || flock(file.get(), LOCK_EX) != 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus(errno, fmt::format("cannot lock '{}'", kName));
      }
      struct stat status {};
      // Without a name it is the one that its last holder removed.
      if (fstat(file.get(), &status) == 0 && status.st_nlink > 0) {
        return std::make_unique<ReplacementLock>(directory, std::move(file));
      }
    }
  }

  ReplacementLock(int directory, UniqueFd file)
      : directory_(directory), file_(std::move(file)) {}
  ~ReplacementLock() { unlinkat(directory_, kName, 0); }
  ReplacementLock(const ReplacementLock&) = delete;
  ReplacementLock& operator=(const ReplacementLock&) = delete;

 private:
  static constexpr const char* kName = ".devmgr-lock";

  const int directory_;
  const UniqueFd file_;
};

/// Work on one file name below an open directory.
class Placement {
 public:
  Placement(int directory, std::string name, std::string path)
      : directory_(directory), name_(std::move(name)), path_(std::move(path)) {}

  enum class Found { kNothing, kStaleSocket };

  /// What stands at the name. A live socket or another file is an error.
  absl::StatusOr<Found> Probe() const {
    struct stat status {};
    if (fstatat(directory_, name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return Found::kNothing;
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
        return Found::kNothing;
      case ECONNREFUSED:
        return Found::kStaleSocket;
      default:
        return WithContext(ConnectError(error), "'{}'", path_);
    }
  }

  /// Moves `from` to the name in one step, over nothing but a stale socket.
  absl::Status Take(const std::string& from) const {
    for (int attempt = 0; attempt < kPlacingAttempts; ++attempt) {
      DEVMGR_ASSIGN_OR_RETURN(const Found found, Probe());
      if (found == Found::kStaleSocket) return Replace(from);
      if (Rename(from, RENAME_NOREPLACE) == 0) return absl::OkStatus();
      if (errno == EINVAL || errno == ENOSYS) return RenamePlainly(from);
      if (errno != EEXIST) return PlacingError();
    }
    return UnavailableError("'{}' comes and goes all the time", path_);
  }

 private:
  absl::Status Replace(const std::string& from) const {
    DEVMGR_ASSIGN_OR_RETURN(const std::unique_ptr<ReplacementLock> lock,
                            ReplacementLock::Take(directory_));
    // Somebody may have replaced it before us; then this is an error.
    DEVMGR_ASSIGN_OR_RETURN(const Found found, Probe());
    const unsigned flags = found == Found::kNothing ? RENAME_NOREPLACE : 0;
    return Rename(from, flags) == 0 ? absl::OkStatus() : PlacingError();
  }

  int Rename(const std::string& from, unsigned flags) const {
    return renameat2(directory_, from.c_str(), directory_, name_.c_str(),
                     flags);
  }

  absl::Status RenamePlainly(const std::string& from) const {
    return Rename(from, 0) == 0 ? absl::OkStatus() : PlacingError();
  }

  absl::Status PlacingError() const {
    return ErrnoStatus(errno, fmt::format("cannot place '{}'", path_));
  }

  const int directory_;
  const std::string name_;
  const std::string path_;
};

/// Lets `users` connect, too, by a POSIX access control list: the attribute as
/// linux/posix_acl_xattr.h has it, in order of tag and user.
absl::Status AllowUsers(const char* file, std::vector<uid_t> users,
                        const std::string& path) {
  if (users.empty()) return absl::OkStatus();
  constexpr std::uint16_t kReadWrite = 6;
  std::string list;
  const auto put = [&list](std::uint32_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      list += static_cast<char>((number >> (8 * i)) & 0xFF);
    }
  };
  const auto entry = [&put](std::uint16_t tag, std::uint16_t permissions,
                            std::uint32_t user) {
    put(tag, 2);
    put(permissions, 2);
    put(user, 4);
  };
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  constexpr auto kNoUser = static_cast<std::uint32_t>(ACL_UNDEFINED_ID);
  put(POSIX_ACL_XATTR_VERSION, 4);
  entry(ACL_USER_OBJ, kReadWrite, kNoUser);
  for (const uid_t user : users) entry(ACL_USER, kReadWrite, user);
  entry(ACL_GROUP_OBJ, 0, kNoUser);
  entry(ACL_MASK, kReadWrite, kNoUser);
  entry(ACL_OTHER, 0, kNoUser);
  if (setxattr(file, XATTR_NAME_POSIX_ACL_ACCESS, list.data(), list.size(),
               0) == 0) {
    return absl::OkStatus();
  }
  if (errno != EOPNOTSUPP) {
    return ErrnoStatus(errno,
                       fmt::format("cannot let users connect to '{}'", path));
  }
  return UnimplementedError(
      "'{}' is on a file system without access control lists, so that no user "
      "but its owner can be let in",
      path);
}

/// A socket that listens under `name`, with its mode from the first moment.
absl::StatusOr<UniqueFd> ListenAt(int directory, const std::string& name,
                                  mode_t mode, const std::vector<uid_t>& users,
                                  const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, kSocketFlags, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a socket");
  const std::optional<sockaddr_un> address =
      AddressOf(PathOfFd(directory) + "/" + name);
  const auto* generic = reinterpret_cast<const sockaddr*>(&*address);
  if (bind(fd.get(), generic, sizeof(*address)) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot make '{}'", path));
  }
  // Nobody connects before listen, so the mode of bind does not matter.
  absl::Status allowed;
  if (fchmodat(directory, name.c_str(), mode, 0) == 0 &&
      (allowed = AllowUsers(address->sun_path, users, path)).ok() &&
      listen(fd.get(), SOMAXCONN) == 0) {
    return fd;
  }
  const int error = errno;
  unlinkat(directory, name.c_str(), 0);
  DEVMGR_RETURN_IF_ERROR(allowed);
  return ErrnoStatus(error, fmt::format("cannot listen on '{}'", path));
}

}  // namespace

absl::StatusOr<UniqueFd> ConnectUnix(const std::filesystem::path& path) {
  UniqueFd connected;
  const int error = TryConnect(path.string(), &connected);
  if (error != 0) return ConnectError(error);
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
    const std::filesystem::path& path, mode_t mode,
    const std::vector<uid_t>& users) {
  std::filesystem::path parent = path.parent_path();
  if (parent.empty()) parent = ".";
  UniqueFd directory(open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) {
    return ErrnoStatus(errno, fmt::format("cannot open '{}' to make '{}'",
                                          parent.string(), path.string()));
  }
  const Placement placement(directory.get(), path.filename(), path);
  // Before anything is made: mostly this is where it ends.
  DEVMGR_RETURN_IF_ERROR(placement.Probe().status());
  DEVMGR_ASSIGN_OR_RETURN(const std::string temporary, TemporaryName());
  DEVMGR_ASSIGN_OR_RETURN(
      UniqueFd listener,
      ListenAt(directory.get(), temporary, mode, users, path));

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
  DEVMGR_RETURN_IF_ERROR(placement.Take(temporary));
  file->name_ = path.filename();
  return file;
}

std::optional<SocketRights> RightsOf(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return SocketRights{status.st_mode & kPermissions, status.st_uid,
                      status.st_gid};
}

absl::Status SocketFile::Give(const SocketRights& rights) const {
  if (!InPlace()) {
    return FailedPreconditionError("'{}' is not our socket any more", name_);
  }
  const auto give_to = [this](uid_t uid, gid_t gid) {
    return fchownat(directory_.get(), name_.c_str(), uid, gid,
                    AT_SYMLINK_NOFOLLOW) == 0;
  };
  // A group we are in may be had where the owner may not.
  constexpr auto kSameOwner = static_cast<uid_t>(-1);
  const bool given = give_to(rights.uid, rights.gid) ||
                     (errno == EPERM && give_to(kSameOwner, rights.gid));
  if (!given && errno != EPERM) {
    return ErrnoStatus(errno, fmt::format("cannot give '{}' to {}:{}", name_,
                                          rights.uid, rights.gid));
  }
  if (fchmodat(directory_.get(), name_.c_str(), rights.mode, 0) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, fmt::format("cannot set the mode of '{}' to {:o}",
                                        name_, rights.mode));
}

bool SocketFile::InPlace() const {
  struct stat status {};
  return fstatat(directory_.get(), name_.c_str(), &status,
                 AT_SYMLINK_NOFOLLOW) == 0 &&
         status.st_dev == device_ && status.st_ino == inode_;
}

SocketFile::~SocketFile() {
  // Before the listener is closed: while it is open nobody gets our inode.
  if (InPlace()) unlinkat(directory_.get(), name_.c_str(), 0);
}

}  // namespace devmgr::rpc
