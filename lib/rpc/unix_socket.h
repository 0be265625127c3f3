// SPDX-License-Identifier: Apache-2.0
//
// Unix sockets as files: connecting to them, and making one appear.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/unique_fd.h"
#include "rpc/connection.h"

namespace devmgr::rpc {

/// Connects to `path`, of any length, without waiting. The descriptor does not
/// block and is closed on exec. Errors as for `Dial`.
absl::StatusOr<UniqueFd> ConnectUnix(const std::filesystem::path& path);

/// Who was at the other end when it connected or began to listen.
absl::StatusOr<PeerCredentials> CredentialsOf(int fd);

/// A listening socket and the file it is reached by.
class SocketFile {
 public:
  /// Makes the file appear at `path` with `mode`, already listening. A socket
  /// that nobody answers on is replaced. Errors as for `Server::Start`.
  static absl::StatusOr<std::unique_ptr<SocketFile>> Listen(
      const std::filesystem::path& path, mode_t mode);

  /// Removes the file unless somebody else's stands there by now.
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

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
