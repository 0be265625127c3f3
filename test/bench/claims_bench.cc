// SPDX-License-Identifier: Apache-2.0
//
// Many pods with claims, over real sockets and a disk: 100 that share a claim,
// 1,000 claims of one driver at once, pods beside a driver that hangs, 1,000
// that end while no objects can be had, and resolving under all that.
#include <devmgr/device_manager.h>
#include <fmt/core.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <unordered_map>

#include "bench/quick_driver.h"
#include "bench/support.h"
#include "dra/api_version.h"
#include "rpc/connection.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};

std::string DriverName(int number) {
  return fmt::format("driver-{}.example.com", number);
}

Pod PodWith(const std::string& name, const std::string& claim) {
  Pod pod = PodOfOneContainer(name);
  pod.spec.containers[0].resources.claims = {{"it", ""}};
  pod.spec.resource_claims = {{"it", claim, std::nullopt}};
  return pod;
}

ResourceClaim ClaimOf(const std::string& name, const std::string& driver,
                      const std::vector<Pod>& pods) {
  ResourceClaim claim;
  claim.metadata.ns = "default";
  claim.metadata.name = name;
  claim.metadata.uid = "uid-of-claim-" + name;
  AllocationResult& allocation = claim.status.allocation.emplace();
  allocation.results.push_back(
      {"r", driver, "pool-0", "dev-" + name, false, "", {}});
  for (const Pod& pod : pods) {
    claim.status.reserved_for.push_back(
        {"", "pods", pod.metadata.name, pod.metadata.uid});
  }
  return claim;
}

/// A manager on a disk, its drivers and its objects.
class Node {
 public:
  Node() { Open(true); }

  /// Closes it and opens it again; the drivers stay.
  void Reopen(bool with_objects) {
    manager_ = nullptr;
    Open(with_objects);
  }

