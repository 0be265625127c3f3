// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/simulated_disk.h"

#include <rocksdb/system_clock.h>

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint/simulated_disk_model.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using Kind = DiskOperation::Kind;
using ModelPtr = std::shared_ptr<SimulatedDisk::Model>;

bool IsShort(DiskFault fault) {
  return fault == DiskFault::kShort || fault == DiskFault::kShortNoSpace;
}

class WrittenFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WrittenFile(std::unique_ptr<rocksdb::FSWritableFile> file, NodePtr node,
              std::string path, ModelPtr model)
      : FSWritableFileOwnerWrapper(std::move(file)),
        node_(std::move(node)),
        path_(std::move(path)),
        model_(std::move(model)) {}

  using FSWritableFileOwnerWrapper::PositionedAppend;  // For direct I/O only.
  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    return model_->RunWithFault(Kind::kAppend, path_, [&](DiskFault fault) {
      if (fault == DiskFault::kNone) return Write(data, options, debug);
      if (IsShort(fault)) {
        const Slice half(data.data(), data.size() / 2);
        Write(half, options, debug).PermitUncheckedError();
      }
      return StatusOf(fault, path_);
    });
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions& options,
                    IODebugContext* debug) override {
    return model_->Run(Kind::kTruncate, path_, [&] {
      node_->contents.resize(size);
      return FSWritableFileOwnerWrapper::Truncate(size, options, debug);
    });
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return model_->Run(Kind::kSync, path_, [&] {
      node_->synced = node_->contents;
      return IOStatus::OK();
    });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }
  /// Begins to write, but does not make anything last.
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&,
                     IODebugContext*) override {
    return IOStatus::OK();
  }
  /// Is closed even if that fails, as with Linux.
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    return model_->RunWithFault(Kind::kClose, path_, [&](DiskFault fault) {
      IOStatus status = FSWritableFileOwnerWrapper::Close(options, debug);
      return fault == DiskFault::kNone ? status : StatusOf(fault, path_);
    });
  }

 private:
  IOStatus Write(const Slice& data, const IOOptions& options,
                 IODebugContext* debug) {
    node_->contents.append(data.data(), data.size());
    model_->bytes_appended[path_] += data.size();
    return FSWritableFileOwnerWrapper::Append(data, options, debug);
  }

  const NodePtr node_;
  const std::string path_;
  const ModelPtr model_;
};

class ReadFileInOrder : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  ReadFileInOrder(std::unique_ptr<rocksdb::FSSequentialFile> file,
                  std::string path, ModelPtr model)
      : FSSequentialFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        model_(std::move(model)) {}

  IOStatus Read(std::size_t size, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* debug) override {
    return model_->Run(Kind::kRead, path_, [&] {
      return FSSequentialFileOwnerWrapper::Read(size, options, result, scratch,
                                                debug);
    });
  }

 private:
  const std::string path_;
  const ModelPtr model_;
};

class ReadFileAnywhere : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  ReadFileAnywhere(std::unique_ptr<rocksdb::FSRandomAccessFile> file,
                   std::string path, ModelPtr model)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        model_(std::move(model)) {}

  IOStatus Read(std::uint64_t offset, std::size_t size,
                const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) const override {
    return model_->Run(Kind::kRead, path_, [&] {
      return FSRandomAccessFileOwnerWrapper::Read(offset, size, options, result,
                                                  scratch, debug);
    });
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count,
                     const IOOptions& options, IODebugContext* debug) override {
    return model_->Run(Kind::kRead, path_, [&] {
      return FSRandomAccessFileOwnerWrapper::MultiRead(requests, count, options,
                                                       debug);
    });
  }

 private:
  const std::string path_;
  const ModelPtr model_;
};

class Directory : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<rocksdb::FSDirectory> directory, std::string path,
            ModelPtr model)
      : FSDirectoryWrapper(std::move(directory)),
        path_(std::move(path)),
        model_(std::move(model)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return model_->Run(Kind::kSyncDirectory, path_, [&] {
      if (!model_->Holds(path_)) return IOStatus::OK();
      const NodePtr node = model_->Find(path_);
      FindOthers(path_, *node);
      node->synced_names = node->names;
      node->changes.clear();
      return IOStatus::OK();
    });
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  const std::string path_;
  const ModelPtr model_;
};

