// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

#include "apistore/object_meta.h"
#include "endpoint/wire_schema.h"

namespace devmgr::endpoint {

inline std::string Varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) {
    bytes += static_cast<char>(0x80 | (number & 0x7F));
  }
  bytes += static_cast<char>(number);
  return bytes;
}

/// A field with a length: a text, or a message.
inline std::string Bytes(std::uint32_t number, std::string_view bytes) {
  return Varint(std::uint64_t{number} << 3 | 2) + Varint(bytes.size()) +
         std::string(bytes);
}
inline std::string Number(std::uint32_t number, std::int64_t value) {
  return Varint(std::uint64_t{number} << 3) +
         Varint(static_cast<std::uint64_t>(value));
}

/// Objects as JSON in the form of protobuf that a client would send, as far as
/// they are made of what the tables know.
class WireEncoder {
 public:
  static std::string Message(const apistore::Json& object,
                             const WireMessage& message) {
    std::string bytes;
    for (const WireField& field : message.fields) {
      const auto it = object.find(std::string(field.name));
      if (it == object.end() || it->is_null()) continue;
      if (field.shape == WireShape::kMap) {
        for (const auto& [key, value] : it->items()) {
          bytes += Bytes(field.number, Bytes(1, key) + One(value, field, 2));
        }
      } else if (field.shape == WireShape::kList) {
        for (const apistore::Json& value : *it) {
          bytes += One(value, field, field.number);
        }
      } else {
        bytes += One(*it, field, field.number);
      }
    }
    return bytes;
  }

 private:
  static std::string One(const apistore::Json& value, const WireField& field,
                         std::uint32_t number) {
    switch (field.type) {
      case WireType::kString:
        return Bytes(number, value.get<std::string>());
      case WireType::kBool:
        return Number(number, value.get<bool>() ? 1 : 0);
      case WireType::kInteger:
        return Number(number, value.get<std::int64_t>());
      case WireType::kMessage:
        return Bytes(number, Message(value, *field.message));
      case WireType::kTime:
      case WireType::kMicroTime:
        return Bytes(number, Time(value.get<std::string>()));
      case WireType::kQuantity:
        return Bytes(number, Bytes(1, value.get<std::string>()));
      case WireType::kRaw:
        return Bytes(number, Bytes(1, apistore::Dump(value)));
      case WireType::kIgnored:
        break;
    }
    return "";
  }
  static std::string Time(const std::string& text) {
    std::tm parts{};
    int micros = 0;
    std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d.%6dZ", &parts.tm_year,
                &parts.tm_mon, &parts.tm_mday, &parts.tm_hour, &parts.tm_min,
                &parts.tm_sec, &micros);
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    return Number(1, timegm(&parts)) + Number(2, micros * 1000);
  }
};

/// With what stands around it: the four bytes, version and kind.
inline std::string Enveloped(std::string_view api_version,
                             std::string_view kind, std::string_view raw) {
  return std::string("k8s\0", 4) +
         Bytes(1, Bytes(1, api_version) + Bytes(2, kind)) + Bytes(2, raw) +
         Bytes(3, "") + Bytes(4, "");
}

/// The body of a request with this object, which has a version and a kind.
inline std::string ProtobufOf(const apistore::Json& object) {
  const std::string version = apistore::TextField(object, "apiVersion");
  const std::string kind = apistore::TextField(object, "kind");
  const WireMessage* message = FindWireMessage(version, kind);
  if (message == nullptr) return "";
  return Enveloped(version, kind, WireEncoder::Message(object, *message));
}

}  // namespace devmgr::endpoint
