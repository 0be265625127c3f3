// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message_lite.h>

#include <string>

namespace devmgr::rpc {

/// The bytes of a message with its maps in the order of their keys: the same
/// for equal messages, which Encode of message.h does not promise.
std::string EncodeInOrder(const google::protobuf::MessageLite& message);

}  // namespace devmgr::rpc
