// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/failing_disk.h"

#include <string>
#include <utility>

namespace devmgr::checkpoint {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using Control = FailingDisk::Control;
using Failure = FailingDisk::Failure;

class LogFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  LogFile(std::unique_ptr<rocksdb::FSWritableFile> file,
          std::shared_ptr<Control> control)
      : FSWritableFileOwnerWrapper(std::move(file)),
        control_(std::move(control)) {}

  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    switch (control_->failure) {
      case Failure::kAppend:
        return IOStatus::IOError("injected append failure");
      case Failure::kTornAppend:
        // What gets through does so without a word.
        FSWritableFileOwnerWrapper::Append(Slice(data.data(), data.size() / 2),
                                           options, debug)
            .PermitUncheckedError();
        return IOStatus::IOError("injected torn append");
      case Failure::kNone:
      case Failure::kSync:
        break;
    }
    control_->log_bytes += data.size();
    return FSWritableFileOwnerWrapper::Append(data, options, debug);
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    if (control_->failure == Failure::kSync) {
      return IOStatus::IOError("injected sync failure");
    }
    ++control_->log_syncs;
    return FSWritableFileOwnerWrapper::Sync(options, debug);
  }

 private:
  const std::shared_ptr<Control> control_;
};

class TableFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  TableFile(std::unique_ptr<rocksdb::FSRandomAccessFile> file,
            std::shared_ptr<Control> control)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        control_(std::move(control)) {}

  IOStatus Read(std::uint64_t offset, std::size_t size,
                const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) const override {
    ++control_->reads;
    return FSRandomAccessFileOwnerWrapper::Read(offset, size, options, result,
                                                scratch, debug);
  }

 private:
  const std::shared_ptr<Control> control_;
};

class Disk : public rocksdb::FileSystemWrapper {
 public:
  explicit Disk(std::shared_ptr<Control> control)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        control_(std::move(control)) {}
  const char* Name() const override { return "FailingDisk"; }

  IOStatus NewWritableFile(const std::string& name,
                           const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    const IOStatus status =
        FileSystemWrapper::NewWritableFile(name, options, file, debug);
    if (status.ok() && name.ends_with(".log")) {
      *file = std::make_unique<LogFile>(std::move(*file), control_);
    }
    return status;
  }
  IOStatus NewRandomAccessFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
      IODebugContext* debug) override {
    const IOStatus status =
        FileSystemWrapper::NewRandomAccessFile(name, options, file, debug);
    if (status.ok()) {
      *file = std::make_unique<TableFile>(std::move(*file), control_);
    }
    return status;
  }

 private:
  const std::shared_ptr<Control> control_;
};

}  // namespace

FailingDisk::FailingDisk()
    : control_(std::make_shared<Control>()),
      env_(rocksdb::NewCompositeEnv(std::make_shared<Disk>(control_))) {}

}  // namespace devmgr::checkpoint
