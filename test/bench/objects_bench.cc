// SPDX-License-Identifier: Apache-2.0
//
// One event of a pod, from the source's Publish until the manager has judged
// the pod, beside others that do not change.
#include <devmgr/device_manager.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "bench/support.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// A manager that follows a source, and says when it asks for the time: the
/// first thing of a decision about a pod.
class Node {
 public:
  explicit Node(int pods) {
    DeviceManagerOptions options;
    options.state_dir = folder_.path() / "state";
    options.device_plugin_dir = folder_.path() / "device-plugins";
    options.plugin_registry_dir = folder_.path() / "plugins_registry";
    options.actuate = Actuate::kSource;
    Host host;
    host.objects = source_.get();
    host.now = [this] {
      if (armed_.exchange(false)) begun_ = Clock::now().time_since_epoch();
      return std::chrono::system_clock::now();
    };
    manager_ = Must(DeviceManager::Open(options, host));
    objects_.complete = true;
    for (int i = 0; i < pods; ++i) {
      Put(std::make_shared<Pod>(PodOfOneContainer(fmt::format("p{}", i))));
    }
    source_->Publish(objects_);
    WaitUntil("the pods do not become Ready", [&] {
      const auto all = manager_->View()->Pods();
      return all.size() == static_cast<std::size_t>(pods) &&
             std::all_of(all.begin(), all.end(), [](const PodInfo& pod) {
               return pod.state == PodState::kReady;
             });
    });
  }

  /// Publishes a pod that waits for a claim; in microseconds.
  double Event(int number) {
    const Pod pod = PodWithClaim(fmt::format("new-{}", number));
    manager_->Events(0);  // What came before is done with.
    armed_ = true;
    const auto begin = Clock::now().time_since_epoch();
    Put(std::make_shared<Pod>(pod));
    source_->Publish(objects_);
    WaitUntil("nothing is decided", [&] { return !armed_.load(); });
    WaitUntil("the pod does not wait", [&] {
      return manager_->View()->PodInfoOf(PodUid{pod.metadata.uid}).ok();
    });
    return std::chrono::duration<double, std::micro>(begun_.load() - begin)
        .count();
  }

 private:
  void Put(std::shared_ptr<const Pod> pod) {
    const ObjectName name = pod->metadata.FullName();
    objects_.pods.insert_or_assign(name, std::move(pod));
  }

  const TempFolder folder_;
  std::atomic<bool> armed_ = false;
  std::atomic<Clock::duration> begun_{};
  ObjectSnapshot objects_;
  const std::unique_ptr<MemoryObjectSource> source_ =
      MemoryObjectSource::Create();
  std::unique_ptr<DeviceManager> manager_;
};

/// What an event may cost beyond the hand-overs to threads on its way.
constexpr double kMostBeyond = 50;

void Events(Report& report, int pods) {
  Node node(pods);
  Helper helper;
  Samples events;
  Samples hand_overs;
  Rounds rounds(report.brief() ? 20 : 1'000, kPatience);
  for (int i = 0; rounds.Next(); ++i) {
    events.Add(node.Event(i));
    hand_overs.Add(Microseconds([&] { helper.Run([] {}); }));
  }
  report.Add({fmt::format("an event of a pod beside {} pods: until it is "
                          "judged",
                          pods),
              "us", events.Median(), hand_overs.Median(),
              "two hand-overs to threads", hand_overs.Median() + kMostBeyond});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Events(report, 10);
  devmgr::bench::Events(report, 1'000);
  devmgr::bench::Events(report, report.brief() ? 1'000 : 10'000);
}
