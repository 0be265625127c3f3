// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/objects.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/field.h"

namespace devmgr::api {

enum class Scope { kCluster, kNamespace };

/// Reads `metadata` of the object at `root`. A namespaced object without a
/// namespace is in `default`. Reports what no object can do without: a name, a
/// usable UID, timestamps that are timestamps.
ObjectMeta DecodeMeta(const Field& root, Scope scope);

/// Reports a name or namespace that breaks the rules, and owner references
/// without an identity. (Of pods this is part of ValidatePod.)
void CheckMeta(const Field& root, const ObjectMeta& metadata);

/// Reports a text that is no timestamp.
std::string DecodeTimestamp(const Field& field);

/// `conditions` of a status, at most `limit`, each type once.
std::vector<Condition> DecodeConditions(const Field& list, std::size_t limit);

/// Whether `text` is a time as RFC 3339 writes it. The calendar is checked as
/// far as digits go (months to 12, days to 31).
bool IsTimestamp(std::string_view text);

/// Unix time in seconds of such a text, its fraction left out; nothing when it
/// is no timestamp.
std::optional<std::int64_t> UnixSecondsOf(std::string_view text);

/// Unix time in milliseconds as RFC 3339 in UTC, to the second.
std::string TimestampOf(std::int64_t unix_ms);

}  // namespace devmgr::api
