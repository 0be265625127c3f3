// SPDX-License-Identifier: Apache-2.0
#include "rpc/pending_call.h"

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "common/peer_status.h"
#include "common/status.h"

namespace devmgr::rpc {
namespace {

/// What our transport says when the other end closes its socket; by itself it
/// does not say whose.
bool IsClosedSocket(const grpc::Status& status) {
  static constexpr std::string_view kTexts[] = {
      "Socket closed", "recvmsg:Connection reset by peer",
      "Connection reset by peer", "Broken pipe"};
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         std::find(std::begin(kTexts), std::end(kTexts),
                   status.error_message()) != std::end(kTexts);
}

/// With what the transport says put into words.
absl::Status FromGrpc(const grpc::Status& status) {
  if (IsClosedSocket(status)) {
    return UnavailableError("the other end closed the connection ({})",
                            status.error_message());
  }
  return MakeStatus(static_cast<absl::StatusCode>(status.error_code()),
                    status.error_message());
}

/// Peers count the time of a call from when it arrived, in coarser units.
constexpr std::int64_t kDeadlineMarginMs = 50;

/// The deadline is over, or so near that the peer may have seen it pass. A peer
/// that gives up then was silent for all of the time that it had.
bool IsLate(const grpc::ClientContext& context) {
  const gpr_timespec left = gpr_time_sub(
      gpr_convert_clock_type(context.raw_deadline(), GPR_CLOCK_MONOTONIC),
      gpr_now(GPR_CLOCK_MONOTONIC));
  return gpr_time_to_millis(left) <= kDeadlineMarginMs;
}

class UnaryCall final : public PendingCall {
 public:
  UnaryCall(CallSite site, CallDone done)
      : site_(std::move(site)), done_(std::move(done)) {}

  void Start(const CallRequest& request) override {
    Prepare(context_, request.options);
    reader_ = site_.stub.PrepareUnaryCall(
        &context_, request.method, ToByteBuffer(request.bytes), &site_.queue);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
  }

  void Fail(const grpc::Status& status) override {
    status_ = status;
    alarm_.emplace();
    alarm_->Set(&site_.queue, gpr_now(GPR_CLOCK_MONOTONIC), this);
  }

  void Cancel() override { context_.TryCancel(); }
  void ReadNext() override {}
  std::uint64_t Arrived() override { return 0; }

  void OnComplete(bool /*ok*/) override {
    // Gone, with all it captured, before the connection may be.
    std::exchange(done_, nullptr)(
        status_.ok() ? absl::StatusOr<std::string>(ToString(response_))
                     : StatusOf(site_, context_, status_));
    const auto forget = std::move(site_.forget);
    forget();
  }

 private:
  CallSite site_;
  CallDone done_;
  grpc::ClientContext context_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  std::optional<grpc::Alarm> alarm_;
  /// Lives in the context's arena, so it goes first.
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
};

}  // namespace

/// gRPC 1.51 says what the peer answered in the text for debugging and nowhere
/// else. It says the same of a call whose connection ended, with a status of
/// its own making.
absl::Status StatusOf(const CallSite& site, const grpc::ClientContext& context,
                      const grpc::Status& status) {
  absl::Status result = FromGrpc(status);
  if (result.ok() || context.debug_error_string().find(
                         "Error received from peer") == std::string::npos) {
    return result;
  }
  const bool may_be_made_up =
      absl::IsUnavailable(result) || absl::IsInternal(result);
  if (may_be_made_up && site.over()) return result;
  if (absl::IsDeadlineExceeded(result) && IsLate(context)) return result;
  return FromPeer(std::move(result));
}

void Prepare(grpc::ClientContext& context,
             const Connection::CallOptions& options) {
  if (options.timeout > std::chrono::milliseconds::zero()) {
    // Monotonic: a step of the wall clock must not end calls.
    context.set_deadline(gpr_time_add(
        gpr_now(GPR_CLOCK_MONOTONIC),
        gpr_time_from_millis(options.timeout.count(), GPR_TIMESPAN)));
  }
  for (const auto& [name, value] : options.metadata) {
    context.AddMetadata(name, value);
  }
}

std::shared_ptr<PendingCall> MakeUnaryCall(CallSite site, CallDone done) {
  return std::make_shared<UnaryCall>(std::move(site), std::move(done));
}

bool IsLegalMetadata(const std::string& name, const std::string& value) {
  const bool legal_name =
      !name.empty() && !name.starts_with("grpc-") && !name.ends_with("-bin") &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '_' || c == '.';
      });
  return legal_name && std::all_of(value.begin(), value.end(),
                                   [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace devmgr::rpc
