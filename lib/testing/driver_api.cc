// SPDX-License-Identifier: Apache-2.0
#include "testing/driver_api.h"

#include <utility>

#include "common/status.h"
#include "source/api/curl_transport.h"
#include "source/api/key_pair.h"
#include "source/api/read_file.h"

namespace devmgr::testing {
namespace {

struct WholeAnswer {
  apiserver::ResponseHead head;
  std::string body;
};

absl::StatusCode CodeOf(int http) {
  switch (http) {
    case 400:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return absl::StatusCode::kAborted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

absl::StatusOr<std::string> BodyOf(WholeAnswer answer) {
  if (answer.head.code >= 200 && answer.head.code < 300) {
    return std::move(answer.body);
  }
  const apiserver::ApiStatus status =
      apiserver::StatusOfAnswer(answer.head, answer.body);
  return MakeStatus(CodeOf(status.code), apiserver::DescribeStatus(status));
}

}  // namespace

DriverApi::DriverApi(Executor& executor, std::filesystem::path kubeconfig,
                     Events events)
    : executor_(executor),
      kubeconfig_(std::move(kubeconfig)),
      events_(std::move(events)) {}

DriverApi::~DriverApi() {
  *alive_ = false;
  executor_.Cancel(timer_);
  for (const auto& [transfer, answered] : pending_) {
    transport_->Cancel(transfer);
  }
}

void DriverApi::Load() {
  executor_.Cancel(timer_);
  const absl::Status status = Connect();
  const std::string problem = status.ok() ? "" : MessageOf(status);
  if (std::exchange(problem_, problem) != problem && !problem.empty()) {
    events_.on_problem(problem);
  }
  if (status.ok()) {
    look_.Reset();
    return;
  }
  timer_ = executor_.PostAfter(look_.Next(), [this] { Load(); });
}

/// What is in use stays so as long as the file says nothing that can be used.
absl::Status DriverApi::Connect() {
  DEVMGR_ASSIGN_OR_RETURN(const std::string text,
                          apiserver::ReadSmallFile(kubeconfig_));
  DEVMGR_ASSIGN_OR_RETURN(apiserver::Kubeconfig config,
                          apiserver::ParseKubeconfig(text, kubeconfig_));
  if (is_connected() && config == config_) return absl::OkStatus();
  auto credentials = std::make_unique<apiserver::Credentials>(
      config, apiserver::Credentials::Seams{
                  .read_file = apiserver::ReadSmallFile,
                  .check_pair = apiserver::CheckKeyPair,
                  .wall_clock = [] { return std::chrono::system_clock::now(); },
                  .warn =
                      [this](const std::string& problem) {
                        events_.on_problem(problem);
                      }});
  DEVMGR_ASSIGN_OR_RETURN(auto transport,
                          apiserver::StartCurlTransport(config, executor_));
  EndPending();
  transport_ = std::move(transport);
  credentials_ = std::move(credentials);
  config_ = std::move(config);
  events_.on_connected();
  return absl::OkStatus();
}

/// Those that wait for an answer of a server that is left.
void DriverApi::EndPending() {
  for (auto& [transfer, answered] : std::exchange(pending_, {})) {
    transport_->Cancel(transfer);
    executor_.Post([alive = alive_, answered = std::move(answered)] {
      if (*alive) answered(UnavailableError("the kubeconfig has changed"));
    });
  }
}

absl::StatusOr<apiserver::Transport::TransferId> DriverApi::Start(
    const apiserver::ApiRequest& request, apiserver::TransferEvents events) {
  if (!is_connected()) {
    return UnavailableError("there is no API server yet: {}", problem_);
  }
  DEVMGR_ASSIGN_OR_RETURN(auto credentials,
                          credentials_->Current(executor_.Now()));
  return transport_->Start(request, std::move(credentials), std::move(events));
}

void DriverApi::Cancel(apiserver::Transport::TransferId transfer) {
  if (is_connected()) transport_->Cancel(transfer);
}

void DriverApi::Send(const apiserver::ApiRequest& request, Answered answered) {
  const auto whole = std::make_shared<WholeAnswer>();
  const auto id = std::make_shared<apiserver::Transport::TransferId>(0);
  apiserver::TransferEvents events;
  events.on_head = [whole](const apiserver::ResponseHead& head) {
    whole->head = head;
  };
  events.on_data = [whole](std::string_view bytes) { whole->body += bytes; };
  events.on_end = [this, whole, id](const absl::Status& status) {
    const auto found = pending_.find(*id);
    if (found == pending_.end()) return;
    const Answered pending = std::move(found->second);
    pending_.erase(found);
    const bool is_gone = !status.ok();
    if (whole->head.code == 401) credentials_->Refused();
    pending(is_gone ? absl::StatusOr<std::string>(
                          UnavailableError("{}", MessageOf(status)))
                    : BodyOf(std::move(*whole)));
  };
  const auto started = Start(request, std::move(events));
  if (!started.ok()) {
    executor_.Post([alive = alive_, answered = std::move(answered),
                    status = started.status()] {
      if (*alive) answered(status);
    });
    return;
  }
  *id = *started;
  pending_.emplace(*started, std::move(answered));
}

void DriverApi::LookAgain() {
  if (credentials_ != nullptr) credentials_->Refused();
  // Not from within a callback of what Load may replace.
  executor_.Post([this, alive = alive_] {
    if (*alive) Load();
  });
}

}  // namespace devmgr::testing
