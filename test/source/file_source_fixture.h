// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "source/file_source.h"
#include "source/manifest_directory.h"

namespace devmgr::source {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;
using SnapshotPtr = std::shared_ptr<const ObjectSnapshot>;

inline constexpr const char* kBroken =
    "apiVersion: v1\nkind: Pod\nmetadata: {\n";

inline std::string Problems(const SnapshotPtr& snapshot) {
  return SourceListener::Problems(*snapshot);
}

/// A source over a folder of the test, and what it says.
class FileSourceTest : public testing::Test {
 protected:
  FileSourceOptions Options() const {
    FileSourceOptions options;
    options.directory = folder_.path();
    options.first_retry = std::chrono::milliseconds(5);
    options.max_retry = std::chrono::milliseconds(50);
    return options;
  }
  /// A source, new or instead of the one before, and what it says.
  void Start() { Start(Options()); }
  void Start(FileSourceOptions options) {
    Stop();
    source_ = WatchFiles(std::move(options));
    listener_ = std::make_unique<SourceListener>(*source_);
  }
  void Stop() {
    listener_.reset();
    source_.reset();
  }

  SnapshotPtr AwaitPods(const Names& names, bool complete = true) {
    return listener_->AwaitPods(names, complete);
  }
  SnapshotPtr AwaitPriority(const std::string& pod, int priority) {
    return listener_->Await([&](const ObjectSnapshot& snapshot) {
      const auto it = snapshot.pods.find(InDefault(pod));
      return it != snapshot.pods.end() && it->second->spec.priority == priority;
    });
  }
  SnapshotPtr AwaitProblem(const std::string& text, bool complete = true) {
    return listener_->Await([&](const ObjectSnapshot& snapshot) {
      return snapshot.complete == complete &&
             SourceListener::Problems(snapshot).find(text) != std::string::npos;
    });
  }
  /// Lets the source see everything that was done so far: a file made now has
  /// been seen, and what was done before it, too.
  SnapshotPtr Sync(bool complete = true) {
    const std::string name = fmt::format("sync-{}", ++syncs_);
    folder_.Put("zz-sync.yaml", ClassText(name));
    return listener_->Await([&](const ObjectSnapshot& snapshot) {
      return snapshot.complete == complete &&
             snapshot.device_classes.count({"", name}) > 0;
    });
  }

  ManifestDirectory folder_;
  std::unique_ptr<ObjectSource> source_;
  std::unique_ptr<SourceListener> listener_;
  int syncs_ = 0;
};

}  // namespace devmgr::source
