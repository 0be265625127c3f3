// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's wire form, field by field: for messages of which only a few fields
// are known and all else must stay as it is, byte for byte.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace devmgr::cri {

enum class WireType : std::uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

/// One field as it stands on the wire.
struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t varint = 0;  ///< Of kVarint.
  std::string_view bytes;    ///< Of kBytes: what the field contains.
  std::string_view raw;      ///< With tag and length, as it was.
};

/// Walks over the fields of a message, in order. What it hands out points into
/// the bytes it was given.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  /// False at the end, and when what follows is no field; then `ok` tells.
  bool Next(WireField* field);
  bool ok() const { return ok_; }

 private:
  bool ReadVarint(std::uint64_t* value);
  bool Skip(std::uint64_t count);
  bool SkipPayload(WireField* field, int depth);

  std::string_view rest_;
  bool ok_ = true;
};

/// Calls `use` with each field; InvalidArgument, naming `what`, when `message`
/// is none. What came before the error was used.
absl::Status ForEachField(std::string_view message, std::string_view what,
                          const std::function<void(const WireField&)>& use);

void AppendVarint(std::string* to, std::uint64_t value);
void AppendVarintField(std::string* to, std::uint32_t number,
                       std::uint64_t value);
/// A text, bytes or embedded message; also when it is empty.
void AppendBytesField(std::string* to, std::uint32_t number,
                      std::string_view bytes);

}  // namespace devmgr::cri
