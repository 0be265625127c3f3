// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace edge {

/// A directory of manifests, in which pods that are over have the phase
/// `Succeeded` or `Failed`: so the manager releases them, and they are not run
/// again. An agent of an API server would write that into their status; here it
/// is a file for each in `folder`, until the manifest is gone. Thread-safe.
class EndedPods final : public devmgr::ObjectSource {
 public:
  EndedPods(std::unique_ptr<devmgr::ObjectSource> manifests,
            std::filesystem::path folder);

  /// The pod of that name is over.
  void Add(const devmgr::ObjectName& pod, const std::string& phase);
  bool Has(const devmgr::ObjectName& pod);

  std::shared_ptr<const devmgr::ObjectSnapshot> Snapshot() const override;
  void Subscribe(std::function<void()> changed) override;
  void Unsubscribe() override;
  std::string Describe() const override { return manifests_->Describe(); }
  void Mark(const std::string& id, std::uint64_t watch) override {
    manifests_->Mark(id, watch);
  }

 private:
  struct Ended {
    std::string phase;
    std::uint64_t watch = 0;  ///< In which its manifest was seen last.
    std::shared_ptr<const devmgr::Pod> manifest;  ///< What `shown` is made of.
    std::shared_ptr<const devmgr::Pod> shown;
  };
  std::filesystem::path FileOf(const devmgr::ObjectName& pod) const {
    return folder_ / (pod.ns + "_" + pod.name);
  }

  const std::unique_ptr<devmgr::ObjectSource> manifests_;
  const std::filesystem::path folder_;
  mutable std::mutex mutex_;  ///< For this one.
  mutable std::map<devmgr::ObjectName, Ended> ended_;
  std::mutex subscriber_mutex_;  ///< Held while it is called.
  std::function<void()> changed_;
};

}  // namespace edge
