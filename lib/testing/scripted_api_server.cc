// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <deque>
#include <random>
#include <set>
#include <utility>
#include <variant>

#include "api/json_text.h"
#include "api/parser.h"
#include "apistore/api_request.h"
#include "apistore/patch.h"
#include "common/mutex.h"
#include "common/status.h"
#include "http/server.h"
#include "testing/api_answers.h"
#include "testing/api_faults.h"

namespace devmgr::testing {
namespace {

using apistore::Answer;
using apistore::ApiError;
using apistore::ApiRequest;
using FaultAction = ApiFault::Action;
using ApiCall = ScriptedApiServer::Call;
using std::chrono::milliseconds;

/// Of the requests that came so many are remembered.
constexpr std::size_t kMaxCalls = 10'000;
/// What one chunk of a watch has at most, if one event has not more.
constexpr std::size_t kBatchBytes = 64u << 10;

std::int64_t Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

ApiCall CallOf(const http::Request& request) {
  ApiCall call;
  call.method = request.method;
  call.target = request.target;
  call.content_type = request.Find("Content-Type");
  call.accept = request.Find("Accept");
  call.authorization = request.Find("Authorization");
  call.user_agent = request.Find("User-Agent");
  call.body = request.body;
  if (request.certificate.has_value()) {
    call.certificate_subject = request.certificate->subject;
    call.certificate_verified = request.certificate->verified;
  }
  return call;
}

void Describe(const ApiRequest& request, ApiCall& call) {
  call.verb = VerbName(request.verb);
  call.resource = request.target.type->resource;
  if (!request.subresource.empty()) call.resource += "/" + request.subresource;
  call.ns = request.target.ns;
  call.name = request.target.name;
}

apistore::Store::Options StoreOptions(const ScriptedApiServerOptions& options) {
  apistore::Store::Options store;
  store.history_changes = options.history;
  store.watch.events = options.watch_events;
  store.random = [luck = std::mt19937_64(std::random_device()())]() mutable {
    return luck();
  };
  return store;
}

}  // namespace

class ScriptedApiServer::Impl {
 public:
  explicit Impl(ScriptedApiServerOptions options)
      : git_version_(std::move(options.git_version)),
        store_(apistore::BuiltinTypes(), StoreOptions(options)),
        token_(std::move(options.token)) {
    for (ApiFault& fault : options.faults) faults_.Add(std::move(fault));
  }
  ~Impl() {
    if (http_ != nullptr) http_->Stop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  absl::Status Listen(const ScriptedApiServerOptions& options);
  absl::Status Apply(std::string_view manifests) DEVMGR_EXCLUDES(mutex_);
  absl::StatusOr<std::string> Do(std::string_view method,
                                 std::string_view target,
                                 const apistore::ApiBody& body)
      DEVMGR_EXCLUDES(mutex_);
  void EndWatches(WatchEnd how) DEVMGR_EXCLUDES(mutex_);
  template <typename Ready>
  bool Wait(milliseconds patience, Ready ready) DEVMGR_EXCLUDES(mutex_);

  std::uint16_t port() const { return http_->port(); }

 private:
  friend class ScriptedApiServer;

  /// One watch, from its request until its client left or it was ended.
  /// `stream` belongs to the store and its lock, the rest to the server's
  /// thread.
  struct Watch {
    std::shared_ptr<apistore::WatchStream> stream;
    std::shared_ptr<http::StreamWriter> writer;
    std::optional<ApiFault> fault;
    std::size_t sent = 0;
    bool done = false;
  };
  using WatchPtr = std::shared_ptr<Watch>;

  // On the server's thread.
  void Handle(const http::Request& request,
              const std::shared_ptr<http::Responder>& responder);
  void Send(Answer answer, const std::optional<ApiFault>& fault,
            const std::shared_ptr<http::Responder>& responder);
  void OpenWatch(const ApiRequest& request,
                 const std::optional<ApiFault>& fault,
                 const std::shared_ptr<http::Responder>& responder);
  void StartWatch(const WatchPtr& watch,
                  const std::shared_ptr<http::Responder>& responder,
                  const ApiRequest& request);
  void Pump(const WatchPtr& watch);
  void SendEvents(Watch& watch, std::string text);
  void SendPart(Watch& watch, const std::string& text);
  void EndWatch(const WatchPtr& watch, WatchEnd how);
  void Forget(const WatchPtr& watch);

  /// What the request is about; null for what is not about objects.
  struct Received {
    std::optional<ApiRequest> request;
    std::optional<Answer> answer;  ///< Without looking at objects.
    std::optional<ApiFault> fault;
  };
  Received Receive(const http::Request& request) DEVMGR_EXCLUDES(mutex_);

  const std::string git_version_;
  /// Set once, with the lock held, before the first request gets further.
  std::unique_ptr<http::HttpServer> http_;
  mutable Mutex mutex_;
  CondVar changed_;
  apistore::Store store_ DEVMGR_GUARDED_BY(mutex_);
  ApiFaults faults_ DEVMGR_GUARDED_BY(mutex_);
  std::string token_ DEVMGR_GUARDED_BY(mutex_);
  std::deque<ApiCall> calls_ DEVMGR_GUARDED_BY(mutex_);
  std::size_t call_count_ DEVMGR_GUARDED_BY(mutex_) = 0;
  std::set<WatchPtr> watches_ DEVMGR_GUARDED_BY(mutex_);
};

absl::Status ScriptedApiServer::Impl::Listen(
    const ScriptedApiServerOptions& options) {
  http::Options http;
  http.address = options.address;
  http.port = options.port;
  http.max_connections = options.max_connections;
  http.refusal = RefusalOf;
  if (!options.certificate.empty() || !options.key.empty()) {
    http.tls =
        http::Tls{options.certificate, options.key, options.client_authority};
  }
  const MutexLock lock(mutex_);
  DEVMGR_ASSIGN_OR_RETURN(
      http_, http::HttpServer::Start(
                 std::move(http),
                 [this](const http::Request& request,
                        const std::shared_ptr<http::Responder>& responder) {
                   Handle(request, responder);
                 }));
  return absl::OkStatus();
}

ScriptedApiServer::Impl::Received ScriptedApiServer::Impl::Receive(
    const http::Request& request) {
  Received received;
  ApiCall call = CallOf(request);
  const MutexLock lock(mutex_);
  received.answer = Discover(store_, request.target, git_version_);
  if (received.answer.has_value()) {
    call.verb = "discover";
  } else {
    auto read = ReadApiRequest(store_, request.method, request.target);
    if (const auto* error = std::get_if<ApiError>(&read)) {
      received.answer = Refuse(*error);
    } else {
      received.request = std::get<ApiRequest>(std::move(read));
      Describe(*received.request, call);
    }
  }
  if (const auto error = apistore::CheckAccept(call.accept)) {
    received.answer = Refuse(*error);
  }
  if (!token_.empty() && call.authorization != "Bearer " + token_) {
    received.answer = Refuse(apistore::Unauthorized());
  }
  received.fault = faults_.Take(call);
  if (received.fault.has_value() &&
      received.fault->action == FaultAction::kFail) {
    received.answer = Refuse(ErrorOf(*received.fault));
    received.answer->retry_after_seconds = received.fault->retry_after;
  }
  calls_.push_back(std::move(call));
  if (calls_.size() > kMaxCalls) calls_.pop_front();
  ++call_count_;
  changed_.NotifyAll();
  return received;
}

void ScriptedApiServer::Impl::Handle(
    const http::Request& request,
    const std::shared_ptr<http::Responder>& responder) {
  Received received = Receive(request);
  const bool watch = received.request.has_value() &&
                     received.request->verb == apistore::Verb::kWatch;
  if (received.fault.has_value() &&
      received.fault->action == FaultAction::kSilence &&
      (!watch || received.answer.has_value())) {
    responder->FallSilent();
    return;
  }
  if (received.answer.has_value()) {
    Send(*std::move(received.answer), received.fault, responder);
    return;
  }
  if (watch) {
    OpenWatch(*received.request, received.fault, responder);
    return;
  }
  Answer answer;
  {
    const MutexLock lock(mutex_);
    answer = ServeRequest(store_, *received.request,
                          {request.Find("Content-Type"), request.body}, Now());
  }
  Send(std::move(answer), received.fault, responder);
}

void ScriptedApiServer::Impl::Send(
    Answer answer, const std::optional<ApiFault>& fault,
    const std::shared_ptr<http::Responder>& responder) {
  if (!fault.has_value()) {
    responder->Respond(ResponseOf(answer));
    return;
  }
  if (fault->action == FaultAction::kLie && answer.body.is_object()) {
    answer.body["metadata"]["resourceVersion"] = fault->resource_version;
  }
  http::Response response = ResponseOf(answer);
  if (fault->action == FaultAction::kCut) response.cut_after = fault->bytes;
  if (fault->action == FaultAction::kLoseAnswer) response.cut_after = 0;
  if (fault->delay.count() == 0) {
    responder->Respond(std::move(response));
    return;
  }
  http_->PostAfter(fault->delay, [responder, response = std::move(response)] {
    responder->Respond(response);
  });
}

void ScriptedApiServer::Impl::OpenWatch(
    const ApiRequest& request, const std::optional<ApiFault>& fault,
    const std::shared_ptr<http::Responder>& responder) {
  auto watch = std::make_shared<Watch>();
  watch->fault = fault;
  std::optional<Answer> refusal;
  {
    const MutexLock lock(mutex_);
    auto opened = store_.Watch(request.target, WatchOptionsOf(request));
    if (auto* answer = std::get_if<Answer>(&opened)) {
      refusal = std::move(*answer);
    } else {
      watch->stream = std::get<1>(std::move(opened));
      // Called with the lock held.
      watch->stream->OnReady([this, weak = std::weak_ptr<Watch>(watch)] {
        http_->Post([this, weak] {
          if (const WatchPtr alive = weak.lock()) Pump(alive);
        });
      });
      watches_.insert(watch);
      changed_.NotifyAll();
    }
  }
  if (refusal.has_value()) {
    Send(*std::move(refusal), fault, responder);
    return;
  }
  if (fault.has_value() && fault->action == FaultAction::kDelay) {
    http_->PostAfter(fault->delay, [this, watch, responder, request] {
      StartWatch(watch, responder, request);
    });
    return;
  }
  StartWatch(watch, responder, request);
}

void ScriptedApiServer::Impl::StartWatch(
    const WatchPtr& watch, const std::shared_ptr<http::Responder>& responder,
    const ApiRequest& request) {
  const std::weak_ptr<Watch> weak = watch;
  const auto with = [weak](auto what) {
    return [weak, what] {
      if (const WatchPtr alive = weak.lock()) what(alive);
    };
  };
  watch->writer = responder->Stream(
      200, {{"Content-Type", "application/json"}},
      {with([this](const WatchPtr& alive) { Pump(alive); }),
       with([this](const WatchPtr& alive) { Forget(alive); })});
  const auto end = with(
      [this](const WatchPtr& alive) { EndWatch(alive, WatchEnd::kInOrder); });
  if (const auto seconds = WatchTimeoutOf(request)) {
    http_->PostAfter(std::chrono::seconds(*seconds), end);
  }
  if (watch->fault.has_value() && watch->fault->action == FaultAction::kEnd) {
    http_->PostAfter(watch->fault->delay, end);
  }
}

void ScriptedApiServer::Impl::Pump(const WatchPtr& watch) {
  if (watch->writer == nullptr || watch->done) return;
  if (watch->writer->pending() > 0) return;  // `drained` comes back here.
  std::string text;
  bool overflowed = false;
  {
    const MutexLock lock(mutex_);
    text = watch->stream->Take(kBatchBytes);
    overflowed = watch->stream->overflowed();
  }
  SendEvents(*watch, std::move(text));
  if (overflowed && !watch->done) {
    watch->done = true;
    watch->writer->End();
  }
}

void ScriptedApiServer::Impl::SendEvents(Watch& watch, std::string text) {
  const FaultAction action =
      watch.fault.has_value() ? watch.fault->action : FaultAction::kDelay;
  switch (action) {
    case FaultAction::kCut:
    case FaultAction::kSilence:
    case FaultAction::kHalfEvent:
      SendPart(watch, text);
      return;
    case FaultAction::kErrorEvent:
      text += apistore::EventText("ERROR",
                                  apistore::StatusBody(ErrorOf(*watch.fault)));
      watch.done = true;
      watch.writer->Write(std::move(text));
      watch.writer->End();
      return;
    default:
      if (!text.empty()) watch.writer->Write(std::move(text));
  }
}

/// The part up to which the fault lets events through.
void ScriptedApiServer::Impl::SendPart(Watch& watch, const std::string& text) {
  const bool half = watch.fault->action == FaultAction::kHalfEvent;
  if (half && text.empty()) return;
  const std::size_t end = half ? text.find('\n') / 2 : watch.fault->bytes;
  const std::size_t part = std::min(text.size(), end - watch.sent);
  watch.sent += part;
  if (part > 0) watch.writer->Write(text.substr(0, part));
  if (watch.sent < end) return;
  watch.done = true;
  if (watch.fault->action == FaultAction::kSilence) {
    watch.writer->FallSilent();
  } else {
    watch.writer->Cut();
  }
}

void ScriptedApiServer::Impl::EndWatch(const WatchPtr& watch, WatchEnd how) {
  if (watch->writer == nullptr || watch->done) return;
  if (how == WatchEnd::kInOrder) {
    // What waits is sent, so that the client need not ask for it again.
    std::string text;
    {
      const MutexLock lock(mutex_);
      while (!watch->stream->empty()) text += watch->stream->Take(kBatchBytes);
    }
    SendEvents(*watch, std::move(text));
  }
  if (watch->done) return;
  watch->done = true;
  switch (how) {
    case WatchEnd::kInOrder:
      watch->writer->End();
      return;
    case WatchEnd::kCut:
      watch->writer->Cut();
      return;
    case WatchEnd::kSilence:
      watch->writer->FallSilent();
      return;
  }
}

void ScriptedApiServer::Impl::Forget(const WatchPtr& watch) {
  const MutexLock lock(mutex_);
  watches_.erase(watch);
  changed_.NotifyAll();
}

void ScriptedApiServer::Impl::EndWatches(WatchEnd how) {
  http_->Post([this, how] {
    std::set<WatchPtr> watches;
    {
      const MutexLock lock(mutex_);
      watches = watches_;
    }
    for (const WatchPtr& watch : watches) EndWatch(watch, how);
  });
}

absl::Status ScriptedApiServer::Impl::Apply(std::string_view manifests) {
  const api::ParsedText parsed = api::ParseText(manifests, false);
  if (!parsed.error.empty()) {
    return InvalidArgumentError("line {}: {}", parsed.error_line, parsed.error);
  }
  const MutexLock lock(mutex_);
  for (const api::ValuePtr& document : parsed.documents) {
    DEVMGR_ASSIGN_OR_RETURN(
        apistore::Json object,
        apistore::ParseForeignJson(api::JsonText(*document)));
    const Answer answer = store_.Load(std::move(object), Now());
    if (!answer.ok()) {
      return WithContext(StatusOf(answer), "line {}", document->line);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ScriptedApiServer::Impl::Do(
    std::string_view method, std::string_view target,
    const apistore::ApiBody& body) {
  const MutexLock lock(mutex_);
  auto read = ReadApiRequest(store_, method, target);
  if (const auto* error = std::get_if<ApiError>(&read)) {
    return StatusOf(Refuse(*error));
  }
  const Answer answer =
      ServeRequest(store_, std::get<ApiRequest>(read), body, Now());
  if (!answer.ok()) return StatusOf(answer);
  return apistore::Dump(answer.body);
}

template <typename Ready>
bool ScriptedApiServer::Impl::Wait(milliseconds patience, Ready ready) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  while (!ready()) {
    if (!changed_.WaitUntil(mutex_, deadline)) return ready();
  }
  return true;
}

absl::StatusOr<std::unique_ptr<ScriptedApiServer>> ScriptedApiServer::Start(
    ScriptedApiServerOptions options) {
  auto impl = std::make_unique<Impl>(options);
  DEVMGR_RETURN_IF_ERROR(WithContext(impl->Apply(options.objects), "objects"));
  DEVMGR_RETURN_IF_ERROR(impl->Listen(options));
  auto server = std::unique_ptr<ScriptedApiServer>(
      new ScriptedApiServer(std::move(impl)));
  server->url_ =
      fmt::format("{}://{}:{}", options.certificate.empty() ? "http" : "https",
                  options.address.find(':') == std::string::npos
                      ? options.address
                      : "[" + options.address + "]",
                  server->port());
  return server;
}

ScriptedApiServer::ScriptedApiServer(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
ScriptedApiServer::~ScriptedApiServer() = default;

std::uint16_t ScriptedApiServer::port() const { return impl_->port(); }

absl::Status ScriptedApiServer::Apply(std::string_view manifests) {
  return impl_->Apply(manifests);
}

absl::StatusOr<std::string> ScriptedApiServer::Do(
    std::string_view method, std::string_view target, std::string_view body,
    std::string_view content_type) {
  return impl_->Do(method, target, {content_type, body});
}

void ScriptedApiServer::AddFault(ApiFault fault) {
  const MutexLock lock(impl_->mutex_);
  impl_->faults_.Add(std::move(fault));
}

void ScriptedApiServer::ClearFaults() {
  const MutexLock lock(impl_->mutex_);
  impl_->faults_.Clear();
}

void ScriptedApiServer::SetToken(std::string token) {
  const MutexLock lock(impl_->mutex_);
  impl_->token_ = std::move(token);
}

void ScriptedApiServer::Compact() {
  const MutexLock lock(impl_->mutex_);
  impl_->store_.Compact();
}

void ScriptedApiServer::SendBookmarks() {
  const MutexLock lock(impl_->mutex_);
  impl_->store_.SendBookmarks();
}

void ScriptedApiServer::EndWatches(WatchEnd how) { impl_->EndWatches(how); }

std::vector<ScriptedApiServer::Call> ScriptedApiServer::Calls() const {
  const MutexLock lock(impl_->mutex_);
  return {impl_->calls_.begin(), impl_->calls_.end()};
}

bool ScriptedApiServer::WaitForCalls(std::size_t count, milliseconds patience) {
  return impl_->Wait(patience, [this, count]() DEVMGR_NO_TSA {
    return impl_->call_count_ >= count;
  });
}

bool ScriptedApiServer::WaitForWatches(std::size_t count,
                                       milliseconds patience) {
  return impl_->Wait(patience, [this, count]() DEVMGR_NO_TSA {
    return impl_->watches_.size() == count;
  });
}

std::size_t ScriptedApiServer::watches() const {
  const MutexLock lock(impl_->mutex_);
  return impl_->watches_.size();
}

}  // namespace devmgr::testing
