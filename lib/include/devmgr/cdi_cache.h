// SPDX-License-Identifier: Apache-2.0
//
// CDI directories on disk: reading them once, following what changes, and
// writing spec files that others can rely on.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/cdi_registry.h>
#include <devmgr/cdi_spec.h>
#include <devmgr/export.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// Where runtimes look for specs: those that people wrote, then those that
/// drivers and plugins generate.
DEVMGR_EXPORT const std::vector<std::filesystem::path>& DefaultCdiSpecDirs();

struct CdiCacheOptions {
  /// The later, the higher its priority. None: no devices.
  std::vector<std::filesystem::path> directories = DefaultCdiSpecDirs();

  /// Follow changes by a thread that sleeps until there are some. False: only
  /// Refresh looks again.
  bool watch = true;

  /// What is read at most; more is left out, and listed (CdiRegistry::unread).
  /// Files of one directory, in byte order of their names.
  std::size_t max_files = 10'000;
  std::size_t max_file_bytes = std::size_t{4} << 20;
  std::size_t max_total_bytes = std::size_t{256} << 20;

  /// A change is looked at when there was none for `quiet`, or after `latest`
  /// at the latest.
  std::chrono::milliseconds quiet{50};
  std::chrono::milliseconds latest{500};

  /// Changes that no watch tells of, as of what a link in a directory leads to:
  /// a query that comes so long after the last one of its kind has the cache's
  /// thread look again. Without a call nothing wakes up.
  std::chrono::milliseconds distrust{60'000};
};

/// How one of the directories is.
struct CdiDirectoryInfo {
  std::filesystem::path path;
  int priority = 0;
  std::size_t files = 0;  ///< Spec files in it, good or bad.
  /// Why it could not be read, or that it does not exist. Empty: it was.
  std::string problem;
  /// Why its changes may go unnoticed: then CdiCache::Registry looks again.
  std::string watch_problem;
  friend bool operator==(const CdiDirectoryInfo&,
                         const CdiDirectoryInfo&) = default;
};

/// What the spec files of some directories define. A file is read again only if
/// it changed. What cannot be read, and files that are no specs, disable
/// nothing but what they would define.
/// Thread-safe.
class DEVMGR_EXPORT CdiCache {
 public:
  /// Reads the directories, which need not exist, on the calling thread, and
  /// begins to watch them: what cannot be watched is known on return. Blocks
  /// for disk.
  ///   InvalidArgument  a directory without a name, or a limit of 0
  static absl::StatusOr<std::unique_ptr<CdiCache>> Open(
      CdiCacheOptions options = {});

  /// Ends within a round of reading; no callback runs afterwards.
  virtual ~CdiCache() = default;

  /// What is defined now; never null, never changes, and may be kept longer
  /// than the cache. Does not block, unless a directory cannot be watched: then
  /// this looks for changes, every 100 ms at most.
  virtual std::shared_ptr<const CdiRegistry> Registry() = 0;

  /// Looks for changes now, whatever the watch says. Afterwards Registry is
  /// what the directories held after this was called. Blocks for disk.
  ///   FailedPrecondition  all that is wrong: directories and files that
  ///                       cannot be read, files that are no specs, conflicts
  ///                       with effect; the rest can be used all the same
  virtual absl::Status Refresh() = 0;

  /// In the order of the options.
  virtual std::vector<CdiDirectoryInfo> Directories() const = 0;

  /// Calls `changed` whenever Registry or Directories have changed until
  /// Unsubscribe, on the cache's own thread, with no lock held; it must not
  /// block, and may ask this cache. One subscriber at a time; a second call
  /// replaces the first. Without `watch` it is never called.
  virtual void Subscribe(std::function<void()> changed) = 0;

  /// No call of the subscriber runs after this returns.
  virtual void Unsubscribe() = 0;
};

/// What to do about a spec file that is there already.
enum class CdiIfPresent { kReplace, kFail };

/// Writes a spec into `directory`, which is made if missing (mode 0755), as
/// `name`.yaml; a name that ends in `.json` or `.yaml` is taken as it is, and
/// `.json` gets JSON. Readers see the file that was there before or all of
/// the new one, which everybody may read (mode 0644); on return it is on disk.
/// Returns its path. CdiSpecFileName makes names as they are usual. Blocks for
/// disk.
///   InvalidArgument   the name is empty or has a slash; or the spec is invalid
///   AlreadyExists     it is there, with kFail
///   PermissionDenied  the directory is not ours to write
///   Unavailable       as the kernel says; there is no trace of the new file
DEVMGR_EXPORT absl::StatusOr<std::filesystem::path> WriteCdiSpec(
    const CdiSpec& spec, const std::filesystem::path& directory,
    std::string_view name, CdiIfPresent if_present = CdiIfPresent::kReplace);

/// Removes what WriteCdiSpec wrote by that name; fine when it is gone. On
/// return that is on disk. Blocks for disk.
///   InvalidArgument, PermissionDenied, Unavailable  as WriteCdiSpec
DEVMGR_EXPORT absl::Status RemoveCdiSpec(const std::filesystem::path& directory,
                                         std::string_view name);

}  // namespace devmgr
