// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/mailbox.h"

namespace devmgr {

/// A client of a call that is answered by a stream of messages, as bytes. Not
/// ours: gRPC's own, blocking.
class StreamClient {
 public:
  StreamClient(const std::filesystem::path& socket, const std::string& method,
               const std::string& request,
               const std::map<std::string, std::string>& metadata = {},
               std::chrono::milliseconds patience = kPatience)
      : method_(method) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetMaxReceiveMessageSize(-1);
    // One socket each: gRPC shares connections of equal channels.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel("unix:" + socket.string(),
                                         grpc::InsecureChannelCredentials(),
                                         arguments);
    context_.set_deadline(std::chrono::system_clock::now() + patience);
    for (const auto& [name, value] : metadata) {
      context_.AddMetadata(name, value);
    }
    const grpc::internal::RpcMethod rpc(
        method_.c_str(), grpc::internal::RpcMethod::SERVER_STREAMING);
    const grpc::Slice slice(request);
    reader_.reset(grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
        channel_.get(), rpc, &context_, grpc::ByteBuffer(&slice, 1)));
  }
  ~StreamClient() {
    Cancel();
    End();
  }
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;

  /// The next message; nothing at the end.
  std::optional<std::string> Next() {
    grpc::ByteBuffer buffer;
    if (ended_ || !reader_->Read(&buffer)) return std::nullopt;
    std::vector<grpc::Slice> slices;
    if (!buffer.Dump(&slices).ok()) return std::nullopt;
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return bytes;
  }

  void Cancel() { context_.TryCancel(); }

  /// What it ended with; reads what is left.
  grpc::Status End() {
    while (Next()) {
    }
    if (!ended_) status_ = reader_->Finish();
    ended_ = true;
    return status_;
  }

 private:
  const std::string method_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader_;
  grpc::Status status_;
  bool ended_ = false;
};

}  // namespace devmgr