class Disk : public rocksdb::FileSystemWrapper {
 public:
  explicit Disk(ModelPtr model)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        model_(std::move(model)) {}
  const char* Name() const override { return "SimulatedDisk"; }

  IOStatus NewSequentialFile(const std::string& path,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* file,
                             IODebugContext* debug) override {
    return Open<ReadFileInOrder>(Kind::kOpen, path, file, [&] {
      return FileSystemWrapper::NewSequentialFile(path, options, file, debug);
    });
  }
  IOStatus NewRandomAccessFile(
      const std::string& path, const FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
      IODebugContext* debug) override {
    return Open<ReadFileAnywhere>(Kind::kOpen, path, file, [&] {
      return FileSystemWrapper::NewRandomAccessFile(path, options, file, debug);
    });
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                        IODebugContext* debug) override {
    return Open<Directory>(Kind::kOpen, path, directory, [&] {
      return FileSystemWrapper::NewDirectory(path, options, directory, debug);
    });
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    return model_->Run(Kind::kCreate, path, [&] {
      IOStatus status =
          FileSystemWrapper::NewWritableFile(path, options, file, debug);
      if (!status.ok()) return status;
      auto node = std::make_shared<DiskNode>();
      model_->Name(path, node);
      *file = std::make_unique<WrittenFile>(std::move(*file), std::move(node),
                                            path, model_);
      return status;
    });
  }
  // Not used as the ledger is configured; they would go past the model.
  IOStatus ReopenWritableFile(const std::string&, const FileOptions&,
                              std::unique_ptr<rocksdb::FSWritableFile>*,
                              IODebugContext*) override {
    return IOStatus::NotSupported("ReopenWritableFile");
  }
  IOStatus ReuseWritableFile(const std::string&, const std::string&,
                             const FileOptions&,
                             std::unique_ptr<rocksdb::FSWritableFile>*,
                             IODebugContext*) override {
    return IOStatus::NotSupported("ReuseWritableFile");
  }
  IOStatus NewRandomRWFile(const std::string&, const FileOptions&,
                           std::unique_ptr<rocksdb::FSRandomRWFile>*,
                           IODebugContext*) override {
    return IOStatus::NotSupported("NewRandomRWFile");
  }
  IOStatus Truncate(const std::string&, std::size_t, const IOOptions&,
                    IODebugContext*) override {
    return IOStatus::NotSupported("Truncate");
  }
  IOStatus LinkFile(const std::string&, const std::string&, const IOOptions&,
                    IODebugContext*) override {
    return IOStatus::NotSupported("LinkFile");
  }

  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options,
                      IODebugContext* debug) override {
    return model_->Run(Kind::kRename, from, [&] {
      const NodePtr node = model_->Find(from);
      IOStatus status = FileSystemWrapper::RenameFile(from, to, options, debug);
      if (!status.ok()) return status;
      const fs::path source = from;
      const fs::path target = to;
      if (source.parent_path() != target.parent_path()) {
        // Each name lasts with its own directory.
        model_->Find(source.parent_path())
            ->Change({{source.filename().string(), nullptr}});
        model_->Find(target.parent_path())
            ->Change({{target.filename().string(), node}});
        return status;
      }
      model_->Find(source.parent_path())
          ->Change({{source.filename().string(), nullptr},
                    {target.filename().string(), node}});
      return status;
    });
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* debug) override {
    return Remove(path, [&] {
      return FileSystemWrapper::DeleteFile(path, options, debug);
    });
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions& options,
                     IODebugContext* debug) override {
    return Remove(path, [&] {
      return FileSystemWrapper::DeleteDir(path, options, debug);
    });
  }
  // Directories are found by looking.
  IOStatus CreateDir(const std::string& path, const IOOptions& options,
                     IODebugContext* debug) override {
    return model_->Run(Kind::kMakeDirectory, path, [&] {
      return FileSystemWrapper::CreateDir(path, options, debug);
    });
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options,
                              IODebugContext* debug) override {
    return model_->Run(Kind::kMakeDirectory, path, [&] {
      return FileSystemWrapper::CreateDirIfMissing(path, options, debug);
    });
  }
  IOStatus LockFile(const std::string& path, const IOOptions& options,
                    rocksdb::FileLock** lock, IODebugContext* debug) override {
    return model_->Run(Kind::kOpen, path, [&] {
      return FileSystemWrapper::LockFile(path, options, lock, debug);
    });
  }
  IOStatus FileExists(const std::string& path, const IOOptions& options,
                      IODebugContext* debug) override {
    return model_->Run(Kind::kLookUp, path, [&] {
      return FileSystemWrapper::FileExists(path, options, debug);
    });
  }
  IOStatus GetChildren(const std::string& path, const IOOptions& options,
                       std::vector<std::string>* names,
                       IODebugContext* debug) override {
    return model_->Run(Kind::kLookUp, path, [&] {
      return FileSystemWrapper::GetChildren(path, options, names, debug);
    });
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions& options,
                       std::uint64_t* size, IODebugContext* debug) override {
    return model_->Run(Kind::kLookUp, path, [&] {
      return FileSystemWrapper::GetFileSize(path, options, size, debug);
    });
  }

 private:
  template <typename Wrapper, typename File, typename Act>
  IOStatus Open(Kind kind, const std::string& path, std::unique_ptr<File>* file,
                Act act) {
    return model_->Run(kind, path, [&] {
      IOStatus status = act();
      if (status.ok()) {
        *file = std::make_unique<Wrapper>(std::move(*file), path, model_);
      }
      return status;
    });
  }
  template <typename Act>
  IOStatus Remove(const std::string& path, Act act) {
    return model_->Run(Kind::kDelete, path, [&] {
      // Before, or a name that the model does not know yet would be lost.
      model_->Find(path);
      IOStatus status = act();
      if (status.ok()) model_->Name(path, nullptr);
      return status;
    });
  }

  const ModelPtr model_;
};