  QuickDriver& StartDriver(int number, Pace pace) {
    drivers_.push_back(std::make_unique<QuickDriver>(folder_.path(),
                                                     DriverName(number), pace));
    drivers_.back()->WaitUntilRegistered();
    return *drivers_.back();
  }
  void WaitForDriver(int number) {
    const auto end = steady_clock::now() + kPatience;
    while (steady_clock::now() < end) {
      for (const PluginInfo& plugin : manager_->View()->Plugins()) {
        if (plugin.name == DriverName(number) &&
            plugin.state == PluginState::kConnected) {
          return;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    Fail("the driver does not come back");
  }

  void Add(const Pod& pod) {
    objects_.pods.insert_or_assign(pod.metadata.FullName(),
                                   std::make_shared<Pod>(pod));
  }
  void Add(const ResourceClaim& claim) {
    objects_.claims.insert_or_assign(claim.metadata.FullName(),
                                     std::make_shared<ResourceClaim>(claim));
  }
  void Publish() {
    objects_.complete = true;
    source_->Publish(objects_);
    const auto end = steady_clock::now() + kPatience;
    while (manager_->Objects()->claims.size() != objects_.claims.size()) {
      if (steady_clock::now() > end) Fail("the objects do not arrive");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  /// Pods p0, p1 ... with a claim each, of drivers `first` and on in turns.
  std::vector<Pod> MakePods(const std::string& prefix, int count, int first = 0,
                            int drivers = 1) {
    std::vector<Pod> pods;
    for (int i = 0; i < count; ++i) {
      const std::string name = fmt::format("{}{}", prefix, i);
      pods.push_back(PodWith(name, name));
      Add(pods.back());
      Add(ClaimOf(name, DriverName(first + i % drivers), {pods.back()}));
    }
    Publish();
    return pods;
  }

  void Admit(const Pod& pod) {
    const Verdict verdict = Must(manager_->AdmitPod(pod));
    if (verdict.kind != Verdict::Kind::kAdmit) Fail(verdict.message);
  }
  void AdmitAll(const std::vector<Pod>& pods) {
    for (const Pod& pod : pods) Admit(pod);
  }
  void PrepareAll(const std::vector<Pod>& pods) {
    All(pods, [this](const PodUid& pod, auto done) {
      manager_->StartPreparePod(pod, done);
    });
  }
  void UnprepareAll(const std::vector<Pod>& pods) {
    All(pods, [this](const PodUid& pod, auto done) {
      manager_->StartUnpreparePod(pod, done);
    });
  }
  void ReleaseAll(const std::vector<Pod>& pods) {
    All(pods, [this](const PodUid& pod, auto done) {
      manager_->StartReleasePod(pod, done);
    });
  }

  DeviceManager& manager() { return *manager_; }
  const fs::path& root() const { return folder_.path(); }

 private:
  void Open(bool with_objects) {
    DeviceManagerOptions options;
    options.state_dir = folder_.path() / "state";
    options.plugin_registry_dir = folder_.path() / "plugins_registry";
    Host host;
    host.objects = with_objects ? source_.get() : nullptr;
    manager_ = Must(DeviceManager::Open(options, host));
  }

  /// Starts an operation for each, and waits until all have ended. Those that
  /// found the driver busy begin again, as an actuator would have it.
  template <typename Operation>
  static void All(std::vector<Pod> pods, Operation operation) {
    while (!pods.empty()) {
      std::vector<std::promise<absl::Status>> done(pods.size());
      for (std::size_t i = 0; i < pods.size(); ++i) {
        operation(PodUid{pods[i].metadata.uid},
                  [&done, i](const absl::Status& status) {
                    done[i].set_value(status);
                  });
      }
      std::vector<Pod> again;
      for (std::size_t i = 0; i < pods.size(); ++i) {
        const absl::Status status = done[i].get_future().get();
        if (!absl::IsResourceExhausted(status)) Must(status);
        if (!status.ok()) again.push_back(pods[i]);
      }
      pods = std::move(again);
    }
  }

  const TempFolder folder_;
  ObjectSnapshot objects_;
  const std::unique_ptr<MemoryObjectSource> source_ =
      MemoryObjectSource::Create();
  std::vector<std::unique_ptr<QuickDriver>> drivers_;
  std::unique_ptr<DeviceManager> manager_;
};

/// One call with these claims to a driver, without anything of ours but
/// lib/rpc; in milliseconds.
double BareCall(const QuickDriver& driver, const std::vector<Pod>& pods,
                bool prepare) {
  const auto runtime = Must(rpc::Runtime::Start());
  const auto connection = Must(rpc::Dial(*runtime, driver.socket(), [] {}));
  const dra::ApiVersion& api = dra::ApiVersions().front();
  std::vector<dra::ClaimReference> claims;
  for (const Pod& pod : pods) {
    claims.push_back({{"bare-" + pod.metadata.uid},
                      {"default", "bare-" + pod.metadata.name}});
  }
  return Microseconds([&] {
           std::promise<absl::Status> answered;
           connection->Call(
               prepare ? api.PrepareMethod() : api.UnprepareMethod(),
               prepare ? api.encode_prepare(claims)
                       : api.encode_unprepare(claims),
               {kPatience}, [&](const absl::StatusOr<std::string>& answer) {
                 answered.set_value(answer.status());
               });
           Must(answered.get_future().get());
         }) /
         1'000;
}

void Shared(Report& report) {
  constexpr int kPods = 100;
  Node node;
  const QuickDriver& driver = node.StartDriver(0, {microseconds(10'000), {}});
  std::vector<Pod> pods;
  for (int i = 0; i < kPods; ++i) {
    pods.push_back(PodWith(fmt::format("p{}", i), "shared"));
    node.Add(pods.back());
  }
  node.Add(ClaimOf("shared", DriverName(0), pods));
  node.Publish();
  node.AdmitAll(pods);
  node.PrepareAll(pods);
  report.Add({"100 pods share a claim: calls to prepare", "",
              static_cast<double>(driver.prepare_calls()), 1, "one call", 1});
  node.UnprepareAll(pods);
  report.Add({"100 pods share a claim: calls to unprepare", "",
              static_cast<double>(driver.unprepare_calls()), 1, "one call", 1});
}

/// 1,000 claims of a driver that takes 2 ms for a call and 50 us for a claim.
void ManyClaims(Report& report) {
  const int count = report.brief() ? 100 : 1'000;
  Node node;
  const QuickDriver& driver =
      node.StartDriver(0, {microseconds(2'000), microseconds(50)});
  Samples ours;
  Samples limit;
  Samples calls;
  const int rounds = report.brief() ? 1 : 5;
  for (int round = 0; round < rounds; ++round) {
    const auto pods = node.MakePods(fmt::format("r{}-", round), count);
    node.AdmitAll(pods);
    const int before = driver.prepare_calls();
    ours.Add(Microseconds([&] { node.PrepareAll(pods); }) / 1'000);
    calls.Add(driver.prepare_calls() - before);
    limit.Add(BareCall(driver, pods, true));
  }
  report.Add({"1000 claims of one driver at once", "ms", ours.Median(),
              limit.Median(), "one call with all of them", std::nullopt});
  report.Add({"1000 claims of one driver at once: calls", "", calls.Median(), 1,
              "one call", 100});
}

/// The 99th percentile of preparing pods at 7 drivers, in microseconds, beside
/// an eighth that is asked as much.
double Beside(Report& report, bool hung) {
  Node node;
  for (int i = 0; i < 7; ++i) node.StartDriver(i, {});
  node.StartDriver(7, {{}, {}, hung});
  const auto stuck = node.MakePods("stuck", 64, 7);
  node.AdmitAll(stuck);
  for (const Pod& pod : stuck) {
    node.manager().StartPreparePod({pod.metadata.uid},
                                   [](const absl::Status&) {});
  }
  const int count = report.brief() ? 50 : 2'000;
  const auto pods = node.MakePods("p", count, 0, 7);
  Samples times;
  Rounds rounds(count, kPatience);
  for (int i = 0; rounds.Next(); ++i) {
    const Pod& pod = pods[static_cast<std::size_t>(i)];
    node.Admit(pod);
    times.Add(Microseconds(
        [&] { Must(node.manager().PreparePod({pod.metadata.uid})); }));
    Must(node.manager().UnpreparePod({pod.metadata.uid}));
    Must(node.manager().ReleasePod({pod.metadata.uid}));
  }
  return times.Quantile(0.99);
}

void HungNeighbour(Report& report) {
  const double well = Beside(report, false);
  const double hung = Beside(report, true);
  report.Add({"prepare beside 1 hung driver of 8: p99", "us", hung, well,
              "beside 8 that work", 1.2 * well});
}

void WithoutObjects(Report& report) {
  const int count = report.brief() ? 100 : 1'000;
  Node node;
  const QuickDriver& driver =
      node.StartDriver(0, {microseconds(2'000), microseconds(50)});
  const auto pods = node.MakePods("p", count);
  node.AdmitAll(pods);
  node.PrepareAll(pods);
  node.Reopen(false);
  node.WaitForDriver(0);
  const int before = driver.unprepare_calls();
  const double took = Microseconds([&] {
                        node.UnprepareAll(pods);
                        node.ReleaseAll(pods);
                      }) /
                      1'000;
  const int calls = driver.unprepare_calls() - before;
  report.Add({"1000 pods end without any object", "ms", took,
              BareCall(driver, pods, false), "one call with all claims",
              std::nullopt});
  report.Add({"1000 pods end without any object: calls", "",
              static_cast<double>(calls), 1, "one call", 100});
  report.Add({"1000 pods end without any object: what is left", "",
              static_cast<double>(node.manager().View()->Pods().size() +
                                  node.manager().View()->Claims().size()),
              std::nullopt, "", 0});
}

/// Prepares and unprepares 64 pods at once, over and over, until it goes.
class Load {
 public:
  explicit Load(Node& node) : node_(node), pods_(node.MakePods("load", 64)) {}
  void Start() {
    thread_ = std::thread([this] {
      while (!stop_) {
        node_.AdmitAll(pods_);
        node_.PrepareAll(pods_);
        node_.UnprepareAll(pods_);
        node_.ReleaseAll(pods_);
        ++rounds_;
      }
    });
  }
  ~Load() {
    stop_ = true;
    thread_.join();
  }
  int rounds() const { return rounds_; }

 private:
  Node& node_;
  const std::vector<Pod> pods_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> rounds_ = 0;
  std::thread thread_;
};

void ResolveUnderLoad(Report& report) {
  constexpr int kPods = 1'000;
  constexpr std::size_t kMaxSamples = 1'000'000;
  Node node;
  node.StartDriver(0, {});
  const auto pods = node.MakePods("p", kPods);
  node.AdmitAll(pods);
  node.PrepareAll(pods);
  std::vector<PodUid> uids;
  std::unordered_map<PodUid, int> map;
  for (const Pod& pod : pods) {
    uids.push_back({pod.metadata.uid});
    map[uids.back()] = 1;
  }
  Load load(node);
  load.Start();
  Samples resolves;
  Samples look_ups;
  resolves.Reserve(kMaxSamples);
  look_ups.Reserve(kMaxSamples);
  const auto end = steady_clock::now() +
                   std::chrono::milliseconds(report.brief() ? 200 : 3'000);
  const auto is_over = [&] {
    return steady_clock::now() >= end && load.rounds() > 0;
  };
  for (std::size_t i = 0; i < kMaxSamples && !is_over(); ++i) {
    const PodUid& uid = uids[i % kPods];
    const PodUid& other = uids[(i + kPods / 2) % kPods];
    resolves.Add(1'000 * Microseconds([&] {
                   if (!node.manager().ContainerDevicesOf(uid, "main").ok()) {
                     Fail("no answer");
                   }
                 }));
    look_ups.Add(1'000 * Microseconds([&] {
                   if (map.find(other) == map.end()) Fail("no pod");
                 }));
  }
  for (const double q : {0.5, 0.99}) {
    report.Add(
        {fmt::format("resolve, 1000 pods, prepares at full load: p{:.0f}",
                     q * 100),
         "ns", resolves.Quantile(q), look_ups.Quantile(q), "hash look-up",
         q == 0.99 ? std::optional(1'000.0) : std::nullopt});
  }
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Shared(report);
  devmgr::bench::ManyClaims(report);
  devmgr::bench::HungNeighbour(report);
  devmgr::bench::WithoutObjects(report);
  devmgr::bench::ResolveUnderLoad(report);
}
