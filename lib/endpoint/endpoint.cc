// SPDX-License-Identifier: Apache-2.0
//
// The service on its server: tokens, threads, the certificate.
#include "endpoint/endpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "apistore/api_request.h"
#include "common/mutex.h"
#include "common/status.h"
#include "endpoint/credentials.h"
#include "endpoint/service.h"
#include "endpoint/tokens.h"
#include "endpoint/watches.h"
#include "http/server.h"

namespace devmgr::endpoint {
namespace {

using apistore::Answer;

/// How long clients have to take the ends of their watches at the stop.
constexpr std::chrono::seconds kFarewell{1};

http::Response ResponseOf(const Answer& answer) {
  http::Response response;
  response.status = answer.code;
  response.headers = apistore::HeadersOf(answer);
  response.body = apistore::BodyOf(answer);
  return response;
}

std::vector<std::string> NamesOf(const EndpointOptions& options) {
  std::vector<std::string> names = {"127.0.0.1", "::1", "localhost"};
  std::vector<std::string> more = options.server_names;
  more.push_back(options.address);
  for (const std::string& name : more) {
    if (name != "0.0.0.0" && name != "::" &&
        std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

std::int64_t SystemNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

TimePoint SteadyNow() { return std::chrono::steady_clock::now(); }

/// `127.0.0.1` of `127.0.0.1:4711`.
std::string AddressOf(const std::string& peer) {
  return peer.substr(0, peer.rfind(':'));
}

class RunningEndpoint : public Endpoint {
 public:
  RunningEndpoint(EndpointOptions options, Journal& journal)
      : options_(options),
        credentials_(options.kubeconfig_dir, NamesOf(options)),
        service_(std::move(options), journal),
        watches_({[this](std::function<void()> task) {
                    http_->Post(std::move(task));
                  },
                  [this](std::chrono::milliseconds delay,
                         std::function<void()> task) {
                    http_->PostAfter(delay, std::move(task));
                  },
                  [this] { return service_.revision(); }}) {
    watches_.OnOver([this] {
      const MutexLock lock(mutex_);
      over_.NotifyAll();
    });
  }
  ~RunningEndpoint() override { Stop(); }

  absl::Status Begin() {
    DEVMGR_RETURN_IF_ERROR(service_.Replay());
    DEVMGR_RETURN_IF_ERROR(credentials_.KeepCertificate(SystemNow()).status());
    for (const std::string& driver : options_.drivers) {
      DEVMGR_ASSIGN_OR_RETURN(const std::string token,
                              credentials_.Token(driver));
      tokens_.Set(driver, token, SteadyNow());
    }
    DEVMGR_RETURN_IF_ERROR(Listen());
    DEVMGR_RETURN_IF_ERROR(credentials_.RememberPort(port()));
    for (const std::string& driver : options_.drivers) {
      DEVMGR_RETURN_IF_ERROR(credentials_.WriteFiles(driver, server()));
    }
    CheckCertificateLater();
    return absl::OkStatus();
  }

  std::uint16_t port() const override { return http_->port(); }
  std::string server() const override {
    const bool any = options_.address == "0.0.0.0" || options_.address == "::";
    const std::string address = any ? "127.0.0.1" : options_.address;
    return address.find(':') == std::string::npos
               ? fmt::format("https://{}:{}", address, port())
               : fmt::format("https://[{}]:{}", address, port());
  }

  absl::Status SetObjects(const std::string& kind,
                          const std::vector<std::string>& objects) override {
    return On([&] { return service_.SetObjects(kind, objects); });
  }
  absl::Status PutObject(const std::string& object) override {
    return On([&] { return service_.PutObject(object); });
  }
  std::vector<std::string> Objects(const std::string& kind) override {
    return On([&] { return service_.Objects(kind); });
  }
  absl::StatusOr<std::size_t> DeleteSlices(const std::string& driver) override {
    return On([&] { return service_.DeleteSlices(driver); });
  }
  absl::Status AddDriver(const std::string& driver) override {
    DEVMGR_ASSIGN_OR_RETURN(const std::string token,
                            credentials_.Token(driver));
    // There, so that no new authority comes in between.
    return On([&] {
      tokens_.Set(driver, token, SteadyNow());
      return credentials_.WriteFiles(driver, server());
    });
  }
  absl::Status RotateToken(const std::string& driver) override {
    DEVMGR_RETURN_IF_ERROR(credentials_.Token(driver).status());
    DEVMGR_ASSIGN_OR_RETURN(const std::string token,
                            credentials_.MakeNewToken(driver));
    On([&] {
      tokens_.Set(driver, token, SteadyNow());
      return true;
    });
    return absl::OkStatus();
  }
  EndpointCounts counts() override {
    return On([&] {
      EndpointCounts counts = service_.counts();
      counts.watches = watches_.size();
      counts.connections = http_->connections();
      return counts;
    });
  }

 private:
  absl::Status Listen() {
    const std::uint16_t wanted =
        options_.port != 0 ? options_.port : credentials_.LastPort();
    absl::Status status = ListenAt(wanted);
    // Another program has the port by now.
    if (!status.ok() && options_.port == 0 && wanted != 0) {
      status = ListenAt(0);
    }
    return status;
  }

  absl::Status ListenAt(std::uint16_t port) {
    http::Options http;
    http.address = options_.address;
    http.further_addresses = options_.further_addresses;
    http.port = port;
    http.max_connections = options_.max_connections;
    http.tls = http::Tls{credentials_.certificate(), credentials_.key(), {}};
    http.refusal = [](int code, std::string_view text) {
      return ResponseOf(apistore::EarlyRefusal(code, text));
    };
    // The first request waits until the server is known here.
    const MutexLock lock(mutex_);
    DEVMGR_ASSIGN_OR_RETURN(
        http_, http::HttpServer::Start(
                   std::move(http),
                   [this](const http::Request& request,
                          const std::shared_ptr<http::Responder>& responder) {
                     { const MutexLock started(mutex_); }
                     Handle(request, responder);
                   }));
    return absl::OkStatus();
  }

  /// Runs `what` on the thread of the server, and waits for what it returns.
  template <typename What>
  auto On(What what) -> decltype(what()) {
    std::optional<decltype(what())> result;
    Mutex mutex;
    CondVar done;
    http_->Post([&] {
      auto got = what();
      const MutexLock lock(mutex);
      result = std::move(got);
      done.NotifyAll();
    });
    const MutexLock lock(mutex);
    while (!result.has_value()) done.Wait(mutex);
    return *std::move(result);
  }

  void Handle(const http::Request& request,
              const std::shared_ptr<http::Responder>& responder) {
    EndpointCounts& counts = service_.counts();
    ++counts.requests;
    if (auto open = service_.ServeOpen(request.target)) {
      responder->Respond(ResponseOf(*open));
      return;
    }
    const std::optional<std::string> driver =
        tokens_.DriverOf(request.Find("Authorization"), SteadyNow());
    if (!driver.has_value()) {
      ++counts.unauthorized;
      RefuseLater(request, responder);
      return;
    }
    auto served = service_.Serve(
        {request.method, request.target, request.Find("Content-Type"),
         request.Find("Accept"), request.body, *driver},
        SteadyNow(), watches_.CountOf(*driver));
    if (auto* watch = std::get_if<OpenedWatch>(&served)) {
      watches_.Open(*driver, std::move(watch->stream), watch->bookmarks,
                    std::chrono::seconds(watch->timeout_seconds), *responder);
      return;
    }
    const Answer& answer = std::get<Answer>(served);
    counts.refused += answer.ok() ? 0 : 1;
    responder->Respond(ResponseOf(answer));
  }

  void RefuseLater(const http::Request& request,
                   const std::shared_ptr<http::Responder>& responder) {
    const std::chrono::milliseconds delay =
        wrong_tokens_.Note(AddressOf(request.peer), SteadyNow());
    const auto refuse = [responder] {
      responder->Respond(ResponseOf(Refuse(apistore::Unauthorized())));
    };
    if (delay.count() == 0) {
      refuse();
    } else {
      http_->PostAfter(delay, refuse);
    }
  }

  void CheckCertificateLater() {
    http_->PostAfter(options_.certificate_check, [this] {
      // When it fails the old one goes on for months, and the next day comes.
      const absl::StatusOr<bool> fresh =
          credentials_.KeepCertificate(SystemNow());
      if (!fresh.ok()) {
        certificate_problem_ = fresh.status();
      } else if (*fresh || !certificate_problem_.ok()) {
        certificate_problem_ = TakeCertificate();
      }
      CheckCertificateLater();
    });
  }
  /// Drivers get the authority as well, which may be another one.
  absl::Status TakeCertificate() {
    absl::Status first = http_->ReloadCertificate();
    for (const std::string& driver : tokens_.Drivers()) {
      first.Update(credentials_.WriteFiles(driver, server()));
    }
    return first;
  }

  void Stop() {
    if (http_ == nullptr) return;
    http_->Post([this] { watches_.EndAll(); });
    const auto deadline = SteadyNow() + kFarewell;
    while (On([&] { return watches_.size(); }) > 0) {
      const MutexLock lock(mutex_);
      if (!over_.WaitUntil(mutex_, std::min(deadline, SteadyNow() + kLook))) {
        if (SteadyNow() >= deadline) break;
      }
    }
    http_->Stop();
  }

  /// A notice between the look and the wait is made up for after this.
  static constexpr std::chrono::milliseconds kLook{50};

  const EndpointOptions options_;
  const Credentials credentials_;
  Mutex mutex_;
  CondVar over_;
  // On the thread of the server, once it runs.
  Service service_;
  Watches watches_;
  TokenBook tokens_;
  WrongTokens wrong_tokens_;
  absl::Status certificate_problem_;
  std::unique_ptr<http::HttpServer> http_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Endpoint>> Endpoint::Start(
    EndpointOptions options, Journal& journal) {
  if (options.node_name.empty() || options.node_uid.empty()) {
    return InvalidArgumentError("an endpoint needs the node's name and UID");
  }
  if (options.kubeconfig_dir.empty()) {
    return InvalidArgumentError("an endpoint needs a folder for kubeconfigs");
  }
  auto endpoint =
      std::make_unique<RunningEndpoint>(std::move(options), journal);
  DEVMGR_RETURN_IF_ERROR(endpoint->Begin());
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace devmgr::endpoint
