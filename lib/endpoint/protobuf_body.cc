// SPDX-License-Identifier: Apache-2.0
#include "endpoint/protobuf_body.h"

#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "api/quote.h"
#include "apistore/object_meta.h"
#include "apistore/patch.h"
#include "common/status.h"
#include "endpoint/wire_reader.h"
#include "endpoint/wire_schema.h"

namespace devmgr::endpoint {
namespace {

using apistore::Json;
using Kind = WireValue::Kind;

constexpr std::string_view kMagic("k8s\0", 4);
// What times are, so that their texts have four digits for the year.
constexpr std::int64_t kFirstSecond = -62135596800;  // 0001-01-01T00:00:00Z
constexpr std::int64_t kLastSecond = 253402300799;   // 9999-12-31T23:59:59Z
constexpr std::uint64_t kMaxNanos = 999'999'999;

class Decoder {
 public:
  absl::Status Message(std::string_view bytes, const WireMessage& message,
                       Json& object) {
    WireReader reader(bytes);
    while (!reader.AtEnd()) {
      DEVMGR_ASSIGN_OR_RETURN(const WireValue value, reader.Next());
      const WireField* field = FindField(message, value.number);
      if (field == nullptr) {
        ++unknown_;
      } else if (field->type != WireType::kIgnored) {
        DEVMGR_RETURN_IF_ERROR(
            WithContext(Put(value, *field, object), "{}", field->name));
      }
    }
    return absl::OkStatus();
  }
  std::size_t unknown() const { return unknown_; }

 private:
  static const WireField* FindField(const WireMessage& message,
                                    std::uint32_t number) {
    for (const WireField& field : message.fields) {
      if (field.number == number) return &field;
    }
    return nullptr;
  }

  absl::Status Count() {
    if (++values_ <= kMaxWireValues) return absl::OkStatus();
    return InvalidArgumentError("the message has more than {} values",
                                kMaxWireValues);
  }

  absl::Status Put(const WireValue& value, const WireField& field,
                   Json& object);
  absl::Status PutEntry(const WireValue& value, const WireField& field,
                        Json& map);
  absl::Status PutPacked(std::string_view bytes, const WireField& field,
                         Json& list);
  absl::Status Value(const WireValue& value, const WireField& field,
                     Json& result);
  absl::StatusOr<std::string> InnerText(std::string_view bytes);
  absl::Status Time(std::string_view bytes, bool micro, Json& result);

