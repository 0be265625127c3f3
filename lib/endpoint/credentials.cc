// SPDX-License-Identifier: Apache-2.0
#include "endpoint/credentials.h"

#include <absl/strings/escaping.h>
#include <absl/strings/numbers.h>
#include <fmt/core.h>

#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "api/names.h"
#include "apistore/object_meta.h"
#include "common/atomic_file.h"
#include "common/status.h"
#include "endpoint/certificates.h"
#include "endpoint/tokens.h"

namespace devmgr::endpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTokenBytes = 64;

/// Empty for a file that is not there.
std::string ReadText(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  return text.str();
}

absl::Status WritePrivate(const fs::path& file, std::string_view text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  fs::permissions(file.parent_path(), fs::perms::owner_all, error);
  if (error) {
    return ErrnoStatus(error.value(), fmt::format("cannot make the folder '{}'",
                                                  file.parent_path().string()));
  }
  return WriteFileAtomically(file, text, IfPresent::kReplace,
                             FileMode::kPrivate);
}

absl::Status WritePair(const fs::path& certificate, const fs::path& key,
                       const KeyPair& pair) {
  DEVMGR_RETURN_IF_ERROR(WritePrivate(key, pair.key));
  return WriteFileAtomically(certificate, pair.certificate);
}

}  // namespace

absl::StatusOr<bool> Credentials::KeepCertificate(std::int64_t now) const {
  const fs::path ca = folder_ / ".tls/ca.crt";
  const fs::path ca_key = folder_ / ".tls/ca.key";
  KeyPair authority{ReadText(ca), ReadText(ca_key)};
  if (!IsGoodAuthority(authority, now)) {
    DEVMGR_ASSIGN_OR_RETURN(authority, MakeAuthority(now));
    DEVMGR_RETURN_IF_ERROR(WritePair(ca, ca_key, authority));
  }
  const KeyPair leaf{ReadText(certificate()), ReadText(key())};
  if (IsGoodLeaf(leaf, authority, names_, now)) return false;
  DEVMGR_ASSIGN_OR_RETURN(const KeyPair fresh,
                          MakeLeaf(authority, names_, now));
  DEVMGR_RETURN_IF_ERROR(WritePair(certificate(), key(), fresh));
  return true;
}

absl::StatusOr<std::string> Credentials::Token(
    const std::string& driver) const {
  if (const std::string problem = api::CheckSubdomain(driver);
      !problem.empty()) {
    return InvalidArgumentError("driver '{}': {}", driver, problem);
  }
  std::string token = ReadText(FilesOf(driver) / "token");
  if (token.size() == kTokenBytes) return token;
  return MakeNewToken(driver);
}

absl::StatusOr<std::string> Credentials::MakeNewToken(
    const std::string& driver) const {
  DEVMGR_ASSIGN_OR_RETURN(std::string token, MakeToken());
  DEVMGR_RETURN_IF_ERROR(WritePrivate(FilesOf(driver) / "token", token));
  return token;
}

absl::Status Credentials::WriteFiles(const std::string& driver,
                                     const std::string& server) const {
  const std::string authority = ReadText(folder_ / ".tls/ca.crt");
  const fs::path files = FilesOf(driver);
  DEVMGR_RETURN_IF_ERROR(WritePrivate(files / "ca.crt", authority));
  DEVMGR_RETURN_IF_ERROR(WritePrivate(files / "namespace", "default"));
  std::error_code error;
  const fs::path token = fs::absolute(files / "token", error);
  const std::string text = fmt::format(
      "apiVersion: v1\n"
      "kind: Config\n"
      "current-context: devmgr\n"
      "clusters:\n"
      "- name: devmgr\n"
      "  cluster:\n"
      "    server: {}\n"
      "    certificate-authority-data: {}\n"
      "users:\n"
      "- name: {}\n"
      "  user:\n"
      "    tokenFile: {}\n"
      "contexts:\n"
      "- name: devmgr\n"
      "  context:\n"
      "    cluster: devmgr\n"
      "    user: {}\n",
      server, absl::Base64Escape(authority), driver,
      apistore::Dump(token.string()), driver);
  if (ReadText(kubeconfig(driver)) == text) return absl::OkStatus();
  return WriteFileAtomically(kubeconfig(driver), text, IfPresent::kReplace,
                             FileMode::kPrivate);
}

std::uint16_t Credentials::LastPort() const {
  std::uint32_t port = 0;
  if (!absl::SimpleAtoi(ReadText(folder_ / ".tls/port"), &port) ||
      port > 65535) {
    return 0;
  }
  return static_cast<std::uint16_t>(port);
}

absl::Status Credentials::RememberPort(std::uint16_t port) const {
  if (LastPort() == port) return absl::OkStatus();
  return WritePrivate(folder_ / ".tls/port", std::to_string(port));
}

}  // namespace devmgr::endpoint
