// SPDX-License-Identifier: Apache-2.0
#include "source/wanted_pods.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "api/quote.h"
#include "common/atomic_file.h"
#include "common/mutex.h"
#include "common/snapshot_cell.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "source/manifest_reader.h"
#include "source/manifest_set.h"
#include "source/wanted_manifest.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWantedSuffix = ".yaml";
constexpr std::string_view kGoneSuffix = ".gone";

/// The UID that a file is named after; nothing when it is none of that kind.
std::optional<PodUid> UidOf(const std::string& file, std::string_view suffix) {
  if (!file.ends_with(suffix) || file.size() == suffix.size()) {
    return std::nullopt;
  }
  return PodUid{file.substr(0, file.size() - suffix.size())};
}

absl::Status SyncDirectory(const fs::path& directory) {
  const UniqueFd fd(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid() && ::fsync(fd.get()) == 0) return absl::OkStatus();
  return ErrnoStatus(errno,
                     fmt::format("cannot sync '{}'", directory.string()));
}

class WantedPodsImpl final : public WantedPods {
 public:
  explicit WantedPodsImpl(source::WantedOptions options)
      : options_(std::move(options)) {}

  absl::Status Read();

  std::shared_ptr<const ObjectSnapshot> Snapshot() const override {
    return cell_.Get();
  }
  void Subscribe(std::function<void()> changed) override {
    cell_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override { cell_.SetSubscriber({}); }
  std::string Describe() const override {
    return "pods wanted in " + source::Printable(directory_.string());
  }

  absl::StatusOr<WantedPod> Want(std::string_view text,
                                 const Record& record) override;
  absl::StatusOr<WantedPod> Unwant(const PodUid& pod,
                                   const Record& record) override;
  void Forget(const PodUid& pod) override;

 private:
  struct Item {
    std::size_t hash = 0;
    std::size_t bytes = 0;
    source::WantedManifest manifest;
  };

  fs::path PathOf(const PodUid& uid, std::string_view suffix) const {
    return directory_ / (uid.value + std::string(suffix));
  }
  void ReadFile(int directory, const PodUid& uid);
  absl::Status Check(const source::WantedManifest& manifest) const;
  absl::Status CheckRoom(const PodUid& uid, std::size_t bytes) const;
  absl::Status CheckClaim(const PodUid& uid, const ResourceClaim& claim) const;
  absl::Status CheckOthers(const source::WantedManifest& manifest) const;
  absl::Status MakeDirectory() const;
  void Put(const PodUid& uid, Item item);
  void Take(const PodUid& uid);
  /// False: there was no such file.
  bool EraseGone(const PodUid& uid);
  void Show(const ObjectName& name);
  void JoinClaim(const ObjectName& name);
  void Publish();

  const source::WantedOptions options_;
  const fs::path& directory_ = options_.directory;
  const ObjectSource* const others_ = options_.others;
  SnapshotCell<ObjectSnapshot> cell_;

  // Only one change at a time.
  std::map<PodUid, Item> items_;
  std::set<std::pair<ObjectName, PodUid>> names_;  ///< Of the items.
  std::size_t total_bytes_ = 0;                    ///< Of their manifests.
  /// Files that cannot be used, each with the reason.
  std::map<PodUid, ManifestProblem> unusable_;
  std::map<PodUid, ObjectName> gone_;
  /// By name, of each pod that brings it; and as one.
  std::map<ObjectName, std::map<PodUid, std::shared_ptr<const ResourceClaim>>>
      brought_;
  /// Pods, claims and those that are gone.
  ObjectSnapshot objects_;
};

absl::Status WantedPodsImpl::Read() {
  const UniqueFd folder(
      ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() && errno != ENOENT) {
    return ErrnoStatus(errno, fmt::format("cannot open the wanted pods in '{}'",
                                          directory_.string()));
  }
  std::error_code error;
  if (folder.valid()) {
    for (fs::directory_iterator entry(directory_, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename();
      if (const auto uid = UidOf(name, kWantedSuffix)) {
        ReadFile(folder.get(), *uid);
      } else if (const auto gone = UidOf(name, kGoneSuffix)) {
        gone_.emplace(*gone, ObjectName());
      }
    }
  }
  if (error) {
    return ErrnoStatus(error.value(),
                       fmt::format("cannot list '{}'", directory_.string()));
  }
  // It was wanted again, and a crash came before the other was removed.
  std::erase_if(gone_, [this](const auto& entry) {
    return items_.contains(entry.first) || unusable_.contains(entry.first);
  });
  for (const auto& [uid, name] : gone_) objects_.gone_pods.insert(uid);
  Publish();
  return absl::OkStatus();
}

void WantedPodsImpl::ReadFile(int directory, const PodUid& uid) {
  ManifestProblem problem;
  problem.file = source::Printable(PathOf(uid, kWantedSuffix).string());
  const source::FileReading reading =
      source::ReadManifest(directory, uid.value + std::string(kWantedSuffix),
                           std::nullopt, options_.max_bytes);
  if (reading.kind != source::FileReading::Kind::kText) {
    problem.message =
        reading.problem.empty() ? "cannot be read" : reading.problem;
    unusable_.emplace(uid, std::move(problem));
    return;
  }
  auto manifest =
      source::DecodeWanted(reading.text, problem.file, options_.node_name);
  if (!manifest.problem.has_value() &&
      manifest.pod->metadata.uid != uid.value) {
    problem.field = "metadata.uid";
    problem.message = fmt::format("is {}, but the file is named after {}",
                                  api::Quoted(manifest.pod->metadata.uid),
                                  api::Quoted(uid.value));
    manifest.problem = std::move(problem);
  }
  if (manifest.problem.has_value()) {
    unusable_.emplace(uid, *std::move(manifest.problem));
    return;
  }
  Put(uid, {std::hash<std::string_view>()(reading.text), reading.text.size(),
            std::move(manifest)});
}

absl::StatusOr<WantedPod> WantedPodsImpl::Want(std::string_view text,
                                               const Record& record) {
  if (text.size() > options_.max_bytes) {
    return ResourceExhaustedError(
        "the manifest has {} bytes, at most {} are taken", text.size(),
        options_.max_bytes);
  }
  auto manifest = source::DecodeWanted(text, "manifest", options_.node_name);
  if (manifest.problem.has_value()) {
    return InvalidArgumentError("{}", manifest.problem->ToString());
  }
  const PodUid uid{manifest.pod->metadata.uid};
  DEVMGR_RETURN_IF_ERROR(Check(manifest));
  DEVMGR_RETURN_IF_ERROR(CheckRoom(uid, text.size()));
  const std::size_t hash = std::hash<std::string_view>()(text);
  const auto known = items_.find(uid);
  WantedPod result{uid, manifest.pod->metadata.FullName(), manifest.pod};
  result.was_wanted = known != items_.end() || unusable_.contains(uid);
  result.changed = known == items_.end() || known->second.hash != hash ||
                   known->second.bytes != text.size();
  result.warnings = manifest.warnings;
  if (!result.changed) result.pod = known->second.manifest.pod;
  DEVMGR_RETURN_IF_ERROR(record(result));
  if (!result.changed) return result;
  DEVMGR_RETURN_IF_ERROR(MakeDirectory());
  const fs::path file = PathOf(uid, kWantedSuffix);
  if (absl::Status written = WriteFileAtomically(file, text); !written.ok()) {
    // Else it might be wanted after a restart by a call that has failed.
    if (!result.was_wanted) RemoveFile(file).IgnoreError();
    return written;
  }
  unusable_.erase(uid);
  Take(uid);
  Put(uid, {hash, text.size(), std::move(manifest)});
  EraseGone(uid);
  Publish();
  return result;
}

absl::Status WantedPodsImpl::Check(
    const source::WantedManifest& manifest) const {
  const Pod& pod = *manifest.pod;
  const PodUid uid{pod.metadata.uid};
  const ObjectName name = pod.metadata.FullName();
  if (!options_.node_name.empty() && pod.spec.node_name != options_.node_name) {
    return InvalidArgumentError(
        "spec.nodeName: pod '{}' is for node '{}', and this is node '{}'",
        name.ToString(), pod.spec.node_name, options_.node_name);
  }
  for (const auto& [other, item] : items_) {
    const ObjectName wanted = item.manifest.pod->metadata.FullName();
    if ((other == uid) == (wanted == name)) continue;
    return AlreadyExistsError(
        "pod '{}' with UID '{}' is wanted already, and pod '{}' with UID '{}' "
        "has the same {}",
        wanted.ToString(), other.value, name.ToString(), uid.value,
        other == uid ? "UID" : "name");
  }
  for (const auto& claim : manifest.claims) {
    DEVMGR_RETURN_IF_ERROR(CheckClaim(uid, *claim));
  }
  return CheckOthers(manifest);
}

absl::Status WantedPodsImpl::CheckRoom(const PodUid& uid,
                                       std::size_t bytes) const {
  const auto known = items_.find(uid);
  const std::size_t pods = items_.size() + unusable_.size();
  if (known == items_.end() && !unusable_.contains(uid) &&
      pods >= options_.max_pods) {
    return ResourceExhaustedError(
        "{} pods are wanted already, which is the limit", options_.max_pods);
  }
  const std::size_t total =
      total_bytes_ + bytes - (known != items_.end() ? known->second.bytes : 0);
  if (total <= options_.max_total_bytes) return absl::OkStatus();
  return ResourceExhaustedError(
      "the manifests of all wanted pods would have {} bytes, at most {} are "
      "taken",
      total, options_.max_total_bytes);
}

/// Pods share a claim that all of them bring alike.
absl::Status WantedPodsImpl::CheckClaim(const PodUid& uid,
                                        const ResourceClaim& claim) const {
  const auto brought = brought_.find(claim.metadata.FullName());
  if (brought == brought_.end()) return absl::OkStatus();
  for (const auto& [other, theirs] : brought->second) {
    if (other == uid || source::IsSameClaim(claim, *theirs)) continue;
    return AlreadyExistsError(
        "ResourceClaim '{}' has come with pod '{}' already, with another UID "
        "or another allocation",
        claim.metadata.FullName().ToString(),
        items_.at(other).manifest.pod->metadata.FullName().ToString());
  }
  return absl::OkStatus();
}

absl::Status WantedPodsImpl::CheckOthers(
    const source::WantedManifest& manifest) const {
  if (others_ == nullptr) return absl::OkStatus();
  const auto theirs = others_->Snapshot();
  const ObjectMeta& ours = manifest.pod->metadata;
  const auto check = [&](const ObjectMeta& meta) -> absl::Status {
    if (meta.FullName() != ours.FullName() && meta.uid != ours.uid) {
      return absl::OkStatus();
    }
    return AlreadyExistsError(
        "{} has pod '{}', which has the {} of pod '{}' with UID '{}'",
        others_->Describe(), meta.FullName().ToString(),
        meta.FullName() == ours.FullName() ? "name" : "UID",
        ours.FullName().ToString(), ours.uid);
  };
  for (const auto& [name, pod] : theirs->pods) {
    DEVMGR_RETURN_IF_ERROR(check(pod->metadata));
  }
  for (const auto& [name, pod] : theirs->malformed_pods) {
    DEVMGR_RETURN_IF_ERROR(check(pod->pod.metadata));
  }
  for (const auto& claim : manifest.claims) {
    const ObjectName name = claim->metadata.FullName();
    if (!theirs->claims.contains(name)) continue;
    return AlreadyExistsError(
        "{} has ResourceClaim '{}', which pod '{}' brings, too; leave it out",
        others_->Describe(), name.ToString(), ours.FullName().ToString());
  }
  return absl::OkStatus();
}

absl::Status WantedPodsImpl::MakeDirectory() const {
  if (::mkdir(directory_.c_str(), 0700) == 0) {
    return SyncDirectory(directory_.parent_path());
  }
  if (errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(
      errno, fmt::format("cannot make directory '{}'", directory_.string()));
}

absl::StatusOr<WantedPod> WantedPodsImpl::Unwant(const PodUid& pod,
                                                 const Record& record) {
  if (const std::string problem = source::ProblemOfUid(pod.value);
      !problem.empty()) {
    return InvalidArgumentError("{}", problem);
  }
  WantedPod result;
  result.uid = pod;
  if (const auto known = items_.find(pod); known != items_.end()) {
    result.name = known->second.manifest.pod->metadata.FullName();
  } else if (const auto gone = gone_.find(pod); gone != gone_.end()) {
    result.name = gone->second;
  }
  result.was_wanted = items_.contains(pod) || unusable_.contains(pod);
  result.changed = result.was_wanted;
  if (!result.was_wanted && others_ != nullptr) {
    for (const auto& [name, theirs] : others_->Snapshot()->pods) {
      if (theirs->metadata.uid != pod.value) continue;
      return FailedPreconditionError(
          "pod '{}' with UID '{}' is not wanted by a client: it is of {}, and "
          "is released when that lacks it",
          name.ToString(), pod.value, others_->Describe());
    }
  }
  DEVMGR_RETURN_IF_ERROR(record(result));
  if (!result.changed) return result;
  const fs::path file = PathOf(pod, kWantedSuffix);
  if (::rename(file.c_str(), PathOf(pod, kGoneSuffix).c_str()) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot rename '{}'", file.string()));
  }
  // Seen from here on, though not on disk for sure if this fails: then the
  // client asks again.
  const absl::Status synced = SyncDirectory(directory_);
  unusable_.erase(pod);
  Take(pod);
  gone_[pod] = result.name;
  objects_.gone_pods.insert(pod);
  Publish();
  DEVMGR_RETURN_IF_ERROR(synced);
  return result;
}

void WantedPodsImpl::Forget(const PodUid& pod) {
  if (EraseGone(pod)) Publish();
}

bool WantedPodsImpl::EraseGone(const PodUid& uid) {
  if (gone_.erase(uid) == 0) return false;
  objects_.gone_pods.erase(uid);
  // One that a crash leaves is forgotten again.
  ::unlink(PathOf(uid, kGoneSuffix).c_str());
  return true;
}

void WantedPodsImpl::Put(const PodUid& uid, Item item) {
  for (const auto& claim : item.manifest.claims) {
    const ObjectName name = claim->metadata.FullName();
    brought_[name][uid] = claim;
    JoinClaim(name);
  }
  const ObjectName pod = item.manifest.pod->metadata.FullName();
  total_bytes_ += item.bytes;
  items_.insert_or_assign(uid, std::move(item));
  names_.emplace(pod, uid);
  Show(pod);
}

void WantedPodsImpl::Take(const PodUid& uid) {
  const auto found = items_.find(uid);
  if (found == items_.end()) return;
  for (const auto& claim : found->second.manifest.claims) {
    const ObjectName name = claim->metadata.FullName();
    brought_[name].erase(uid);
    JoinClaim(name);
  }
  const ObjectName pod = found->second.manifest.pod->metadata.FullName();
  total_bytes_ -= found->second.bytes;
  items_.erase(found);
  names_.erase({pod, uid});
  Show(pod);
}

/// Of several files that hold a pod of one name the last one counts.
void WantedPodsImpl::Show(const ObjectName& name) {
  std::shared_ptr<const Pod> pod;
  for (auto it = names_.lower_bound({name, PodUid()});
       it != names_.end() && it->first == name; ++it) {
    pod = items_.at(it->second).manifest.pod;
  }
  if (pod == nullptr) {
    objects_.pods.erase(name);
    objects_.vouched_pods.erase(name);
  } else {
    objects_.pods.insert_or_assign(name, std::move(pod));
    objects_.vouched_pods.insert(name);
  }
}

/// Each that brings a claim has it as it was at that time: the pods that it was
/// reserved for then count together.
void WantedPodsImpl::JoinClaim(const ObjectName& name) {
  const auto& all = brought_[name];
  if (all.empty()) {
    brought_.erase(name);
    objects_.claims.erase(name);
    return;
  }
  std::shared_ptr<const ResourceClaim> joined = all.begin()->second;
  for (const auto& [uid, claim] : all) {
    joined = source::WithConsumersOf(joined, *claim);
  }
  objects_.claims.insert_or_assign(name, std::move(joined));
}

void WantedPodsImpl::Publish() {
  auto snapshot = std::make_shared<ObjectSnapshot>(objects_);
  for (const auto& [uid, problem] : unusable_) {
    snapshot->problems.push_back(problem);
  }
  snapshot->complete = unusable_.empty();
  cell_.Put(std::move(snapshot));
  cell_.Notify();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WantedPods>> source::OpenWanted(
    WantedOptions options) {
  auto pods = std::make_unique<WantedPodsImpl>(std::move(options));
  DEVMGR_RETURN_IF_ERROR(pods->Read());
  return pods;
}

absl::StatusOr<std::unique_ptr<WantedPods>> WantedPods::Open(
    fs::path directory, std::string node_name, const ObjectSource* others) {
  return source::OpenWanted(
      {std::move(directory), std::move(node_name), others});
}

}  // namespace devmgr
