// SPDX-License-Identifier: Apache-2.0
#include "source/api/key_pair.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include "common/status.h"

namespace devmgr::apiserver {
namespace {

template <auto free>
struct FreeBy {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};
using Bio = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, FreeBy<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;

Bio Reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// Without it OpenSSL asks the terminal for the password of a key.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

absl::StatusOr<CertificateInfo> CheckKeyPair(const std::string& pem,
                                             const std::string& key_pem) {
  const Bio pem_reader = Reader(pem);
  const Bio key_reader = Reader(key_pem);
  const Certificate certificate(
      PEM_read_bio_X509(pem_reader.get(), nullptr, NoPassword, nullptr));
  const Key key(
      PEM_read_bio_PrivateKey(key_reader.get(), nullptr, NoPassword, nullptr));
  const bool matches =
      certificate != nullptr && key != nullptr &&
      X509_check_private_key(certificate.get(), key.get()) == 1;
  // What OpenSSL noted on this thread is not ours to leave behind.
  ERR_clear_error();
  if (certificate == nullptr) {
    return InvalidArgumentError("there is no certificate in it");
  }
  if (key == nullptr) {
    return InvalidArgumentError("there is no key without a password in it");
  }
  if (!matches) {
    return InvalidArgumentError("the key is the key of another certificate");
  }
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return InvalidArgumentError("the certificate has no time of its end");
  }
  return CertificateInfo{std::chrono::system_clock::from_time_t(timegm(&end))};
}

}  // namespace devmgr::apiserver
