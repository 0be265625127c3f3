// SPDX-License-Identifier: Apache-2.0
#include <devmgr/host.h>
#include <fmt/core.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/mutex.h"
#include "source/joined_snapshot.h"

namespace devmgr {
namespace {

using SharedSnapshot = std::shared_ptr<const ObjectSnapshot>;

ObjectSnapshot::Part PartOf(const ObjectSnapshot& snapshot) {
  ObjectSnapshot::Part part{
      snapshot.complete, snapshot.vouched, snapshot.watch, {}};
  for (const auto& [name, pod] : snapshot.pods) part.pods.insert(name);
  for (const auto& [name, pod] : snapshot.malformed_pods) {
    part.pods.insert(name);
  }
  return part;
}

/// `files` without the pods that `server` has under the same UID.
ObjectSnapshot WithoutSame(const ObjectSnapshot& files,
                           const ObjectSnapshot& server) {
  std::set<std::string> uids;
  for (const auto& [name, pod] : server.pods) uids.insert(pod->metadata.uid);
  ObjectSnapshot others = files;
  std::erase_if(others.pods, [&](const auto& entry) {
    return uids.contains(entry.second->metadata.uid);
  });
  return others;
}

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
    ObjectSnapshot all = source::JoinSnapshots(
        server, WithoutSame(files, server), server_.Describe(),
        fmt::format("{} has one of that name, or with that UID",
                    files_.Describe()));
    all.vouched = server.vouched && files.vouched;
    all.watch = server.watch == 0 || files.watch == 0 ? 0 : watch_;
    // It proves that the files are those that they were, and nothing of the
    // server.
    all.marker = server.vouched ? files.marker : "";
    all.marker_problem = files.marker_problem;
    all.parts = {PartOf(server), PartOf(files)};
    return all;
  }

  ObjectSource& server_;
  ObjectSource& files_;
  mutable Mutex mutex_;
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
