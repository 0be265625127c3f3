// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/driver_endpoint.h>
#include <devmgr/runtime_source.h>
#include <devmgr/source_info.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/executor.h"
#include "rpc/server.h"
#include "server/call_limit.h"
#include "server/change_polls.h"
#include "server/convert.h"
#include "server/simulations.h"

namespace devmgr::server {

/// How the sources of objects do.
using SourcesFunction = std::function<std::vector<SourceInfo>()>;

/// What the inspection service answers. Handlers only decode and post: all
/// else happens on `executor`, whose thread may wait for the manager's, and on
/// which all members live. So neither the threads of gRPC nor the manager's
/// own ever wait for a reader.
class InspectionService : public DeviceManagerObserver {
 public:
  /// The longest a long poll is held; the client asks again.
  static constexpr std::chrono::milliseconds kMaxWait{60'000};
  /// Calls taken and not answered yet, long polls included. Beyond it a call
  /// gets ResourceExhausted.
  static constexpr int kMaxCalls = 256;
  /// How much of the history one answer holds; the client asks again. It is
  /// over with whichever comes first.
  static constexpr std::size_t kMaxDecisions = 1'000;
  static constexpr std::size_t kMaxHistoryBytes = 1024 * 1024;

  /// `sources` may be empty, `runtime` null (what CRI shims report of their
  /// runtimes is not gone by), and `endpoint` null. All are borrowed. No
  /// handler may run and the executor must have stopped before this is
  /// destroyed.
  InspectionService(DeviceManager& manager, Executor& executor,
                    SourcesFunction sources = nullptr,
                    ReportedRuntimeSource* runtime = nullptr,
                    const DriverEndpoint* endpoint = nullptr);
  ~InspectionService() override = default;
  InspectionService(const InspectionService&) = delete;
  InspectionService& operator=(const InspectionService&) = delete;

  /// Handlers by method path; callable from any thread.
  std::map<std::string, rpc::UnaryHandler> Methods();

  // DeviceManagerObserver, on the manager's thread: only posts.
  void OnPod(const PodInfo&, bool) override { PostChange(News::kChange); }
  void OnObjects() override { PostChange(News::kChange); }
  void OnEvent(const EventInfo&) override { PostChange(News::kEvent); }
  void OnDeviceChanges() override { change_polls_.Note(); }

 private:
  /// An event is a change as well.
  enum class News { kChange, kEvent };
  /// A long poll that waits for one of them.
  struct Waiter {
    News waits_for = News::kChange;
    std::uint64_t after = 0;  ///< Of kEvent.
    rpc::Respond respond;
    TimerId timer = 0;
  };

  template <typename Request, typename Run>
  rpc::UnaryHandler Handler(Run run);
  template <typename Request, typename Function>
  rpc::UnaryHandler Method(Function answer);

  // On the executor.
  std::vector<SourceInfo> Sources() const;
  std::vector<SliceInfo> Slices() const;
  std::vector<ClaimInfo> ClaimsWithObjects() const;
  absl::StatusOr<pb::HistoryResponse> History(std::uint64_t after);
  absl::StatusOr<pb::PodInfo> FindPod(const ObjectName& name);
  absl::StatusOr<pb::PodDevices> Resolve(const ObjectName& name);
  absl::Status PreparePod(const ObjectName& name);
  absl::Status ReleasePod(const ObjectName& name);
  absl::Status ForceReleaseClaim(const ObjectName& name,
                                 const std::string& reason);
  absl::Status HandOverResource(const pb::HandOverResourceRequest& request);
  absl::Status ConfirmSource(const std::string& reason);
  absl::Status SetAuthority(const pb::SetAuthorityRequest& request);
  absl::Status FreeHolder(const std::string& container_id,
                          const std::string& reason);
  absl::Status RecheckDevices(const pb::RecheckDevicesRequest& request);
  absl::Status CheckWanting() const;
  void BeforeContainerStart(const pb::BeforeContainerStartRequest& request,
                            rpc::Respond respond);
  void Events(const pb::EventsRequest& request, rpc::Respond respond);
  void WaitForChange(const pb::WaitForChangeRequest& request,
                     rpc::Respond respond);
  absl::Status ReportRuntime(const pb::RuntimeReport& request);
  void AddWaiter(Waiter waiter, std::int64_t wait_ms);
  void Answer(const Waiter& waiter);
  void PostChange(News news);
  void OnChange(News news);

  DeviceManager& manager_;
  Executor& executor_;
  const SourcesFunction sources_;
  ReportedRuntimeSource* const runtime_;  ///< Null: there is none.
  const DriverEndpoint* const endpoint_;  ///< Null: there is none.
  CallLimit calls_{kMaxCalls};

  // Only on the executor.
  std::uint64_t version_ = 1;
  std::uint64_t last_waiter_ = 0;
  std::map<std::uint64_t, Waiter> waiters_;
  ChangePolls change_polls_;
  Simulations simulations_;
};

}  // namespace devmgr::server
