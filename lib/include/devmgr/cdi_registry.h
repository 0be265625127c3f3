// SPDX-License-Identifier: Apache-2.0
//
// Which CDI devices there are: the spec files of some directories, what they
// define, which definition counts, and what is wrong with them.
#pragma once

#include <devmgr/cdi_spec.h>
#include <devmgr/export.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// A file of a CDI directory. Either `spec` is there or `problem` says why not.
struct CdiSpecFile {
  std::string path;
  /// Of two definitions of a device the one with the higher number counts: the
  /// directory's index in the list of directories.
  int priority = 0;
  std::shared_ptr<const CdiSpec> spec;
  std::string problem;  ///< Does not name the path.
};

/// Whether both say the same, wherever the specs lie in memory.
DEVMGR_EXPORT bool operator==(const CdiSpecFile& a, const CdiSpecFile& b);

/// The file that has this text.
DEVMGR_EXPORT CdiSpecFile MakeCdiSpecFile(std::string path, int priority,
                                          std::string_view text);

/// Several files of one priority that define the same device.
struct CdiConflict {
  std::string device;  ///< Qualified.
  int priority = 0;
  std::vector<std::string> paths;  ///< Two or more.
  /// Whether the device is unresolvable by it. False: a file of a higher
  /// priority, without such a conflict, defines it.
  bool is_effective = true;

  /// Names the device and all paths.
  DEVMGR_EXPORT std::string ToString() const;
  friend bool operator==(const CdiConflict&, const CdiConflict&) = default;
};

/// A device that can be injected. The pointers live as long as the registry.
struct CdiRegistryDevice {
  std::string name;  ///< Qualified.
  const CdiSpecFile* file = nullptr;
  const CdiSpecDevice* device = nullptr;
};

/// What some CDI directories define, at one moment. Immutable, so that any
/// number of threads may read it.
///
/// The definition of the highest priority counts. Where several files of that
/// priority define a device, it is unresolvable; of lower priorities such a
/// conflict is only worth a warning (the CDI project's library takes either
/// as unresolvable). A file with a problem disables nothing but what it would
/// have defined.
class DEVMGR_EXPORT CdiRegistry {
 public:
  CdiRegistry() = default;
  /// `unread` are directories and files that could not be read, each a sentence
  /// that names it: what is not found may be defined there.
  explicit CdiRegistry(std::vector<CdiSpecFile> files,
                       std::vector<std::string> unread = {});
  CdiRegistry(const CdiRegistry&) = delete;
  CdiRegistry& operator=(const CdiRegistry&) = delete;

  /// The files as they were given, those with problems too.
  const std::vector<CdiSpecFile>& files() const { return files_; }
  const std::vector<std::string>& unread() const { return unread_; }
  /// By name.
  const std::vector<CdiRegistryDevice>& devices() const { return devices_; }
  /// By device, then by priority.
  const std::vector<CdiConflict>& conflicts() const { return conflicts_; }

  /// The device of a qualified name; nullptr when there is none.
  const CdiRegistryDevice* Find(std::string_view name) const;

  /// Why Find has nothing: a sentence with the name, and the paths of the files
  /// that are to blame.
  std::string ExplainFailedLookup(std::string_view name) const;

  /// Of the files without problems, sorted, each once; also where all devices
  /// are in conflict. Classes come without the vendor.
  std::vector<std::string> Vendors() const;
  std::vector<std::string> Classes() const;

  /// What is wrong with a file: its problem, or the conflicts that it is part
  /// of, with the other files. `warnings` are conflicts without effect.
  struct FileProblems {
    std::vector<std::string> errors;
    std::vector<std::string> warnings;
  };
  FileProblems ProblemsOf(const CdiSpecFile& file) const;

 private:
  std::vector<CdiSpecFile> files_;
  std::vector<std::string> unread_;
  std::vector<CdiRegistryDevice> devices_;
  std::vector<CdiConflict> conflicts_;
};

}  // namespace devmgr
