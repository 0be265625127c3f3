// SPDX-License-Identifier: Apache-2.0
//
// From Open until resolve answers, and until the first decision is on disk,
// beside RocksDB alone: it opens the same store and reads what is needed for
// that once. With 110 pods, and with 10,000 claims and a full history. Then
// until a new claim is prepared, and with devices of a plugin.
#include <devmgr/device_manager.h>
#include <devmgr/testing.h>
#include <fmt/core.h>
#include <rocksdb/db.h>

#include <functional>
#include <memory>
#include <string>

#include "bench/quick_driver.h"
#include "bench/support.h"
#include "checkpoint/rocksdb_config.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

/// What the keys of pods begin with (checkpoint/FORMAT.md).
constexpr char kPodKeys[] = "p/";

std::unique_ptr<DeviceManager> OpenManager(const std::filesystem::path& folder,
                                           DeviceManagerOptions options = {},
                                           ObjectSource* objects = nullptr) {
  options.state_dir = folder / "state";
  Host host;
  host.boot_id = [] { return std::string(kBoot); };
  host.objects = objects;
  return Must(DeviceManager::Open(options, host));
}

void Admit(DeviceManager& manager, const Pod& pod) {
  const Verdict verdict = Must(manager.AdmitPod(pod));
  if (verdict.kind != Verdict::Kind::kAdmit) Fail(verdict.message);
}

std::filesystem::path DatabaseBelow(const std::filesystem::path& state_dir) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(state_dir)) {
    if (entry.path().filename() == "CURRENT") {
      return entry.path().parent_path();
    }
  }
  Fail("there is no database");
}

/// What RocksDB alone takes to open the store to write, and to read from it.
class BareStore {
 public:
  explicit BareStore(const std::string& database) {
    rocksdb::DB* opened = nullptr;
    if (!rocksdb::DB::Open(checkpoint::LedgerOptions(nullptr), database,
                           &opened)
             .ok()) {
      Fail("cannot open the store");
    }
    db_.reset(opened);
  }

