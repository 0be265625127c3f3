// SPDX-License-Identifier: Apache-2.0
//
// The only place that makes keys of the ledger or takes them apart; FORMAT.md
// draws them.
#pragma once

#include <devmgr/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "state/records.h"

namespace devmgr::checkpoint {

/// Goes up with every change that an older version would misread or lose.
inline constexpr std::uint64_t kFormatVersion = 3;
/// The first one that says where the history begins.
inline constexpr std::uint64_t kFormatWithFirst = 2;
/// The oldest one that is still read.
inline constexpr std::uint64_t kOldestFormat = 1;

std::string FormatKey();
std::string SeqKey();
std::string FirstKey();
std::string PodKey(const PodUid& uid);
std::string ClaimKey(const ClaimUid& uid);
std::string IdentityKeyOf(const std::string& kind, const ObjectName& name);
std::string ResourceKey(const std::string& name);
std::string HealthKey(const state::DeviceKey& device);
std::string SourceKeyOf(const state::SourceKey& source);
std::string HolderKey(const state::ContainerId& id);
std::string LocalClaimKey(const state::LocalClaimUid& uid);
std::string AuthorityKeyOf();
std::string HistoryKey(std::uint64_t seq);
/// Of an object beside the ledger, by its key in devmgr::ObjectSpace.
std::string ObjectKey(std::string_view key);
/// The other way; `key` is what ObjectKey made.
std::string_view ObjectKeyIn(std::string_view key);

/// Before the keys of all pods, and the first key behind them.
std::string PodsBegin();
std::string PodsEnd();
/// The same of claims.
std::string ClaimsBegin();
std::string ClaimsEnd();

/// The first key behind all objects.
std::string ObjectsEnd();

/// The first key behind the whole history.
std::string HistoryEnd();

enum class KeyKind {
  kFormat,
  kSeq,
  kFirst,
  kPod,
  kClaim,
  kIdentity,
  kResource,
  kHealth,
  kSource,
  kHolder,
  kLocalClaim,
  kAuthority,
  kHistory,
  kObject,
};

/// Nothing for a key that this version does not know.
std::optional<KeyKind> KindOf(std::string_view key);

/// Whether a reader that does not know the kind of this key leaves its record
/// alone; else it must refuse the ledger.
bool MayBeIgnored(std::string_view key);

/// The number in a history key, or nothing when it is not well-formed.
std::optional<std::uint64_t> HistorySeq(std::string_view key);

/// Numbers in keys and meta values: 8 bytes, big-endian, so that they sort.
std::string EncodeNumber(std::uint64_t number);
std::optional<std::uint64_t> DecodeNumber(std::string_view bytes);

/// The key for people: numbers in decimal, other odd bytes escaped.
std::string PrintKey(std::string_view key);

}  // namespace devmgr::checkpoint
