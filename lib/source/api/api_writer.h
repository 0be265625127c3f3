// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/api_server.h>
#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/executor.h"
#include "source/api/credentials.h"
#include "source/api/discovery.h"
#include "source/api/event_writer.h"
#include "source/api/node_status_writer.h"
#include "source/api/pod_status_writer.h"
#include "source/api/request_rate.h"
#include "source/api/slice_deleter.h"
#include "source/api/transport.h"

namespace devmgr::apiserver {

/// What is outgoing: the status of the node and of its pods, deletions of
/// slices and of pods that are over, and events, over the transport of the
/// connection that there is. Nothing is sent before something is wanted. Lives
/// on an executor; one timer, for what is due next.
class ApiWriter {
 public:
  struct Options {
    std::string node_name;
  };
  struct Parts {
    Executor& executor;
    RequestRate& rate;  ///< Shared by all that the client sends.
    Random random;
    /// The UID of an object of this kind as the server knows it; empty: none is
    /// known.
    std::function<std::string(const std::string& kind, const ObjectName& name)>
        uid_of;
    /// What is to be an event about the node.
    std::function<void(const std::string& reason, const std::string& message)>
        on_problem;
    /// The server does not know the version of resource.k8s.io.
    std::function<void()> on_not_served;
    std::function<void(const std::string& state)> on_state;
    /// May be empty.
    std::function<void(const ApiServerRequest& request)> on_request;
  };

  ApiWriter(Options options, Parts parts);
  ~ApiWriter();

  /// Sends over these from now on; null: there is no connection. What was under
  /// way over others counts as not answered.
  void Connect(Transport* transport, Credentials* credentials);
  void SetVersion(Discovery::State state, const std::string& version);
  void SetNodeStatus(const NodeDeviceStatus& status);
  void DeleteSlices(const std::string& driver, SliceDeleter::Done done);
  void KeepSlices(const std::string& driver);
  void RecordEvent(const EventInfo& event);
  void SetPodStatus(const ObjectName& name, const PodUid& pod,
                    const ReportedPodStatus& status);
  void FinishPod(const ObjectName& name, const PodUid& pod);
  /// Something has changed that may have been the reason of failures.
  void Hurry();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Answer =
      std::function<void(const ResponseHead& head, const std::string& body)>;
  using Failure = std::function<void(const std::string& error)>;

  std::optional<TimePoint> WakeAt(TimePoint now);
  void Step();
  void SendDue();
  void SendPods(TimePoint now);
  bool MaySend(TimePoint now, const std::optional<TimePoint>& due);
  Transport::TransferId Send(const char* resource, const ApiRequest& request,
                             Answer answer, Failure failure);
  void Count(const char* resource, const ApiRequest& request, int code) const;
  void After();
  /// What waits and why, for people; empty: nothing is wrong.
  std::string State() const;
  /// Nothing: the server does not have it.
  std::optional<InvolvedObject> ObjectOf(const EventInfo& event);

  const Options options_;
  const Parts parts_;
  NodeStatusWriter node_;
  SliceDeleter slices_;
  EventWriter events_;
  PodStatusWriter pods_;
  std::string version_;
  /// Of objects that events were about, by kind and name.
  std::map<std::pair<std::string, ObjectName>, std::string> uids_;

  std::shared_ptr<const RequestCredentials> credentials_;
  std::string credentials_error_;
  RetryDelay credentials_delay_;
  std::optional<TimePoint> credentials_due_;

  Transport* transport_ = nullptr;
  Credentials* files_ = nullptr;  ///< Of credentials.
  /// What is under way, and what is to be called when there is no answer.
  std::map<Transport::TransferId, Failure> transfers_;
  std::map<std::string, Transport::TransferId> deletions_;  // By driver.
  TimerId timer_ = 0;
  bool is_in_step_ = false;
};

}  // namespace devmgr::apiserver
