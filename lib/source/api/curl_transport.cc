// SPDX-License-Identifier: Apache-2.0
#include "source/api/curl_transport.h"

#include <devmgr/version.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <csignal>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "api/quote.h"
#include "common/mutex.h"
#include "common/status.h"
#include "source/api/curl_library.h"
#include "source/api/limits.h"
#include "source/api/server_address.h"

namespace devmgr::apiserver {
namespace {

constexpr long kConnectSeconds = 10;
constexpr long kMaxConnections = 6;
constexpr std::size_t kMaxHeadBytes = std::size_t{64} << 10;

const char* MethodName(ApiRequest::Method method) {
  switch (method) {
    case ApiRequest::Method::kGet:
      return "GET";
    case ApiRequest::Method::kPost:
      return "POST";
    case ApiRequest::Method::kPut:
      return "PUT";
    case ApiRequest::Method::kPatch:
      return "PATCH";
    case ApiRequest::Method::kDelete:
      return "DELETE";
  }
  return "";
}

/// What the thread of the transport and the executor of its user share. A task
/// may come when the transport is gone.
class Shared {
 public:
  using TransferId = Transport::TransferId;

  struct Command {
    enum class Kind { kStart, kCancel, kResume, kStop };
    Kind kind = Kind::kStop;
    TransferId transfer = 0;
    ApiRequest request;
    std::shared_ptr<const RequestCredentials> credentials;
  };

  Shared(const CurlLibrary& curl, Executor& executor, CURLM* multi)
      : curl_(curl), executor_(executor), multi_(multi) {}

  // On the executor.
  TransferId Add(TransferEvents events) {
    events_.emplace(++last_id_, std::move(events));
    return last_id_;
  }
  void Remove(TransferId transfer) { events_.erase(transfer); }

  void Push(Command command) {
    MutexLock lock(mutex_);
    if (multi_ == nullptr) return;
    commands_.push_back(std::move(command));
    curl_.multi_wakeup(multi_);
  }

  // On the transport's thread.
  std::vector<Command> TakeCommands() {
    MutexLock lock(mutex_);
    return std::exchange(commands_, {});
  }
  /// Nothing wakes the thread from now on.
  void Close() {
    MutexLock lock(mutex_);
    multi_ = nullptr;
  }
  /// False: too much of it waits already. It is resumed later.
  bool Deliver(const std::shared_ptr<Shared>& self, TransferId transfer,
               std::string_view bytes);
  void PostHead(const std::shared_ptr<Shared>& self, TransferId transfer,
                const ResponseHead& head);
  void PostEnd(const std::shared_ptr<Shared>& self, TransferId transfer,
               absl::Status status);
  void Forget(TransferId transfer) {
    MutexLock lock(mutex_);
    pending_.erase(transfer);
  }

 private:
  struct Pending {
    std::size_t bytes = 0;
    bool is_paused = false;
  };

  void Handled(TransferId transfer, std::size_t bytes);

  const CurlLibrary& curl_;
  Executor& executor_;
  /// Confined to the executor.
  std::map<TransferId, TransferEvents> events_;
  TransferId last_id_ = 0;

