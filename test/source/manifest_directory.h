// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/unique_fd.h"

namespace devmgr::source {

inline std::string PodText(std::string_view name, int priority = 0) {
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {}\nspec:\n"
      "  priority: {}\n  containers:\n  - name: main\n",
      name, priority);
}

inline std::string ClassText(std::string_view name) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata:\n"
      "  name: {}\nspec: {{}}\n",
      name);
}

/// Well-typed, but no pod may have two containers of one name.
inline std::string MalformedPodText(std::string_view name) {
  return PodText(name) + "  - name: main\n";
}

inline std::string Documents(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += "---\n" + text;
  return all;
}

inline ObjectName InDefault(std::string name) {
  return {"default", std::move(name)};
}

/// A writer that has a file open and goes about it step by step.
class SlowWriter {
 public:
  explicit SlowWriter(const std::filesystem::path& path, int flags = O_TRUNC)
      : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags,
                   0644)) {
    EXPECT_TRUE(fd_.valid()) << path;
  }
  void Write(std::string_view text) {
    EXPECT_EQ(::write(fd_.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  void Close() { fd_.Reset(); }

 private:
  UniqueFd fd_;
};

/// A fresh folder that goes with this object. The manifests are in `path()`,
/// which is made on request; beside it is room for other things.
class ManifestDirectory {
 public:
  ManifestDirectory() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "devmgr-source-XXXXXX")
            .string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    Make();
  }
  ~ManifestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  ManifestDirectory(const ManifestDirectory&) = delete;
  ManifestDirectory& operator=(const ManifestDirectory&) = delete;

  std::filesystem::path root() const { return root_; }
  std::filesystem::path path() const { return root_ / "manifests"; }
  std::filesystem::path operator/(std::string_view name) const {
    return path() / name;
  }

  void Make() { std::filesystem::create_directory(path()); }
  /// Written in place.
  void Write(std::string_view name, std::string_view text) {
    SlowWriter writer(path() / name);
    writer.Write(text);
  }
  /// Written elsewhere and renamed, so that it is there as a whole.
  void Put(std::string_view name, std::string_view text) {
    const std::filesystem::path beside = root_ / "beside";
    SlowWriter writer(beside);
    writer.Write(text);
    writer.Close();
    std::filesystem::rename(beside, path() / name);
  }
  void Remove(std::string_view name) {
    EXPECT_TRUE(std::filesystem::remove(path() / name)) << name;
  }

 private:
  std::filesystem::path root_;
};

/// Subscribes and waits for what the source will say.
class SourceListener {
 public:
  using Condition = std::function<bool(const ObjectSnapshot&)>;

  explicit SourceListener(ObjectSource& source) : source_(source) {
    source_.Subscribe([this] {
      std::lock_guard lock(mutex_);
      ++changes_;
      changed_.notify_all();
    });
  }
  ~SourceListener() { source_.Unsubscribe(); }

  /// The first snapshot, now or later, that fulfils `condition`. After the
  /// limit: the last one, and a test failure.
  std::shared_ptr<const ObjectSnapshot> Await(const Condition& condition) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::unique_lock lock(mutex_);
    for (;;) {
      const int seen = changes_;
      lock.unlock();
      std::shared_ptr<const ObjectSnapshot> snapshot = source_.Snapshot();
      if (condition(*snapshot)) return snapshot;
      lock.lock();
      if (!changed_.wait_until(lock, deadline,
                               [&] { return changes_ != seen; })) {
        ADD_FAILURE() << "not in time; the last snapshot:\n"
                      << Describe(*snapshot);
        return snapshot;
      }
    }
  }
  std::shared_ptr<const ObjectSnapshot> AwaitPods(
      const std::vector<std::string>& names, bool complete = true) {
    return Await([&](const ObjectSnapshot& snapshot) {
      return snapshot.complete == complete && PodNames(snapshot) == names;
    });
  }
  int changes() {
    std::lock_guard lock(mutex_);
    return changes_;
  }

  static std::vector<std::string> PodNames(const ObjectSnapshot& snapshot) {
    std::vector<std::string> names;
    for (const auto& [name, pod] : snapshot.pods) names.push_back(name.name);
    return names;
  }
  static std::string Problems(const ObjectSnapshot& snapshot) {
    std::string all;
    for (const ManifestProblem& problem : snapshot.problems) {
      all += problem.ToString() + "\n";
    }
    return all;
  }
  static std::string Describe(const ObjectSnapshot& snapshot) {
    std::string all = snapshot.complete ? "complete\n" : "incomplete\n";
    for (const std::string& name : PodNames(snapshot)) all += name + "\n";
    return all + Problems(snapshot);
  }

 private:
  ObjectSource& source_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int changes_ = 0;
};

}  // namespace devmgr::source
