// SPDX-License-Identifier: Apache-2.0
//
// A thousand spec files with ten devices each: the first load, and what one
// changed file, or none, costs after that. Reading all of it again is what a
// cache has to beat.
#include <devmgr/cdi_cache.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "bench/support.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

CdiSpec SpecOf(int file, int devices, int generation) {
  CdiSpec spec;
  spec.version = "0.5.0";
  spec.kind = "vendor.example.com/gpu";
  for (int i = 0; i < devices; ++i) {
    CdiSpecDevice& device = spec.devices.emplace_back();
    device.name = fmt::format("f{}-d{}", file, i);
    device.edits.env = {fmt::format("DEVICE_{}={}", i, generation)};
    device.edits.device_nodes = {{fmt::format("/dev/gpu{}", i), "", "c", 195, i,
                                  std::nullopt, "rw", std::nullopt,
                                  std::nullopt}};
    device.edits.mounts = {
        {"/usr/lib/gpu", "/usr/lib/gpu", {"ro", "nosuid", "bind"}, ""}};
  }
  return spec;
}

class Directory {
 public:
  Directory(int files, int devices) : devices_(devices) {
    for (int i = 0; i < files; ++i) Write(i, 0);
  }
  void Write(int file, int generation) {
    Must(WriteCdiSpec(SpecOf(file, devices_, generation), folder_.path(),
                      fmt::format("spec-{}", file), CdiIfPresent::kReplace));
  }
  std::unique_ptr<CdiCache> Open() const {
    CdiCacheOptions options;
    options.directories = {folder_.path()};
    options.watch = false;
    return Must(CdiCache::Open(options));
  }

 private:
  const int devices_;
  TempFolder folder_;
};

void Measure(Report& report, int files, int devices) {
  Directory directory(files, devices);
  Samples first;
  for (Rounds rounds(10, std::chrono::seconds(30)); rounds.Next();) {
    std::unique_ptr<CdiCache> cache;
    first.Add(Microseconds([&] { cache = directory.Open(); }));
    if (cache->Registry()->devices().size() !=
        static_cast<std::size_t>(files * devices)) {
      Fail("not all devices were found");
    }
  }
  const std::unique_ptr<CdiCache> cache = directory.Open();
  Samples changed;
  Samples same;
  int generation = 0;
  for (Rounds rounds(50, std::chrono::seconds(20)); rounds.Next();) {
    ++generation;
    directory.Write(generation % files, generation);
    const auto before = cache->Registry();
    changed.Add(Microseconds([&] { Must(cache->Refresh()); }));
    if (cache->Registry() == before) Fail("the change was not seen");
    same.Add(Microseconds([&] { Must(cache->Refresh()); }));
  }
  const double all = first.Median();
  const std::string what =
      fmt::format("CDI cache, {} files of {} devices: ", files, devices);
  report.Add({what + "first load", "us", all, {}, "", {}});
  report.Add({what + "one file changed", "us", changed.Median(), all,
              "reading all", all / 10});
  report.Add({what + "nothing changed", "us", same.Median(), all, "reading all",
              all / 10});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  if (report.brief()) {
    devmgr::bench::Measure(report, 20, 10);
  } else {
    devmgr::bench::Measure(report, 1'000, 10);
  }
  return 0;
}
