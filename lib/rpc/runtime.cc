// SPDX-License-Identifier: Apache-2.0
#include "rpc/runtime.h"

#include <grpc/grpc.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/byte_buffer.h>
#include <pthread.h>

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/status.h"

namespace devmgr::rpc {
namespace {

/// gRPC, up. Left to itself it goes down on a thread that nobody joins, and a
/// process that ends meanwhile looks like one that leaks.
class GrpcIsUp {
 public:
  GrpcIsUp() { grpc_init(); }
  ~GrpcIsUp() { grpc_shutdown_blocking(); }
  GrpcIsUp(const GrpcIsUp&) = delete;
  GrpcIsUp& operator=(const GrpcIsUp&) = delete;
};

class RuntimeImpl final : public Runtime {
 public:
  explicit RuntimeImpl(std::unique_ptr<Poller> poller)
      : poller_(std::move(poller)) {}

  ~RuntimeImpl() override {
    queue_.Shutdown();
    if (thread_.joinable()) {
      thread_.join();
    } else {
      DrainCompletions(queue_);
    }
  }

  Poller& poller() override { return *poller_; }
  grpc::CompletionQueue& queue() {
    // Where no calls are made no thread is needed for them.
    std::call_once(calls_, [this] {
      thread_ = std::thread([this] { DrainCompletions(queue_); });
      pthread_setname_np(thread_.native_handle(), "rpc-calls");
    });
    return queue_;
  }

 private:
  const GrpcIsUp grpc_is_up_;  ///< First: goes last.
  const std::unique_ptr<Poller> poller_;
  grpc::CompletionQueue queue_;
  std::once_flag calls_;  ///< Set by the first call.
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Start() {
  DEVMGR_ASSIGN_OR_RETURN(std::unique_ptr<Poller> poller,
                          Poller::Start("rpc-poller"));
  return std::make_unique<RuntimeImpl>(std::move(poller));
}

grpc::CompletionQueue& CallQueue(Runtime& runtime) {
  return static_cast<RuntimeImpl&>(runtime).queue();
}

void DrainCompletions(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) static_cast<Completion*>(tag)->OnComplete(ok);
}

grpc::ByteBuffer ToByteBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer ToByteBuffer(std::shared_ptr<const std::string> bytes) {
  using Keeper = std::shared_ptr<const std::string>;
  // gRPC takes a pointer to what can be written, and does not write.
  auto* const begin = const_cast<char*>(bytes->data());
  const std::size_t size = bytes->size();
  const grpc::Slice slice(
      begin, size, [](void* keeper) { delete static_cast<Keeper*>(keeper); },
      new Keeper(std::move(bytes)));
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  std::vector<grpc::Slice> slices;
  // Fails for a compressed buffer only, and gRPC has decompressed ours.
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace devmgr::rpc
