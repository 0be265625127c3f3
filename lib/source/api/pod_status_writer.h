// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/pod_status.h>
#include <devmgr/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "source/api/collection.h"
#include "source/api/outgoing.h"
#include "source/api/pod_status_patch.h"

namespace devmgr::apiserver {

/// Makes Pod objects say what the agent of the node says of them, and deletes
/// them in the end. Of each pod the latest counts, whatever came before; there
/// is one request at a time:
///
///     read ──▶ patch, where it says otherwise ──▶ delete, where it is over
///      ▲          │ 409, no answer                   │ 409, no answer
///      └──────────┴──────────────────────────────────┘
///
/// Another UID under the name, or a 404: there is nothing to do any more. While
/// the server does not answer, all pods wait together. Follows the kubelet's
/// status manager. Knows no sockets and no clock. Thread-bound.
class PodStatusWriter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Requests under way.
  static constexpr std::size_t kAtOnce = 4;
  /// Pods of which something is to be written. A node has fewer.
  static constexpr std::size_t kMostPods = 16'384;

  /// What is to be an event.
  struct Problem {
    std::string reason;
    std::string message;
  };
  struct Request {
    PodUid pod;
    const char* resource = "";  ///< `pods`, `pods/status`.
    ApiRequest request;
  };

  explicit PodStatusWriter(Random random);

  void Want(TimePoint now, const ObjectName& name, const PodUid& pod,
            const ReportedPodStatus& status);
  /// Its object goes, once what is wanted is written.
  void Finish(TimePoint now, const ObjectName& name, const PodUid& pod);

  /// The next request. `is_there`: whether the server has the pod, as far as it
  /// is known; of one that it has not nothing is written.
  std::optional<Request> Next(
      TimePoint now,
      const std::function<bool(const ObjectName&, const PodUid&)>& is_there);
  std::optional<TimePoint> WakeAt() const;
  void OnAnswer(TimePoint now, const PodUid& pod, const ResponseHead& head,
                std::string_view body);
  /// There was no answer: whether it was done is not known.
  void OnFailure(TimePoint now, const PodUid& pod, const std::string& error);

  /// What kept it from being done may have changed.
  void Hurry(TimePoint now);
  bool TakeRefused() { return std::exchange(refused_, false); }
  std::vector<Problem> TakeProblems() { return std::exchange(problems_, {}); }
  /// Pods of which something is to be written.
  std::size_t waiting() const { return pods_.size(); }
  /// Why what is wanted last is not there; empty: it is, or is being done.
  std::string last_error() const;

 private:
  enum class Step { kRead, kPatch, kDelete };

  struct Entry {
    explicit Entry(const Random& random) : retry(random) {}
    ObjectName name;
    std::optional<ReportedPodStatus> wanted;
    bool finish = false;
    Step step = Step::kRead;
    bool is_asking = false;
    bool ask_again = false;  ///< Something else is wanted since the patch.
    /// The server does not take the health of devices.
    bool is_plain = false;
    TimePoint due;
    std::string patch;
    WriteRetry retry;
    std::string error;
  };
  using Pods = std::map<PodUid, Entry>;

  /// Null: there are too many.
  Entry* EntryOf(const ObjectName& name, const PodUid& pod);
  static ApiRequest RequestFor(const PodUid& pod, const Entry& entry);
  void OnPod(TimePoint now, Pods::iterator pod, const PodStatusView& view);
  /// What is wanted is written, or will not be.
  void Settle(TimePoint now, Pods::iterator pod);
  void OnRefused(TimePoint now, Pods::iterator pod, const ApiStatus& status);
  void OnInvalid(TimePoint now, Pods::iterator pod);
  void Pause(TimePoint now, WriteOutcome outcome,
             std::optional<std::chrono::seconds> retry_after = {});

  const Random random_;
  Pods pods_;
  std::size_t asking_ = 0;
  /// Of all: the server does not answer, or wants time.
  WriteRetry retry_;
  std::optional<TimePoint> pause_;
  bool refused_ = false;
  bool is_full_ = false;
  std::vector<Problem> problems_;
};

}  // namespace devmgr::apiserver
