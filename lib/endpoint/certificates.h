// SPDX-License-Identifier: Apache-2.0
//
// The endpoint's own authority, and the certificate that it shows to clients.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace devmgr::endpoint {

/// PEM both. ECDSA P-256.
struct KeyPair {
  std::string certificate;
  std::string key;
};

/// An authority of ten years. Internal when OpenSSL fails.
absl::StatusOr<KeyPair> MakeAuthority(std::int64_t now);
/// A server's certificate of a year for these names and addresses.
/// InvalidArgument when the authority cannot be read.
absl::StatusOr<KeyPair> MakeLeaf(const KeyPair& authority,
                                 const std::vector<std::string>& names,
                                 std::int64_t now);

/// Whether the pair belongs together, the authority has signed it, it has the
/// names, and less than two thirds of its time have passed.
bool IsGoodLeaf(const KeyPair& leaf, const KeyPair& authority,
                const std::vector<std::string>& names, std::int64_t now);
/// Whether the pair belongs together and has a year left at least.
bool IsGoodAuthority(const KeyPair& authority, std::int64_t now);

}  // namespace devmgr::endpoint
