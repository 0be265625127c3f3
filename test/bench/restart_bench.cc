// SPDX-License-Identifier: Apache-2.0
//
// From Open until resolve answers, with 1,000 pods, 10,000 claims and a full
// history on disk, beside reading every record of the same store once.
#include <devmgr/device_manager.h>
#include <rocksdb/db.h>

#include <memory>

#include "bench/support.h"
#include "checkpoint/rocksdb_config.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

constexpr int kPods = 1'000;
constexpr int kClaimsPerPod = 10;

std::unique_ptr<DeviceManager> OpenAndResolve(
    const std::filesystem::path& folder) {
  DeviceManagerOptions options;
  options.state_dir = folder / "state";
  options.plugin_registry_dir = folder / "plugins_registry";
  Host host;
  host.boot_id = [] { return std::string(kBoot); };
  auto manager = Must(DeviceManager::Open(options, host));
  Must(manager->ContainerDevicesOf(UidOfPod(kPods - 1), "main").status());
  return manager;
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

/// Bytes of all keys and values.
std::size_t ReadStore(const std::string& database) {
  rocksdb::DB* opened = nullptr;
  if (!rocksdb::DB::OpenForReadOnly(checkpoint::LedgerOptions(nullptr),
                                    database, &opened)
           .ok()) {
    Fail("cannot read the store");
  }
  const std::unique_ptr<rocksdb::DB> db(opened);
  const std::unique_ptr<rocksdb::Iterator> it(
      db->NewIterator(checkpoint::CheckedRead()));
  std::size_t bytes = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    bytes += it->key().size() + it->value().size();
  }
  return bytes;
}

void Restart(Report& report) {
  const TempFolder folder;
  FillLedger(folder.path() / "state", kPods, kClaimsPerPod);
  const std::string database = DatabaseBelow(folder.path() / "state");
  Samples restarts;
  Samples reads;
  std::size_t bytes = 0;
  const int rounds = report.brief() ? 3 : 30;
  for (int i = 0; i < rounds; ++i) {
    reads.Add(Microseconds([&] { bytes = ReadStore(database); }) / 1'000);
    std::unique_ptr<DeviceManager> manager;
    restarts.Add(
        Microseconds([&] { manager = OpenAndResolve(folder.path()); }) / 1'000);
  }
  report.Add({"restart, 1000 pods, 10000 claims, until resolve answers", "ms",
              restarts.Median(), reads.Median(), "reading the store", 200});
  report.Add({"restart: size of that store", "MB",
              static_cast<double>(bytes) / 1e6, std::nullopt, "",
              std::nullopt});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Restart(report);
}
