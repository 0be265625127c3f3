// SPDX-License-Identifier: Apache-2.0
//
// Preparing a pod whose claims come from 4 drivers that take 100 ms each, over
// real sockets, beside the same 4 calls made at once by a bare client and two
// appends with fdatasync.
#include <devmgr/device_manager.h>
#include <fmt/core.h>

#include <future>
#include <memory>

#include "bench/quick_driver.h"
#include "bench/support.h"
#include "dra/api_version.h"
#include "rpc/connection.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kDrivers = 4;
constexpr std::chrono::milliseconds kDelay{100};

std::string DriverName(int number) {
  return fmt::format("driver-{}.example.com", number);
}

/// Of pod `pod`, from driver `driver`.
dra::ClaimReference Claim(const std::string& pod, int driver) {
  const std::string name = fmt::format("{}-{}", pod, driver);
  return {{"uid-of-" + name}, {"default", name}};
}

/// A pod with one claim of each driver.
Pod AddPod(ObjectSnapshot& objects, const std::string& name) {
  Pod pod = PodOfOneContainer(name);
  for (int i = 0; i < kDrivers; ++i) {
    const dra::ClaimReference reference = Claim(name, i);
    const std::string entry = fmt::format("c{}", i);
    pod.spec.containers[0].resources.claims.push_back({entry, ""});
    pod.spec.resource_claims.push_back(
        {entry, reference.name.name, std::nullopt});
    ResourceClaim claim;
    claim.metadata.ns = reference.name.ns;
    claim.metadata.name = reference.name.name;
    claim.metadata.uid = reference.uid.value;
    claim.status.allocation.emplace().results.push_back(
        {"r",
         DriverName(i),
         "pool-0",
         "dev-" + reference.name.name,
         false,
         "",
         {}});
    claim.status.reserved_for.push_back(
        {"", "pods", pod.metadata.name, pod.metadata.uid});
    objects.claims.insert_or_assign(claim.metadata.FullName(),
                                    std::make_shared<ResourceClaim>(claim));
  }
  objects.pods.insert_or_assign(pod.metadata.FullName(),
                                std::make_shared<Pod>(pod));
  return pod;
}

/// The drivers, called without anything of ours but lib/rpc.
class BareClient {
 public:
  explicit BareClient(const std::vector<std::unique_ptr<QuickDriver>>& drivers)
      : runtime_(Must(rpc::Runtime::Start())) {
    for (const auto& driver : drivers) {
      connections_.push_back(
          Must(rpc::Dial(*runtime_, driver->socket(), [] {})));
    }
  }

  /// All claims of a pod, all drivers at once; waits for the last answer.
  void Prepare(const std::string& pod) {
    const dra::ApiVersion& api = dra::ApiVersions().front();
    std::vector<std::promise<absl::Status>> answers(kDrivers);
    for (int i = 0; i < kDrivers; ++i) {
      connections_[i]->Call(
          api.PrepareMethod(), api.encode_prepare({Claim(pod, i)}), {kPatience},
          [&answers, i](const absl::StatusOr<std::string>& answer) {
            answers[i].set_value(answer.status());
          });
    }
    for (auto& answer : answers) Must(answer.get_future().get());
  }

 private:
  const std::unique_ptr<rpc::Runtime> runtime_;
  std::vector<std::unique_ptr<rpc::Connection>> connections_;
};

double Milliseconds(const std::function<void()>& work) {
  return Microseconds(work) / 1'000;
}

void Prepare(Report& report) {
  const int rounds = report.brief() ? 3 : 30;
  const TempFolder folder;
  const fs::path& root = folder.path();
  std::vector<std::unique_ptr<QuickDriver>> drivers;
  for (int i = 0; i < kDrivers; ++i) {
    drivers.push_back(
        std::make_unique<QuickDriver>(root, DriverName(i), Pace{kDelay}));
  }
  ObjectSnapshot objects;
  std::vector<Pod> pods;
  for (int i = 0; i < rounds; ++i) {
    pods.push_back(AddPod(objects, fmt::format("pod-{}", i)));
  }
  objects.complete = true;
  const auto source = MemoryObjectSource::Create();
  source->Publish(objects);

  DeviceManagerOptions options;
  options.state_dir = root / "state";
  options.plugin_registry_dir = root / "plugins_registry";
  Host host;
  host.objects = source.get();
  const auto manager = Must(DeviceManager::Open(options, host));
  for (const auto& driver : drivers) driver->WaitUntilRegistered();
  BareClient bare(drivers);
  RawLog log(root);
  Samples ours;
  Samples calls;
  Samples syncs;
  for (const Pod& pod : pods) {
    Must(manager->AdmitPod(pod).status());
    ours.Add(
        Milliseconds([&] { Must(manager->PreparePod({pod.metadata.uid})); }));
    calls.Add(Milliseconds([&] { bare.Prepare(pod.metadata.name); }));
    syncs.Add(Milliseconds([&] {
      log.AppendAndSync();
      log.AppendAndSync();
    }));
  }
  report.Add({"prepare, 4 drivers of 100 ms each", "ms", ours.Median(),
              calls.Median() + syncs.Median(),
              "the calls at once + 2 x append + fdatasync",
              1.1 * calls.Median() + syncs.Median()});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Prepare(report);
}
