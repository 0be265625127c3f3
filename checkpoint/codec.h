// SPDX-License-Identifier: Apache-2.0
//
// Records to bytes and back (proto/devmgr/ledger/v1/ledger.proto). Equal
// records give equal bytes. Bytes from disk are checked as foreign input:
// DataLoss quotes `key`, the place the bytes were found at.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>

#include "state/decision.h"

namespace devmgr::checkpoint {

std::string EncodePod(const state::PodRecord& pod);
absl::StatusOr<std::shared_ptr<const state::PodRecord>> DecodePod(
    std::string_view bytes, std::string_view key);

std::string EncodeClaim(const state::ClaimRecord& claim);
absl::StatusOr<std::shared_ptr<const state::ClaimRecord>> DecodeClaim(
    std::string_view bytes, std::string_view key);

std::string EncodeIdentity(const state::IdentityRecord& identity);
absl::StatusOr<std::shared_ptr<const state::IdentityRecord>> DecodeIdentity(
    std::string_view bytes, std::string_view key);

std::string EncodeResource(const state::ResourceRecord& resource);
absl::StatusOr<std::shared_ptr<const state::ResourceRecord>> DecodeResource(
    std::string_view bytes, std::string_view key);

std::string EncodeHealth(const state::HealthRecord& health);
absl::StatusOr<std::shared_ptr<const state::HealthRecord>> DecodeHealth(
    std::string_view bytes, std::string_view key);

std::string EncodeSource(const state::SourceRecord& source);
absl::StatusOr<std::shared_ptr<const state::SourceRecord>> DecodeSource(
    std::string_view bytes, std::string_view key);

std::string EncodeHolder(const state::ForeignHolderRecord& holder);
absl::StatusOr<std::shared_ptr<const state::ForeignHolderRecord>> DecodeHolder(
    std::string_view bytes, std::string_view key);

std::string EncodeLocalClaim(const state::LocalClaimRecord& claim);
absl::StatusOr<std::shared_ptr<const state::LocalClaimRecord>> DecodeLocalClaim(
    std::string_view bytes, std::string_view key);

std::string EncodeAuthority(const state::AuthorityRecord& authority);
absl::StatusOr<std::shared_ptr<const state::AuthorityRecord>> DecodeAuthority(
    std::string_view bytes, std::string_view key);

/// No change of the batch may hold a null record.
std::string EncodeBatch(const state::Batch& batch);
/// What a newer version lets us ignore is left out (FORMAT.md).
absl::StatusOr<state::Batch> DecodeBatch(std::string_view bytes,
                                         std::string_view key);

}  // namespace devmgr::checkpoint
