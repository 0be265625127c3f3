// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/source_info.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/executor.h"
#include "source/api/activity.h"
#include "source/api/claim_getter.h"
#include "source/api/credentials.h"
#include "source/api/discovery.h"
#include "source/api/kubeconfig.h"
#include "source/api/node_reader.h"
#include "source/api/pod_snapshot.h"
#include "source/api/reflector.h"
#include "source/api/request_rate.h"
#include "source/api/source_memory.h"
#include "source/api/transport.h"

namespace devmgr::apiserver {

/// Keeps reflectors, discovery and the reader of claims going over a transport,
/// and makes snapshots of what they know. Lives on an executor; one timer, for
/// what is due next.
class ApiSession {
 public:
  struct Options {
    std::string node_name;
    std::vector<std::string> watched_kinds;  ///< Of resource.k8s.io.
    bool stream_lists = false;
    /// Of what was seen before a restart.
    SourceMemory memory;
    /// The UID of the node is read, and another one than the one remembered is
    /// the node of another cluster.
    bool reads_node = false;
    /// Of the session before, with other credentials or another server: shown
    /// until the pods have been listed.
    std::shared_ptr<const ObjectSnapshot> before;
  };
  struct Parts {
    Executor& executor;
    Transport& transport;
    Credentials& credentials;
    Random random;
    /// Called with each new snapshot.
    std::function<void(std::shared_ptr<const ObjectSnapshot>)> publish;
    /// What is to be remembered; when pods were listed, and at most every ten
    /// seconds otherwise. May be empty.
    std::function<void(const SourceMemory& memory)> remember;
    Activity& activity;
    std::function<void(const std::string& state)> on_state;
    std::function<void(const std::string& warning)> warn;
    std::function<std::chrono::system_clock::time_point()> wall_clock;
    /// Which version of resource.k8s.io is in use, may have changed. May be
    /// empty.
    std::function<void(Discovery::State, const std::string& version)>
        on_resource_version = {};
    /// Shared by all that the client sends but lists and watches. Null: single
    /// objects are read without a bound.
    RequestRate* rate = nullptr;
  };

  /// A list is confirmed by another one, and a watch that goes on after a
  /// break by a list.
  static constexpr std::chrono::seconds kConfirmAfter{30};
  /// Certificates are looked at while nothing is sent.
  static constexpr std::chrono::seconds kLookAtFiles{150};
  static constexpr std::chrono::seconds kVersionPeriod{10};
  static constexpr std::chrono::seconds kFresh{2};

  ApiSession(Options options, Parts parts);
  ~ApiSession();

  /// Something has changed that may have been the reason of failures: files are
  /// read again, and what waits is asked for at once.
  void Hurry();
  /// Files of credentials may have changed.
  void OnFiles();
  /// Why the kubeconfig cannot be used as it is now; empty: it can.
  void SetConfigProblem(const std::string& problem);
  /// What is published is believed, from this watch on
  /// (ObjectSnapshot::watch): the node has the UID that it has now.
  void AcceptNode(std::uint64_t watch);
  /// All but the times and counts of the activity.
  void Fill(SourceInfo* info) const;

  /// As ObjectSource::Refresh, on the executor. What was asked for within
  /// kFresh is not asked for again.
  bool Refresh(ObjectKind kind, const ObjectName& name,
               std::function<void(const absl::Status&)> done);
  /// The server does not know the version of resource.k8s.io that is in use.
  void ResourcesNotServed();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// One collection, and what was known of it last.
  struct Watched {
    std::string kind;
    std::unique_ptr<Reflector> reflector;  // Null: not served.
    ObjectStore::Objects known;
    NamedObjects named;
    Transport::TransferId transfer = 0;
    std::uint64_t errors = 0;  // As they were logged.
    bool was_not_served = false;
    bool was_watched = false;
    Reflector::Trouble trouble = Reflector::Trouble::kNone;  // As published.
  };

  /// A claim that is read anew, and what is to be called with the answer.
  struct Refreshing {
    ObjectName claim;
    TimePoint since;
    std::function<void(const absl::Status&)> done;
  };

  void Step();
  void SendDue(std::shared_ptr<const RequestCredentials> credentials);
  void SendWatched(Watched& watched);
  void SendDiscovery();
  bool MayGet(TimePoint now) const;
  void SendGet(const ClaimGetter::Get& get);
  void AskForNode();
  void SendNode();
  Transport::TransferId SendWhole(
      const ApiRequest& request, const std::string& resource,
      std::function<void(const ResponseHead&, const std::string& body)> answer,
      std::function<void(const std::string& error)> failure);

  void After();
  void AfterReflector(Watched& watched);
  /// The server answers again.
  void AfterBreak(const Watched& watched);
  void TakePodChanges();
  void Confirm();
  void FollowDiscovery();
  void SetTimer();
  void PublishSoon();
  void Publish();
  bool HasOtherUnread() const;
  void AddUnread(ObjectSnapshot* snapshot);
  std::set<ObjectKind> PartialKinds() const;
  /// Those whose answer has come, and is published.
  void AnswerRefreshes();
  std::optional<absl::Status> RefreshAnswer(const Refreshing& refreshing) const;
  void PublishBefore();
  void AddTroubles(ObjectSnapshot* snapshot) const;
  bool IsInTrouble() const;
  bool IsOtherNode() const;
  void Count(ApiRequest::Kind kind, const std::string& resource, int code);
  void Remember();
  std::string State() const;
  Reflector& pods() const { return *watched_[0]->reflector; }

  const Options options_;
  const Parts parts_;
  /// Pods first. Pointers, as requests refer to them.
  std::vector<std::unique_ptr<Watched>> watched_;
  Discovery discovery_;
  std::optional<ClaimGetter> getter_;
  NodeReader node_;
  SourceMemory memory_;
  std::optional<std::uint64_t> node_asked_;  ///< At so many lists of pods.
  std::map<ObjectName, std::string> claim_problems_;  // As published.
  PersistentMap<ObjectName, UnreadObject> unread_claims_;
  std::vector<Refreshing> refreshing_;
  std::set<Transport::TransferId> whole_;  // Transfers of SendWhole.
  std::string version_;

  std::shared_ptr<const RequestCredentials> credentials_;
  std::string credentials_error_;
  std::string config_problem_;
  RetryDelay credentials_delay_;
  std::optional<TimePoint> credentials_due_;
  TimePoint looked_at_files_;

  std::shared_ptr<const ObjectSnapshot> snapshot_ =
      std::make_shared<const ObjectSnapshot>();
  std::shared_ptr<const ObjectSnapshot> before_;
  /// What was published last of the objects alone.
  ObjectSnapshot objects_;
  NamedObjects named_claims_;  // Of the getter.
  ClaimsOfPods wanted_claims_;
  std::uint64_t first_watch_ = 0;
  GonePods gone_;
  std::uint64_t lists_ = 0;  // Of pods, as they were looked at.
  bool is_confirmed_ = false;
  bool is_confirming_ = false;
  std::optional<TimePoint> confirm_at_;
  std::set<std::string> uids_before_;  // Of pods, when it was confirmed.

  std::optional<TimePoint> remembered_at_;
  TimerId timer_ = 0;
  bool will_publish_ = false;
  bool is_in_step_ = false;
  /// Tasks that come after the end know by it.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace devmgr::apiserver
