// SPDX-License-Identifier: Apache-2.0
//
// A container with 16 CDI devices: its edits in plain CRI beside the bare look
// at the same paths, and laid over an OCI configuration beside a JSON library
// that reads and writes the same text.
#include <devmgr/cdi.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/support.h"

namespace devmgr::bench {
namespace {

constexpr int kDevices = 16;
constexpr int kNodes = 3;  ///< Of each device; mounts are as many.
constexpr char kHostNode[] = "/dev/null";
constexpr char kHostFolder[] = "/usr";

std::shared_ptr<const CdiSpec> Spec() {
  auto spec = std::make_shared<CdiSpec>();
  spec->version = "0.5.0";
  spec->kind = "example.com/gpu";
  spec->edits.env = {"EXAMPLE_VISIBLE=void"};
  for (int i = 0; i < kDevices; ++i) {
    CdiSpecDevice device;
    device.name = fmt::format("gpu{}", i);
    device.edits.env = {fmt::format("EXAMPLE_GPU_{}=1", i)};
    for (int j = 0; j < kNodes; ++j) {
      CdiDeviceNode node;
      node.path = fmt::format("/dev/example{}-{}", i, j);
      node.host_path = kHostNode;
      device.edits.device_nodes.push_back(node);
      device.edits.mounts.push_back({kHostFolder,
                                     fmt::format("/opt/example/{}/{}", i, j),
                                     {"ro", "rbind"},
                                     ""});
    }
    spec->devices.push_back(device);
  }
  return spec;
}

std::vector<std::string> NamesOf(const CdiRegistry& registry) {
  std::vector<std::string> names;
  for (const CdiRegistryDevice& device : registry.devices()) {
    names.push_back(device.name);
  }
  return names;
}

/// About what containerd writes: 20 kB.
std::string Config() {
  nlohmann::ordered_json config = {{"ociVersion", "1.1.0"},
                                   {"process", {{"cwd", "/"}}}};
  for (int i = 0; i < 60; ++i) {
    config["process"]["env"].push_back(
        fmt::format("SERVICE_{}_PORT=tcp://10.0.0.1:{}", i, i));
    config["mounts"].push_back(
        {{"destination", fmt::format("/var/run/volume/{}", i)},
         {"type", "bind"},
         {"source", fmt::format("/var/lib/kubelet/pods/uid/volumes/{}", i)},
         {"options", {"rbind", "rprivate", "ro"}}});
    config["linux"]["seccomp"]["syscalls"].push_back(
        {{"names", std::vector<std::string>(10, "read")},
         {"action", "SCMP_ACT_ALLOW"}});
  }
  return config.dump(1, '\t');
}

void LookAtAll() {
  for (int i = 0; i < kDevices * kNodes; ++i) {
    struct stat info {};
    if (::lstat(kHostNode, &info) != 0 || ::stat(kHostFolder, &info) != 0) {
      Fail("cannot look at the host's paths");
    }
  }
}

void Measure(Report& report) {
  const CdiRegistry registry({{"/etc/cdi/example.json", 0, Spec(), ""}});
  const std::vector<std::string> names = NamesOf(registry);
  const std::string config = Config();
  Samples expand, look, inject, parse;
  for (Rounds rounds(report.brief() ? 5 : 3'000, std::chrono::seconds(20));
       rounds.Next();) {
    expand.Add(Microseconds([&] {
      const CriExpansion expansion =
          ExpandCdiForCri(Must(CdiEditsOf(registry, names)), CriTarget());
      Must(expansion.verdict);
    }));
    look.Add(Microseconds(LookAtAll));
    inject.Add(Microseconds([&] {
      Must(InjectCdiIntoOciConfig(config, Must(CdiEditsOf(registry, names))));
    }));
    parse.Add(Microseconds([&] {
      if (nlohmann::ordered_json::parse(config).dump().empty()) Fail("no text");
    }));
  }
  report.Add({"16 CDI devices in plain CRI", "us", expand.Median(),
              look.Median(), "lstat and stat of the same paths",
              4 * look.Median()});
  report.Add({"16 CDI devices into an OCI configuration", "us", inject.Median(),
              parse.Median(), "the text parsed and dumped by the JSON library",
              4 * parse.Median()});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Measure(report);
}
