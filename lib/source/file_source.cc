// SPDX-License-Identifier: Apache-2.0
#include "source/file_source.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "common/back_off.h"
#include "common/mutex.h"
#include "common/poll_timer.h"
#include "common/poller.h"
#include "common/snapshot_cell.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "source/change_tracker.h"
#include "source/file_scanner.h"
#include "source/manifest_reader.h"
#include "source/manifest_set.h"
#include "source/marker_file.h"
#include "watcher/watched_directories.h"

namespace devmgr::source {
namespace {

using watcher::DirectoryEvent;

/// A directory that was listed: as it is watched, and as it was opened.
struct MarkedPlace {
  watcher::WatchedPlace watched;
  DirectoryId directory;
  friend bool operator==(const MarkedPlace&, const MarkedPlace&) = default;
};

/// True when `now` may be another directory than `before`, although no
/// symbolic link was swapped: then it would have another path. A directory
/// that is listed before it is watched has no path yet.
bool IsBroken(const MarkedPlace& before, const MarkedPlace& now) {
  if (before == now) return false;
  return before.watched.path == now.watched.path ||
         before.watched.path.empty() || now.watched.path.empty();
}

constexpr const char* kBeingWritten = "is still being written";

/// A scan is used after this many rounds of the poller in which no event came:
/// between two of our turns every other ready descriptor has had one.
constexpr int kQuietRounds = 2;
/// But at the latest after this many. Watchers read 16 KiB in a round, so this
/// is enough for all that the kernel queues (16,384 events).
constexpr int kMaxRounds = 300;

/// All of it runs on the poller's thread, except for what ObjectSource offers.
///
///   idle --event--> scan --> settling --all events heard--> settle --> idle
///
/// A scan looks at the disk and remembers what it found. It is used only after
/// all events that came while it looked have been heard: a file that was
/// touched meanwhile is not trusted, and when entries were exchanged, the
/// scan may show a mixture and is repeated.
class FileSource final : public ObjectSource {
 public:
  explicit FileSource(FileSourceOptions options)
      : options_(std::move(options)),
        directory_(Absolute(options_.directory)),
        set_(Printable(directory_.string())),
        scanner_(options_, directory_, set_),
        back_off_(options_.first_retry, options_.max_retry),
        watched_(options_.watch, [this](const std::string& directory,
                                        const DirectoryEvent& event) {
          OnEvent(directory, event);
        }) {
    // Says that nothing was read yet.
    cell_.Put(std::make_shared<const ObjectSnapshot>(set_.Build()));
    const absl::Status status = Start();
    if (status.ok()) return;
    set_.SetUnlisted(MessageOf(status));
    cell_.Put(std::make_shared<const ObjectSnapshot>(set_.Build()));
  }

  ~FileSource() override {
    stopping_ = true;
    if (poller_ == nullptr) return;
    // From here on no scan runs; it could start watchers.
    poller_->Unwatch(wake_watch_);
    if (timer_ != nullptr) timer_->Stop();
    watched_.DropAll();
    poller_.reset();
  }

