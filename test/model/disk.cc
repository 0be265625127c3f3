// SPDX-License-Identifier: Apache-2.0
#include "model/disk.h"

#include <utility>

#include "common/status.h"

namespace devmgr::model {

/// One manager's hold on the disk.
class Disk::View final : public checkpoint::LedgerStore {
 public:
  View(Disk& disk, int opener) : disk_(disk), opener_(opener) {}

  absl::StatusOr<state::State> Load() override { return disk_.store_->Load(); }

  absl::Status Append(std::span<const state::Batch> batches) override {
    if (gone()) return UnavailableError("the process is gone");
    const Failure failure = std::exchange(disk_.failure_, Failure::kNone);
    if (failure != Failure::kNone) {
      ++disk_.failures_;
      disk_.in_doubt_ = true;
    }
    if (failure == Failure::kLost) return UnavailableError("I/O error");
    DEVMGR_RETURN_IF_ERROR(disk_.store_->Append(batches));
    for (const state::Batch& batch : batches) {
      disk_.unsaved_.push_back(batch);
      disk_.on_batch_(batch, failure == Failure::kNone);
    }
    return failure == Failure::kNone ? absl::OkStatus()
                                     : UnavailableError("I/O error, later");
  }

  absl::StatusOr<state::State> Reopen() override {
    if (gone() || disk_.fail_reopen_) {
      ++disk_.failures_;
      return UnavailableError("disk is gone");
    }
    disk_.in_doubt_ = false;
    return disk_.store_->Load();
  }

  absl::StatusOr<std::vector<state::Batch>> History(std::uint64_t after,
                                                    std::size_t most) override {
    return disk_.store_->History(after, most);
  }

 private:
  bool gone() const { return opener_ != disk_.opener_; }

  Disk& disk_;
  const int opener_;
};

Disk::Disk(OnBatch on_batch)
    : on_batch_(std::move(on_batch)), store_(checkpoint::NewInMemoryStore()) {}

void Disk::Mend() {
  failure_ = Failure::kNone;
  fail_reopen_ = false;
  failures_ = 0;
}

int Disk::failures() const {
  return failures_ + (failure_ != Failure::kNone ? 1 : 0);
}

std::unique_ptr<checkpoint::LedgerStore> Disk::Open() {
  failures_ = 0;
  in_doubt_ = false;
  return std::make_unique<View>(*this, ++opener_);
}

state::State Disk::Load() { return *store_->Load(); }

absl::StatusOr<state::State> Disk::LoadFrom(
    const std::filesystem::path& directory) {
  checkpoint::RocksDbStoreOptions options;
  options.directory = directory;
  {
    auto store = checkpoint::OpenRocksDbStore(options);
    if (!store.ok()) return store.status();
    DEVMGR_RETURN_IF_ERROR((*store)->Load().status());
    if (!unsaved_.empty()) DEVMGR_RETURN_IF_ERROR((*store)->Append(unsaved_));
    unsaved_.clear();
  }
  DEVMGR_ASSIGN_OR_RETURN(auto store, checkpoint::OpenRocksDbStore(options));
  return store->Load();
}

}  // namespace devmgr::model
