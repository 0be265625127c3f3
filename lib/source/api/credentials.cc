// SPDX-License-Identifier: Apache-2.0
#include "source/api/credentials.h"

#include <utility>

#include "api/meta.h"
#include "api/quote.h"
#include "common/status.h"

namespace devmgr::apiserver {
namespace {

std::string Trimmed(const std::string& text) {
  constexpr char kSpace[] = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::string QuotedPath(const std::filesystem::path& path) {
  return api::Quoted(path.string(), 300);
}

}  // namespace

Credentials::Credentials(const Kubeconfig& config, Seams seams)
    : config_(config), seams_(std::move(seams)) {
  wanted_.token = config_.token;
}

absl::StatusOr<std::shared_ptr<const RequestCredentials>> Credentials::Current(
    TimePoint now) {
  if (config_.IsHttps()) {
    DEVMGR_RETURN_IF_ERROR(ReadToken(now));
    DEVMGR_RETURN_IF_ERROR(ReadPair(now));
    DEVMGR_RETURN_IF_ERROR(ReadAuthority(now));
    WarnOfExpiry();
  } else {
    wanted_ = RequestCredentials();
  }
  // One object as long as nothing changes, by which connections are shared.
  if (current_ == nullptr || *current_ != wanted_) {
    current_ = std::make_shared<const RequestCredentials>(wanted_);
  }
  return current_;
}

void Credentials::Refused() {
  token_.read_at.reset();
  pair_.read_at.reset();
  authority_.read_at.reset();
}

bool Credentials::IsDue(Watched& watched, TimePoint now,
                        std::chrono::seconds period) const {
  if (watched.read_at && now - *watched.read_at < period) return false;
  watched.read_at = now;
  return true;
}

absl::Status Credentials::ReadToken(TimePoint now) {
  if (config_.token_file.empty()) return absl::OkStatus();
  if (IsDue(token_, now, kTokenPeriod)) {
    const absl::StatusOr<std::string> text =
        seams_.read_file(config_.token_file);
    std::string problem;
    if (!text.ok()) {
      problem = MessageOf(text.status());
    } else if (std::string token = Trimmed(*text); token.empty()) {
      problem = "it is empty";
    } else if (api::HasControlCharacters(token)) {
      problem = "it has more than one line";
    } else {
      wanted_.token = Secret(std::move(token));
    }
    if (!problem.empty()) {
      problem = fmt::format(
          "the token file {} cannot be used{}: {}",
          QuotedPath(config_.token_file),
          wanted_.token.empty() ? "" : "; the last token stays", problem);
    }
    Report(token_, problem);
  }
  if (!wanted_.token.empty()) return absl::OkStatus();
  return UnavailableError("{}", token_.problem);
}

absl::Status Credentials::ReadPair(TimePoint now) {
  if (config_.client_certificate.empty()) return absl::OkStatus();
  if (IsDue(pair_, now, kPairPeriod)) {
    absl::StatusOr<std::string> certificate = Load(config_.client_certificate);
    absl::StatusOr<std::string> key = Load(config_.client_key);
    absl::Status status = certificate.status();
    if (status.ok()) status = key.status();
    const bool is_new =
        status.ok() && (*certificate != wanted_.certificate_pem ||
                        *key != wanted_.key_pem.Reveal());
    if (is_new) {
      const absl::StatusOr<CertificateInfo> info =
          seams_.check_pair(*certificate, *key);
      status = info.status();
      if (info.ok()) {
        info_ = *info;
        wanted_.certificate_pem = *std::move(certificate);
        wanted_.key_pem = Secret(*std::move(key));
      }
    }
    Report(pair_,
           status.ok()
               ? ""
               : fmt::format("the client certificate cannot be used{}: {}",
                             wanted_.certificate_pem.empty()
                                 ? ""
                                 : "; the last pair stays",
                             MessageOf(status)));
  }
  if (!wanted_.certificate_pem.empty()) return absl::OkStatus();
  return UnavailableError("{}", pair_.problem);
}

absl::Status Credentials::ReadAuthority(TimePoint now) {
  const PemSource& source = config_.certificate_authority;
  if (source.empty()) return absl::OkStatus();
  if (IsDue(authority_, now, kPairPeriod)) {
    absl::StatusOr<std::string> pem = Load(source);
    if (pem.ok() && pem->find("-----BEGIN") == std::string::npos) {
      pem = InvalidArgumentError("there is no certificate in it");
    }
    if (pem.ok()) wanted_.ca_pem = *pem;
    Report(authority_,
           pem.ok() ? ""
                    : fmt::format(
                          "the certificate authority cannot be used{}: "
                          "{}",
                          wanted_.ca_pem.empty() ? "" : "; the last one stays",
                          MessageOf(pem.status())));
  }
  if (!wanted_.ca_pem.empty()) return absl::OkStatus();
  return UnavailableError("{}", authority_.problem);
}

absl::StatusOr<std::string> Credentials::Load(const PemSource& pem) const {
  if (!pem.data.empty()) return pem.data.Reveal();
  absl::StatusOr<std::string> text = seams_.read_file(pem.file);
  if (text.ok()) return text;
  return WithContext(text.status(), "{}", QuotedPath(pem.file));
}

void Credentials::Report(Watched& watched, const std::string& problem) const {
  if (problem == watched.problem) return;
  watched.problem = problem;
  if (!problem.empty()) seams_.warn(problem);
}

void Credentials::WarnOfExpiry() {
  if (!info_) return;
  const bool is_over = seams_.wall_clock() >= info_->not_after;
  const std::int64_t unix_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(
          info_->not_after.time_since_epoch())
          .count();
  Report(expiry_, is_over ? fmt::format("the client certificate expired on {}",
                                        api::TimestampOf(unix_ms))
                          : "");
}

}  // namespace devmgr::apiserver
