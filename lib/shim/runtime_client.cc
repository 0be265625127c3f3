// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime_client.h"

#include <iterator>
#include <utility>

#include "common/status.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"
#include "shim/container_config.h"

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
  using Known = std::function<void(const RuntimeIdentity&)>;
  Looking(RuntimeClient& client, Scope scope, Known known,
          Done<RuntimeLists> done)
      : client_(client),
        scope_(scope),
        known_(std::move(known)),
        done_(std::move(done)) {}

  void Start() {
    Ask<cri::VersionResponse>(
        cri::method::kVersion, VersionRequest(), cri::ReadVersion,
        [this](cri::VersionResponse version) {
          identity_.version = std::move(version);
          if (scope_ == Scope::kRelist) return OnIdentity();
          Ask<cri::TextMap>(cri::method::kStatus, VerboseStatusRequest(),
                            cri::ReadStatusInfo, [this](cri::TextMap info) {
                              identity_.status_info = std::move(info);
                              OnIdentity();
                            });
        });
  }

 private:
  template <typename Item>
  using ReadList = absl::StatusOr<std::vector<Item>> (*)(std::string_view);

  void OnIdentity() {
    known_(identity_);
    const auto done = [this] { done_(std::move(lists_)); };
    if (scope_ == Scope::kRelist) {
      ListContainers([this, done] { ListSandboxes(done); });
    } else {
      ListSandboxes([this, done] { ListContainers(done); });
    }
  }

  void ListSandboxes(std::function<void()> next) {
    List<cri::Sandbox>(cri::method::kStreamPodSandboxes,
                       cri::method::kListPodSandbox, cri::ReadListPodSandbox,
                       &lists_.sandboxes, std::move(next));
  }

  void ListContainers(std::function<void()> next) {
    List<cri::Container>(cri::method::kStreamContainers,
                         cri::method::kListContainers, cri::ReadListContainers,
                         &lists_.containers, std::move(next));
  }

  /// A message of the stream is one of the list with fewer items.
  template <typename Item>
  void List(std::string_view stream, std::string_view unary,
            ReadList<Item> read, std::vector<Item>* to,
            std::function<void()> next) {
    // Repeated often, it does not ask each time for streams that are not there.
    if (scope_ == Scope::kRelist) return ListAtOnce(unary, read, to, next);
    if (!IsConnected(stream)) return;
    failure_ = absl::OkStatus();
    rpc::StreamEvents events;
    events.on_message = [self = shared_from_this(), read,
                         to](std::string bytes) {
      self->client_.executor_.Post([self, read, to, bytes = std::move(bytes)] {
        self->Add(read(bytes), to);
      });
    };
    events.on_end = [self = shared_from_this(), stream, unary, read, to,
                     next = std::move(next)](const absl::Status& status) {
      self->client_.executor_.Post([=] {
        if (absl::IsUnimplemented(status) && to->empty()) {
          return self->ListAtOnce(unary, read, to, next);
        }
        self->failure_.Update(status);
        self->failure_.ok() ? next() : self->Fail(stream, self->failure_);
      });
    };
    stream_connection_ = client_.connections_;
    stream_ = client_.connection_->Stream(std::string(stream), "",
                                          {kCallTimeout}, std::move(events));
  }

  template <typename Item>
  void Add(absl::StatusOr<std::vector<Item>> items, std::vector<Item>* to) {
    failure_.Update(items.status());
    if (items.ok()) {
      to->insert(to->end(), std::make_move_iterator(items->begin()),
                 std::make_move_iterator(items->end()));
    }
    // It may have ended, and the stream with it.
    if (client_.connection_ == nullptr ||
        client_.connections_ != stream_connection_) {
      return;
    }
    client_.connection_->ReadNext(stream_);
  }

  template <typename Item>
  void ListAtOnce(std::string_view method, ReadList<Item> read,
                  std::vector<Item>* to, std::function<void()> next) {
    Ask<std::vector<Item>>(
        method, "", read,
        [to, next = std::move(next)](std::vector<Item> items) {
          *to = std::move(items);
          next();
        });
  }

  template <typename T>
  void Ask(std::string_view method, std::string request,
           absl::StatusOr<T> (*read)(std::string_view),
           std::function<void(T)> next) {
    if (!IsConnected(method)) return;
    const auto done =
        [self = shared_from_this(), method, read,
         next = std::move(next)](const absl::StatusOr<std::string>& bytes) {
          absl::StatusOr<T> answer =
              bytes.ok() ? read(*bytes) : absl::StatusOr<T>(bytes.status());
          if (!answer.ok()) return self->Fail(method, answer.status());
          next(*std::move(answer));
        };
    client_.connection_->Call(
        std::string(method), std::move(request), {kCallTimeout},
        [&executor = client_.executor_,
         done](absl::StatusOr<std::string> bytes) {
          executor.Post([done, bytes = std::move(bytes)] { done(bytes); });
        });
  }

  bool IsConnected(std::string_view method) {
    client_.CheckConnection();
    if (client_.connection_ != nullptr) return true;
    Fail(method, UnavailableError("the connection has ended"));
    return false;
  }

  void Fail(std::string_view method, const absl::Status& why) {
    done_(UnavailableError("runtime at '{}', {}: {}",
                           client_.endpoint_.string(), method, MessageOf(why)));
  }

  RuntimeClient& client_;
  const Scope scope_;
  const Known known_;
  const Done<RuntimeLists> done_;
  RuntimeIdentity identity_;
  RuntimeLists lists_;
  rpc::Connection::CallId stream_ = 0;
  std::uint64_t stream_connection_ = 0;  ///< Over which it comes.
  absl::Status failure_;                 ///< Of what came over the stream.
};

