// SPDX-License-Identifier: Apache-2.0
//
// Bodies of requests in Kubernetes' form of protobuf, as JSON.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string_view>

#include "apistore/answer.h"

namespace devmgr::endpoint {

inline constexpr std::string_view kProtobufMediaType =
    "application/vnd.kubernetes.protobuf";

/// So many values a body may have: a few bytes on the wire become hundreds in
/// memory.
inline constexpr std::size_t kMaxWireValues = 200'000;

struct ProtobufBody {
  /// With `apiVersion` and `kind`, as a client of JSON would have sent it.
  apistore::Json object;
  std::size_t unknown_fields = 0;  ///< Skipped.
};

/// InvalidArgument for what is none: bytes before the message that are not
/// Kubernetes' own, kinds that are not known, broken or endless messages,
/// texts that are not UTF-8.
absl::StatusOr<ProtobufBody> DecodeProtobufBody(std::string_view bytes);

}  // namespace devmgr::endpoint
