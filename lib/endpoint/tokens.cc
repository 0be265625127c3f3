// SPDX-License-Identifier: Apache-2.0
#include "endpoint/tokens.h"

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>

#include "common/status.h"

namespace devmgr::endpoint {

absl::StatusOr<std::string> MakeToken() {
  std::array<unsigned char, 32> bits{};
  if (RAND_bytes(bits.data(), static_cast<int>(bits.size())) != 1) {
    return InternalError("the host has no random bits for a token");
  }
  std::string token;
  for (const unsigned char byte : bits) token += fmt::format("{:02x}", byte);
  return token;
}

TokenBook::Digest TokenBook::DigestOf(std::string_view token) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         digest.data());
  return digest;
}

void TokenBook::Set(const std::string& driver, std::string_view token,
                    TimePoint now) {
  const Digest digest = DigestOf(token);
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                [&](const Entry& entry) {
                                  return entry.ends.has_value() &&
                                         *entry.ends <= now;
                                }),
                 entries_.end());
  for (Entry& entry : entries_) {
    if (entry.driver == driver && !entry.ends.has_value()) {
      if (entry.digest == digest) return;
      entry.ends = now + kOldTokenLife;
    }
  }
  entries_.push_back({driver, digest, std::nullopt});
}

std::set<std::string> TokenBook::Drivers() const {
  std::set<std::string> drivers;
  for (const Entry& entry : entries_) drivers.insert(entry.driver);
  return drivers;
}

std::optional<std::string> TokenBook::DriverOf(std::string_view authorization,
                                               TimePoint now) const {
  constexpr std::string_view kBearer = "Bearer ";
  const bool is_bearer = authorization.substr(0, kBearer.size()) == kBearer;
  const Digest digest =
      DigestOf(is_bearer ? authorization.substr(kBearer.size()) : "");
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    const bool same =
        CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0;
    const bool valid = !entry.ends.has_value() || now < *entry.ends;
    if (same && valid && is_bearer) found = &entry;
  }
  if (found == nullptr) return std::nullopt;
  return found->driver;
}

}  // namespace devmgr::endpoint
