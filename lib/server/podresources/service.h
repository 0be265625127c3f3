// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/pod_resources.h>
#include <devmgr/pod_resources_server.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/executor.h"
#include "common/mutex.h"
#include "peer/rate_limit.h"
#include "rpc/server.h"
#include "server/call_limit.h"
#include "server/podresources/encoding.h"
#include "server/podresources/unread_answers.h"

namespace devmgr::podresources {

// The methods, as the kubelet has them.
inline constexpr char kListPath[] = "/v1.PodResourcesLister/List";
inline constexpr char kAllocatablePath[] =
    "/v1.PodResourcesLister/GetAllocatableResources";
inline constexpr char kGetPath[] = "/v1.PodResourcesLister/Get";
inline constexpr char kOldListPath[] = "/v1alpha1.PodResourcesLister/List";

/// What the pod-resources services answer. Handlers only post: all else happens
/// on `executor`, on which all members live that are not said to be
/// thread-safe. So a client waits for other clients at most, and neither the
/// threads of gRPC nor the manager's own wait for any.
class Service {
 public:
  /// The kubelet's limit: calls in a row, then one every so often.
  static constexpr peer::RateOptions kOneClient{10,
                                                std::chrono::milliseconds(10)};
  /// Of all clients together, unless as strict as the kubelet.
  static constexpr peer::RateOptions kAllClients{100,
                                                 std::chrono::milliseconds(1)};
  /// Calls that are not begun yet, of one client and of all of them. Beyond it
  /// a call gets ResourceExhausted.
  static constexpr int kMaxCallsOfOne = 32;
  static constexpr int kMaxCalls = 256;
  /// How long encoded pods are kept after they were asked for.
  static constexpr std::chrono::milliseconds kKept{60'000};

  /// Both are borrowed. No handler may run and the executor must have stopped
  /// before this is destroyed.
  Service(DeviceManager& manager, Executor& executor, bool strict_kubelet,
          UnreadAnswers::Limits unread = {});
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Handlers by method path; callable from any thread.
  std::map<std::string, rpc::StreamHandler> Methods();

  /// Thread-safe.
  PodResourcesCounters counters() const DEVMGR_EXCLUDES(mutex_);

 private:
  using OfVersion = PodResourcesCounters::OfVersion;
  /// Where calls of a method and their errors are counted.
  struct Method {
    OfVersion PodResourcesCounters::*version;
    std::uint64_t OfVersion::*calls;
    std::uint64_t OfVersion::*errors;
  };
  using Answer = absl::StatusOr<std::shared_ptr<const std::string>>;

  template <typename Request, typename Run>
  rpc::StreamHandler Handler(Method method, Run run);

  // On the executor.
  absl::Status TakeTurn(const std::string& client);
  void Finish(const Method& method, const std::string& client,
              const Answer& answer, rpc::ServerStream& stream);
  Answer List(EncodedList& encoded);
  Answer GetAllocatable() const;
  Answer Get(const ObjectName& name);
  void Count(std::uint64_t PodResourcesCounters::*counter, std::uint64_t more)
      DEVMGR_EXCLUDES(mutex_);
  void Count(const Method& method, std::uint64_t OfVersion::*counter)
      DEVMGR_EXCLUDES(mutex_);

  DeviceManager& manager_;
  Executor& executor_;
  const bool strict_kubelet_;
  server::ClientCallLimit calls_{kMaxCallsOfOne, kMaxCalls};  // Thread-safe.
  UnreadAnswers unread_;                                      // Thread-safe.

  // On the executor.
  peer::RateLimits limits_;
  std::shared_ptr<const PodResourcesList> list_;  ///< Null: none is kept.
  std::shared_ptr<const NodeView> seen_;          ///< That it was made of.
  std::uint64_t missing_ = 0;                     ///< Claims left out of it.
  EncodedList v1_{EncodedPod};
  EncodedList v1alpha1_{EncodedOldPod};
  TimerId forget_ = 0;  ///< What is kept.

  mutable Mutex mutex_;
  PodResourcesCounters counters_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::podresources
