// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime_client.h"

#include <utility>

#include "common/status.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"

namespace devmgr::shim {
namespace {

constexpr std::chrono::milliseconds kCallTimeout{10'000};

std::string VerboseStatusRequest() {
  std::string request;
  cri::AppendVarintField(&request, cri::field::status_request::kVerbose, 1);
  return request;
}

}  // namespace

std::string VersionRequest() {
  std::string request;
  cri::AppendBytesField(&request, cri::field::version_request::kVersion, "v1");
  return request;
}

class RuntimeClient::Looking
    : public std::enable_shared_from_this<RuntimeClient::Looking> {
 public:
  Looking(RuntimeClient& client, Done<RuntimeView> done)
      : client_(client), done_(std::move(done)) {}

  void Start() {
    Ask<cri::VersionResponse>(
        cri::method::kVersion, VersionRequest(), cri::ReadVersion,
        &view_.version, [this] {
          Ask<cri::TextMap>(cri::method::kStatus, VerboseStatusRequest(),
                            cri::ReadStatusInfo, &view_.status_info,
                            [this] { AskForLists(); });
        });
  }

 private:
  void AskForLists() {
    Ask<std::vector<cri::Sandbox>>(
        cri::method::kListPodSandbox, "", cri::ReadListPodSandbox,
        &view_.sandboxes, [this] {
          Ask<std::vector<cri::Container>>(
              cri::method::kListContainers, "", cri::ReadListContainers,
              &view_.containers, [this] { done_(std::move(view_)); });
        });
  }

  template <typename T>
  void Ask(std::string_view method, std::string request,
           absl::StatusOr<T> (*read)(std::string_view), T* to,
           std::function<void()> next) {
    client_.CheckConnection();
    if (client_.connection_ == nullptr) {
      return Fail(method, UnavailableError("the connection has ended"));
    }
    client_.Call(method, std::move(request),
                 [self = shared_from_this(), method, read, to,
                  next = std::move(next)](absl::StatusOr<std::string> bytes) {
                   absl::StatusOr<T> answer =
                       bytes.ok() ? read(*bytes)
                                  : absl::StatusOr<T>(bytes.status());
                   if (!answer.ok()) return self->Fail(method, answer.status());
                   *to = *std::move(answer);
                   next();
                 });
  }

  void Fail(std::string_view method, const absl::Status& why) {
    done_(UnavailableError("runtime at '{}', {}: {}",
                           client_.endpoint_.string(), method, MessageOf(why)));
  }

  RuntimeClient& client_;
  const Done<RuntimeView> done_;
  RuntimeView view_;
};

void RuntimeClient::Look(Done<RuntimeView> done) {
  if (const absl::Status connected = Connect(); !connected.ok()) {
    return executor_.Post([done = std::move(done), connected] {
      done(UnavailableError("no runtime: {}", MessageOf(connected)));
    });
  }
  std::make_shared<Looking>(*this, std::move(done))->Start();
}

void RuntimeClient::CheckConnection() {
  if (connection_ == nullptr || !connection_->over()) return;
  connection_.reset();
  on_lost_();
}

absl::Status RuntimeClient::Connect() {
  CheckConnection();
  if (connection_ != nullptr) return absl::OkStatus();
  const auto on_hang_up = [this] {
    executor_.Post([this] { CheckConnection(); });
  };
  DEVMGR_ASSIGN_OR_RETURN(
      connection_, rpc::Dial(runtime_, endpoint_, on_hang_up, {kMaxListBytes}));
  return absl::OkStatus();
}

void RuntimeClient::Call(
    std::string_view method, std::string request,
    std::function<void(absl::StatusOr<std::string>)> done) {
  connection_->Call(std::string(method), std::move(request), {kCallTimeout},
                    [&executor = executor_, done = std::move(done)](
                        absl::StatusOr<std::string> bytes) {
                      executor.Post([done, bytes = std::move(bytes)]() mutable {
                        done(std::move(bytes));
                      });
                    });
}

}  // namespace devmgr::shim
