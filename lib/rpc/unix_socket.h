// SPDX-License-Identifier: Apache-2.0
//
// Unix sockets as files: connecting to them, and making one appear.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "rpc/connection.h"

namespace devmgr::rpc {

/// Connects to `path`, of any length, without waiting. The descriptor does not
/// block and is closed on exec. Errors as for `Dial`.
absl::StatusOr<UniqueFd> ConnectUnix(const std::filesystem::path& path);

/// Who was at the other end when it connected or began to listen.
absl::StatusOr<PeerCredentials> CredentialsOf(int fd);

/// Who may connect.
struct SocketRights {
  mode_t mode = 0;  ///< Permission bits only.
  uid_t uid = 0;
  gid_t gid = 0;
  friend bool operator==(const SocketRights&, const SocketRights&) = default;
};
/// Of the file at `path`; nothing while none can be seen there.
std::optional<SocketRights> RightsOf(const std::filesystem::path& path);

/// A listening socket and the file it is reached by.
class SocketFile {
 public:
  /// Makes the file appear at `path` with `mode`, already listening; `users`
  /// may connect besides. A socket on which no process answers is replaced.
  /// Errors as for `Server::Start`.
  static absl::StatusOr<std::unique_ptr<SocketFile>> Listen(
      const std::filesystem::path& path, mode_t mode,
      const std::vector<uid_t>& users = {});

  /// Removes the file unless somebody else's stands there by now.
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

  /// Gives the file these rights. Who is not root cannot give away a file, and
  /// perhaps not to a group: that is no error, but then nothing but the mode
  /// changes.
  ///   FailedPrecondition  the file is not this one any more
  absl::Status Give(const SocketRights& rights) const;

  /// The file is there and is this one.
  bool InPlace() const;

  /// Does not block and is closed on exec.
  int fd() const { return listener_.get(); }

 private:
  SocketFile(UniqueFd directory, std::string name, UniqueFd listener)
      : directory_(std::move(directory)),
        name_(std::move(name)),
        listener_(std::move(listener)) {}

  UniqueFd directory_;  ///< Follows the directory when that is renamed.
  std::string name_;
  UniqueFd listener_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace devmgr::rpc
