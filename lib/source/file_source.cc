// SPDX-License-Identifier: Apache-2.0
#include "source/file_source.h"

#include <devmgr/manifests.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/poller.h"
#include "common/snapshot_cell.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "source/change_tracker.h"
#include "source/manifest_reader.h"
#include "source/manifest_set.h"
#include "source/marker_file.h"
#include "watcher/directory_watcher.h"

namespace devmgr::source {
namespace {

using watcher::DirectoryEvent;
using watcher::DirectoryWatcher;

/// A directory that was listed: as it is watched, and as it was opened.
struct MarkedPlace {
  watcher::WatchedPlace watched;
  DirectoryId directory;
  friend bool operator==(const MarkedPlace&, const MarkedPlace&) = default;
};

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
/// touched meanwhile is not believed, and when entries were exchanged, the
/// scan may show a mixture and is repeated.
class FileSource final : public ObjectSource {
 public:
  explicit FileSource(FileSourceOptions options)
      : options_(std::move(options)),
        directory_(Absolute(options_.directory)),
        set_(Printable(directory_.string())) {
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
    poller_->Unwatch(timer_watch_);
    link_watchers_.clear();
    watcher_.reset();
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
  /// What is known about the bytes of a file.
  struct Known {
    /// Of the reading that `set_` reflects; empty: read it again.
    std::optional<FileSignature> signature;
    /// The last text that decoded, so that it need not be decoded again and
    /// gives the same objects.
    std::size_t text_hash = 0;
    std::size_t text_size = 0;
    std::shared_ptr<const ManifestContent> content;
  };

  /// What a scan found out about one file.
  struct Finding {
    std::vector<EntryKey> keys;  ///< The entries it is reached through.
    std::optional<FileSignature> signature;
    std::shared_ptr<const ManifestContent> content;
    std::vector<ManifestProblem> problems;  ///< When there is no content.
    std::vector<ObjectProblem> unusable;    ///< The same.
    bool unchanged = false;                 ///< Nothing to do.
    bool being_written = false;
  };

  static std::filesystem::path Absolute(const std::filesystem::path& path);

  absl::Status Start();
  void Wake() { eventfd_write(wake_.get(), 1); }
  void OnWake();
  void OnTimer();
  void OnEvent(const std::string& directory, const DirectoryEvent& event);
  void NoteWatching(const std::string& directory, const std::string& problem);
  bool HasWork() const { return tracker_.pending().any() || look_again_; }

  bool EnsureWatched();
  void NotePlace(int directory);
  void TakeMark();
  void Scan();
  bool ScanFiles(const ChangeTracker::Changes& changes,
                 DirectoryListing& listing);
  std::optional<Finding> Examine(int directory, const std::string& name,
                                 const ChangeTracker::Changes& changes);
  void Decode(const std::string& name, const std::string& text,
              Finding& finding);
  void Fault(const std::string& name, std::string problem, Finding& finding);
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
  ChangeTracker tracker_;
  std::map<std::string, Known> known_;

  // The scan that is settling.
  std::map<std::string, Finding> findings_;
  std::string disturbance_;
  bool needs_retry_ = false;
  std::size_t total_bytes_ = 0;
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
  std::chrono::milliseconds retry_{0};

  UniqueFd wake_;
  UniqueFd timer_;
  std::unique_ptr<Poller> poller_;
  Poller::WatchId wake_watch_ = 0;
  Poller::WatchId timer_watch_ = 0;
  std::unique_ptr<DirectoryWatcher> watcher_;
  /// Why what happens in a directory may go unnoticed; our own is "".
  std::map<std::string, std::string> watch_problems_;
  std::map<std::string, std::unique_ptr<DirectoryWatcher>> link_watchers_;
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
  timer_.Reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_.valid()) return ErrnoStatus(errno, "cannot make a timer");
  DEVMGR_ASSIGN_OR_RETURN(auto poller, Poller::Start("devmgr-source"));
  poller_ = std::move(poller);
  DEVMGR_ASSIGN_OR_RETURN(timer_watch_,
                          poller_->Watch(timer_.get(), EPOLLIN,
                                         [this](std::uint32_t) { OnTimer(); }));
  DEVMGR_ASSIGN_OR_RETURN(wake_watch_,
                          poller_->Watch(wake_.get(), EPOLLIN,
                                         [this](std::uint32_t) { OnWake(); }));
  Wake();
  return absl::OkStatus();
}

void FileSource::OnEvent(const std::string& directory,
                         const DirectoryEvent& event) {
  tracker_.Note(directory, event);
  if (event.kind == DirectoryEvent::Kind::kRescan) {
    NoteWatching(directory, event.problem);
  }
  quiet_rounds_ = 0;
  // The scan comes after all events that are here already.
  if (!settling_ && HasWork()) Wake();
}

/// What is not watched is looked at again and again.
void FileSource::NoteWatching(const std::string& directory,
                              const std::string& problem) {
  if (problem.empty()) {
    watch_problems_.erase(directory);
  } else {
    watch_problems_[directory] = problem;
  }
}

void FileSource::OnTimer() {
  std::uint64_t expirations = 0;
  if (::read(timer_.get(), &expirations, sizeof(expirations)) < 0) return;
  tracker_.ForgetDoubtful();
  if (std::exchange(watch_again_, false)) watcher_.reset();
  look_again_ = true;
  retry_ = std::min(retry_ * 2, options_.max_retry);
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
  if (watcher_ != nullptr) return false;
  absl::StatusOr<std::unique_ptr<DirectoryWatcher>> watcher =
      DirectoryWatcher::Start(
          *poller_, directory_,
          [this](const DirectoryEvent& event) { OnEvent("", event); },
          options_.watch);
  if (!watcher.ok()) {
    NoteWatching("", MessageOf(watcher.status()));
    return false;
  }
  NoteWatching("", "");
  watcher_ = *std::move(watcher);
  return true;
}

/// The directory that is listed, through its descriptor.
void FileSource::NotePlace(int directory) {
  MarkedPlace now{
      watcher_ == nullptr ? watcher::WatchedPlace{} : watcher_->place(),
      DirectoryIdOf(directory)};
  // A symbolic link that was swapped leads to another path.
  if (place_.has_value() && place_->watched.path == now.watched.path &&
      !(*place_ == now)) {
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
  for (const auto& [directory, problem] : watch_problems_) {
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
  std::erase_if(known_, [&listing](const auto& entry) {
    return listing->names.count(entry.first) == 0;
  });
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
  total_bytes_ = 0;
  for (auto it = listing.names.begin(); it != listing.names.end();) {
    if (stopping_) return false;
    std::optional<Finding> finding =
        Examine(listing.directory.get(), *it, changes);
    if (finding.has_value()) {
      findings_.emplace(*it, *std::move(finding));
      ++it;
    } else {
      it = listing.names.erase(it);
    }
  }
  AwaitRenames(listing.directory.get());
  return true;
}

/// Nothing when there is no such file.
std::optional<FileSource::Finding> FileSource::Examine(
    int directory, const std::string& name,
    const ChangeTracker::Changes& changes) {
  Finding finding;
  finding.keys.push_back({"", name});
  for (FilePlace& place : FollowLinks(directory, directory_, name)) {
    // An entry of our own directory has no other watcher.
    const bool is_own = place.directory == directory_;
    finding.keys.push_back(
        {is_own ? "" : place.directory.string(), std::move(place.name)});
  }
  if (tracker_.IsBeingWritten(finding.keys)) {
    finding.being_written = true;
    return finding;
  }
  std::optional<FileSignature> signature;
  if (!changes.Touch(finding.keys)) signature = known_[name].signature;
  FileReading reading =
      ReadManifest(directory, name, signature, options_.max_file_bytes);
  switch (reading.kind) {
    case FileReading::Kind::kGone:
    case FileReading::Kind::kIgnored:
      return std::nullopt;
    case FileReading::Kind::kFailed:
    case FileReading::Kind::kUnsettled:
      needs_retry_ = true;
      [[fallthrough]];
    case FileReading::Kind::kDangling:
    case FileReading::Kind::kUnusable:
      Fault(name, std::move(reading.problem), finding);
      return finding;
    case FileReading::Kind::kUnchanged:
    case FileReading::Kind::kText:
      break;
  }
  total_bytes_ += static_cast<std::size_t>(reading.signature.size);
  if (total_bytes_ > options_.max_total_bytes) {
    Fault(name,
          fmt::format("the manifests up to this one hold {} bytes, more than "
                      "the {} that are read",
                      total_bytes_, options_.max_total_bytes),
          finding);
    return finding;
  }
  finding.unchanged = reading.kind == FileReading::Kind::kUnchanged;
  finding.signature = reading.signature;
  if (!finding.unchanged) Decode(name, reading.text, finding);
  return finding;
}

void FileSource::Fault(const std::string& name, std::string problem,
                       Finding& finding) {
  ManifestProblem fault;
  fault.file = set_.PathOf(name);
  fault.message = std::move(problem);
  finding.problems.push_back(std::move(fault));
}

void FileSource::Decode(const std::string& name, const std::string& text,
                        Finding& finding) {
  if (IsBlank(text)) {
    return Fault(name, "is empty; perhaps not written yet", finding);
  }
  Known& known = known_[name];
  const std::size_t hash = std::hash<std::string_view>()(text);
  if (known.content != nullptr && known.text_hash == hash &&
      known.text_size == text.size()) {
    finding.content = known.content;
    return;
  }
  DecodedManifest manifest =
      DecodeManifest(text, set_.PathOf(name), options_.node_name);
  if (!manifest.errors.empty()) {
    finding.problems = std::move(manifest.errors);
    finding.unusable = std::move(manifest.unusable);
    return;
  }
  finding.content = MakeContent(std::move(manifest));
  known.text_hash = hash;
  known.text_size = text.size();
  known.content = finding.content;
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
  std::erase_if(link_watchers_, [&wanted](const auto& entry) {
    return wanted.count(entry.first) == 0;
  });
  std::erase_if(watch_problems_, [&wanted](const auto& entry) {
    return !entry.first.empty() && wanted.count(entry.first) == 0;
  });
  for (const std::string& directory : wanted) {
    if (link_watchers_.count(directory) > 0) continue;
    auto watcher = DirectoryWatcher::Start(
        *poller_, directory,
        [this, directory](const DirectoryEvent& event) {
          OnEvent(directory, event);
        },
        options_.watch);
    if (watcher.ok()) {
      link_watchers_.emplace(directory, *std::move(watcher));
      continue;
    }
    needs_retry_ = true;
    Disturb(fmt::format("'{}', which links lead to, cannot be watched: {}",
                        Printable(directory), MessageOf(watcher.status())));
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
  Known& known = known_[name];
  if (finding.being_written || tracker_.IsBeingWritten(finding.keys)) {
    known.signature.reset();
    set_.Reject(name, kBeingWritten);
    return;
  }
  if (tracker_.pending().Touch(finding.keys)) {
    known.signature.reset();  // the next scan, due at once, tells
    return;
  }
  if (finding.unchanged) return;
  known.signature = finding.signature;
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
  if (SameSnapshot(*snapshot, *cell_.Get())) return;
  cell_.Put(std::move(snapshot));
  cell_.Notify();
}

void FileSource::ArmRetry() {
  if (!needs_retry_ && !tracker_.HasDoubtful()) {
    retry_ = std::chrono::milliseconds(0);
  } else if (retry_.count() == 0 || tracker_.HasDoubtful()) {
    retry_ = options_.first_retry;
  }
  itimerspec due{};
  due.it_value.tv_sec = retry_.count() / 1000;
  due.it_value.tv_nsec = retry_.count() % 1000 * 1'000'000;
  ::timerfd_settime(timer_.get(), 0, &due, nullptr);
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