  std::shared_ptr<const ObjectSnapshot> Snapshot() const override {
    return cell_.Get();
  }
  void Subscribe(std::function<void()> changed) override {
    cell_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override { cell_.SetSubscriber({}); }
  std::string Describe() const override {
    return "directory " + Printable(directory_.string());
  }
  void Mark(const std::string& id, std::uint64_t watch) override {
    {
      MutexLock lock(mark_mutex_);
      mark_ = {id, watch};
    }
    if (poller_ != nullptr) Wake();
  }

 private:
  static std::filesystem::path Absolute(const std::filesystem::path& path);

  absl::Status Start();
  void Wake() { eventfd_write(wake_.get(), 1); }
  void OnWake();
  void OnTimer();
  void OnEvent(const std::string& directory, const DirectoryEvent& event);
  bool HasWork() const { return tracker_.pending().any() || look_again_; }

  bool EnsureWatched();
  void NotePlace(int directory);
  void TakeMark();
  void Scan();
  bool ScanFiles(const ChangeTracker::Changes& changes,
                 DirectoryListing& listing);
  void WatchLinks();

  void Settle();
  void Use(const std::string& name, Finding& finding);
  void Disturb(std::string problem);
  void Publish();
  void ArmRetry();

  const FileSourceOptions options_;
  const std::filesystem::path directory_;
  std::atomic<bool> stopping_ = false;
  SnapshotCell<ObjectSnapshot> cell_;

  ManifestSet set_;
  FileScanner scanner_;
  ChangeTracker tracker_;

  // The scan that is settling.
  std::map<std::string, Finding> findings_;
  std::string disturbance_;
  bool needs_retry_ = false;
  bool settling_ = false;
  int rounds_ = 0;
  int quiet_rounds_ = 0;

  /// Goes up when the directory may be another one than before, although
  /// nothing that we watch has led elsewhere: something was mounted over it, or
  /// it was removed and made anew.
  std::uint64_t watch_ = 1;
  std::optional<MarkedPlace> place_;  ///< What was listed last.
  Marker marker_;
  std::string unmarked_;  ///< Why the last attempt to write it failed.
  Mutex mark_mutex_;
  /// What the directory is to carry, if it is still the one of that watch.
  std::optional<std::pair<std::string, std::uint64_t>> mark_
      DEVMGR_GUARDED_BY(mark_mutex_);

  int restless_scans_ = 0;
  bool look_again_ = true;
  bool watch_again_ = false;
  BackOff back_off_;

  UniqueFd wake_;
  std::unique_ptr<Poller> poller_;
  Poller::WatchId wake_watch_ = 0;
  std::unique_ptr<PollTimer> timer_;
  /// Our own directory is "".
  watcher::WatchedDirectories<std::string> watched_;
};

std::filesystem::path FileSource::Absolute(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) absolute = path;
  // `dir/` and `dir` are the same; a slash at the end would show in paths.
  if (!absolute.has_filename() && absolute.has_relative_path()) {
    absolute = absolute.parent_path();
  }
  return absolute;
}

absl::Status FileSource::Start() {
  wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return ErrnoStatus(errno, "cannot make an eventfd");
  DEVMGR_ASSIGN_OR_RETURN(poller_, Poller::Start("devmgr-source"));
  DEVMGR_ASSIGN_OR_RETURN(timer_,
                          PollTimer::Start(*poller_, [this] { OnTimer(); }));
  DEVMGR_ASSIGN_OR_RETURN(wake_watch_,
                          poller_->Watch(wake_.get(), EPOLLIN,
                                         [this](std::uint32_t) { OnWake(); }));
  Wake();
  return absl::OkStatus();
}

void FileSource::OnEvent(const std::string& directory,
                         const DirectoryEvent& event) {
  tracker_.Note(directory, event);
  quiet_rounds_ = 0;
  // The scan comes after all events that are here already.
  if (!settling_ && HasWork()) Wake();
}

void FileSource::OnTimer() {
  tracker_.ForgetDoubtful();
  if (std::exchange(watch_again_, false)) watched_.Drop("");
  look_again_ = true;
  back_off_.Next();
  if (!settling_) Wake();
}

void FileSource::OnWake() {
  eventfd_t count = 0;
  eventfd_read(wake_.get(), &count);
  if (stopping_) return;
  TakeMark();
  if (settling_) {
    ++quiet_rounds_;
    if (++rounds_ < kMaxRounds && quiet_rounds_ <= kQuietRounds) return Wake();
    settling_ = false;
    Settle();
    if (HasWork()) {
      Wake();
    } else {
      TakeMark();
    }
    return;
  }
  // A new watcher begins with a kRescan, and that brings us back here.
  if (!HasWork() || EnsureWatched()) return;
  Scan();
  settling_ = true;
  rounds_ = 0;
  quiet_rounds_ = 0;
  Wake();
}

/// True when the watching began just now.
bool FileSource::EnsureWatched() {
  if (watched_.IsWatched("")) return false;
  const absl::Status status = watched_.Watch(*poller_, "", directory_);
  watched_.NoteProblem("", MessageOf(status));
  return status.ok();
}

/// The directory that is listed, through its descriptor.
void FileSource::NotePlace(int directory) {
  MarkedPlace now{watched_.PlaceOf(""), DirectoryIdOf(directory)};
  if (place_.has_value() && IsBroken(*place_, now)) {
    ++watch_;
    unmarked_.clear();
  }
  place_ = std::move(now);
  marker_ = ReadMarker(directory);
  // What could not be written shows until it could be.
  if (!marker_.id.empty()) unmarked_.clear();
  if (marker_.problem.empty()) marker_.problem = unmarked_;
}

/// Not while a scan settles: it would count as a change.
void FileSource::TakeMark() {
  std::optional<std::pair<std::string, std::uint64_t>> mark;
  {
    MutexLock lock(mark_mutex_);
    if (settling_ || HasWork()) return;
    mark.swap(mark_);
  }
  if (!mark.has_value() || !place_.has_value() || mark->second != watch_) {
    return;
  }
  marker_ = WriteMarker(directory_, place_->directory, mark->first);
  unmarked_ = marker_.problem;
  Publish();
}

void FileSource::Scan() {
  look_again_ = false;
  watch_again_ = false;
  findings_.clear();
  disturbance_.clear();
  needs_retry_ = false;
  for (const auto& [directory, problem] : watched_.Problems()) {
    Disturb("changes may go unnoticed: " + Printable(problem));
    needs_retry_ = true;
  }
  const ChangeTracker::Changes changes = tracker_.Take();
  absl::StatusOr<DirectoryListing> listing =
      ListManifests(directory_, options_.max_files);
  if (!listing.ok()) {
    set_.SetUnlisted(MessageOf(listing.status()));
    // The watcher tells when a missing directory appears.
    if (listing.status().code() != absl::StatusCode::kNotFound) {
      // What we may not list may not have been watched either.
      watch_again_ = true;
      needs_retry_ = true;
    }
    return;
  }
  NotePlace(listing->directory.get());
  if (!ScanFiles(changes, *listing)) return;
  set_.SetListed(listing->names);
  scanner_.KeepOnly(listing->names);
  if (listing->left_out > 0) {
    Disturb(fmt::format("holds {} manifests, more than the {} that are read",
                        listing->names.size() + listing->left_out,
                        options_.max_files));
  }
  WatchLinks();
}

/// Examines all files and takes those that are none out of the listing. False
/// when told to stop.
bool FileSource::ScanFiles(const ChangeTracker::Changes& changes,
                           DirectoryListing& listing) {
  scanner_.Begin();
  for (auto it = listing.names.begin(); it != listing.names.end();) {
    if (stopping_) return false;
    std::optional<Finding> finding =
        scanner_.Examine(listing.directory.get(), *it, changes, tracker_);
    if (finding.has_value()) {
      findings_.emplace(*it, *std::move(finding));
      ++it;
    } else {
      it = listing.names.erase(it);
    }
  }
  needs_retry_ = needs_retry_ || scanner_.needs_retry();
  AwaitRenames(listing.directory.get());
  return true;
}

/// Watches the directories that the links found by this scan lead to.
void FileSource::WatchLinks() {
  std::set<EntryKey> targets;
  std::set<std::string> wanted;
  for (auto& [name, finding] : findings_) {
    std::string remark;
    for (std::size_t i = 1; i < finding.keys.size(); ++i) {
      const EntryKey& key = finding.keys[i];
      if (key.directory.empty() || wanted.count(key.directory) > 0 ||
          wanted.size() < options_.max_link_directories) {
        if (!key.directory.empty()) wanted.insert(key.directory);
        targets.insert(key);
        continue;
      }
      remark = fmt::format(
          "leads to '{}', which is not watched: links lead to more than {} "
          "other directories",
          Printable(key.directory), options_.max_link_directories);
    }
    set_.SetRemark(name, std::move(remark));
  }
  tracker_.SetLinkTargets(std::move(targets));
  watched_.Keep([&wanted](const std::string& directory) {
    return directory.empty() || wanted.count(directory) > 0;
  });
  for (const std::string& directory : wanted) {
    if (watched_.IsWatched(directory)) continue;
    const absl::Status status = watched_.Watch(*poller_, directory, directory);
    if (status.ok()) continue;
    needs_retry_ = true;
    Disturb(fmt::format("'{}', which links lead to, cannot be watched: {}",
                        Printable(directory), MessageOf(status)));
  }
}

void FileSource::Settle() {
  const bool restless = tracker_.pending().shape;
  for (auto& [name, finding] : findings_) Use(name, finding);
  findings_.clear();
  if (restless && ++restless_scans_ < options_.max_restless_scans) return;
  if (restless) {
    Disturb("keeps changing; it was not seen as it is at one moment");
  } else {
    restless_scans_ = 0;
  }
  set_.SetDisturbance(disturbance_);
  Publish();
  ArmRetry();
}

void FileSource::Use(const std::string& name, Finding& finding) {
  if (finding.being_written || tracker_.IsBeingWritten(finding.keys)) {
    scanner_.Remember(name, std::nullopt);
    set_.Reject(name, kBeingWritten);
    return;
  }
  if (tracker_.pending().Touch(finding.keys)) {
    // The next scan, which is due at once, tells.
    scanner_.Remember(name, std::nullopt);
    return;
  }
  if (finding.unchanged) return;
  scanner_.Remember(name, finding.signature);
  if (finding.content != nullptr) {
    set_.Accept(name, finding.content);
  } else {
    set_.Reject(name, std::move(finding.problems), std::move(finding.unusable));
  }
}

void FileSource::Disturb(std::string problem) {
  if (!disturbance_.empty()) disturbance_ += "; ";
  disturbance_ += problem;
}

void FileSource::Publish() {
  set_.SetMarkerProblem(marker_.problem);
  auto snapshot = std::make_shared<ObjectSnapshot>(set_.Build());
  snapshot->vouched = false;
  snapshot->watch = watch_;
  snapshot->marker = marker_.id;
  snapshot->marker_problem = marker_.problem;
  const auto before = cell_.Get();
  ShareWith(*before, snapshot.get());
  if (SameSnapshot(*snapshot, *before)) return;
  cell_.Put(std::move(snapshot));
  cell_.Notify();
}

void FileSource::ArmRetry() {
  const bool doubtful = tracker_.HasDoubtful();
  if (!needs_retry_ || doubtful) back_off_.Reset();
  if (needs_retry_ || doubtful) {
    timer_->Set(back_off_.next());
  } else {
    timer_->Clear();
  }
}

}  // namespace

std::unique_ptr<ObjectSource> WatchFiles(FileSourceOptions options) {
  return std::make_unique<FileSource>(std::move(options));
}

}  // namespace devmgr::source

namespace devmgr {

std::unique_ptr<ObjectSource> WatchManifests(std::filesystem::path directory,
                                             std::string node_name) {
  source::FileSourceOptions options;
  options.directory = std::move(directory);
  options.node_name = std::move(node_name);
  return source::WatchFiles(std::move(options));
}

}  // namespace devmgr
