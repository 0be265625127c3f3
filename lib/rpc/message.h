// SPDX-License-Identifier: Apache-2.0
//
// Between protobuf messages and the bytes that connections and servers carry.
#pragma once

#include <absl/status/statusor.h>
#include <google/protobuf/message_lite.h>

#include <functional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace devmgr::rpc {

inline std::string Encode(const google::protobuf::MessageLite& message) {
  return message.SerializeAsString();
}

/// InvalidArgument, naming the message type, when the bytes are not one.
template <typename Message>
absl::StatusOr<Message> Decode(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes)) {
    return InvalidArgumentError("{} bytes are not a {}", bytes.size(),
                                message.GetTypeName());
  }
  return message;
}

/// Calls `use` with the bytes of each embedded message (or text) of number
/// `field`, in order, until it returns false; memory is that of one at a time.
/// False when `bytes` are no message; what came before was used.
bool ForEachField(std::string_view bytes, int field,
                  const std::function<bool(std::string_view)>& use);

}  // namespace devmgr::rpc
