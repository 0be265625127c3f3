// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/keys.h"

#include <fmt/core.h>

namespace devmgr::checkpoint {
namespace {

constexpr std::string_view kFormat = "meta/format";
constexpr std::string_view kSeq = "meta/seq";
constexpr std::string_view kFirst = "meta/first";
constexpr std::string_view kPodPrefix = "p/";
constexpr std::string_view kClaimPrefix = "c/";
constexpr std::string_view kIdentityPrefix = "i/";
constexpr std::string_view kResourcePrefix = "r/";
constexpr std::string_view kHealthPrefix = "d/";
constexpr std::string_view kHolderPrefix = "f/";
constexpr std::string_view kLocalClaimPrefix = "l/";
constexpr std::string_view kAuthority = "a/";
constexpr std::string_view kHistoryPrefix = "h/";
constexpr std::string_view kSourcePrefix = "~s/";
constexpr std::string_view kObjectPrefix = "~o/";
constexpr char kIgnorable = '~';
constexpr std::size_t kNumberSize = 8;

std::string Join(std::string_view prefix, std::string_view rest) {
  std::string key(prefix);
  key += rest;
  return key;
}

/// The first key behind all that have this prefix.
std::string Behind(std::string_view prefix) {
  std::string end(prefix);
  ++end.back();
  return end;
}

}  // namespace

std::string FormatKey() { return std::string(kFormat); }

std::string SeqKey() { return std::string(kSeq); }

std::string FirstKey() { return std::string(kFirst); }

std::string PodKey(const PodUid& uid) { return Join(kPodPrefix, uid.value); }

std::string ClaimKey(const ClaimUid& uid) {
  return Join(kClaimPrefix, uid.value);
}

std::string IdentityKeyOf(const std::string& kind, const ObjectName& name) {
  std::string key = Join(kIdentityPrefix, kind);
  key += '\0';
  key += name.ns;
  key += '\0';
  key += name.name;
  return key;
}

std::string ResourceKey(const std::string& name) {
  return Join(kResourcePrefix, name);
}

std::string HealthKey(const state::DeviceKey& device) {
  std::string key = Join(kHealthPrefix, std::get<0>(device));
  key += '\0';
  key += std::get<1>(device);
  key += '\0';
  key += std::get<2>(device);
  return key;
}

std::string SourceKeyOf(const state::SourceKey& source) {
  return Join(kSourcePrefix, source.name);
}

std::string HolderKey(const state::ContainerId& id) {
  return Join(kHolderPrefix, id.value);
}

std::string LocalClaimKey(const state::LocalClaimUid& uid) {
  return Join(kLocalClaimPrefix, uid.value);
}

std::string AuthorityKeyOf() { return std::string(kAuthority); }

std::string HistoryKey(std::uint64_t seq) {
  return Join(kHistoryPrefix, EncodeNumber(seq));
}

std::string ObjectKey(std::string_view key) { return Join(kObjectPrefix, key); }

std::string_view ObjectKeyIn(std::string_view key) {
  return key.substr(kObjectPrefix.size());
}

std::string ClaimsBegin() { return std::string(kClaimPrefix); }

std::string PodsBegin() { return std::string(kPodPrefix); }

std::string PodsEnd() { return Behind(kPodPrefix); }

std::string ClaimsEnd() { return Behind(kClaimPrefix); }

std::string ObjectsEnd() { return Behind(kObjectPrefix); }

std::string HistoryEnd() { return Behind(kHistoryPrefix); }

std::optional<KeyKind> KindOf(std::string_view key) {
  if (key == kFormat) return KeyKind::kFormat;
  if (key == kSeq) return KeyKind::kSeq;
  if (key == kFirst) return KeyKind::kFirst;
  if (key.starts_with(kPodPrefix)) return KeyKind::kPod;
  if (key.starts_with(kClaimPrefix)) return KeyKind::kClaim;
  if (key.starts_with(kIdentityPrefix)) return KeyKind::kIdentity;
  if (key.starts_with(kResourcePrefix)) return KeyKind::kResource;
  if (key.starts_with(kHealthPrefix)) return KeyKind::kHealth;
  if (key.starts_with(kSourcePrefix)) return KeyKind::kSource;
  if (key.starts_with(kHolderPrefix)) return KeyKind::kHolder;
  if (key.starts_with(kLocalClaimPrefix)) return KeyKind::kLocalClaim;
  if (key == kAuthority) return KeyKind::kAuthority;
  if (key.starts_with(kHistoryPrefix)) return KeyKind::kHistory;
  if (key.starts_with(kObjectPrefix)) return KeyKind::kObject;
  return std::nullopt;
}

bool MayBeIgnored(std::string_view key) { return key.starts_with(kIgnorable); }

std::optional<std::uint64_t> HistorySeq(std::string_view key) {
  if (!key.starts_with(kHistoryPrefix)) return std::nullopt;
  return DecodeNumber(key.substr(kHistoryPrefix.size()));
}

std::string EncodeNumber(std::uint64_t number) {
  std::string bytes(kNumberSize, '\0');
  for (std::size_t i = kNumberSize; i > 0; --i) {
    bytes[i - 1] = static_cast<char>(number & 0xff);
    number >>= 8;
  }
  return bytes;
}

std::optional<std::uint64_t> DecodeNumber(std::string_view bytes) {
  if (bytes.size() != kNumberSize) return std::nullopt;
  std::uint64_t number = 0;
  for (const char byte : bytes) {
    number = number << 8 | static_cast<unsigned char>(byte);
  }
  return number;
}

std::string PrintKey(std::string_view key) {
  if (const auto seq = HistorySeq(key)) {
    return fmt::format("{}{}", kHistoryPrefix, *seq);
  }
  std::string text;
  for (const char byte : key) {
    if (byte >= ' ' && byte <= '~' && byte != '\\') {
      text += byte;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  }
  return text;
}

}  // namespace devmgr::checkpoint
