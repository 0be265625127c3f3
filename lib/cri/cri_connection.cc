// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cri_connection.h>

#include <future>
#include <utility>

#include "common/mutex.h"
#include "common/peer_status.h"
#include "common/status.h"
#include "rpc/connection.h"

namespace devmgr {
namespace {

/// CRI-O sends lists of up to 80 MiB.
constexpr int kMaxAnswerBytes = 128 * 1024 * 1024;

class CriConnectionImpl final : public CriConnection {
 public:
  CriConnectionImpl(std::filesystem::path socket,
                    std::unique_ptr<rpc::Runtime> runtime)
      : socket_(std::move(socket)), runtime_(std::move(runtime)) {}

  absl::StatusOr<std::string> Call(const std::string& method,
                                   std::string request,
                                   std::chrono::milliseconds timeout) override {
    if (timeout.count() <= 0) {
      return InvalidArgumentError("{}: timeout of {} ms: must be positive",
                                  method, timeout.count());
    }
    auto connection = Connect();
    if (!connection.ok()) {
      return WithContext(connection.status(), "{}", method);
    }
    // Shared, because the completion may run a moment after it woke us.
    const auto answer =
        std::make_shared<std::promise<absl::StatusOr<std::string>>>();
    auto answered = answer->get_future();
    rpc::Connection::CallOptions options;
    options.timeout = timeout;
    (*connection)
        ->Call("/runtime.v1." + method, std::move(request), options,
               [answer](absl::StatusOr<std::string> bytes) {
                 answer->set_value(std::move(bytes));
               });
    absl::StatusOr<std::string> bytes = answered.get();
    if (bytes.ok()) return bytes;
    return WithContext(Unmarked(bytes.status()), "{}", method);
  }

 private:
  /// Shared, so that one that is replaced lasts until its calls have ended.
  absl::StatusOr<std::shared_ptr<rpc::Connection>> Connect() {
    // What it replaces is destroyed after the lock is released.
    std::shared_ptr<rpc::Connection> former;
    MutexLock lock(mutex_);
    if (connection_ != nullptr && !connection_->over()) return connection_;
    former.swap(connection_);
    rpc::DialOptions options;
    options.max_receive_bytes = kMaxAnswerBytes;
    auto dialled = rpc::Dial(
        *runtime_, socket_, [] {}, options);
    if (dialled.ok()) {
      connection_ = *std::move(dialled);
      return connection_;
    }
    const absl::Status status =
        WithContext(dialled.status(), "'{}'", socket_.string());
    if (absl::IsPermissionDenied(status)) return status;
    // A missing file, or one that is no socket: no process listens either way.
    return MakeStatus(absl::StatusCode::kUnavailable, MessageOf(status));
  }

  const std::filesystem::path socket_;
  const std::unique_ptr<rpc::Runtime> runtime_;
  Mutex mutex_;
  std::shared_ptr<rpc::Connection> connection_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<CriConnection>> CriConnection::Open(
    std::filesystem::path socket) {
  DEVMGR_ASSIGN_OR_RETURN(std::unique_ptr<rpc::Runtime> runtime,
                          rpc::Runtime::Start());
  return std::make_unique<CriConnectionImpl>(std::move(socket),
                                             std::move(runtime));
}

}  // namespace devmgr
