// SPDX-License-Identifier: Apache-2.0
#include <devmgr/host.h>
#include <fmt/core.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/mutex.h"
#include "common/objects_by_uid.h"
#include "source/joined_snapshot.h"

namespace devmgr {
namespace {

using SharedSnapshot = std::shared_ptr<const ObjectSnapshot>;

/// The part that one source is of a joined one. Follows it at a cost of what
/// has changed.
class FollowedPart {
 public:
  ObjectSnapshot::Part Follow(const ObjectSnapshot& snapshot) {
    std::set<ObjectName> names;
    source::AddTouched(pods_, snapshot.pods, &names);
    source::AddTouched(malformed_pods_, snapshot.malformed_pods, &names);
    for (const ObjectName& name : names) {
      if (snapshot.pods.contains(name) ||
          snapshot.malformed_pods.contains(name)) {
        names_.insert(name);
      } else {
        names_.erase(name);
      }
    }
    pods_ = snapshot.pods;
    malformed_pods_ = snapshot.malformed_pods;
    return {snapshot.complete, snapshot.vouched, snapshot.watch, names_};
  }

 private:
  ObjectMap<Pod> pods_;
  ObjectMap<MalformedPod> malformed_pods_;
  PersistentSet<ObjectName> names_;
};

/// Files without the pods that the server has under the same UID. Follows both
/// at a cost of what has changed.
class FollowedFiles {
 public:
  ObjectSnapshot Follow(const ObjectSnapshot& files,
                        const ObjectSnapshot& server) {
    std::set<ObjectName> names;
    std::set<std::string> uids;
    files_.Follow(files.pods, [&](const ObjectName& name, const Pod*,
                                  const Pod*) { names.insert(name); });
    server_.Follow(server.pods,
                   [&](const ObjectName&, const Pod* was, const Pod* is) {
                     if (was != nullptr) uids.insert(was->metadata.uid);
                     if (is != nullptr) uids.insert(is->metadata.uid);
                   });
    for (const std::string& uid : uids) {
      for (const ObjectName& name : files_.NamesOf(uid)) names.insert(name);
    }
    for (const ObjectName& name : names) {
      const auto* pod = files.pods.Find(name);
      if (pod == nullptr || server_.contains((*pod)->metadata.uid)) {
        others_.erase(name);
      } else {
        others_.insert_or_assign(name, *pod);
      }
    }
    ObjectSnapshot others = files;
    others.pods = others_;
    return others;
  }

 private:
  ObjectsByUid<Pod> files_;
  ObjectsByUid<Pod> server_;
  ObjectMap<Pod> others_;
};

class JoinedSource final : public ObjectSource {
 public:
  JoinedSource(ObjectSource& server, ObjectSource& files)
      : server_(server), files_(files) {}

  SharedSnapshot Snapshot() const override {
    const SharedSnapshot server = server_.Snapshot();
    const SharedSnapshot files = files_.Snapshot();
    MutexLock lock(mutex_);
    if (joined_ != nullptr && of_server_ == server && of_files_ == files) {
      return joined_;
    }
    const auto watches = std::pair(server->watch, files->watch);
    if (watches != watches_) ++watch_;
    watches_ = watches;
    joined_ = std::make_shared<const ObjectSnapshot>(Joined(*server, *files));
    of_server_ = server;
    of_files_ = files;
    return joined_;
  }

  void Subscribe(std::function<void()> changed) override {
    server_.Subscribe(changed);
    files_.Subscribe(std::move(changed));
  }
  void Unsubscribe() override {
    server_.Unsubscribe();
    files_.Unsubscribe();
  }
  std::string Describe() const override {
    return fmt::format("{} and {}", server_.Describe(), files_.Describe());
  }
  void Mark(const std::string& id, std::uint64_t watch) override {
    std::pair<std::uint64_t, std::uint64_t> watches;
    {
      MutexLock lock(mutex_);
      if (watch != watch_) return;
      watches = watches_;
    }
    server_.Mark(id, watches.first);
    files_.Mark(id, watches.second);
  }
  bool Refresh(ObjectKind kind, const ObjectName& name,
               std::function<void(const absl::Status&)> done) override {
    const bool is_in_file = kind == ObjectKind::kResourceClaim &&
                            files_.Snapshot()->claims.contains(name);
    return !is_in_file && server_.Refresh(kind, name, std::move(done));
  }

 private:
  ObjectSnapshot Joined(const ObjectSnapshot& server,
                        const ObjectSnapshot& files) const
      DEVMGR_REQUIRES(mutex_) {
    ObjectSnapshot all =
        join_.Join(server, others_.Follow(files, server), server_.Describe(),
                   fmt::format("{} has one of that name, or with that UID",
                               files_.Describe()));
    all.vouched = server.vouched && files.vouched;
    all.watch = server.watch == 0 || files.watch == 0 ? 0 : watch_;
    // It proves that the files are those that they were, and nothing of the
    // server.
    all.marker = server.vouched ? files.marker : "";
    all.marker_problem = files.marker_problem;
    all.parts = {server_part_.Follow(server), files_part_.Follow(files)};
    return all;
  }

  ObjectSource& server_;
  ObjectSource& files_;
  mutable Mutex mutex_;
  mutable source::SnapshotJoin join_ DEVMGR_GUARDED_BY(mutex_);
  mutable FollowedFiles others_ DEVMGR_GUARDED_BY(mutex_);
  mutable FollowedPart server_part_ DEVMGR_GUARDED_BY(mutex_);
  mutable FollowedPart files_part_ DEVMGR_GUARDED_BY(mutex_);
  /// Goes up when the watch of either is another one.
  mutable std::uint64_t watch_ DEVMGR_GUARDED_BY(mutex_) = 0;
  mutable std::pair<std::uint64_t, std::uint64_t> watches_
      DEVMGR_GUARDED_BY(mutex_);
  /// What was joined last, of which snapshots.
  mutable SharedSnapshot of_server_ DEVMGR_GUARDED_BY(mutex_);
  mutable SharedSnapshot of_files_ DEVMGR_GUARDED_BY(mutex_);
  mutable SharedSnapshot joined_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<ObjectSource> CombineSources(ObjectSource& server,
                                             ObjectSource& files) {
  return std::make_unique<JoinedSource>(server, files);
}

}  // namespace devmgr
