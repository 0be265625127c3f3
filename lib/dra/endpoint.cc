// SPDX-License-Identifier: Apache-2.0
#include "dra/endpoint.h"

#include <sys/un.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "common/status.h"

namespace devmgr::dra {
namespace {

namespace fs = std::filesystem;

bool IsInside(const fs::path& path, const fs::path& directory) {
  const auto relative = path.lexically_relative(directory);
  return !relative.empty() && *relative.begin() != ".." &&
         *relative.begin() != ".";
}

absl::Status CheckPath(const std::string& endpoint) {
  constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  if (endpoint.empty())
    return InvalidArgumentError("empty DRA plugin endpoint");
  if (endpoint.front() != '/') {
    return InvalidArgumentError("endpoint '{}' must be an absolute path",
                                endpoint);
  }
  // The kernel would connect to what stands before it.
  if (endpoint.find('\0') != std::string::npos) {
    return InvalidArgumentError("endpoint of {} bytes has a NUL in it",
                                endpoint.size());
  }
  if (endpoint.size() > kMaxPath) {
    return InvalidArgumentError("endpoint '{}' is longer than {} bytes",
                                endpoint, kMaxPath);
  }
  return absl::OkStatus();
}

/// What is there of `endpoint` and of the directories, without links.
absl::Status CheckRealPath(const std::string& endpoint,
                           const std::vector<fs::path>& directories) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(endpoint, error);
  if (error) {
    return InvalidArgumentError("endpoint '{}' does not exist: {}", endpoint,
                                error.message());
  }
  const bool inside = std::any_of(
      directories.begin(), directories.end(), [&](const fs::path& directory) {
        const fs::path base = fs::weakly_canonical(directory, error);
        return !error && IsInside(real, base);
      });
  if (inside) return absl::OkStatus();
  return InvalidArgumentError(
      "endpoint '{}' is a symbolic link to '{}', which is not inside {}",
      endpoint, real.string(), directories.front().string());
}

}  // namespace

absl::Status CheckEndpoint(const std::string& endpoint,
                           const std::vector<fs::path>& directories) {
  DEVMGR_RETURN_IF_ERROR(CheckPath(endpoint));
  if (directories.empty()) return absl::OkStatus();
  const fs::path cleaned = fs::path(endpoint).lexically_normal();
  const bool inside = std::any_of(
      directories.begin(), directories.end(), [&](const fs::path& directory) {
        return IsInside(cleaned, directory.lexically_normal());
      });
  if (inside) return CheckRealPath(endpoint, directories);
  return InvalidArgumentError("endpoint '{}' is not inside {}", endpoint,
                              directories.front().string());
}

Dialer GuardedDialer(Dialer dialer, std::vector<fs::path> directories,
                     std::optional<uid_t> owner) {
  return [dialer = std::move(dialer), directories = std::move(directories),
          owner](const fs::path& socket, std::function<void()> on_hang_up)
             -> absl::StatusOr<std::unique_ptr<rpc::Connection>> {
    DEVMGR_RETURN_IF_ERROR(CheckEndpoint(socket.string(), directories));
    DEVMGR_ASSIGN_OR_RETURN(auto connection,
                            dialer(socket, std::move(on_hang_up)));
    const uid_t server = connection->peer().uid;
    if (!owner.has_value() || *owner == 0 || *owner == server) {
      return connection;
    }
    return PermissionDeniedError(
        "user {} listens at '{}', but user {} on the registration socket",
        server, socket.string(), *owner);
  };
}

}  // namespace devmgr::dra
