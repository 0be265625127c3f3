// SPDX-License-Identifier: Apache-2.0
//
// Resolving a container beside its limit, a look-up in a hash map of as many
// pods, and a durable decision beside its limit, one append with fdatasync.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <unordered_map>

#include "checkpoint/ledger_store.h"
#include "common/unique_fd.h"
#include "manager/ledger.h"
#include "manager/resolve_table.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

constexpr char kBoot[] = "boot";

std::shared_ptr<state::PodRecord> ReadyPod(int number) {
  auto pod = std::make_shared<state::PodRecord>();
  pod->uid = {"pod-uid-" + std::to_string(number)};
  pod->name = {"default", "pod-" + std::to_string(number)};
  pod->phase = state::PodPhase::kReady;
  pod->boot_id = kBoot;
  auto answer = std::make_shared<PodDevices>();
  answer->name = pod->name;
  answer->uid = pod->uid;
  for (const char* container : {"init", "main", "side"}) {
    ContainerDevices devices;
    devices.name = container;
    devices.cdi_devices.push_back({"example.com/gpu=" + pod->uid.value, {}});
    answer->containers.push_back(devices);
  }
  pod->answer = answer;
  return pod;
}

void HashLookUp(benchmark::State& run) {
  const int pods = static_cast<int>(run.range(0));
  std::unordered_map<PodUid, std::shared_ptr<state::PodRecord>> map;
  for (int i = 0; i < pods; ++i) {
    auto pod = ReadyPod(i);
    map[pod->uid] = pod;
  }
  const PodUid wanted = ReadyPod(pods / 2)->uid;
  for (auto _ : run) benchmark::DoNotOptimize(map.find(wanted));
}
BENCHMARK(HashLookUp)->Arg(10)->Arg(1'000)->Arg(10'000);

void Resolve(benchmark::State& run) {
  const int pods = static_cast<int>(run.range(0));
  manager::ResolveTable table;
  for (int i = 0; i < pods; ++i) table.Put(*ReadyPod(i), kBoot);
  const PodUid wanted = ReadyPod(pods / 2)->uid;
  for (auto _ : run) benchmark::DoNotOptimize(table.Find(wanted, "main"));
}
BENCHMARK(Resolve)->Arg(10)->Arg(1'000)->Arg(10'000);

void AppendAndSync(benchmark::State& run) {
  const TempFolder folder;
  const UniqueFd file(::open((folder.path() / "file").c_str(),
                             O_WRONLY | O_CREAT | O_APPEND, 0600));
  const std::string record(600, 'x');
  for (auto _ : run) {
    if (::write(file.get(), record.data(), record.size()) < 0 ||
        ::fdatasync(file.get()) != 0) {
      run.SkipWithError("the limit cannot be measured");
    }
  }
}
BENCHMARK(AppendAndSync)->UseRealTime();

/// From the request to the completion, on disk.
void DurableDecision(benchmark::State& run) {
  const TempFolder folder;
  auto store = checkpoint::OpenRocksDbStore({folder.path() / "state", {}});
  if (!store.ok()) {
    run.SkipWithError("the store cannot be opened");
    return;
  }
  auto initial = (*store)->Load();
  manager::Ledger ledger(
      *std::move(store), *std::move(initial), [] { return std::int64_t{0}; },
      [](const state::Batch&) {});
  const auto decide = [&](int number) {
    std::promise<absl::Status> done;
    ledger.Submit(
        [number](const state::State&) -> absl::StatusOr<state::Decision> {
          state::Decision decision;
          decision.changes.push_back(state::PutPod{ReadyPod(number)});
          return decision;
        },
        [&](const absl::Status& status) { done.set_value(status); });
    return done.get_future().get();
  };
  int number = 0;
  while (number < run.range(0)) {
    if (!decide(number++).ok()) run.SkipWithError("decision failed");
  }
  for (auto _ : run) {
    if (!decide(number++).ok()) run.SkipWithError("decision failed");
  }
}
BENCHMARK(DurableDecision)->Arg(10)->Arg(1'000)->UseRealTime();

}  // namespace
}  // namespace devmgr

BENCHMARK_MAIN();
