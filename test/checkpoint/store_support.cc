// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store_support.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "checkpoint/codec.h"
#include "checkpoint/disk.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/test_data.h"
#include "state/record_builders.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderVariable = "DEVMGR_TEST_SHARED_FOLDER";

std::string ToHex(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return hex;
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::unique_ptr<rocksdb::DB> OpenRaw(const fs::path& directory,
                                     bool create = false) {
  rocksdb::DB* db = nullptr;
  rocksdb::Options options = LedgerOptions(nullptr);
  options.create_if_missing = create;
  const auto status =
      rocksdb::DB::Open(options, (directory / "db").string(), &db);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return std::unique_ptr<rocksdb::DB>(db);
}

}  // namespace

SharedFolder::SharedFolder() {
  const char* given = ::getenv(kFolderVariable);
  is_child_ = given != nullptr;
  if (is_child_) {
    path_ = given;
    return;
  }
  std::string name = "/tmp/devmgr-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
  ::setenv(kFolderVariable, name.c_str(), 1);
}

SharedFolder::~SharedFolder() {
  if (is_child_) return;
  ::unsetenv(kFolderVariable);
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(path_, ignored)) {
    if (entry.is_directory(ignored)) {
      fs::permissions(entry.path(), fs::perms::owner_all, ignored);
    }
  }
  fs::remove_all(path_, ignored);
}

std::map<std::string, std::string> TreeOf(const fs::path& folder) {
  std::map<std::string, std::string> tree;
  const auto add = [&](const fs::path& path) {
    struct stat info;
    if (::lstat(path.c_str(), &info) != 0) return;
    std::string text = fmt::format("mode {:o} time {}.{} ", info.st_mode,
                                   info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    if (S_ISREG(info.st_mode)) text += ReadFile(path);
    tree[path.string()] = std::move(text);
  };
  add(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    add(entry.path());
  }
  return tree;
}

std::string ReadFile(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteFile(const fs::path& file, const std::string& contents) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << contents;
}

std::unique_ptr<LedgerStore> MustOpen(const fs::path& directory,
                                      HistoryLimits limits) {
  auto store = OpenRocksDbStore({directory, limits});
  if (store.ok()) return *std::move(store);
  ADD_FAILURE() << store.status();
  std::abort();
}

std::vector<fs::path> DatabaseFiles(const fs::path& directory,
                                    const std::string& suffix) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory / "db")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(suffix) && entry.file_size() > 0) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::map<std::string, std::string> RawRecords(const fs::path& directory) {
  std::map<std::string, std::string> records;
  const auto db = OpenRaw(directory);
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(CheckedRead()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    records[it->key().ToString()] = it->value().ToString();
  }
  EXPECT_TRUE(it->status().ok());
  return records;
}

void PutRaw(const fs::path& directory,
            const std::map<std::string, std::string>& records) {
  const auto db = OpenRaw(directory);
  rocksdb::WriteBatch write;
  for (const auto& [key, value] : records) {
    if (value.empty()) {
      write.Delete(key);
    } else {
      write.Put(key, value);
    }
  }
  EXPECT_TRUE(db->Write(DurableWrite(), &write).ok());
}

std::string FormatText(std::uint64_t format) {
  const std::string text = fmt::format("devmgr ledger format {}\n", format);
  return format == 1 ? text : Seal(text);
}

void MakeStore(const fs::path& directory, int format,
               const std::map<std::string, std::string>& records) {
  fs::create_directories(directory);
  OpenRaw(directory, /*create=*/true).reset();
  PutRaw(directory, records);
  WriteFile(directory / "format",
            FormatText(static_cast<std::uint64_t>(format)));
}

std::map<std::string, std::string> GoldenRecords(int format) {
  std::map<std::string, std::string> records;
  std::ifstream in(fs::path(DEVMGR_CHECKPOINT_DATA) /
                   fmt::format("v{}", format) / "records.hex");
  for (std::string key, value; in >> key >> value;) {
    records[FromHex(key)] = FromHex(value);
  }
  EXPECT_FALSE(records.empty());
  return records;
}

std::string ToLines(const std::map<std::string, std::string>& records) {
  std::string lines;
  for (const auto& [key, value] : records) {
    lines += ToHex(key) + " " + ToHex(value) + "\n";
  }
  return lines;
}

state::Batch WorkloadBatch(std::uint64_t seq) {
  constexpr std::uint64_t kPods = 50;
  const std::uint64_t slot = seq % kPods;
  const PodUid uid{fmt::format("pod-{}", slot)};
  // Every tenth pod comes and goes.
  if (slot % 10 == 0 && seq >= kPods && (seq / kPods) % 2 == 0) {
    return state::MakeBatch(seq, state::DecisionKind::kRelease,
                            {state::ErasePod{uid}});
  }
  state::PodRecord pod =
      state::MakePod(uid, uid.value, state::PodPhase::kWaiting);
  pod.first_seen_seq = seq;
  pod.message = std::string(seq * 7919 % 3000, 'x');
  return state::MakeBatch(seq, state::DecisionKind::kSeen, {state::Put(pod)});
}

state::State WorkloadState(std::uint64_t seq) {
  state::State state;
  for (std::uint64_t i = 1; i <= seq; ++i) {
    const absl::Status status = state::Apply(state, WorkloadBatch(i));
    EXPECT_TRUE(status.ok()) << status;
  }
  return state;
}

state::State Project(std::span<const state::Batch> batches) {
  state::State state;
  for (const state::Batch& batch : batches) {
    const absl::Status status = state::Apply(state, batch);
    EXPECT_TRUE(status.ok()) << status;
  }
  return state;
}

bool operator==(const StoreContents& a, const StoreContents& b) {
  return a.state == b.state && Encoded(a.history) == Encoded(b.history);
}

std::vector<std::string> Encoded(const std::vector<state::Batch>& batches) {
  std::vector<std::string> bytes;
  for (const state::Batch& batch : batches) {
    bytes.push_back(EncodeBatch(batch));
  }
  return bytes;
}

}  // namespace devmgr::checkpoint
