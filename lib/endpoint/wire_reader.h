// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's wire format, field by field, from bytes of others.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace devmgr::endpoint {

/// One field as it stands on the wire. It borrows the bytes.
struct WireValue {
  enum class Kind { kVarint, kFixed64, kBytes, kFixed32, kGroup };

  std::uint32_t number = 0;
  Kind kind = Kind::kVarint;
  std::uint64_t varint = 0;  ///< Also of the fixed ones.
  std::string_view bytes;    ///< Of kBytes. A group is skipped.
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool AtEnd() const { return rest_.empty(); }
  /// InvalidArgument for bytes that are no protobuf.
  absl::StatusOr<WireValue> Next();
  /// One number of a packed list; nothing when none stands there.
  std::optional<std::uint64_t> Varint();

 private:
  absl::Status ReadValue(std::uint64_t tag, WireValue& value);
  absl::Status SkipGroup(std::uint32_t number);
  std::optional<std::uint64_t> Fixed(std::size_t size);

  std::string_view rest_;
};

}  // namespace devmgr::endpoint
