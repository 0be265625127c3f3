// SPDX-License-Identifier: Apache-2.0
//
// A disk that remembers what was synced, and that can fail at any call.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace devmgr::checkpoint {

/// One call that reaches the disk.
struct DiskOperation {
  enum class Kind {
    kOpen,    ///< An existing file, for reading.
    kRead,    ///< Of a file.
    kLookUp,  ///< Of a directory, or of a file's size.
    kCreate,  ///< A file, empty.
    kAppend,
    kSync,
    kTruncate,
    kClose,
    kRename,
    kDelete,
    kMakeDirectory,
    kSyncDirectory,
  };
  static constexpr std::size_t kKinds = 12;

  std::uint64_t number = 0;  ///< From 1, in the order of the calls.
  Kind kind = Kind::kOpen;
  std::string path;

  /// False for those that only read.
  bool changes() const { return kind >= Kind::kCreate; }
};

std::string_view NameOf(DiskOperation::Kind kind);

/// How a call ends.
enum class DiskFault {
  kNone,
  kError,         ///< EIO
  kNoSpace,       ///< ENOSPC
  kShort,         ///< EIO; half of what was to be appended is there.
  kShortNoSpace,  ///< ENOSPC, likewise.
};

/// What a power failure leaves of what was not synced.
struct Survival {
  enum class Data {
    kLost,
    kTorn,    ///< The first half.
    kHoled,   ///< The first half, and zeros for the rest.
    kZeroed,  ///< Zeros: only the length of the file.
    kWhole,
  };
  enum class Names {
    kLost,
    kFirst,  ///< Of the changes in each directory, the first half.
    kAll,
  };
  Data data = Data::kLost;
  Names names = Names::kLost;
};

/// Files by their path below the disk's folder; directories have no contents.
using DiskImage = std::map<std::string, std::optional<std::string>>;

void WriteImage(const DiskImage& image, const std::filesystem::path& folder);

/// The real file system, at one call at a time, and beside it in memory what
/// would be left of one folder after a power failure. As POSIX has it, a file's
/// contents last once the file was synced, and the names in a directory once
/// the directory was. What is changed in the folder by other means (the lock,
/// directories) is found when its directory is synced. Real syncs are left out,
/// and so are the pauses that RocksDB makes after errors.
class SimulatedDisk {
 public:
  /// Sees each call before it is carried out, while all others wait, and says
  /// how it ends.
  using Hook = std::function<DiskFault(const DiskOperation&)>;

  /// What is in `folder` by now is durable.
  explicit SimulatedDisk(const std::filesystem::path& folder);
  ~SimulatedDisk();

  /// Lives as long as this.
  rocksdb::Env* env() { return env_.get(); }

  void SetHook(Hook hook);

  /// How often it was done to paths that end in `suffix`, with success.
  std::uint64_t Count(DiskOperation::Kind kind,
                      const std::string& suffix) const;

  /// Bytes appended to such paths.
  std::uint64_t BytesAppended(const std::string& suffix) const;

  /// What a power failure would leave now.
  DiskImage AfterPowerFailure(Survival survival) const;

  /// Shared with the files, which RocksDB may close late.
  struct Model;

 private:
  const std::shared_ptr<Model> model_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace devmgr::checkpoint
