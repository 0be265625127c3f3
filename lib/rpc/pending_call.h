// SPDX-License-Identifier: Apache-2.0
//
// Inside of this room: one call under way on a connection.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rpc/connection.h"
#include "rpc/runtime.h"

namespace devmgr::rpc {

/// What a call needs of its connection.
struct CallSite {
  grpc::GenericStub& stub;
  grpc::CompletionQueue& queue;
  /// Whether the peer has hung up by now.
  std::function<bool()> over;
  /// The call is over; it may be destroyed by this.
  std::function<void()> forget;
};

struct CallRequest {
  const std::string& method;
  const std::string& bytes;
  const Connection::CallOptions& options;
};

/// From the start on the call has one operation at least on the queue, or (a
/// stream between two messages) the next caller puts one there. So it ends,
/// with Forget as its last act, whatever happens.
class PendingCall : public Completion {
 public:
  virtual ~PendingCall() = default;
  virtual void Start(const CallRequest& request) = 0;
  /// In place of Start: ends on the queue's thread like a call that gRPC
  /// failed.
  virtual void Fail(const grpc::Status& status) = 0;
  virtual void Cancel() = 0;
  virtual void ReadNext() = 0;
  virtual std::uint64_t Arrived() = 0;
};

/// Sets deadline and metadata.
void Prepare(grpc::ClientContext& context,
             const Connection::CallOptions& options);
/// How a call ended, in our words; what the peer answered is marked.
absl::Status StatusOf(const CallSite& site, const grpc::ClientContext& context,
                      const grpc::Status& status);

std::shared_ptr<PendingCall> MakeUnaryCall(CallSite site, CallDone done);
std::shared_ptr<PendingCall> MakeStreamCall(CallSite site, StreamEvents events,
                                            Unread unread);

/// gRPC ends the process over metadata that is not.
bool IsLegalMetadata(const std::string& name, const std::string& value);

}  // namespace devmgr::rpc
