// SPDX-License-Identifier: Apache-2.0
#include "bench/grpc_peer.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "bench/support.h"

namespace devmgr::bench {
namespace {

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return "";
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

class GrpcPeerImpl final : public GrpcPeer {
 public:
  explicit GrpcPeerImpl(Options options) : options_(std::move(options)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + options_.socket.string(),
                             grpc::InsecureServerCredentials());
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) Fail("gRPC did not start a server");
    (new Call(*this))->Expect();
    thread_ = std::thread([this] { Run(); });
  }
  ~GrpcPeerImpl() override {
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    thread_.join();
  }

 private:
  /// Owns itself while something of it is on the queue.
  class Call {
   public:
    explicit Call(GrpcPeerImpl& peer) : peer_(peer) {}

    void Expect() {
      peer_.service_.RequestCall(&context_, &stream_, peer_.queue_.get(),
                                 peer_.queue_.get(), this);
    }

    void OnComplete(bool ok) {
      if (!ok || step_ == Step::kFinishing) {
        delete this;
        return;
      }
      switch (step_) {
        case Step::kExpected:
          (new Call(peer_))->Expect();
          step_ = Step::kReading;
          return stream_.Read(&message_, this);
        case Step::kReading:
          return Answer();
        default:
          return WriteNext();
      }
    }

   private:
    enum class Step { kExpected, kReading, kWriting, kFinishing };

    void Answer() {
      if (context_.method() == peer_.options_.stream_method) {
        step_ = Step::kWriting;
        message_ = BufferOf(peer_.options_.message);
        return WriteNext();
      }
      step_ = Step::kFinishing;
      message_ =
          BufferOf(peer_.options_.answer(context_.method(), TextOf(message_)));
      stream_.WriteAndFinish(message_, {}, grpc::Status::OK, this);
    }

    void WriteNext() {
      if (written_++ < peer_.options_.messages) {
        return stream_.Write(message_, this);
      }
      step_ = Step::kFinishing;
      stream_.Finish(grpc::Status::OK, this);
    }

    GrpcPeerImpl& peer_;
    Step step_ = Step::kExpected;
    int written_ = 0;
    grpc::ByteBuffer message_;
    grpc::GenericServerContext context_;
    grpc::GenericServerAsyncReaderWriter stream_{&context_};
  };

  void Run() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) static_cast<Call*>(tag)->OnComplete(ok);
  }

  const Options options_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<GrpcPeer> GrpcPeer::Start(Options options) {
  return std::make_unique<GrpcPeerImpl>(std::move(options));
}

}  // namespace devmgr::bench
