// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/simulated_disk_model.h"

#include <array>
#include <cerrno>
#include <system_error>

#include "checkpoint/store_support.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOStatus;
using Names = DiskNode::Names;

std::string ContentsAfter(const DiskNode& file, Survival::Data data) {
  const std::size_t synced =
      file.contents.starts_with(file.synced) ? file.synced.size() : 0;
  const std::size_t unsynced = file.contents.size() - synced;
  switch (data) {
    case Survival::Data::kLost:
      return file.synced;
    case Survival::Data::kTorn:
      return file.contents.substr(0, synced + unsynced / 2);
    case Survival::Data::kHoled:
      return file.contents.substr(0, synced + unsynced / 2) +
             std::string(unsynced - unsynced / 2, '\0');
    case Survival::Data::kZeroed:
      return file.contents.substr(0, synced) + std::string(unsynced, '\0');
    case Survival::Data::kWhole:
      break;
  }
  return file.contents;
}

Names NamesAfter(const DiskNode& directory, Survival::Names names) {
  Names left = directory.synced_names;
  std::size_t changes = directory.changes.size();
  if (names == Survival::Names::kLost) changes = 0;
  if (names == Survival::Names::kFirst) changes = (changes + 1) / 2;
  for (std::size_t i = 0; i < changes; ++i) {
    DiskNode::Apply(directory.changes[i], left);
  }
  return left;
}

}  // namespace

std::string_view NameOf(DiskOperation::Kind kind) {
  static constexpr std::array<std::string_view, DiskOperation::kKinds> kNames =
      {"open",   "read",   "look up",        "create",
       "append", "sync",   "truncate",       "close",
       "rename", "delete", "make directory", "sync directory"};
  return kNames.at(static_cast<std::size_t>(kind));
}

void WriteImage(const DiskImage& image, const fs::path& folder) {
  for (const auto& [name, contents] : image) {
    if (contents.has_value()) {
      WriteFile(folder / name, *contents);
    } else {
      fs::create_directory(folder / name);
    }
  }
}

void FindOthers(const fs::path& path, DiskNode& directory) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(path, gone)) {
    const std::string name = entry.path().filename().string();
    if (directory.names.contains(name)) continue;
    auto node = std::make_shared<DiskNode>();
    node->is_directory = entry.is_directory();
    directory.Change({{name, std::move(node)}});
  }
}

void Adopt(const fs::path& path, DiskNode& directory) {
  FindOthers(path, directory);
  for (const auto& [name, node] : directory.names) {
    if (node->is_directory) {
      Adopt(path / name, *node);
    } else {
      node->contents = node->synced = ReadFile(path / name);
    }
  }
  directory.synced_names = directory.names;
  directory.changes.clear();
}

void AddToImage(const DiskNode& directory, const std::string& prefix,
                Survival survival, DiskImage& image) {
  for (const auto& [name, node] : NamesAfter(directory, survival.names)) {
    const std::string path = prefix + name;
    if (node->is_directory) {
      image[path] = std::nullopt;
      AddToImage(*node, path + "/", survival, image);
    } else {
      image[path] = ContentsAfter(*node, survival.data);
    }
  }
}

IOStatus StatusOf(DiskFault fault, const std::string& path) {
  const bool full =
      fault == DiskFault::kNoSpace || fault == DiskFault::kShortNoSpace;
  if (!full) return IOStatus::IOError(path, ErrnoText(EIO));
  IOStatus status = IOStatus::NoSpace(path, ErrnoText(ENOSPC));
  status.SetRetryable(true);
  return status;
}

NodePtr SimulatedDisk::Model::Find(const fs::path& path) {
  NodePtr node = root;
  fs::path at = folder;
  for (const fs::path& name : path.lexically_relative(folder)) {
    if (name == ".") continue;
    FindOthers(at, *node);
    const auto found = node->names.find(name.string());
    if (found == node->names.end()) return nullptr;
    node = found->second;
    at /= name;
  }
  return node;
}

}  // namespace devmgr::checkpoint
