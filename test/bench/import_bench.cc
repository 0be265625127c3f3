// SPDX-License-Identifier: Apache-2.0
//
// The files of a kubelet with 1,000 pods, each with four containers of eight
// devices and one claim: until all of it is in a new ledger, on disk, and until
// the files for a kubelet are on disk again. Beside a new store with one write.
#include <devmgr/kubelet_checkpoint.h>
#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "bench/kubelet_files_of_pods.h"
#include "bench/support.h"
#include "checkpoint/rocksdb_store.h"
#include "state/decision.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

constexpr int kPods = 1'000;

void NewStore(const std::filesystem::path& state_dir) {
  const auto store = Must(checkpoint::OpenRocksDbStore({state_dir, {}}));
  state::Batch batch;
  batch.seq = 1;
  batch.decision.changes = {ReadyPod(0, 0)};
  Must(store->Append({&batch, 1}));
}

void Measure(Report& report) {
  const TempFolder folder;
  WriteKubeletFiles(folder.path() / "kubelet", kPods, /*claims=*/true);
  Samples in;
  Samples out;
  Samples bare;
  const int rounds = report.brief() ? 1 : 10;
  for (int i = 0; i < rounds; ++i) {
    const std::filesystem::path round = folder.path() / std::to_string(i);
    bare.Add(Microseconds([&] { NewStore(round / "bare"); }) / 1'000);
    KubeletImportOptions taking;
    taking.state_dir = round / "state";
    taking.kubelet_dir = folder.path() / "kubelet";
    in.Add(Microseconds([&] {
             const KubeletImport done = Must(ImportKubelet(taking));
             if (!done.written || done.pods != kPods || done.claims != kPods) {
               Fail("not all was imported");
             }
           }) /
           1'000);
    KubeletExportOptions options;
    options.state_dir = taking.state_dir;
    options.out_dir = round / "out";
    out.Add(Microseconds([&] {
              const KubeletExport done = Must(ExportKubelet(options));
              if (!done.written || done.pods != kPods) {
                Fail("not all was exported");
              }
            }) /
            1'000);
    std::filesystem::remove_all(round);
  }
  const double limit = bare.Median();
  report.Add({fmt::format("import of {} pods, {} devices, {} claims", kPods,
                          kPods * kContainers * kDevices, kPods),
              "ms", in.Median(), limit, "a new store and one write", 1'000.0});
  report.Add({fmt::format("export of {} pods", kPods), "ms", out.Median(),
              limit, "a new store and one write", std::nullopt});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Measure(report);
}
