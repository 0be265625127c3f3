// SPDX-License-Identifier: Apache-2.0
//
// A node that allocates devices itself, with names of fifty classes: what its
// decisions take while a hundred pods are simulated ten times a second, and
// what is left in memory of thousands of pods that have come and gone.
#include <devmgr/device_manager.h>
#include <devmgr/manifests.h>
#include <devmgr/simulation.h>
#include <fmt/core.h>
#include <malloc.h>
#include <sched.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "bench/quick_driver.h"
#include "bench/support.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr char kDriverName[] = "driver.example.com";
constexpr char kNodeName[] = "node-1";
constexpr int kClasses = 50;
constexpr int kDevicesOfClass = 2;

std::string ClassText(int number) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: "
      "c{0}}}\nspec: {{extendedResourceName: example.com/gpu-{0}, selectors: "
      "[{{cel: {{expression: 'device.attributes[\"{1}\"].model == "
      "\"m{0}\"'}}}}]}}\n---\n",
      number, kDriverName);
}

std::string SliceText() {
  std::string text = fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: "
      "s}}\nspec:\n  driver: {}\n  nodeName: {}\n  pool: {{name: {}, "
      "generation: 1, resourceSliceCount: 1}}\n  devices:\n",
      kDriverName, kNodeName, kNodeName);
  for (int i = 0; i < kClasses * kDevicesOfClass; ++i) {
    text += fmt::format(
        "  - {{name: gpu-{}, attributes: {{model: {{string: m{}}}}}}}\n", i,
        i % kClasses);
  }
  return text;
}

ObjectSnapshot Objects() {
  std::string text;
  for (int i = 0; i < kClasses; ++i) text += ClassText(i);
  const DecodedManifest decoded =
      DecodeManifest(text + SliceText(), "objects.yaml", kNodeName);
  if (!decoded.errors.empty()) Fail(decoded.errors.front().ToString());
  ObjectSnapshot objects;
  objects.complete = true;
  for (const auto& entry : decoded.objects) {
    if (const auto* one = std::get_if<DeviceClass>(&entry.object)) {
      objects.device_classes.insert_or_assign(
          one->metadata.FullName(), std::make_shared<DeviceClass>(*one));
    } else if (const auto* slice = std::get_if<ResourceSlice>(&entry.object)) {
      objects.resource_slices.insert_or_assign(
          slice->metadata.FullName(), std::make_shared<ResourceSlice>(*slice));
    }
  }
  return objects;
}

/// A pod that asks for one device by the name of a class.
Pod PodOf(int number) {
  Pod pod = PodOfOneContainer(fmt::format("p{}", number));
  const std::string name = fmt::format("example.com/gpu-{}", number % kClasses);
  pod.spec.containers[0].resources.limits[name] = {1, 0, "1"};
  return pod;
}

class Node {
 public:
  Node() : driver_(folder_.path(), kDriverName, {}) {
    DeviceManagerOptions options;
    options.state_dir = folder_.path() / "state";
    options.plugin_registry_dir = folder_.path() / "plugins_registry";
    options.node_name = kNodeName;
    Host host;
    host.objects = source_.get();
    manager_ = Must(DeviceManager::Open(options, host));
    driver_.WaitUntilRegistered();
    source_->Publish(Objects());
    WaitUntil("the objects do not arrive", [&] {
      return manager_->Objects()->device_classes.size() == kClasses;
    });
  }

  /// Returns how long the decision took, in microseconds.
  double Admit(const Pod& pod) {
    return Microseconds([&] {
      const Verdict verdict = Must(manager_->AdmitPod(pod));
      if (verdict.kind != Verdict::Kind::kAdmit) Fail(verdict.message);
    });
  }
  void End(const Pod& pod) { Must(manager_->EndPod({pod.metadata.uid})); }
  DeviceManager& manager() { return *manager_; }

 private:
  const TempFolder folder_;
  QuickDriver driver_;
  const std::unique_ptr<MemoryObjectSource> source_ =
      MemoryObjectSource::Create();
  std::unique_ptr<DeviceManager> manager_;
};

void Simulate(DeviceManager& manager) {
  SimulationRequest request;
  for (int i = 0; i < 100; ++i) request.pods.push_back(PodOf(i));
  // One may have to wait for the device of the pod that is there.
  if (Must(manager.Simulate(request)).interrupted) {
    Fail("the simulation did not come to its end");
  }
}

/// Simulates ten times a second, as long as it lives.
class Simulator {
 public:
  explicit Simulator(DeviceManager& manager)
      : thread_([this, &manager] {
          // As in a daemon, whatever the priority of what is measured.
          const sched_param none{};
          sched_setscheduler(0, SCHED_OTHER, &none);
          for (auto next = steady_clock::now(); !stop_;) {
            Simulate(manager);
            next += milliseconds(100);
            std::this_thread::sleep_until(next);
          }
        }) {}
  ~Simulator() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

void Decide(Node& node, int count, Samples* took) {
  for (int i = 0; i < count; ++i) {
    const Pod pod = PodOf(1'000 + i);
    took->Add(node.Admit(pod));
    node.End(pod);
  }
}

void DecisionsBeside(Report& report) {
  Node node;
  Samples simulated;
  for (int i = 0; i < (report.brief() ? 1 : 50); ++i) {
    simulated.Add(Microseconds([&] { Simulate(node.manager()); }));
  }
  report.Add({"100 pods simulated", "ms", simulated.Median() / 1'000,
              std::nullopt, "", std::nullopt});
  Samples alone;
  Samples beside;
  // In short turns: how fast the machine is changes all the time.
  const int decisions = report.brief() ? 5 : 60;
  for (int i = 0; i < (report.brief() ? 1 : 250); ++i) {
    Decide(node, decisions, &alone);
    const Simulator simulator(node.manager());
    Decide(node, decisions, &beside);
  }
  for (const double q : {0.5, 0.99}) {
    const double limit = alone.Quantile(q);
    report.Add({fmt::format("a pod's admission beside 10 such a second, {}",
                            q == 0.5 ? "median" : "p99"),
                "us", beside.Quantile(q), limit, "without simulations",
                q == 0.5 ? std::nullopt : std::optional(1.1 * limit)});
  }
}

double MegabytesInUse() {
  const auto memory = mallinfo2();
  return static_cast<double>(memory.uordblks + memory.hblkhd) / 1e6;
}

/// PB-8: whole lives, prepared and all, faster than a hundred a second.
void Lives(Report& report) {
  Node node;
  // Until what is kept of the past is full: events, changes, the history.
  const int first = report.brief() ? 10 : 8'000;
  const int more = report.brief() ? 10 : 6'000;
  int number = 0;
  const auto live = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const Pod pod = PodOf(number++);
      node.Admit(pod);
      Must(node.manager().PreparePod({pod.metadata.uid}));
      node.End(pod);
    }
    return MegabytesInUse();
  };
  const double before = live(first);
  double after = 0;
  const double took = Microseconds([&] { after = live(more); });
  report.Add({"pods with names of 50 classes, created and deleted", "1/s",
              more / (took / 1e6), std::nullopt, "", std::nullopt});
  report.Add({fmt::format("memory in use after {} of them", first + more), "MB",
              after, before, fmt::format("after {}", first), before + 1});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::DecisionsBeside(report);
  devmgr::bench::Lives(report);
}
