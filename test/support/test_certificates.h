// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace devmgr {

/// A certificate with its key, made on the spot.
struct TestCertificate {
  std::shared_ptr<X509> x509;
  std::shared_ptr<EVP_PKEY> key;

  std::string Pem() const {
    return Text([this](BIO* bio) { PEM_write_bio_X509(bio, x509.get()); });
  }
  std::string KeyPem() const {
    return Text([this](BIO* bio) {
      PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr,
                               nullptr);
    });
  }

 private:
  template <typename Write>
  static std::string Text(const Write& write) {
    const std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new(BIO_s_mem()),
                                                  BIO_free);
    write(bio.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
  }
};

/// For `name`, valid for an hour; signed by `issuer`, or by itself. A name with
/// `CA` in it may sign others.
inline TestCertificate MakeCertificate(
    const std::string& name, const TestCertificate* issuer = nullptr) {
  static long serial = 0;
  TestCertificate made;
  made.key.reset(EVP_EC_gen("P-256"), EVP_PKEY_free);
  made.x509.reset(X509_new(), X509_free);
  X509* x509 = made.x509.get();
  X509_set_version(x509, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(x509), -60);
  X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
  X509_set_pubkey(x509, made.key.get());
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(x509), "CN", MBSTRING_ASC,
      reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* signer = issuer == nullptr ? x509 : issuer->x509.get();
  X509_set_issuer_name(x509, X509_get_subject_name(signer));
  const bool is_ca = name.find("CA") != std::string::npos;
  const auto add = [x509](int kind, const std::string& text) {
    X509_EXTENSION* extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, kind, text.c_str());
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
  };
  add(NID_basic_constraints, is_ca ? "critical,CA:TRUE" : "CA:FALSE");
  if (!is_ca) {
    const bool is_address =
        name.find_first_not_of("0123456789.") == std::string::npos;
    add(NID_subject_alt_name, (is_address ? "IP:" : "DNS:") + name);
  }
  X509_sign(x509, issuer == nullptr ? made.key.get() : issuer->key.get(),
            EVP_sha256());
  return made;
}

}  // namespace devmgr
