// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <memory>
#include <string>

#include "bench/support.h"

namespace devmgr::bench {

/// A caller as clients of runtimes are: gRPC, one call after the other, over a
/// connection of its own.
class UnaryCaller {
 public:
  explicit UnaryCaller(const std::filesystem::path& socket)
      : stub_(Channel(socket)) {}

  grpc::ByteBuffer Call(const std::string& method, const std::string& request) {
    grpc::ClientContext context;
    const grpc::Slice slice(request);
    grpc::ByteBuffer answer;
    grpc::Status status;
    const auto reader = stub_.PrepareUnaryCall(
        &context, method, grpc::ByteBuffer(&slice, 1), &queue_);
    reader->StartCall();
    reader->Finish(&answer, &status, this);
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok) || !status.ok()) {
      Fail("a call failed: " + status.error_message());
    }
    return answer;
  }

 private:
  static std::shared_ptr<grpc::Channel> Channel(
      const std::filesystem::path& socket) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    return grpc::CreateCustomChannel("unix:" + socket.string(),
                                     grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

}  // namespace devmgr::bench
