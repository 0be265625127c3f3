// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "source/api/kubeconfig.h"

namespace devmgr::apiserver {

/// What one request needs of the credentials. Immutable.
struct RequestCredentials {
  Secret token;
  std::string ca_pem;  ///< Empty: the roots of the system.
  std::string certificate_pem;
  Secret key_pem;
  friend bool operator==(const RequestCredentials&,
                         const RequestCredentials&) = default;
};

/// What a certificate says of itself.
struct CertificateInfo {
  std::chrono::system_clock::time_point not_after;
};

/// Reads the files that a kubeconfig names, again as they change. What cannot
/// be used never replaces what could. Knows files, keys and clocks through its
/// seams only. Thread-bound.
class Credentials {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Seams {
    std::function<absl::StatusOr<std::string>(const std::filesystem::path&)>
        read_file;
    /// An error where one of them cannot be parsed, or the key is another
    /// one's. Its text has no part of them.
    std::function<absl::StatusOr<CertificateInfo>(const std::string& pem,
                                                  const std::string& key_pem)>
        check_pair;
    std::function<std::chrono::system_clock::time_point()> wall_clock;
    /// Called once for each thing that is wrong, until it is right again.
    std::function<void(std::string)> warn;
  };

  /// How old what was read may be.
  static constexpr std::chrono::seconds kTokenPeriod{50};
  static constexpr std::chrono::seconds kPairPeriod{1};

  Credentials(const Kubeconfig& config, Seams seams);

  /// For a request that is sent at `now`: files that were not looked at for
  /// their period are read. Without encryption there are none.
  ///   Unavailable  there is no token, or no pair, that can be used
  absl::StatusOr<std::shared_ptr<const RequestCredentials>> Current(
      TimePoint now);

  /// The server has refused them (401): what Current returns next is read anew.
  void Refused();

 private:
  /// A file that was read, or was to be.
  struct Watched {
    std::optional<TimePoint> read_at;
    std::string problem;  // As it was reported.
  };

  absl::Status ReadToken(TimePoint now);
  absl::Status ReadPair(TimePoint now);
  absl::Status ReadAuthority(TimePoint now);
  bool IsDue(Watched& watched, TimePoint now,
             std::chrono::seconds period) const;
  absl::StatusOr<std::string> Load(const PemSource& pem) const;
  void Report(Watched& watched, const std::string& problem) const;
  void WarnOfExpiry();

  const Kubeconfig config_;
  const Seams seams_;
  Watched token_;
  Watched pair_;
  Watched authority_;
  std::optional<CertificateInfo> info_;
  Watched expiry_;
  RequestCredentials wanted_;
  std::shared_ptr<const RequestCredentials> current_;
};

}  // namespace devmgr::apiserver