  Mutex mutex_;
  CURLM* multi_ DEVMGR_GUARDED_BY(mutex_);
  std::vector<Command> commands_ DEVMGR_GUARDED_BY(mutex_);
  std::map<TransferId, Pending> pending_ DEVMGR_GUARDED_BY(mutex_);
};

bool Shared::Deliver(const std::shared_ptr<Shared>& self, TransferId transfer,
                     std::string_view bytes) {
  {
    MutexLock lock(mutex_);
    Pending& pending = pending_[transfer];
    if (pending.bytes >= kMaxPendingBytes) {
      pending.is_paused = true;
      return false;
    }
    pending.bytes += bytes.size();
  }
  executor_.Post([self, transfer, text = std::string(bytes)] {
    const auto found = self->events_.find(transfer);
    if (found == self->events_.end()) return;
    // Kept, as the user may cancel from within.
    const auto on_data = found->second.on_data;
    on_data(text);
    self->Handled(transfer, text.size());
  });
  return true;
}

void Shared::Handled(TransferId transfer, std::size_t bytes) {
  {
    MutexLock lock(mutex_);
    const auto found = pending_.find(transfer);
    if (found == pending_.end()) return;
    found->second.bytes -= bytes;
    if (!found->second.is_paused ||
        found->second.bytes > kMaxPendingBytes / 2) {
      return;
    }
    found->second.is_paused = false;
  }
  Push({.kind = Command::Kind::kResume, .transfer = transfer});
}

void Shared::PostHead(const std::shared_ptr<Shared>& self, TransferId transfer,
                      const ResponseHead& head) {
  executor_.Post([self, transfer, head] {
    const auto found = self->events_.find(transfer);
    if (found == self->events_.end()) return;
    const auto on_head = found->second.on_head;
    on_head(head);
  });
}

void Shared::PostEnd(const std::shared_ptr<Shared>& self, TransferId transfer,
                     absl::Status status) {
  executor_.Post([self, transfer, status = std::move(status)] {
    const auto found = self->events_.find(transfer);
    if (found == self->events_.end()) return;
    const auto on_end = std::move(found->second.on_end);
    self->events_.erase(found);
    on_end(status);
  });
}

/// One request, on the transport's thread.
class Transfer {
 public:
  Transfer(const CurlLibrary& curl, const Kubeconfig& config,
           const Address& address, const Shared::Command& start,
           std::shared_ptr<Shared> shared)
      : curl_(curl),
        id_(start.transfer),
        max_bytes_(start.request.max_bytes),
        place_(config.server +
               (config.tls_server_name.empty()
                    ? ""
                    : " as " + api::Quoted(config.tls_server_name))),
        shared_(std::move(shared)),
        headers_(curl),
        connect_to_(curl),
        easy_(curl.easy_init()) {
    if (easy_ == nullptr) return;
    SetUp(config, address, start.request);
    SetUpContent(start.request);
    SetUpTls(config, *start.credentials);
    SetUpHeaders(config, address, *start.credentials);
  }
  ~Transfer() { curl_.easy_cleanup(easy_); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  CURL* easy() const { return easy_; }
  absl::Status StatusOf(CURLcode code) const;

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_.easy_setopt(easy_, option, value);
  }
  void SetText(CURLoption option, const std::string& text) {
    if (!text.empty()) Set(option, text.c_str());
  }
  void SetBlob(CURLoption option, const std::string& text) {
    if (text.empty()) return;
    curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
    Set(option, &blob);
  }
  void SetUp(const Kubeconfig& config, const Address& address,
             const ApiRequest& request);
  void SetUpContent(const ApiRequest& request);
  void SetUpTls(const Kubeconfig& config,
                const RequestCredentials& credentials);
  void SetUpHeaders(const Kubeconfig& config, const Address& address,
                    const RequestCredentials& credentials);

  bool TakeLine(std::string_view line);
  std::size_t TakeBody(std::string_view bytes);

  static std::size_t OnHeader(char* data, std::size_t size, std::size_t count,
                              void* self) {
    const std::string_view line(data, size * count);
    return static_cast<Transfer*>(self)->TakeLine(line) ? line.size() : 0;
  }
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count,
                            void* self) {
    return static_cast<Transfer*>(self)->TakeBody({data, size * count});
  }
  static int OnSocket(void*, curl_socket_t socket, curlsocktype) {
    // A kernel without the options still connects.
    (void)KeepAlive(socket);
    return CURL_SOCKOPT_OK;
  }

