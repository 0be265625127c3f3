// SPDX-License-Identifier: Apache-2.0
#include "cri/wire.h"

#include "common/status.h"

namespace devmgr::cri {
namespace {

/// As protobuf's own readers: deeper groups are refused.
constexpr int kMaxDepth = 100;
constexpr std::uint64_t kMaxFieldNumber = (1U << 29) - 1;

}  // namespace

bool WireReader::ReadVarint(std::uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (rest_.empty()) return false;
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    *value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool WireReader::Skip(std::uint64_t count) {
  if (count > rest_.size()) return false;
  rest_.remove_prefix(count);
  return true;
}

/// Reads a tag and what it announces.
bool WireReader::SkipPayload(WireField* field, int depth) {
  std::uint64_t tag = 0;
  if (depth > kMaxDepth || !ReadVarint(&tag)) return false;
  if ((tag >> 3) == 0 || (tag >> 3) > kMaxFieldNumber) return false;
  field->number = static_cast<std::uint32_t>(tag >> 3);
  field->type = static_cast<WireType>(tag & 7);
  switch (field->type) {
    case WireType::kVarint:
      return ReadVarint(&field->varint);
    case WireType::kFixed64:
      return Skip(8);
    case WireType::kFixed32:
      return Skip(4);
    case WireType::kBytes: {
      std::uint64_t size = 0;
      if (!ReadVarint(&size)) return false;
      field->bytes = rest_.substr(0, size);
      return Skip(size);
    }
    case WireType::kStartGroup:
      for (;;) {
        WireField inner;
        if (!SkipPayload(&inner, depth + 1)) return false;
        if (inner.type == WireType::kEndGroup) {
          return inner.number == field->number;
        }
      }
    case WireType::kEndGroup:
      return depth > 0;
  }
  return false;
}

bool WireReader::Next(WireField* field) {
  if (rest_.empty() || !ok_) return false;
  *field = {};
  const std::string_view before = rest_;
  ok_ = SkipPayload(field, 0);
  if (ok_) field->raw = before.substr(0, before.size() - rest_.size());
  return ok_;
}

absl::Status ForEachField(std::string_view message, std::string_view what,
                          const std::function<void(const WireField&)>& use) {
  WireReader reader(message);
  WireField field;
  while (reader.Next(&field)) use(field);
  if (reader.ok()) return absl::OkStatus();
  return InvalidArgumentError("{} bytes are not a {}", message.size(), what);
}

void AppendVarint(std::string* to, std::uint64_t value) {
  for (; value > 0x7F; value >>= 7) {
    to->push_back(static_cast<char>(value | 0x80));
  }
  to->push_back(static_cast<char>(value));
}

void AppendVarintField(std::string* to, std::uint32_t number,
                       std::uint64_t value) {
  AppendVarint(to, std::uint64_t{number} << 3);
  AppendVarint(to, value);
}

void AppendBytesField(std::string* to, std::uint32_t number,
                      std::string_view bytes) {
  AppendVarint(to, std::uint64_t{number} << 3 | 2);
  AppendVarint(to, bytes.size());
  to->append(bytes);
}

}  // namespace devmgr::cri