void RuntimeClient::Look(std::function<void(const RuntimeIdentity&)> known,
                         Done<RuntimeLists> done) {
  Begin(Scope::kAll, std::move(known), std::move(done));
}

void RuntimeClient::Relist(std::function<void(const RuntimeIdentity&)> known,
                           Done<RuntimeLists> done) {
  Begin(Scope::kRelist, std::move(known), std::move(done));
}

void RuntimeClient::Begin(Scope scope,
                          std::function<void(const RuntimeIdentity&)> known,
                          Done<RuntimeLists> done) {
  if (const absl::Status connected = Connect(); !connected.ok()) {
    return executor_.Post(
        [done = std::move(done), connected, endpoint = endpoint_.string()] {
          done(UnavailableError("no runtime at '{}': {}", endpoint,
                                MessageOf(connected)));
        });
  }
  std::make_shared<Looking>(*this, scope, std::move(known), std::move(done))
      ->Start();
}

template <typename T>
void RuntimeClient::AskOnce(std::string_view method, std::string request,
                            absl::StatusOr<T> (*read)(std::string_view),
                            Done<T> done) {
  if (const absl::Status connected = Connect(); !connected.ok()) {
    return executor_.Post([done = std::move(done), connected] {
      done(UnavailableError("{}", MessageOf(connected)));
    });
  }
  connection_->Call(
      std::string(method), std::move(request), {kCallTimeout},
      [&executor = executor_, read,
       done = std::move(done)](absl::StatusOr<std::string> bytes) {
        executor.Post([done, read, bytes = std::move(bytes)] {
          done(bytes.ok() ? read(*bytes) : absl::StatusOr<T>(bytes.status()));
        });
      });
}

void RuntimeClient::StatusOf(const std::string& container,
                             Done<cri::ContainerStatus> done, bool verbose) {
  AskOnce<cri::ContainerStatus>(cri::method::kContainerStatus,
                                ContainerStatusRequest(container, verbose),
                                cri::ReadContainerStatus, std::move(done));
}

void RuntimeClient::SandboxStatusOf(const std::string& sandbox,
                                    Done<cri::SandboxStatus> done) {
  std::string request;
  cri::AppendBytesField(
      &request, cri::field::pod_sandbox_status_request::kPodSandboxId, sandbox);
  AskOnce<cri::SandboxStatus>(cri::method::kPodSandboxStatus,
                              std::move(request), cri::ReadPodSandboxStatus,
                              std::move(done));
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
  ++connections_;
  return absl::OkStatus();
}

}  // namespace devmgr::shim
