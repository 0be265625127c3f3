// SPDX-License-Identifier: Apache-2.0
//
// Pods with devices of plugins, over real sockets: the admission of one, of 32
// at once, beside 31 hung plugins, among many others, and of who waits; many
// lists at once.
#include <devmgr/device_manager.h>
#include <devmgr/testing.h>
#include <fmt/core.h>

#include <atomic>
#include <future>
#include <memory>

#include "bench/support.h"
#include "plugin/api_version.h"
#include "rpc/connection.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

namespace fs = std::filesystem;
using testing::FakeDevicePlugin;
using testing::FakeDevicePluginOptions;
using testing::ScenarioStep;

std::string ResourceName(int number) {
  return fmt::format("example.com/r{}", number);
}

Pod PodWith(const std::string& name, const std::string& resource, int count) {
  Pod pod = PodOfOneContainer(name);
  pod.spec.containers[0].resources.limits[resource] = {count, 0,
                                                       std::to_string(count)};
  return pod;
}

/// A manager on a disk, and its plugins.
class Node {
 public:
  Node() {
    DeviceManagerOptions options;
    options.state_dir = folder_.path() / "state";
    options.device_plugin_dir = folder_.path() / "device-plugins";
    manager = Must(DeviceManager::Open(options));
  }

  FakeDevicePlugin& StartPlugin(int number, int devices,
                                std::vector<ScenarioStep> scenario = {}) {
    FakeDevicePluginOptions options;
    options.resource = ResourceName(number);
    options.root = folder_.path();
    options.devices = devices;
    options.scenario = std::move(scenario);
    plugins_.push_back(Must(FakeDevicePlugin::Start(options)));
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!IsLive(options.resource)) {
      if (std::chrono::steady_clock::now() > end) Fail("no plugin");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return *plugins_.back();
  }

  void Admit(const Pod& pod) {
    const Verdict verdict = Must(manager->AdmitPod(pod));
    if (verdict.kind != Verdict::Kind::kAdmit) Fail(verdict.message);
  }
  void Release(const Pod& pod) {
    Must(manager->ReleasePod({pod.metadata.uid}));
  }
  const fs::path& root() const { return folder_.path(); }

  /// Until so many devices of the resource work.
  void WaitForAllocatable(int number, std::int64_t count) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      for (const ResourceInfo& info : manager->View()->Resources()) {
        if (info.name == ResourceName(number) && info.allocatable == count) {
          return;
        }
      }
      if (std::chrono::steady_clock::now() > end) Fail("the list is not taken");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  bool IsLive(const std::string& resource) const {
    for (const ResourceInfo& info : manager->View()->Resources()) {
      if (info.name == resource && info.state == ResourceState::kLive)
        return true;
    }
    return false;
  }

  const TempFolder folder_;

 public:
  std::unique_ptr<DeviceManager> manager;

 private:
  std::vector<std::unique_ptr<FakeDevicePlugin>> plugins_;
};

ScenarioStep Always(ScenarioStep::Action action,
                    std::chrono::milliseconds delay = {}) {
  ScenarioStep step;
  step.action = action;
  step.method = "allocate";
  step.times = 0;
  step.delay = delay;
  return step;
}

/// A plugin's Allocate without anything of ours but lib/rpc.
class BareClient {
 public:
  BareClient(const fs::path& socket)
      : runtime_(Must(rpc::Runtime::Start())),
        connection_(Must(rpc::Dial(*runtime_, socket, [] {}))) {}

  void Allocate(const std::string& id) {
    const plugin::ApiVersion& api = plugin::ApiVersions().front();
    std::promise<absl::Status> answered;
    connection_->Call(api.Method(plugin::kAllocateMethod),
                      api.encode_allocate({id}), {kPatience},
                      [&](const absl::StatusOr<std::string>& answer) {
                        answered.set_value(answer.status());
                      });
    Must(answered.get_future().get());
  }

 private:
  const std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<rpc::Connection> connection_;
};

fs::path SocketOf(const fs::path& root) {
  for (const auto& entry : fs::directory_iterator(root / "device-plugins")) {
    if (entry.path().filename() != "kubelet.sock") return entry.path();
  }
  Fail("no socket of a plugin");
}

