// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/database_objects.h"

#include <fmt/core.h>
#include <rocksdb/write_batch.h>

#include <map>
#include <string>
#include <utility>

#include "checkpoint/keys.h"
#include "checkpoint/rocksdb_config.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

using Change = ObjectSpace::Change;
using Object = ObjectSpace::Object;

absl::Status CheckKeys(std::span<const Change> changes) {
  for (const Change& change : changes) {
    if (change.key.empty()) {
      return InvalidArgumentError("an object has no key");
    }
  }
  return absl::OkStatus();
}

class InMemoryObjects final : public ObjectSpace {
 public:
  absl::Status Write(std::span<const Change> changes) override {
    DEVMGR_RETURN_IF_ERROR(CheckKeys(changes));
    const MutexLock lock(mutex_);
    for (const Change& change : changes) {
      if (change.value.has_value()) {
        objects_[change.key] = *change.value;
      } else {
        objects_.erase(change.key);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Object>> Read(std::string_view after,
                                           std::size_t most) override {
    const MutexLock lock(mutex_);
    std::vector<Object> read;
    for (auto it = objects_.upper_bound(after);
         it != objects_.end() && read.size() < most; ++it) {
      read.push_back({it->first, it->second});
    }
    return read;
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::string, std::less<>> objects_
      DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace

/// One call: the database is not closed before it is over.
class DatabaseObjects::Use {
 public:
  explicit Use(DatabaseObjects& objects) : objects_(objects) {
    const MutexLock lock(objects_.mutex_);
    ++objects_.users_;
    db_ = objects_.db_;
  }
  ~Use() {
    const MutexLock lock(objects_.mutex_);
    --objects_.users_;
    objects_.left_.NotifyAll();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  rocksdb::DB* db() const { return db_; }

 private:
  DatabaseObjects& objects_;
  rocksdb::DB* db_ = nullptr;
};

DatabaseObjects::DatabaseObjects(std::function<absl::Status()> check)
    : check_(std::move(check)) {}

absl::Status DatabaseObjects::Write(std::span<const Change> changes) {
  DEVMGR_RETURN_IF_ERROR(CheckKeys(changes));
  const Use use(*this);
  if (use.db() == nullptr) return Refuse();
  const absl::Status status = Write(*use.db(), changes);
  if (!status.ok()) Fail(status);
  return status;
}

absl::Status DatabaseObjects::Write(rocksdb::DB& db,
                                    std::span<const Change> changes) const {
  rocksdb::WriteBatch write;
  for (const Change& change : changes) {
    const std::string key = ObjectKey(change.key);
    DEVMGR_RETURN_IF_ERROR(
        FromRocksDb(change.value.has_value() ? write.Put(key, *change.value)
                                             : write.Delete(key),
                    fmt::format("cannot write record '{}'", PrintKey(key))));
  }
  DEVMGR_RETURN_IF_ERROR(FromRocksDb(db.Write(DurableWrite(), &write),
                                     "cannot write objects beside the ledger"));
  return check_();
}

absl::StatusOr<std::vector<Object>> DatabaseObjects::Read(
    std::string_view after, std::size_t most) {
  const Use use(*this);
  if (use.db() == nullptr) return Refuse();
  const std::string end = ObjectsEnd();
  const rocksdb::Slice bound(end);
  rocksdb::ReadOptions options = CheckedRead();
  options.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> records(
      use.db()->NewIterator(options));
  const std::string first = ObjectKey(after);
  std::vector<Object> read;
  std::string last = first;
  for (records->Seek(first); records->Valid() && read.size() < most;
       records->Next()) {
    last = records->key().ToString();
    if (last == first) continue;
    read.push_back(
        {std::string(ObjectKeyIn(last)), records->value().ToString()});
  }
  DEVMGR_RETURN_IF_ERROR(
      FromRocksDb(records->status(),
                  fmt::format("reading behind record '{}'", PrintKey(last))));
  return read;
}

void DatabaseObjects::Open(rocksdb::DB& db, Failed failed) {
  const MutexLock lock(mutex_);
  db_ = &db;
  failed_ = std::move(failed);
  in_doubt_ = false;
}

void DatabaseObjects::Suspend() {
  const MutexLock lock(mutex_);
  db_ = nullptr;
  in_doubt_ = failed_ != nullptr;
  WaitForUsers();
}

void DatabaseObjects::Close() {
  const MutexLock lock(mutex_);
  db_ = nullptr;
  in_doubt_ = false;
  failed_ = nullptr;
  WaitForUsers();
}

bool DatabaseObjects::failed() const {
  const MutexLock lock(mutex_);
  return in_doubt_;
}

void DatabaseObjects::WaitForUsers() {
  while (users_ > 0) left_.Wait(mutex_);
}

absl::Status DatabaseObjects::Refuse() {
  const absl::Status in_doubt = UnavailableError(
      "the ledger's database is in doubt after a failed write, and is being "
      "opened again");
  Failed failed;
  {
    const MutexLock lock(mutex_);
    if (db_ == nullptr && !in_doubt_) {
      return UnavailableError("the ledger's database is not open to write");
    }
    failed = failed_;
  }
  if (failed) failed(in_doubt);
  return in_doubt;
}

void DatabaseObjects::Fail(const absl::Status& why) {
  Failed failed;
  {
    const MutexLock lock(mutex_);
    // Else it is being closed already.
    if (db_ == nullptr) return;
    db_ = nullptr;
    in_doubt_ = true;
    failed = failed_;
  }
  if (failed) failed(why);
}

std::shared_ptr<ObjectSpace> NewInMemoryObjects() {
  return std::make_shared<InMemoryObjects>();
}

}  // namespace devmgr::checkpoint
