// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/back_off.h"
#include "common/executor.h"
#include "source/api/collection.h"
#include "source/api/credentials.h"
#include "source/api/kubeconfig.h"
#include "source/api/transport.h"

namespace devmgr::testing {

/// How a fake driver reaches the API server that a kubeconfig names. The file
/// may come later than the driver. It is read again after a request that got
/// no answer: another port or authority makes another connection. To be used
/// on one executor, and destroyed on it.
class DriverApi {
 public:
  struct Events {
    /// From now on requests can be sent. Called again when the kubeconfig has
    /// changed: what was under way has ended.
    std::function<void()> on_connected;
    /// Why requests cannot be sent, once for each reason.
    std::function<void(const std::string& problem)> on_problem;
  };
  /// The body of an answer, or why there is none: NotFound (404), Aborted
  /// (409), InvalidArgument (400 and 422), PermissionDenied (403),
  /// Unauthenticated (401), each in the words of the server; Unavailable for
  /// all else, after which the request may be repeated.
  using Answered = std::function<void(absl::StatusOr<std::string> body)>;

  static constexpr std::chrono::milliseconds kFirstLook{50};
  static constexpr std::chrono::milliseconds kLastLook{2'000};

  /// `executor` is borrowed.
  DriverApi(Executor& executor, std::filesystem::path kubeconfig,
            Events events);
  ~DriverApi();
  DriverApi(const DriverApi&) = delete;
  DriverApi& operator=(const DriverApi&) = delete;

  /// Looks for the kubeconfig until there is one that can be used.
  void Begin() { Load(); }
  bool is_connected() const { return transport_ != nullptr; }

  /// Sends a request and gathers its answer. `answered` is called once, later,
  /// unless this is destroyed before.
  void Send(const apiserver::ApiRequest& request, Answered answered);
  /// The same for a watch, whose answer has no end: as Transport::Start.
  ///   Unavailable  there is no kubeconfig, or no credential that can be used
  absl::StatusOr<apiserver::Transport::TransferId> Start(
      const apiserver::ApiRequest& request, apiserver::TransferEvents events);
  void Cancel(apiserver::Transport::TransferId transfer);
  /// A request got no answer, or the server did not take the credentials.
  void LookAgain();

 private:
  void Load();
  absl::Status Connect();
  void EndPending();

  Executor& executor_;
  const std::filesystem::path kubeconfig_;
  const Events events_;
  BackOff look_{kFirstLook, kLastLook};
  TimerId timer_ = 0;
  std::string problem_;  ///< As it was reported.
  apiserver::Kubeconfig config_;
  std::unique_ptr<apiserver::Credentials> credentials_;
  std::unique_ptr<apiserver::Transport> transport_;  ///< Null: none yet.
  /// Of Send, by transfer.
  std::map<apiserver::Transport::TransferId, Answered> pending_;
  /// Tasks that come after the end know by it.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace devmgr::testing
