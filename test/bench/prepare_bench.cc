// SPDX-License-Identifier: Apache-2.0
//
// Preparing a pod whose claims come from 4 drivers that take 100 ms each, over
// real sockets, beside the same 4 calls made at once by a bare client and two
// appends with fdatasync.
#include <devmgr/device_manager.h>
#include <devmgr/testing.h>
#include <fmt/format.h>

#include <fstream>
#include <future>
#include <memory>

#include "bench/support.h"
#include "dra/api_version.h"
#include "rpc/connection.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kDrivers = 4;
constexpr std::chrono::milliseconds kDelay{100};
constexpr std::chrono::seconds kPatience{30};

std::string DriverName(int number) {
  return fmt::format("driver-{}.example.com", number);
}

dra::ClaimReference Claim(const std::string& pod, int driver) {
  const std::string name = fmt::format("{}-{}", pod, driver);
  return {{"uid-of-" + name}, {"default", name}};
}

/// A pod with one claim of each driver.
std::string Manifest(const std::string& pod) {
  std::string uses;
  std::string names;
  std::string claims;
  for (int i = 0; i < kDrivers; ++i) {
    const dra::ClaimReference claim = Claim(pod, i);
    uses += fmt::format("{{name: c{}}}, ", i);
    names += fmt::format("{{name: c{}, resourceClaimName: {}}}, ", i,
                         claim.name.name);
    claims += fmt::format(
        "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
        "metadata: {{name: {}, uid: {}}}\n"
        "spec: {{devices: {{requests: [{{name: r, exactly: "
        "{{deviceClassName: c}}}}]}}}}\n"
        "status:\n  allocation: {{devices: {{results: [{{request: r, driver: "
        "{}, pool: pool-0, device: dev-{}}}]}}}}\n"
        "  reservedFor: [{{resource: pods, name: {}, uid: uid-of-{}}}]\n",
        claim.name.name, claim.uid.value, DriverName(i), i, pod, pod);
  }
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, uid: uid-of-{0}}}\n"
      "spec:\n  containers: [{{name: main, resources: {{claims: [{1}]}}}}]\n"
      "  resourceClaims: [{2}]\n{3}",
      pod, uses, names, claims);
}

/// The drivers, called without anything of ours but lib/rpc.
class BareClient {
 public:
  explicit BareClient(const fs::path& root)
      : runtime_(Must(rpc::Runtime::Start())) {
    for (int i = 0; i < kDrivers; ++i) {
      connections_.push_back(Must(rpc::Dial(
          *runtime_, root / "plugins" / DriverName(i) / "dra.sock", [] {})));
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

std::vector<std::unique_ptr<testing::FakeDraDriver>> StartDrivers(
    const fs::path& root) {
  std::vector<std::unique_ptr<testing::FakeDraDriver>> drivers;
  for (int i = 0; i < kDrivers; ++i) {
    testing::FakeDraDriverOptions options;
    options.name = DriverName(i);
    options.root = root;
    testing::ScenarioStep slow;
    slow.method = "prepare";
    slow.times = 0;
    slow.delay = kDelay;
    options.scenario = {slow};
    drivers.push_back(Must(testing::FakeDraDriver::Start(options)));
  }
  return drivers;
}

void Prepare(Report& report) {
  const int rounds = report.brief() ? 3 : 30;
  const TempFolder folder;
  const fs::path& root = folder.path();
  fs::create_directories(root / "manifests");
  const auto drivers = StartDrivers(root);
  ObjectSnapshot objects;
  for (int i = 0; i < rounds; ++i) {
    for (const char* who : {"ours", "bare"}) {
      const std::string text = Manifest(fmt::format("{}-{}", who, i));
      std::ofstream(root / "manifests" / fmt::format("{}-{}.yaml", who, i))
          << text;
      for (const auto& decoded : DecodeManifest(text, "").objects) {
        if (const auto* claim = std::get_if<ResourceClaim>(&decoded.object)) {
          objects.claims[claim->metadata.FullName()] =
              std::make_shared<ResourceClaim>(*claim);
        } else if (const auto* pod = std::get_if<Pod>(&decoded.object)) {
          objects.pods[pod->metadata.FullName()] = std::make_shared<Pod>(*pod);
        }
      }
    }
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
  for (const auto& driver : drivers) {
    if (!driver->WaitForRegistrations(1, kPatience)) Fail("no registration");
  }
  BareClient bare(root);
  RawLog log(root);
  Samples ours;
  Samples limit;
  for (int i = 0; i < rounds; ++i) {
    const Pod& pod = *objects.pods.at({"default", fmt::format("ours-{}", i)});
    Must(manager->AdmitPod(pod).status());
    ours.Add(
        Microseconds([&] { Must(manager->PreparePod({pod.metadata.uid})); }) /
        1'000);
    limit.Add(Microseconds([&] {
                log.AppendAndSync();
                bare.Prepare(fmt::format("bare-{}", i));
                log.AppendAndSync();
              }) /
              1'000);
  }
  report.Add({"prepare, 4 drivers of 100 ms each", "ms", ours.Median(),
              limit.Median(), "the calls at once + 2 x append + fdatasync",
              1.1 * limit.Median()});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Prepare(report);
}
