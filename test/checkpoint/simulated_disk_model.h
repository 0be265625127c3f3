// SPDX-License-Identifier: Apache-2.0
//
// What a simulated disk remembers: which names and contents would outlast a
// power failure.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/simulated_disk.h"

namespace devmgr::checkpoint {

/// A file or a directory, whatever its name.
struct DiskNode {
  using Names = std::map<std::string, std::shared_ptr<DiskNode>>;

  bool is_directory = false;
  // Of a file:
  std::string contents;
  std::string synced;
  // Of a directory: its names, and how they became what they are since they
  // were synced. A null node is a name that went.
  Names names;
  Names synced_names;
  std::vector<Names> changes;

  void Change(const Names& change) {
    Apply(change, names);
    changes.push_back(change);
  }
  static void Apply(const Names& change, Names& names) {
    for (const auto& [name, node] : change) {
      if (node == nullptr) {
        names.erase(name);
      } else {
        names[name] = node;
      }
    }
  }
};

using NodePtr = std::shared_ptr<DiskNode>;

/// What is in a real directory and not in its node.
void FindOthers(const std::filesystem::path& path, DiskNode& directory);

/// Takes what is in a real directory as it is.
void Adopt(const std::filesystem::path& path, DiskNode& directory);

/// What of a directory's contents survives, with this before their names.
void AddToImage(const DiskNode& directory, const std::string& prefix,
                Survival survival, DiskImage& image);

/// As RocksDB's own file system says it.
rocksdb::IOStatus StatusOf(DiskFault fault, const std::string& path);

struct SimulatedDisk::Model {
  explicit Model(std::filesystem::path root_folder)
      : folder(std::move(root_folder)) {}

  bool Holds(const std::filesystem::path& path) const {
    const std::filesystem::path relative = path.lexically_relative(folder);
    return !relative.empty() && *relative.begin() != "..";
  }

  /// The node of a path in the folder; null if there is none.
  NodePtr Find(const std::filesystem::path& path);

  void Name(const std::filesystem::path& path, NodePtr node) {
    Find(path.parent_path())
        ->Change({{path.filename().string(), std::move(node)}});
  }

  // The analyzer loses sight of the text that a status owns.
  // NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks)

  /// Carries out a call, unless it is to fail.
  template <typename Act>
  rocksdb::IOStatus Run(DiskOperation::Kind kind, const std::string& path,
                        Act act) {
    return RunWithFault(kind, path, [&](DiskFault fault) {
      return fault == DiskFault::kNone ? act() : StatusOf(fault, path);
    });
  }

  template <typename Act>
  rocksdb::IOStatus RunWithFault(DiskOperation::Kind kind,
                                 const std::string& path, Act act) {
    std::lock_guard lock(mutex);
    DiskFault fault = DiskFault::kNone;
    if (hook && Holds(path)) fault = hook({++operations, kind, path});
    rocksdb::IOStatus status = act(fault);
    if (status.ok()) ++counts[{kind, path}];
    return status;
  }
  // NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks)

  mutable std::recursive_mutex mutex;  ///< Held over the hook.
  const std::filesystem::path folder;
  const NodePtr root = std::make_shared<DiskNode>(DiskNode{true});
  Hook hook;
  std::uint64_t operations = 0;
  std::map<std::pair<DiskOperation::Kind, std::string>, std::uint64_t> counts;
  std::map<std::string, std::uint64_t> bytes_appended;
};

}  // namespace devmgr::checkpoint
