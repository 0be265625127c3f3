// SPDX-License-Identifier: Apache-2.0
#include "endpoint/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "common/status.h"

namespace devmgr::endpoint {
namespace {

constexpr std::int64_t kYear = std::int64_t{365} * 24 * 3600;
/// Clocks of others may be behind.
constexpr std::int64_t kBackdated = 300;

using X509Ptr = std::shared_ptr<X509>;
using KeyPtr = std::shared_ptr<EVP_PKEY>;
using BioPtr = std::shared_ptr<BIO>;

bool IsAddress(const std::string& name) {
  return name.find(':') != std::string::npos ||
         name.find_first_not_of("0123456789.") == std::string::npos;
}

BioPtr Reading(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
          BIO_free};
}
X509Ptr ReadCertificate(const std::string& pem) {
  return {PEM_read_bio_X509(Reading(pem).get(), nullptr, nullptr, nullptr),
          X509_free};
}
KeyPtr ReadKey(const std::string& pem) {
  return {
      PEM_read_bio_PrivateKey(Reading(pem).get(), nullptr, nullptr, nullptr),
      EVP_PKEY_free};
}

template <typename Write>
std::string PemOf(const Write& write) {
  const BioPtr bio(BIO_new(BIO_s_mem()), BIO_free);
  if (bio == nullptr || write(bio.get()) != 1) return "";
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

bool AddExtension(X509* certificate, int kind, const std::string& text) {
  const std::shared_ptr<X509_EXTENSION> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, text.c_str()),
      X509_EXTENSION_free);
  return extension != nullptr &&
         X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetTimes(X509* certificate, std::int64_t now, std::int64_t seconds) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), now - kBackdated) !=
             nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), now + seconds) !=
             nullptr;
}

bool SetSerial(X509* certificate) {
  std::uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) !=
      1) {
    return false;
  }
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate),
                                 serial >> 1) == 1;
}

struct Draft {
  const char* name;
  std::int64_t seconds;
  std::vector<std::pair<int, std::string>> extensions;
  X509* issuer = nullptr;  ///< Null: it signs itself.
  EVP_PKEY* issuer_key = nullptr;
};

absl::StatusOr<KeyPair> Make(const Draft& draft, std::int64_t now) {
  const KeyPtr key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const X509Ptr x509(X509_new(), X509_free);
  if (key == nullptr || x509 == nullptr) {
    return InternalError("OpenSSL makes no key");
  }
  X509_NAME* subject = X509_get_subject_name(x509.get());
  bool good =
      X509_set_version(x509.get(), X509_VERSION_3) == 1 &&
      SetSerial(x509.get()) && SetTimes(x509.get(), now, draft.seconds) &&
      X509_set_pubkey(x509.get(), key.get()) == 1 &&
      X509_NAME_add_entry_by_txt(
          subject, "CN", MBSTRING_ASC,
          reinterpret_cast<const unsigned char*>(draft.name), -1, -1, 0) == 1 &&
      X509_set_issuer_name(x509.get(),
                           draft.issuer == nullptr
                               ? subject
                               : X509_get_subject_name(draft.issuer)) == 1;
  for (const auto& [kind, text] : draft.extensions) {
    good = good && AddExtension(x509.get(), kind, text);
  }
  good = good &&
         X509_sign(x509.get(),
                   draft.issuer_key == nullptr ? key.get() : draft.issuer_key,
                   EVP_sha256()) > 0;
  KeyPair pair;
  pair.certificate =
      PemOf([&](BIO* bio) { return PEM_write_bio_X509(bio, x509.get()); });
  pair.key = PemOf([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0,
                                    nullptr, nullptr);
  });
  if (!good || pair.certificate.empty() || pair.key.empty()) {
    return InternalError("OpenSSL makes no certificate for '{}'", draft.name);
  }
  return pair;
}

bool HasName(X509* certificate, const std::string& name) {
  return IsAddress(name) ? X509_check_ip_asc(certificate, name.c_str(), 0) == 1
                         : X509_check_host(certificate, name.c_str(),
                                           name.size(), 0, nullptr) == 1;
}

/// What is left of the certificate's time, in seconds.
std::int64_t LeftOf(X509* certificate, std::int64_t now) {
  const std::shared_ptr<ASN1_TIME> at(ASN1_TIME_set(nullptr, now),
                                      ASN1_TIME_free);
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, at.get(),
                     X509_get0_notAfter(certificate)) != 1) {
    return 0;
  }
  return std::int64_t{days} * 24 * 3600 + seconds;
}

}  // namespace

absl::StatusOr<KeyPair> MakeAuthority(std::int64_t now) {
  return Make({"devmgr-endpoint-authority",
               10 * kYear,
               {{NID_basic_constraints, "critical,CA:TRUE"},
                {NID_key_usage, "critical,keyCertSign,cRLSign"}}},
              now);
}

absl::StatusOr<KeyPair> MakeLeaf(const KeyPair& authority,
                                 const std::vector<std::string>& names,
                                 std::int64_t now) {
  const X509Ptr issuer = ReadCertificate(authority.certificate);
  const KeyPtr key = ReadKey(authority.key);
  if (issuer == nullptr || key == nullptr) {
    return InvalidArgumentError("the authority cannot be read");
  }
  std::string alternatives;
  for (const std::string& name : names) {
    if (!alternatives.empty()) alternatives += ",";
    alternatives += (IsAddress(name) ? "IP:" : "DNS:") + name;
  }
  return Make({"devmgr-endpoint",
               kYear,
               {{NID_basic_constraints, "critical,CA:FALSE"},
                {NID_key_usage, "critical,digitalSignature"},
                {NID_ext_key_usage, "serverAuth"},
                {NID_subject_alt_name, alternatives}},
               issuer.get(),
               key.get()},
              now);
}

bool IsGoodLeaf(const KeyPair& leaf, const KeyPair& authority,
                const std::vector<std::string>& names, std::int64_t now) {
  const X509Ptr certificate = ReadCertificate(leaf.certificate);
  const KeyPtr key = ReadKey(leaf.key);
  const X509Ptr issuer = ReadCertificate(authority.certificate);
  if (certificate == nullptr || key == nullptr || issuer == nullptr ||
      X509_check_private_key(certificate.get(), key.get()) != 1 ||
      X509_verify(certificate.get(), X509_get0_pubkey(issuer.get())) != 1) {
    return false;
  }
  for (const std::string& name : names) {
    if (!HasName(certificate.get(), name)) return false;
  }
  return LeftOf(certificate.get(), now) > kYear / 3;
}

bool IsGoodAuthority(const KeyPair& authority, std::int64_t now) {
  const X509Ptr certificate = ReadCertificate(authority.certificate);
  const KeyPtr key = ReadKey(authority.key);
  return certificate != nullptr && key != nullptr &&
         X509_check_private_key(certificate.get(), key.get()) == 1 &&
         LeftOf(certificate.get(), now) > kYear;
}

}  // namespace devmgr::endpoint
