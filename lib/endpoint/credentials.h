// SPDX-License-Identifier: Apache-2.0
//
// The files by which drivers find and trust the endpoint, and it knows them.
//
//   DRIVER                      kubeconfig
//   .serviceaccount/DRIVER/     token, ca.crt and namespace, for containers
//   .tls/                       authority and certificate, their keys, the port
//
// All of mode 0600, but for certificates.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace devmgr::endpoint {

/// Reads and writes files: blocking.
class Credentials {
 public:
  /// `names`: what the certificate is for, addresses and host names.
  Credentials(std::filesystem::path folder, std::vector<std::string> names)
      : folder_(std::move(folder)), names_(std::move(names)) {}

  /// Makes what is missing, does not fit, or is to be renewed. True when there
  /// is a new certificate.
  absl::StatusOr<bool> KeepCertificate(std::int64_t now) const;
  std::filesystem::path certificate() const { return folder_ / ".tls/tls.crt"; }
  std::filesystem::path key() const { return folder_ / ".tls/tls.key"; }
  std::filesystem::path kubeconfig(const std::string& driver) const {
    return folder_ / driver;
  }

  /// The token of a driver, made when there is none.
  ///   InvalidArgument  the name is none of a driver
  absl::StatusOr<std::string> Token(const std::string& driver) const;
  absl::StatusOr<std::string> MakeNewToken(const std::string& driver) const;
  /// Kubeconfig, and what a container needs.
  absl::Status WriteFiles(const std::string& driver,
                          const std::string& server) const;

  /// The port that the endpoint had last; 0 when it had none. Drivers read
  /// their kubeconfig only when they start.
  std::uint16_t LastPort() const;
  absl::Status RememberPort(std::uint16_t port) const;

 private:
  std::filesystem::path FilesOf(const std::string& driver) const {
    return folder_ / ".serviceaccount" / driver;
  }

  const std::filesystem::path folder_;
  const std::vector<std::string> names_;
};

}  // namespace devmgr::endpoint