  std::size_t values_ = 0;
  std::size_t unknown_ = 0;
};

absl::StatusOr<std::string> TextOf(std::string_view bytes) {
  if (api::FindInvalidUtf8(bytes) != std::string_view::npos) {
    return InvalidArgumentError("the text is not UTF-8");
  }
  return std::string(bytes);
}

absl::Status WrongType(const WireField& field) {
  return InvalidArgumentError("field {} has another type on the wire",
                              field.number);
}

bool IsZero(const Json& value) {
  switch (value.type()) {
    case Json::value_t::string:
      return value.get_ref<const std::string&>().empty();
    case Json::value_t::number_integer:
      return value.get<std::int64_t>() == 0;
    case Json::value_t::boolean:
      return !value.get<bool>();
    default:
      return false;
  }
}

absl::Status Decoder::Put(const WireValue& value, const WireField& field,
                          Json& object) {
  const std::string name(field.name);
  if (field.shape == WireShape::kMap) {
    Json& map = object[name];
    if (map.is_null()) map = Json::object();
    return PutEntry(value, field, map);
  }
  if (field.shape == WireShape::kList) {
    const bool is_number =
        field.type == WireType::kInteger || field.type == WireType::kBool;
    const bool is_packed = is_number && value.kind == Kind::kBytes;
    if (is_packed && value.bytes.empty()) return absl::OkStatus();
    Json& list = object[name];
    if (list.is_null()) list = Json::array();
    if (is_packed) {
      return PutPacked(value.bytes, field, list);
    }
    Json entry;
    DEVMGR_RETURN_IF_ERROR(Value(value, field, entry));
    list.push_back(std::move(entry));
    return absl::OkStatus();
  }
  // A message that comes twice is merged, as protobuf has it.
  Json result;
  if (field.type == WireType::kMessage && object.contains(name)) {
    result = std::move(object[name]);
  }
  DEVMGR_RETURN_IF_ERROR(Value(value, field, result));
  const bool left_out =
      result.is_null() || (field.zero == ZeroValue::kLeftOut && IsZero(result));
  if (left_out) {
    object.erase(name);
  } else {
    object[name] = std::move(result);
  }
  return absl::OkStatus();
}

absl::Status Decoder::PutEntry(const WireValue& value, const WireField& field,
                               Json& map) {
  if (value.kind != Kind::kBytes) return WrongType(field);
  std::string key;
  Json content;
  WireValue nothing;
  nothing.kind = Kind::kBytes;
  // An entry without a value has the one that is zero.
  DEVMGR_RETURN_IF_ERROR(Value(nothing, field, content));
  WireReader reader(value.bytes);
  while (!reader.AtEnd()) {
    DEVMGR_ASSIGN_OR_RETURN(const WireValue part, reader.Next());
    if (part.number == 1) {
      if (part.kind != Kind::kBytes) return WrongType(field);
      DEVMGR_ASSIGN_OR_RETURN(key, TextOf(part.bytes));
    } else if (part.number == 2) {
      content = nullptr;
      DEVMGR_RETURN_IF_ERROR(Value(part, field, content));
    } else {
      ++unknown_;
    }
  }
  map[key] = std::move(content);
  return absl::OkStatus();
}

absl::Status Decoder::PutPacked(std::string_view bytes, const WireField& field,
                                Json& list) {
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    const std::optional<std::uint64_t> number = reader.Varint();
    if (!number.has_value()) {
      return InvalidArgumentError("a packed list ends within a number");
    }
    Json entry;
    DEVMGR_RETURN_IF_ERROR(
        Value({field.number, Kind::kVarint, *number, {}}, field, entry));
    list.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

/// The text of a message that has nothing but one.
absl::StatusOr<std::string> Decoder::InnerText(std::string_view bytes) {
  std::string text;
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    DEVMGR_ASSIGN_OR_RETURN(const WireValue value, reader.Next());
    if (value.number != 1) {
      ++unknown_;
    } else if (value.kind != Kind::kBytes) {
      return InvalidArgumentError("field 1 has another type on the wire");
    } else {
      DEVMGR_ASSIGN_OR_RETURN(text, TextOf(value.bytes));
    }
  }
  return text;
}

/// One that says nothing is not set, and null here.
absl::Status Decoder::Time(std::string_view bytes, bool micro, Json& result) {
  std::optional<std::int64_t> seconds;
  std::uint64_t nanos = 0;
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    DEVMGR_ASSIGN_OR_RETURN(const WireValue value, reader.Next());
    if (value.number > 2) {
      ++unknown_;
    } else if (value.kind != Kind::kVarint) {
      return InvalidArgumentError("field {} has another type on the wire",
                                  value.number);
    } else if (value.number == 1) {
      seconds = static_cast<std::int64_t>(value.varint);
    } else {
      nanos = value.varint;
    }
  }
  result = nullptr;
  // The time zero of Go is not set either.
  if (!seconds.has_value() || *seconds == kFirstSecond) return absl::OkStatus();
  if (*seconds < kFirstSecond || *seconds > kLastSecond || nanos > kMaxNanos) {
    return InvalidArgumentError("{} seconds and {} nanoseconds are no time",
                                *seconds, nanos);
  }
  std::string text = apistore::TimeText(*seconds);
  if (micro) {
    text.pop_back();  // Z
    text += fmt::format(".{:06}Z", nanos / 1000);
  }
  result = std::move(text);
  return absl::OkStatus();
}

absl::Status Decoder::Value(const WireValue& value, const WireField& field,
                            Json& result) {
  DEVMGR_RETURN_IF_ERROR(Count());
  const bool is_number =
      field.type == WireType::kBool || field.type == WireType::kInteger;
  if (value.kind != (is_number ? Kind::kVarint : Kind::kBytes)) {
    return WrongType(field);
  }
  switch (field.type) {
    case WireType::kString: {
      DEVMGR_ASSIGN_OR_RETURN(result, TextOf(value.bytes));
      return absl::OkStatus();
    }
    case WireType::kBool:
      result = value.varint != 0;
      return absl::OkStatus();
    case WireType::kInteger:
      result = static_cast<std::int64_t>(value.varint);
      return absl::OkStatus();
    case WireType::kMessage:
      if (result.is_null()) result = Json::object();
      return Message(value.bytes, *field.message, result);
    case WireType::kTime:
      return Time(value.bytes, /*micro=*/false, result);
    case WireType::kMicroTime:
      return Time(value.bytes, /*micro=*/true, result);
    case WireType::kQuantity: {
      DEVMGR_ASSIGN_OR_RETURN(std::string text, InnerText(value.bytes));
      // As clients of JSON write the quantity that is zero.
      result = text.empty() ? "0" : std::move(text);
      return absl::OkStatus();
    }
    case WireType::kRaw: {
      DEVMGR_ASSIGN_OR_RETURN(const std::string text, InnerText(value.bytes));
      result = nullptr;
      if (text.empty()) return absl::OkStatus();
      DEVMGR_ASSIGN_OR_RETURN(result, apistore::ParseForeignJson(text));
      return absl::OkStatus();
    }
    case WireType::kIgnored:
      break;
  }
  return absl::OkStatus();
}

/// What stands around a message.
struct Envelope {
  std::string api_version;
  std::string kind;
  std::string_view raw;
};

absl::Status ReadType(std::string_view bytes, Envelope& envelope) {
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    DEVMGR_ASSIGN_OR_RETURN(const WireValue value, reader.Next());
    if (value.number > 2) continue;
    if (value.kind != Kind::kBytes) {
      return InvalidArgumentError("the type of the message is no text");
    }
    DEVMGR_ASSIGN_OR_RETURN(
        (value.number == 1 ? envelope.api_version : envelope.kind),
        TextOf(value.bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<Envelope> ReadEnvelope(std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return InvalidArgumentError(
        "the body does not begin with the four bytes of Kubernetes' protobuf");
  }
  Envelope envelope;
  WireReader reader(bytes.substr(kMagic.size()));
  while (!reader.AtEnd()) {
    DEVMGR_ASSIGN_OR_RETURN(const WireValue value, reader.Next());
    if (value.number > 4) continue;
    if (value.kind != Kind::kBytes) {
      return InvalidArgumentError("field {} of the envelope is no text",
                                  value.number);
    }
    if (value.number == 1) {
      DEVMGR_RETURN_IF_ERROR(ReadType(value.bytes, envelope));
    } else if (value.number == 2) {
      envelope.raw = value.bytes;
    } else if (value.number == 3 && !value.bytes.empty()) {
      return InvalidArgumentError("the message has the encoding {}",
                                  api::Quoted(value.bytes));
    }
  }
  return envelope;
}

}  // namespace

absl::StatusOr<ProtobufBody> DecodeProtobufBody(std::string_view bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const Envelope envelope, ReadEnvelope(bytes));
  const WireMessage* message =
      FindWireMessage(envelope.api_version, envelope.kind);
  if (message == nullptr) {
    return InvalidArgumentError("no kind {} of {} is read as protobuf",
                                api::Quoted(envelope.kind),
                                api::Quoted(envelope.api_version));
  }
  ProtobufBody body;
  body.object = {{"apiVersion", envelope.api_version}, {"kind", envelope.kind}};
  Decoder decoder;
  DEVMGR_RETURN_IF_ERROR(decoder.Message(envelope.raw, *message, body.object));
  body.unknown_fields = decoder.unknown();
  return body;
}

}  // namespace devmgr::endpoint