void OneAdmission(Report& report) {
  Node node;
  node.StartPlugin(0, 1);
  BareClient bare(SocketOf(node.root()));
  RawLog log(node.root());
  Samples ours;
  Samples limit;
  Rounds rounds(report.brief() ? 20 : 1'000, kPatience);
  for (int i = 0; rounds.Next(); ++i) {
    const Pod pod = PodWith(fmt::format("p{}", i), ResourceName(0), 1);
    ours.Add(Microseconds([&] { node.Admit(pod); }));
    node.Release(pod);
    limit.Add(Microseconds([&] {
      bare.Allocate("r0-0");
      log.AppendAndSync();
    }));
  }
  report.Add({"admission with one Allocate", "us", ours.Median(),
              limit.Median(), "gRPC call + append + fdatasync",
              3 * limit.Median()});
}

void ManyAtOnce(Report& report) {
  constexpr int kPods = 32;
  constexpr std::chrono::milliseconds kDelay{10};
  Node node;
  node.StartPlugin(0, kPods, {Always(ScenarioStep::Action::kDelay, kDelay)});
  Samples all;
  Rounds rounds(report.brief() ? 2 : 50, kPatience);
  for (int round = 0; rounds.Next(); ++round) {
    std::vector<Pod> pods;
    for (int i = 0; i < kPods; ++i) {
      pods.push_back(
          PodWith(fmt::format("p{}-{}", round, i), ResourceName(0), 1));
    }
    all.Add(Microseconds([&] {
              std::vector<std::promise<absl::StatusOr<Verdict>>> done(kPods);
              for (int i = 0; i < kPods; ++i) {
                node.manager->StartAdmitPod(
                    pods[i], [&done, i](absl::StatusOr<Verdict> verdict) {
                      done[i].set_value(std::move(verdict));
                    });
              }
              for (auto& each : done) Must(each.get_future().get().status());
            }) /
            1'000);
    for (const Pod& pod : pods) node.Release(pod);
  }
  report.Add({"32 admissions at once, plugin of 10 ms", "ms", all.Median(),
              static_cast<double>(kDelay.count()), "one call", std::nullopt});
}

/// The 99th percentile of admissions at one plugin, beside `hung` others.
double HealthyBeside(Report& report, int hung) {
  Node node;
  node.StartPlugin(0, 1);
  for (int i = 1; i < 32; ++i) {
    std::vector<ScenarioStep> scenario;
    if (i <= hung) scenario = {Always(ScenarioStep::Action::kHang)};
    node.StartPlugin(i, 4, std::move(scenario));
    for (int j = 0; i <= hung && j < 4; ++j) {
      node.manager->StartAdmitPod(
          PodWith(fmt::format("hung{}-{}", i, j), ResourceName(i), 1),
          [](const absl::StatusOr<Verdict>&) {});
    }
  }
  Samples times;
  Rounds rounds(report.brief() ? 20 : 1'000, kPatience);
  for (int i = 0; rounds.Next(); ++i) {
    const Pod pod = PodWith(fmt::format("p{}", i), ResourceName(0), 1);
    times.Add(Microseconds([&] { node.Admit(pod); }));
    node.Release(pod);
  }
  return times.Quantile(0.99);
}

void HungNeighbours(Report& report) {
  const double alone = HealthyBeside(report, 0);
  const double beside = HealthyBeside(report, 31);
  report.Add({"admission beside 31 hung plugins: p99", "us", beside, alone,
              "beside 31 that work", 1.2 * alone});
}

void Growth(Report& report) {
  constexpr int kPods = 100;
  constexpr int kDevices = 8;
  Samples first;
  Samples last;
  Rounds rounds(report.brief() ? 1 : 5, kPatience);
  while (rounds.Next()) {
    Node node;
    node.StartPlugin(0, kPods * kDevices);
    for (int i = 0; i < kPods; ++i) {
      const Pod pod = PodWith(fmt::format("p{}", i), ResourceName(0), kDevices);
      const double time = Microseconds([&] { node.Admit(pod); });
      if (i >= 5 && i < 25) first.Add(time);
      if (i >= kPods - 20) last.Add(time);
    }
  }
  report.Add({"100 pods with 8 devices each: the last 20", "us", last.Median(),
              first.Median(), "20 at the begin", 1.2 * first.Median()});
}

/// Pods of one device come and go at a plugin with so many.
struct ComeAndGo {
  Samples admission;
  Samples release;
};
ComeAndGo BesideDevices(Report& report, int devices) {
  Node node;
  node.StartPlugin(0, devices);
  ComeAndGo times;
  Rounds rounds(report.brief() ? 20 : 1'000, kPatience);
  for (int i = 0; rounds.Next(); ++i) {
    const Pod pod = PodWith(fmt::format("p{}", i), ResourceName(0), 1);
    times.admission.Add(Microseconds([&] { node.Admit(pod); }));
    times.release.Add(Microseconds([&] {
      node.Release(pod);
      // What follows from it, too.
      node.manager->Events(0);
    }));
  }
  return times;
}

void ManyDevices(Report& report) {
  constexpr int kMany = 5'000;
  const ComeAndGo few = BesideDevices(report, 10);
  const ComeAndGo many = BesideDevices(report, kMany);
  const std::string of = fmt::format(" at a plugin of {} devices", kMany);
  report.Add({"admission" + of, "us", many.admission.Median(),
              few.admission.Median(), "of 10", 1.2 * few.admission.Median()});
  report.Add({"release" + of, "us", many.release.Median(), few.release.Median(),
              "of 10", 1.2 * few.release.Median()});
}

void Waiting(Report& report) {
  const int waiting = report.brief() ? 50 : 1'000;
  Node node;
  node.StartPlugin(0, 1);
  const Pod holder = PodWith("holder", ResourceName(0), 1);
  node.Admit(holder);
  for (int i = 0; i < waiting; ++i) {
    const Pod pod = PodWith(fmt::format("p{}", i), ResourceName(0), 1);
    if (Must(node.manager->AdmitPod(pod)).kind != Verdict::Kind::kWait) {
      Fail("it should wait");
    }
  }
  const double time = Microseconds([&] { node.Release(holder); });
  report.Add({fmt::format("{} wait, one device freed: the release", waiting),
              "us", time, std::nullopt, "", std::nullopt});
}

/// Devices fail one after the other, each in a list of its own.
void FailingDevices(Report& report) {
  constexpr int kDevices = 64;
  Samples times;
  Rounds rounds(report.brief() ? 2 : 20, kPatience);
  while (rounds.Next()) {
    Node node;
    FakeDevicePlugin& plugin = node.StartPlugin(0, kDevices);
    const auto devices = plugin.Devices();
    times.Add(Microseconds([&] {
                for (const auto& device : devices) {
                  plugin.SetHealth(device.id, "Unhealthy");
                }
                node.WaitForAllocatable(0, 0);
              }) /
              1'000);
  }
  report.Add({"64 devices fail in 64 lists at once: until none counts", "ms",
              times.Median(), std::nullopt, "", 500});
}

/// One device flips, and after so many lists another one fails.
void ManyLists(Report& report, int lists, int devices, double goal) {
  Samples times;
  Rounds rounds(report.brief() ? 1 : 5, kPatience);
  while (rounds.Next()) {
    Node node;
    FakeDevicePlugin& plugin = node.StartPlugin(0, devices);
    times.Add(Microseconds([&] {
                for (int i = 1; i < lists - 1; ++i) {
                  plugin.SetHealth("r0-0",
                                   i % 2 == 0 ? "Healthy" : "Unhealthy");
                }
                plugin.SetHealth("r0-0", "Unhealthy");
                plugin.SetHealth("r0-1", "Unhealthy");
                node.WaitForAllocatable(0, devices - 2);
              }) /
              1'000);
  }
  report.Add({fmt::format("{} lists of {} devices at once: until the last one "
                          "counts",
                          lists, devices),
              "ms", times.Median(), std::nullopt, "", goal});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::OneAdmission(report);
  devmgr::bench::ManyAtOnce(report);
  devmgr::bench::HungNeighbours(report);
  devmgr::bench::Growth(report);
  devmgr::bench::ManyDevices(report);
  devmgr::bench::Waiting(report);
  devmgr::bench::FailingDevices(report);
  devmgr::bench::ManyLists(report, 1'000, 2, 600);
  devmgr::bench::ManyLists(report, 20, 60'000, 20 * 65);
}
