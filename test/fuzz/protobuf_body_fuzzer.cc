// SPDX-License-Identifier: Apache-2.0
//
// Bodies in Kubernetes' form of protobuf. What is decoded is an object which,
// sent again by a client, is decoded to the same object.
#include <string>
#include <string_view>

#include "apistore/object_meta.h"
#include "apistore/patch.h"
#include "common/status.h"
#include "endpoint/protobuf_body.h"
#include "endpoint/wire_encoder.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using devmgr::fuzz::Require;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto body = devmgr::endpoint::DecodeProtobufBody(bytes);
  if (!body.ok()) {
    devmgr::fuzz::RequireReadable(devmgr::MessageOf(body.status()));
    return 0;
  }
  Require(body->unknown_fields <= size, "each field has a byte");
  const auto parsed =
      devmgr::apistore::ParseForeignJson(devmgr::apistore::Dump(body->object));
  Require(parsed.ok() && *parsed == body->object, "the object is one of JSON");
  const auto again = devmgr::endpoint::DecodeProtobufBody(
      devmgr::endpoint::ProtobufOf(body->object));
  Require(again.ok(), "what was decoded can be sent again");
  Require(again->object == body->object, "and is the same then");
  Require(again->unknown_fields == 0, "and has nothing that is not known");
  return 0;
}
