// SPDX-License-Identifier: Apache-2.0
//
// The messages that clients of an API server send as protobuf: numbers on the
// wire, and names in JSON. The tables also say which fields an object of JSON
// may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace devmgr::endpoint {

enum class WireType {
  kString,
  kBool,
  kInteger,
  kMessage,
  kTime,       ///< A message of seconds and nanos; a text in JSON.
  kMicroTime,  ///< The same, with its fraction shown.
  kQuantity,   ///< A message with one text; that text in JSON.
  kRaw,        ///< A message with one text, which is JSON.
  kIgnored,    ///< Known, and of no use here.
};

enum class WireShape { kOne, kList, kMap };

/// Whether JSON has a field with the value of its type that is zero: official
/// clients send those in any case.
enum class ZeroValue { kLeftOut, kShown };

struct WireMessage;

struct WireField {
  std::uint32_t number;
  std::string_view name;  ///< In JSON.
  WireType type;
  WireShape shape = WireShape::kOne;
  const WireMessage* message = nullptr;  ///< Of kMessage.
  ZeroValue zero = ZeroValue::kLeftOut;
};

struct WireMessage {
  std::span<const WireField> fields;
};

/// What stands in the body of a request; null for kinds that are not known.
/// Options of a delete have any group.
const WireMessage* FindWireMessage(std::string_view api_version,
                                   std::string_view kind);

}  // namespace devmgr::endpoint
