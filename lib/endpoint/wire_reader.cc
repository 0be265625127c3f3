// SPDX-License-Identifier: Apache-2.0
#include "endpoint/wire_reader.h"

#include <cstddef>
#include <vector>

#include "common/status.h"

namespace devmgr::endpoint {
namespace {

constexpr std::uint64_t kMaxNumber = (std::uint64_t{1} << 29) - 1;
constexpr std::size_t kMaxGroups = 100;
/// The types of the wire format, as the last three bits of a tag say them.
constexpr std::uint64_t kGroupBegin = 3;
constexpr std::uint64_t kGroupEnd = 4;

absl::Status CutShort() {
  return InvalidArgumentError("the message ends in the middle of a field");
}

}  // namespace

std::optional<std::uint64_t> WireReader::Varint() {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < rest_.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(rest_[i]);
    if (i == 9 && byte > 1) return std::nullopt;  // Beyond 64 bits.
    number |= std::uint64_t{byte & 0x7Fu} << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      return number;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> WireReader::Fixed(std::size_t size) {
  if (rest_.size() < size) return std::nullopt;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
  }
  rest_.remove_prefix(size);
  return number;
}

absl::StatusOr<WireValue> WireReader::Next() {
  const std::optional<std::uint64_t> tag = Varint();
  if (!tag.has_value()) return CutShort();
  WireValue value;
  DEVMGR_RETURN_IF_ERROR(ReadValue(*tag, value));
  if (value.kind == WireValue::Kind::kGroup) {
    DEVMGR_RETURN_IF_ERROR(SkipGroup(value.number));
  }
  return value;
}

/// Of a group only its beginning.
absl::Status WireReader::ReadValue(std::uint64_t tag, WireValue& value) {
  const std::uint64_t number = tag >> 3;
  if (number == 0 || number > kMaxNumber) {
    return InvalidArgumentError("a field has the number {}", number);
  }
  value.number = static_cast<std::uint32_t>(number);
  std::optional<std::uint64_t> got;
  switch (tag & 7) {
    case 0:
      value.kind = WireValue::Kind::kVarint;
      got = Varint();
      break;
    case 1:
      value.kind = WireValue::Kind::kFixed64;
      got = Fixed(8);
      break;
    case 2:
      value.kind = WireValue::Kind::kBytes;
      got = Varint();
      if (!got.has_value() || *got > rest_.size()) return CutShort();
      value.bytes = rest_.substr(0, static_cast<std::size_t>(*got));
      rest_.remove_prefix(static_cast<std::size_t>(*got));
      break;
    case kGroupBegin:
      value.kind = WireValue::Kind::kGroup;
      return absl::OkStatus();
    case 5:
      value.kind = WireValue::Kind::kFixed32;
      got = Fixed(4);
      break;
    default:
      return InvalidArgumentError("field {} has the wire type {}", number,
                                  tag & 7);
  }
  if (!got.has_value()) return CutShort();
  value.varint = *got;
  return absl::OkStatus();
}

absl::Status WireReader::SkipGroup(std::uint32_t number) {
  std::vector<std::uint32_t> open{number};
  while (!open.empty()) {
    const std::optional<std::uint64_t> tag = Varint();
    if (!tag.has_value()) return CutShort();
    if ((*tag & 7) == kGroupEnd) {
      if (*tag >> 3 != open.back()) {
        return InvalidArgumentError("a group ends that was not begun");
      }
      open.pop_back();
      continue;
    }
    WireValue value;
    DEVMGR_RETURN_IF_ERROR(ReadValue(*tag, value));
    if (value.kind != WireValue::Kind::kGroup) continue;
    if (open.size() == kMaxGroups) {
      return InvalidArgumentError("groups are nested more than {} deep",
                                  kMaxGroups);
    }
    open.push_back(value.number);
  }
  return absl::OkStatus();
}

}  // namespace devmgr::endpoint
