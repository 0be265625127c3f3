// SPDX-License-Identifier: Apache-2.0
//
// Inside of this room: what connections need of the runtime.
#pragma once

#include <memory>
#include <string>

#include "rpc/connection.h"

namespace grpc {
class ByteBuffer;
class CompletionQueue;
}  // namespace grpc

namespace devmgr::rpc {

/// What a completion queue hands back. Tags are of this type in this room.
class Completion {
 public:
  /// Runs on the queue's thread. May destroy this.
  virtual void OnComplete(bool ok) = 0;

 protected:
  ~Completion() = default;
};

/// Hands out completions until the queue is shut down and empty.
void DrainCompletions(grpc::CompletionQueue& queue);

/// The queue that client calls complete on. There is no other implementation
/// of Runtime.
grpc::CompletionQueue& CallQueue(Runtime& runtime);

grpc::ByteBuffer ToByteBuffer(const std::string& bytes);
/// Keeps `bytes` instead of copying them.
grpc::ByteBuffer ToByteBuffer(std::shared_ptr<const std::string> bytes);
std::string ToString(const grpc::ByteBuffer& buffer);

}  // namespace devmgr::rpc
