// SPDX-License-Identifier: Apache-2.0
#include "ended_pods.h"

#include <fstream>
#include <system_error>
#include <utility>

namespace edge {

namespace fs = std::filesystem;

EndedPods::EndedPods(std::unique_ptr<devmgr::ObjectSource> manifests,
                     fs::path folder)
    : manifests_(std::move(manifests)), folder_(std::move(folder)) {
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder_, error)) {
    const std::string name = file.path().filename().string();
    const auto mark = name.find('_');  // No part of names.
    std::ifstream text(file.path());
    std::string phase;
    if (mark == std::string::npos || !(text >> phase)) continue;
    ended_[{name.substr(0, mark), name.substr(mark + 1)}].phase = phase;
  }
}

void EndedPods::Add(const devmgr::ObjectName& pod, const std::string& phase) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_[pod].phase = phase;
    // A write that fails is made up for: the containers say the same.
    const fs::path draft = folder_ / "draft";
    std::ofstream(draft) << phase << std::endl;
    std::error_code error;
    fs::rename(draft, FileOf(pod), error);
  }
  const std::lock_guard<std::mutex> lock(subscriber_mutex_);
  if (changed_) changed_();
}

bool EndedPods::Has(const devmgr::ObjectName& pod) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ended_.count(pod) > 0;
}

std::shared_ptr<const devmgr::ObjectSnapshot> EndedPods::Snapshot() const {
  const auto now = manifests_->Snapshot();
  const std::lock_guard<std::mutex> lock(mutex_);
  auto shown = std::make_shared<devmgr::ObjectSnapshot>(*now);
  for (auto it = ended_.begin(); it != ended_.end();) {
    auto& [name, pod] = *it++;
    const auto manifest = now->pods.find(name);
    if (manifest == now->pods.end()) {
      // Gone, unless the directory may be another one that is empty, as where a
      // disk is not mounted yet.
      const bool trusted = now->watch == pod.watch || !now->marker.empty();
      std::error_code error;
      if (!now->complete || !trusted) continue;
      fs::remove(FileOf(name), error);
      ended_.erase(devmgr::ObjectName(name));
      continue;
    }
    pod.watch = now->watch;
    if (pod.manifest != manifest->second) {
      auto over = std::make_shared<devmgr::Pod>(*manifest->second);
      over->status.phase = pod.phase;
      pod.manifest = manifest->second;
      pod.shown = std::move(over);
    }
    shown->pods.insert_or_assign(name, pod.shown);
  }
  return shown;
}

void EndedPods::Subscribe(std::function<void()> changed) {
  {
    const std::lock_guard<std::mutex> lock(subscriber_mutex_);
    changed_ = changed;
  }
  manifests_->Subscribe(std::move(changed));
}

void EndedPods::Unsubscribe() {
  manifests_->Unsubscribe();
  const std::lock_guard<std::mutex> lock(subscriber_mutex_);
  changed_ = nullptr;
}

}  // namespace edge
