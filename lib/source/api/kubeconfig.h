// SPDX-License-Identifier: Apache-2.0
//
// What a kubeconfig says of one cluster and one user. No text that is made of
// it contains a credential: not an error, not a warning, not a description.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devmgr::apiserver {

/// A text that is never printed.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  bool empty() const { return text_.empty(); }
  /// For the request that it goes into, and for nothing else.
  const std::string& Reveal() const { return text_; }
  friend bool operator==(const Secret&, const Secret&) = default;

 private:
  std::string text_;
};

/// Certificates or a key: a file, which may change, or its content.
struct PemSource {
  std::filesystem::path file;
  Secret data;  ///< Wins over the file.
  bool empty() const { return file.empty() && data.empty(); }
  friend bool operator==(const PemSource&, const PemSource&) = default;
};

/// `act-as` and its siblings.
struct Impersonation {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  friend bool operator==(const Impersonation&, const Impersonation&) = default;
};

struct Kubeconfig {
  std::string context;
  std::string cluster;
  std::string user;
  /// `https://host:port/prefix`, without a slash at its end.
  std::string server;
  PemSource certificate_authority;
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name;
  /// May contain a password; empty: as the environment says.
  Secret proxy_url;
  bool disable_compression = false;

  PemSource client_certificate;
  PemSource client_key;
  Secret token;
  std::filesystem::path token_file;
  Impersonation act_as;

  /// To be shown at each start.
  std::vector<std::string> warnings;

  bool IsHttps() const { return server.starts_with("https://"); }
  bool HasCredentials() const {
    return !token.empty() || !token_file.empty() || !client_certificate.empty();
  }
  friend bool operator==(const Kubeconfig&, const Kubeconfig&) = default;
};

/// Reads the context `context` of a kubeconfig, or its current one where that
/// is empty. Relative paths begin at the folder of `file`. What other contexts,
/// clusters and users say does not matter.
///   InvalidArgument  a mistake, or a field that is not supported; the message
///                    has the file, and the name of the user or cluster
absl::StatusOr<Kubeconfig> ParseKubeconfig(std::string_view text,
                                           const std::filesystem::path& file,
                                           std::string_view context = {});

/// What a container finds of its cluster.
struct InClusterFiles {
  std::string host;  ///< KUBERNETES_SERVICE_HOST
  std::string port;  ///< KUBERNETES_SERVICE_PORT
  std::filesystem::path folder =
      "/var/run/secrets/kubernetes.io/serviceaccount";
  /// Whether `ca.crt` is there; without it the roots of the system count.
  bool has_ca = true;
};

///   FailedPrecondition  a variable is not set
absl::StatusOr<Kubeconfig> InClusterConfig(const InClusterFiles& files);

/// One line for people: server, context, how the server is recognised and what
/// we show to it.
std::string DescribeKubeconfig(const Kubeconfig& config);

/// `url` without user and password.
std::string WithoutUserInfo(std::string_view url);

}  // namespace devmgr::apiserver
