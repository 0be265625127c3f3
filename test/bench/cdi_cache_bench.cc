// SPDX-License-Identifier: Apache-2.0
//
// A thousand spec files with ten devices each, as JSON and as YAML: the first
// load, beside reading and parsing the same files with nothing but the library,
// and what one changed file, or none, costs after that. Reading all of it again
// is what a cache has to beat.
#include <devmgr/cdi_cache.h>
#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
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
  /// `format`: "json" or "yaml".
  Directory(int files, int devices, std::string format)
      : devices_(devices), format_(std::move(format)) {
    for (int i = 0; i < files; ++i) Write(i, 0);
  }
  void Write(int file, int generation) {
    Must(WriteCdiSpec(SpecOf(file, devices_, generation), folder_.path(),
                      fmt::format("spec-{}.{}", file, format_),
                      CdiIfPresent::kReplace));
  }
  /// What any reader of these files has to do at least.
  void ParseOnly() const {
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.path())) {
      std::ifstream file(entry.path());
      const bool is_parsed = format_ == "json"
                                 ? nlohmann::json::parse(file).is_object()
                                 : YAML::Load(file).IsMap();
      if (!is_parsed) Fail("a spec is no object");
    }
  }
  std::unique_ptr<CdiCache> Open() const {
    CdiCacheOptions options;
    options.directories = {folder_.path()};
    options.watch = false;
    return Must(CdiCache::Open(options));
  }

 private:
  const int devices_;
  const std::string format_;
  TempFolder folder_;
};

void Measure(Report& report, int files, int devices,
             const std::string& format) {
  Directory directory(files, devices, format);
  Samples first;
  Samples bare;
  for (Rounds rounds(10, std::chrono::seconds(30)); rounds.Next();) {
    bare.Add(Microseconds([&] { directory.ParseOnly(); }));
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
      fmt::format("CDI cache, {} {} files of {} devices: ", files,
                  format == "json" ? "JSON" : "YAML", devices);
  report.Add({what + "first load", "us", all, bare.Median(), "bare parse", {}});
  report.Add({what + "one file changed", "us", changed.Median(), all,
              "reading all", all / 10});
  report.Add({what + "nothing changed", "us", same.Median(), all, "reading all",
              all / 10});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  for (const char* format : {"json", "yaml"}) {
    devmgr::bench::Measure(report, report.brief() ? 20 : 1'000, 10, format);
  }
  return 0;
}