/// RocksDB sleeps for a second after each error of a thread of its own.
class WakefulClock : public rocksdb::SystemClockWrapper {
 public:
  WakefulClock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  const char* Name() const override { return "WakefulClock"; }
  void SleepForMicroseconds(int) override { std::this_thread::yield(); }
};

class Environment : public rocksdb::EnvWrapper {
 public:
  explicit Environment(const std::shared_ptr<rocksdb::FileSystem>& disk)
      : EnvWrapper(rocksdb::NewCompositeEnv(disk)) {
    file_system_ = disk;
    system_clock_ = std::make_shared<WakefulClock>();
  }
};

}  // namespace

SimulatedDisk::SimulatedDisk(const fs::path& folder)
    : model_(std::make_shared<Model>(folder)),
      env_(std::make_unique<Environment>(std::make_shared<Disk>(model_))) {
  Adopt(folder, *model_->root);
}

SimulatedDisk::~SimulatedDisk() = default;

void SimulatedDisk::SetHook(Hook hook) {
  std::lock_guard lock(model_->mutex);
  model_->hook = std::move(hook);
}

std::uint64_t SimulatedDisk::Count(Kind kind, const std::string& suffix) const {
  std::lock_guard lock(model_->mutex);
  std::uint64_t sum = 0;
  for (const auto& [what, count] : model_->counts) {
    if (what.first == kind && what.second.ends_with(suffix)) sum += count;
  }
  return sum;
}

std::uint64_t SimulatedDisk::BytesAppended(const std::string& suffix) const {
  std::lock_guard lock(model_->mutex);
  std::uint64_t sum = 0;
  for (const auto& [path, bytes] : model_->bytes_appended) {
    if (path.ends_with(suffix)) sum += bytes;
  }
  return sum;
}

DiskImage SimulatedDisk::AfterPowerFailure(Survival survival) const {
  std::lock_guard lock(model_->mutex);
  DiskImage image;
  AddToImage(*model_->root, "", survival, image);
  return image;
}

}  // namespace devmgr::checkpoint