  /// Bytes of the keys and values from `first` on that begin with it.
  std::size_t Read(const std::string& first) {
    const std::unique_ptr<rocksdb::Iterator> it(
        db_->NewIterator(checkpoint::CheckedRead()));
    std::size_t bytes = 0;
    for (it->Seek(first); it->Valid() && it->key().starts_with(first);
         it->Next()) {
      bytes += it->key().size() + it->value().size();
    }
    return bytes;
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
};

/// How long `restart` takes, in milliseconds, and in turns with it how long
/// RocksDB alone takes to open the store and read what begins with `prefix`.
struct Restarts {
  Samples ours;
  Samples bare;
};
Restarts Measure(Report& report, const std::filesystem::path& folder,
                 const std::string& prefix,
                 const std::function<void(DeviceManager&)>& then) {
  const std::string database = DatabaseBelow(folder / "state");
  Restarts times;
  const int rounds = report.brief() ? 3 : 30;
  for (int i = 0; i < rounds; ++i) {
    std::unique_ptr<BareStore> bare;
    times.bare.Add(Microseconds([&] {
                     bare = std::make_unique<BareStore>(database);
                     if (bare->Read(prefix) == 0) Fail("nothing was read");
                   }) /
                   1'000);
    bare.reset();
    std::unique_ptr<DeviceManager> manager;
    times.ours.Add(Microseconds([&] {
                     manager = OpenManager(folder);
                     then(*manager);
                   }) /
                   1'000);
  }
  return times;
}

/// Until the claim of a new pod is prepared, by a driver that registers anew.
Samples MeasureNewClaim(Report& report, const std::filesystem::path& folder) {
  constexpr char kDriver[] = "gpu.example.com";
  DeviceManagerOptions options;
  options.plugin_registry_dir = folder / "plugins_registry";
  QuickDriver driver(folder, kDriver, {});
  const Pod pod = PodWithClaim("new");
  const auto source = MemoryObjectSource::Create();
  ObjectSnapshot objects;
  objects.pods.insert_or_assign(pod.metadata.FullName(),
                                std::make_shared<Pod>(pod));
  objects.claims.insert_or_assign(
      pod.metadata.FullName(),
      std::make_shared<ResourceClaim>(ClaimOf(pod, kDriver)));
  source->Publish(objects);
  Samples times;
  const int rounds = report.brief() ? 3 : 30;
  for (int i = 1; i <= rounds; ++i) {
    std::unique_ptr<DeviceManager> manager;
    times.Add(Microseconds([&] {
                manager = OpenManager(folder, options, source.get());
                driver.WaitUntilRegistered(i);
                Admit(*manager, pod);
                Must(manager->PreparePod({pod.metadata.uid}));
              }) /
              1'000);
    Must(manager->EndPod({pod.metadata.uid}));
  }
  return times;
}

void Restart(Report& report, int pods, int claims) {
  const TempFolder folder;
  FillLedger(folder.path() / "state", pods, claims);
  const std::string of =
      fmt::format("restart, {} pods, {} claims, until ", pods, pods * claims);
  const Restarts resolved =
      Measure(report, folder.path(), kPodKeys, [&](DeviceManager& manager) {
        Must(manager.ContainerDevicesOf(UidOfPod(pods - 1), "main").status());
      });
  report.Add({of + "resolve answers", "ms", resolved.ours.Median(),
              resolved.bare.Median(), "a bare open + reading the pods",
              2 * resolved.bare.Median()});
  int number = 0;
  const Restarts decided =
      Measure(report, folder.path(), "", [&](DeviceManager& manager) {
        const Pod pod = PodOfOneContainer(fmt::format("new-{}", number++));
        Must(manager.AdmitPod(pod).status());
        Must(manager.PreparePod({pod.metadata.uid}));
      });
  report.Add({of + "the first decision", "ms", decided.ours.Median(),
              decided.bare.Median(), "a bare open + reading each record",
              3 * decided.bare.Median()});
  report.Add({of + "a new claim is prepared", "ms",
              MeasureNewClaim(report, folder.path()).Median(), std::nullopt, "",
              std::nullopt});
}

/// With devices of a plugin, whose socket for registrations is there, too.
void RestartWithDevices(Report& report, int pods) {
  const TempFolder folder;
  DeviceManagerOptions options;
  options.device_plugin_dir = folder.path() / "device-plugins";
  const auto name = [](int number) { return fmt::format("pod-{}", number); };
  {
    const auto manager = OpenManager(folder.path(), options);
    testing::FakeDevicePluginOptions plugin_options;
    plugin_options.resource = kResource;
    plugin_options.root = folder.path();
    plugin_options.devices = pods;
    const auto plugin = Must(testing::FakeDevicePlugin::Start(plugin_options));
    WaitUntil("no plugin", [&] {
      const auto resources = manager->View()->Resources();
      return !resources.empty() &&
             resources.front().state == ResourceState::kLive;
    });
    for (int i = 0; i < pods; ++i) Admit(*manager, PodWithDevice(name(i)));
  }
  const PodUid last{PodWithDevice(name(pods - 1)).metadata.uid};
  Samples times;
  for (int i = 0; i < (report.brief() ? 3 : 30); ++i) {
    std::unique_ptr<DeviceManager> manager;
    times.Add(Microseconds([&] {
                manager = OpenManager(folder.path(), options);
                Must(manager->ContainerDevicesOf(last, "main").status());
              }) /
              1'000);
  }
  report.Add({fmt::format("restart, {} pods with a plugin's device, until "
                          "resolve answers",
                          pods),
              "ms", times.Median(), std::nullopt, "", std::nullopt});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Restart(report, /*pods=*/110, /*claims=*/1);
  devmgr::bench::Restart(report, /*pods=*/1'000, /*claims=*/10);
  devmgr::bench::RestartWithDevices(report, /*pods=*/110);
}
