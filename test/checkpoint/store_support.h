// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/ledger_store.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::checkpoint {

/// A fresh folder that a child process of a death test shares with its parent
/// (and never removes).
class SharedFolder {
 public:
  SharedFolder();
  ~SharedFolder();
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// True in the child, which runs the test again up to its death.
  bool is_child() const { return is_child_; }

 private:
  std::filesystem::path path_;
  bool is_child_;
};

/// Every file and directory below `folder`: name, kind, permissions, time of
/// change and contents.
std::map<std::string, std::string> TreeOf(const std::filesystem::path& folder);

std::string ReadFile(const std::filesystem::path& file);
void WriteFile(const std::filesystem::path& file, const std::string& contents);

/// Opens or dies.
std::unique_ptr<LedgerStore> MustOpen(const std::filesystem::path& directory,
                                      HistoryLimits limits = {});

/// Files of the database in a state directory that end in `suffix`, not empty.
std::vector<std::filesystem::path> DatabaseFiles(
    const std::filesystem::path& directory, const std::string& suffix);

/// All records of a closed store, as they are in the database.
std::map<std::string, std::string> RawRecords(
    const std::filesystem::path& directory);

/// Puts records into the database of a closed store, bypassing all checks. An
/// empty value erases.
void PutRaw(const std::filesystem::path& directory,
            const std::map<std::string, std::string>& records);

/// What the format file of a store of that format holds.
std::string FormatText(std::uint64_t format);

/// A stopped store as a version of that format left it.
void MakeStore(const std::filesystem::path& directory, int format,
               const std::map<std::string, std::string>& records);

/// The records in test/data/checkpoint/v<format>/records.hex.
std::map<std::string, std::string> GoldenRecords(int format);

/// One line of hexadecimal digits per record: key and value.
std::string ToLines(const std::map<std::string, std::string>& records);

/// An endless workload: the same batch for the same number, each applying to
/// the projection of those before it. Up to 50 pods of up to 3 KB.
state::Batch WorkloadBatch(std::uint64_t seq);
state::State WorkloadState(std::uint64_t seq);

state::State Project(std::span<const state::Batch> batches);

bool operator==(const StoreContents& a, const StoreContents& b);

/// Contents of batches, for comparison.
std::vector<std::string> Encoded(const std::vector<state::Batch>& batches);

}  // namespace devmgr::checkpoint