  const CurlLibrary& curl_;
  const Transport::TransferId id_;
  const std::size_t max_bytes_;
  const std::string place_;
  const std::shared_ptr<Shared> shared_;
  CurlList headers_;
  CurlList connect_to_;
  char error_[CURL_ERROR_SIZE] = "";
  ResponseHead head_;
  bool has_head_ = false;
  std::size_t head_bytes_ = 0;
  std::size_t bytes_ = 0;
  absl::Status limit_;
  CURL* const easy_;  // Last: it uses all of the above.
};

void Transfer::SetUp(const Kubeconfig& config, const Address& address,
                     const ApiRequest& request) {
  SetText(CURLOPT_URL, address.url + request.target);
  Set(CURLOPT_PRIVATE, this);
  Set(CURLOPT_ERRORBUFFER, error_);
  Set(CURLOPT_PROTOCOLS_STR, "http,https");
  Set(CURLOPT_FOLLOWLOCATION, 0L);
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_QUICK_EXIT, 1L);
  Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(CURLOPT_PATH_AS_IS, 1L);
  SetText(CURLOPT_USERAGENT, fmt::format("devmgr/{}", Version()));
  Set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  Set(CURLOPT_TIMEOUT, static_cast<long>(request.deadline.count()));
  Set(CURLOPT_SOCKOPTFUNCTION, &Transfer::OnSocket);
  Set(CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  Set(CURLOPT_HEADERDATA, this);
  Set(CURLOPT_WRITEFUNCTION, &Transfer::OnBody);
  Set(CURLOPT_WRITEDATA, this);
  Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  // Without one the environment counts.
  SetText(CURLOPT_PROXY, config.proxy_url.Reveal());
  if (request.kind == ApiRequest::Kind::kList && !config.disable_compression) {
    Set(CURLOPT_ACCEPT_ENCODING, "gzip");
  }
  if (!address.connect_to.empty()) {
    connect_to_.Append(address.connect_to);
    Set(CURLOPT_CONNECT_TO, connect_to_.get());
  }
}

void Transfer::SetUpContent(const ApiRequest& request) {
  if (request.method == ApiRequest::Method::kGet) return;
  Set(CURLOPT_CUSTOMREQUEST, MethodName(request.method));
  if (request.content.empty()) return;
  Set(CURLOPT_POSTFIELDSIZE_LARGE,
      static_cast<curl_off_t>(request.content.size()));
  Set(CURLOPT_COPYPOSTFIELDS, request.content.data());
  headers_.Append("Content-Type: " + request.content_type);
  // It would wait a second for servers that do not know it.
  headers_.Append("Expect:");
}

void Transfer::SetUpTls(const Kubeconfig& config,
                        const RequestCredentials& credentials) {
  Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (config.insecure_skip_tls_verify) {
    Set(CURLOPT_SSL_VERIFYPEER, 0L);
    Set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!credentials.ca_pem.empty()) {
    // It alone counts, not the roots of the system.
    Set(CURLOPT_CAINFO, static_cast<const char*>(nullptr));
    Set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    SetBlob(CURLOPT_CAINFO_BLOB, credentials.ca_pem);
  }
  SetBlob(CURLOPT_SSLCERT_BLOB, credentials.certificate_pem);
  SetBlob(CURLOPT_SSLKEY_BLOB, credentials.key_pem.Reveal());
}

void Transfer::SetUpHeaders(const Kubeconfig& config, const Address& address,
                            const RequestCredentials& credentials) {
  headers_.Append("Accept: application/json");
  if (!address.host.empty()) headers_.Append("Host: " + address.host);
  if (config.IsHttps() && !credentials.token.empty()) {
    headers_.Append("Authorization: Bearer " + credentials.token.Reveal());
  }
  const Impersonation& act_as = config.act_as;
  if (!act_as.user.empty()) headers_.Append("Impersonate-User: " + act_as.user);
  if (!act_as.uid.empty()) headers_.Append("Impersonate-Uid: " + act_as.uid);
  for (const std::string& group : act_as.groups) {
    headers_.Append("Impersonate-Group: " + group);
  }
  for (const auto& [key, values] : act_as.extra) {
    for (const std::string& value : values) {
      headers_.Append(
          fmt::format("Impersonate-Extra-{}: {}", PathSegment(key), value));
    }
  }
  Set(CURLOPT_HTTPHEADER, headers_.get());
  // Not to a proxy.
  Set(CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
}

bool Transfer::TakeLine(std::string_view line) {
  // Behind a body there may be more.
  if (has_head_) return true;
  head_bytes_ += line.size();
  if (head_bytes_ > kMaxHeadBytes) {
    limit_ =
        ResourceExhaustedError("the headers exceed {} bytes", kMaxHeadBytes);
    return false;
  }
  constexpr std::string_view kRetryAfter = "retry-after:";
  if (line.starts_with("HTTP/")) {
    head_ = ResponseHead();
    const std::size_t code = std::min(line.find(' ') + 1, line.size());
    std::from_chars(line.data() + code, line.data() + line.size(), head_.code);
  } else if (curl_.strnequal(line.data(), kRetryAfter.data(),
                             kRetryAfter.size()) != 0) {
    line.remove_prefix(kRetryAfter.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    int seconds = 0;
    // A date is not understood; servers of Kubernetes write seconds.
    std::from_chars(line.data(), line.data() + line.size(), seconds);
    if (seconds > 0) head_.retry_after = std::chrono::seconds(seconds);
  } else if ((line == "\r\n" || line == "\n") && head_.code >= 200) {
    has_head_ = true;
    shared_->PostHead(shared_, id_, head_);
  }
  return true;
}

std::size_t Transfer::TakeBody(std::string_view bytes) {
  if (max_bytes_ > 0 && bytes_ + bytes.size() > max_bytes_) {
    limit_ = ResourceExhaustedError("the answer exceeds {} bytes", max_bytes_);
    return 0;
  }
  if (!shared_->Deliver(shared_, id_, bytes)) return CURL_WRITEFUNC_PAUSE;
  bytes_ += bytes.size();
  return bytes.size();
}

/// Without how long it took: the same trouble has the same text.
std::string WithoutSpan(std::string text) {
  constexpr std::string_view kAfter = " after ";
  const std::size_t after = text.find(kAfter);
  if (after == std::string::npos) return text;
  const std::size_t span = after + kAfter.size();
  const std::size_t unit = text.find_first_not_of("0123456789", span);
  if (unit == span || unit == std::string::npos) return text;
  for (const std::string_view name : {" milliseconds", " ms"}) {
    if (text.compare(unit, name.size(), name) == 0) {
      return text.erase(after, unit + name.size() - after);
    }
  }
  return text;
}

absl::Status Transfer::StatusOf(CURLcode code) const {
  if (code == CURLE_OK) return absl::OkStatus();
  if (!limit_.ok()) return WithContext(limit_, "{}", place_);
  const std::string text = WithoutSpan(api::Readable(
      error_[0] != '\0' ? error_ : curl_.easy_strerror(code), 300));
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return DeadlineExceededError("{}: {}", place_, text);
    case CURLE_PARTIAL_FILE:
    case CURLE_BAD_CONTENT_ENCODING:
      return DataLossError("{}: {}", place_, text);
    default:
      return UnavailableError("{}: {}", place_, text);
  }
}

class CurlTransport final : public Transport {
 public:
  CurlTransport(const CurlLibrary& curl, const Kubeconfig& config,
                Executor& executor, CURLM* multi)
      : curl_(curl),
        config_(config),
        address_(AddressOf(config.server, config.tls_server_name)),
        multi_(multi),
        shared_(std::make_shared<Shared>(curl, executor, multi)),
        thread_([this] { Run(); }) {}

  ~CurlTransport() override {
    shared_->Push({.kind = Shared::Command::Kind::kStop});
    thread_.join();
    shared_->Close();
    transfers_.clear();
    curl_.multi_cleanup(multi_);
  }

  TransferId Start(const ApiRequest& request,
                   std::shared_ptr<const RequestCredentials> credentials,
                   TransferEvents events) override {
    const TransferId id = shared_->Add(std::move(events));
    shared_->Push({.kind = Shared::Command::Kind::kStart,
                   .transfer = id,
                   .request = request,
                   .credentials = std::move(credentials)});
    return id;
  }

  void Cancel(TransferId transfer) override {
    shared_->Remove(transfer);
    shared_->Push(
        {.kind = Shared::Command::Kind::kCancel, .transfer = transfer});
  }

 private:
  void Run();
  /// False: the thread is to end.
  bool Carry(const Shared::Command& command);
  void Begin(const Shared::Command& command);
  void TakeEnded();
  void End(TransferId transfer);

  const CurlLibrary& curl_;
  const Kubeconfig config_;
  const Address address_;
  CURLM* const multi_;
  const std::shared_ptr<Shared> shared_;
  /// Confined to the thread.
  std::map<TransferId, std::unique_ptr<Transfer>> transfers_;
  std::thread thread_;
};

void CurlTransport::Run() {
  pthread_setname_np(pthread_self(), "devmgr-http");
  // Libraries below libcurl may write to a connection that the server has
  // closed; the signal would end the host's process.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  for (;;) {
    for (const Shared::Command& command : shared_->TakeCommands()) {
      if (!Carry(command)) {
        for (const auto& [id, transfer] : transfers_) {
          curl_.multi_remove_handle(multi_, transfer->easy());
        }
        return;
      }
    }
    int running = 0;
    curl_.multi_perform(multi_, &running);
    TakeEnded();
    // As long as libcurl itself says that nothing is due.
    curl_.multi_poll(multi_, nullptr, 0, INT_MAX, nullptr);
  }
}

bool CurlTransport::Carry(const Shared::Command& command) {
  using Kind = Shared::Command::Kind;
  const auto found = transfers_.find(command.transfer);
  switch (command.kind) {
    case Kind::kStart:
      Begin(command);
      break;
    case Kind::kCancel:
      End(command.transfer);
      break;
    case Kind::kResume:
      if (found != transfers_.end()) {
        curl_.easy_pause(found->second->easy(), CURLPAUSE_CONT);
      }
      break;
    case Kind::kStop:
      return false;
  }
  return true;
}

void CurlTransport::Begin(const Shared::Command& command) {
  auto transfer =
      std::make_unique<Transfer>(curl_, config_, address_, command, shared_);
  if (transfer->easy() == nullptr ||
      curl_.multi_add_handle(multi_, transfer->easy()) != CURLM_OK) {
    shared_->PostEnd(shared_, command.transfer,
                     UnavailableError("libcurl cannot begin a transfer"));
    return;
  }
  transfers_.emplace(command.transfer, std::move(transfer));
}

void CurlTransport::TakeEnded() {
  int left = 0;
  while (const CURLMsg* message = curl_.multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    for (const auto& [id, transfer] : transfers_) {
      if (transfer->easy() != message->easy_handle) continue;
      shared_->PostEnd(shared_, id, transfer->StatusOf(code));
      End(id);
      break;
    }
  }
}

void CurlTransport::End(TransferId transfer) {
  const auto found = transfers_.find(transfer);
  if (found == transfers_.end()) return;
  curl_.multi_remove_handle(multi_, found->second->easy());
  transfers_.erase(found);
  shared_->Forget(transfer);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> StartCurlTransport(
    const Kubeconfig& config, Executor& executor) {
  DEVMGR_ASSIGN_OR_RETURN(const CurlLibrary* const curl, LoadCurl());
  CURLM* multi = curl->multi_init();
  if (multi == nullptr) return UnavailableError("libcurl has no memory");
  curl->multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, kMaxConnections);
  curl->multi_setopt(multi, CURLMOPT_MAXCONNECTS, kMaxConnections);
  return std::make_unique<CurlTransport>(*curl, config, executor, multi);
}

bool KeepAlive(int socket) {
  const struct {
    int level, name, value;
  } options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                 {IPPROTO_TCP, TCP_KEEPIDLE, 30},
                 {IPPROTO_TCP, TCP_KEEPINTVL, 10},
                 {IPPROTO_TCP, TCP_KEEPCNT, 3},
                 {IPPROTO_TCP, TCP_USER_TIMEOUT, 45'000}};
  bool all = true;
  for (const auto& option : options) {
    all &= setsockopt(socket, option.level, option.name, &option.value,
                      sizeof(option.value)) == 0;
  }
  return all;
}

}  // namespace devmgr::apiserver
