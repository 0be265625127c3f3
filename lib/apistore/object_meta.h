// SPDX-License-Identifier: Apache-2.0
//
// The metadata of objects as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apistore/answer.h"

namespace devmgr::apistore {

/// Where an object stands among those of its type.
struct ObjectKey {
  std::string ns;
  std::string name;
  auto operator<=>(const ObjectKey&) const = default;
};

/// A text of the metadata; empty when it is not there, or no text.
std::string MetaText(const Json& object, std::string_view field);
/// A text of `object` itself; empty as above.
std::string TextField(const Json& object, std::string_view field);
ObjectKey KeyOf(const Json& object);
/// A number of the metadata; 0 when it is not there, or none.
std::int64_t MetaNumber(const Json& object, std::string_view field);
bool HasFinalizers(const Json& object);

/// `2026-11-26T16:04:47Z`.
std::string TimeText(std::int64_t unix_seconds);

/// A version as clients send it: decimal, without sign. False when it is none.
bool ReadRevision(std::string_view text, std::uint64_t& revision);

/// Compact JSON; what is not UTF-8 is replaced.
std::string Dump(const Json& value);

}  // namespace devmgr::apistore
