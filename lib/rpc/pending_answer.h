// SPDX-License-Identifier: Apache-2.0
//
// Inside of this room: how a call that we serve is answered.
#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/mutex.h"
#include "rpc/runtime.h"
#include "rpc/server.h"

namespace devmgr::rpc {

grpc::Status ToGrpc(const absl::Status& status);

/// Where answers to a call come together: from its handler, from the end of
/// the client, from the end of the server. One is sent at a time.
class PendingAnswer {
 public:
  /// The way of answers. `tag` comes with the end of each operation.
  struct Way {
    grpc::GenericServerContext& context;
    grpc::GenericServerAsyncReaderWriter& stream;
    Completion* tag;
  };
  /// What `way` names is not touched once OnSent has returned false.
  void Open(const Way& way, std::map<std::string, std::string> metadata,
            Caller caller);
  const Caller& caller() const { return caller_; }
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }

  void Write(std::shared_ptr<const std::string> message);
  void Finish(const absl::Status& status);
  /// Both at once.
  void Answer(absl::StatusOr<std::string> answer);
  void WhenClientGone(std::function<void()> gone);
  void WhenTaken(std::function<void()> taken);

  /// Ends a call that has not ended, without what still waits.
  void Abort(const absl::Status& status);
  /// The operation that was under way is over. False: it was the last one.
  bool OnSent(bool ok);
  void OnClientGone();

 private:
  void PushLocked(std::shared_ptr<const std::string> message)
      DEVMGR_REQUIRES(mutex_);
  /// Puts the next operation on the queue. Under the lock (it does not
  /// block), because with the last one the call may end.
  void AdvanceLocked() DEVMGR_REQUIRES(mutex_);
  Way TakeWayLocked() DEVMGR_REQUIRES(mutex_);

  // Constant once open.
  std::map<std::string, std::string> metadata_;
  Caller caller_;

  Mutex mutex_;
  /// None before it is open, and once the last operation is under way.
  std::optional<Way> way_ DEVMGR_GUARDED_BY(mutex_);
  bool sending_ DEVMGR_GUARDED_BY(mutex_) = false;
  std::deque<grpc::ByteBuffer> waiting_ DEVMGR_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ DEVMGR_GUARDED_BY(mutex_) = 0;
  /// Set: nothing more is taken.
  std::optional<absl::Status> end_ DEVMGR_GUARDED_BY(mutex_);
  bool client_gone_ DEVMGR_GUARDED_BY(mutex_) = false;
  std::function<void()> when_gone_ DEVMGR_GUARDED_BY(mutex_);
  std::function<void()> when_taken_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::rpc
