// SPDX-License-Identifier: Apache-2.0
//
// Resolving a container through the public API beside its limit, a look-up in
// a hash map of as many pods: alone, and while 100 decisions a second are
// written. Every call is timed by itself, so both sides hold the cost of
// reading the clock.
#include <devmgr/device_manager.h>
#include <fmt/core.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <unordered_map>

#include "bench/support.h"
#include "support/temp_folder.h"

namespace {
thread_local long allocations = 0;
}  // namespace

/// Stand in for the library's, in the whole process: count. Not inlined, for
/// GCC 12 would then see `free` beside somebody's `new`.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace devmgr::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMaxSamples = 2'000'000;

/// A pod whose claim never comes: seeing it is a decision, and so is
/// forgetting it.
Pod WaitingPod() {
  Pod pod;
  pod.metadata.ns = "default";
  pod.metadata.name = "waits";
  pod.metadata.uid = "00000000-0000-4000-8000-ffffffffffff";
  pod.spec.containers.resize(1);
  pod.spec.containers[0].name = "main";
  pod.spec.containers[0].resources.claims = {{"gpu", ""}};
  pod.spec.resource_claims = {{"gpu", "nowhere", std::nullopt}};
  return pod;
}

/// Writes 100 decisions a second until it goes.
class Writer {
 public:
  explicit Writer(DeviceManager& manager) : manager_(manager) {}
  ~Writer() {
    stop_ = true;
    thread_.join();
  }

 private:
  void Run() {
    const Pod pod = WaitingPod();
    auto next = steady_clock::now();
    for (bool see = true; !stop_; see = !see) {
      Must(see ? manager_.AdmitPod(pod).status()
               : manager_.ReleasePod({pod.metadata.uid}));
      std::this_thread::sleep_until(next += std::chrono::milliseconds(10));
    }
  }

  DeviceManager& manager_;
  std::atomic<bool> stop_ = false;
  std::thread thread_{[this] { Run(); }};
};

class Bench {
 public:
  Bench(Report& report, int pods) : report_(report), pods_(pods) {
    FillLedger(folder_.path(), pods, 1);
    DeviceManagerOptions options;
    options.state_dir = folder_.path();
    Host host;
    host.boot_id = [] { return std::string(kBoot); };
    manager_ = Must(DeviceManager::Open(options, host));
    for (int i = 0; i < pods; ++i) {
      uids_.push_back(UidOfPod(i));
      map_[uids_.back()] = ReadyPod(i, 1).pod;
    }
    std::shuffle(uids_.begin(), uids_.end(), std::mt19937(1));
  }

  void Alone() {
    const int calls = 100'000;
    const long before = allocations;
    for (int i = 0; i < calls; ++i) Resolve(uids_[0]);
    const double per_call = static_cast<double>(allocations - before) / calls;
    report_.Add({fmt::format("resolve, {} pods: allocations per call", pods_),
                 "", per_call, std::nullopt, "", 0});
    Measure("alone");
  }

  void WhileWriting() {
    const Writer writer(*manager_);
    Measure("100 decisions/s");
  }

 private:
  void Resolve(const PodUid& uid) {
    if (!manager_->ContainerDevicesOf(uid, "main").ok()) Fail("no answer");
  }

  void Measure(const std::string& when) {
    Samples resolves;
    Samples look_ups;
    resolves.Reserve(kMaxSamples);
    look_ups.Reserve(kMaxSamples);
    const auto end = steady_clock::now() +
                     std::chrono::milliseconds(report_.brief() ? 200 : 3'000);
    for (std::size_t i = 0; i < kMaxSamples && steady_clock::now() < end; ++i) {
      const PodUid& uid = uids_[i % uids_.size()];
      resolves.Add(1'000 * Microseconds([&] { Resolve(uid); }));
      // Another pod, so that neither finds warm what the other one read.
      const PodUid& other = uids_[(i + uids_.size() / 2) % uids_.size()];
      look_ups.Add(1'000 * Microseconds([&] {
                     if (map_.find(other) == map_.end()) Fail("no pod");
                   }));
    }
    for (const double q : {0.5, 0.99}) {
      report_.Add(
          {fmt::format("resolve, {} pods, {}: p{:.0f}", pods_, when, q * 100),
           "ns", resolves.Quantile(q), look_ups.Quantile(q), "hash look-up",
           q == 0.99 ? std::optional(1'000.0) : std::nullopt});
    }
  }

  Report& report_;
  const int pods_;
  const TempFolder folder_;
  std::unique_ptr<DeviceManager> manager_;
  std::vector<PodUid> uids_;
  std::unordered_map<PodUid, std::shared_ptr<const state::PodRecord>> map_;
};

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  for (const int pods : {10, 1'000, 10'000}) {
    devmgr::bench::Bench bench(report, pods);
    bench.Alone();
    bench.WhileWriting();
  }
}
