// SPDX-License-Identifier: Apache-2.0
//
// CreateContainer through the shim, for a container with a device and for one
// without, beside the same call of the runtime itself, which only keeps what it
// is asked. The pods are in a manager within the shim's process, as many as a
// full node has. The ways take turns, so that whatever else runs here hurts all
// of them.
#include <devmgr/cri_shim.h>
#include <devmgr/device_manager.h>
#include <fmt/core.h>
#include <unistd.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/child.h"
#include "bench/grpc_peer.h"
#include "bench/support.h"
#include "bench/unary_caller.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

constexpr int kPods = 110;
constexpr int kClaimsPerPod = 2;
/// Tells what the runtime was asked last.
constexpr char kLast[] = "/bench.Runtime/Last";

std::string TextField(std::uint32_t number, std::string_view text) {
  std::string field;
  cri::AppendBytesField(&field, number, text);
  return field;
}

/// Knows CDI, has no containers, and gives every new one the same id.
void ServeRuntime(const std::filesystem::path& socket,
                  const std::function<void()>& ready) {
  std::map<std::string, std::string> answers;
  namespace f = cri::field::version_response;
  answers[std::string(cri::method::kVersion)] =
      TextField(f::kVersion, "0.1.0") +
      TextField(f::kRuntimeName, "containerd") +
      TextField(f::kRuntimeVersion, "2.0.1");
  answers[std::string(cri::method::kCreateContainer)] =
      TextField(cri::field::create_container_response::kContainerId,
                std::string(64, 'c'));
  std::string kept;  // Of the server's thread.
  const auto server = GrpcPeer::Start(
      {socket, [&](const std::string& method, std::string request) {
         if (method == kLast) return kept;
         kept = std::move(request);
         return answers[method];
       }});
  ready();
  pause();
}

void ServeShim(const std::filesystem::path& folder,
               const std::filesystem::path& listen,
               const std::filesystem::path& backend,
               const std::function<void()>& ready) {
  FillLedger(folder / "state", kPods, kClaimsPerPod);
  DeviceManagerOptions manager_options;
  manager_options.state_dir = folder / "state";
  manager_options.plugin_registry_dir = folder / "registry";
  Host host;
  host.boot_id = [] { return std::string(kBoot); };
  const auto manager = Must(DeviceManager::Open(manager_options, host));
  CriShimOptions options;
  options.proxy.listen = listen;
  options.proxy.backend = backend;
  options.manager = manager.get();
  options.cdi_spec_dirs = {folder / "cdi"};
  const auto shim = Must(CriShim::Start(options));
  ready();
  pause();
}

/// About as large as a kubelet's: 3 KiB.
std::string CreateRequest(int pod, std::string_view container) {
  namespace k = cri::field::key_value;
  namespace c = cri::field::container_config;
  namespace m = cri::field::pod_sandbox_metadata;
  namespace r = cri::field::create_container_request;
  std::string config =
      TextField(c::kMetadata,
                TextField(cri::field::container_metadata::kName, container));
  for (int i = 0; i < 30; ++i) {
    config += TextField(
        c::kEnvs, TextField(k::kKey, fmt::format("SERVICE_{}_PORT", i)) +
                      TextField(k::kValue, fmt::format("tcp://10.0.0.{}", i)));
  }
  for (int i = 0; i < 8; ++i) {
    const std::string path = fmt::format("/var/lib/volumes/volume-{}", i);
    config +=
        TextField(c::kMounts,
                  TextField(cri::field::mount::kContainerPath, path) +
                      TextField(cri::field::mount::kHostPath, "/host" + path));
  }
  const std::string metadata = TextField(m::kName, fmt::format("pod-{}", pod)) +
                               TextField(m::kUid, UidOfPod(pod).value) +
                               TextField(m::kNamespace, "default");
  return TextField(r::kPodSandboxId, fmt::format("sandbox-{}", pod)) +
         TextField(r::kConfig, config) +
         TextField(
             r::kSandboxConfig,
             TextField(cri::field::pod_sandbox_config::kMetadata, metadata));
}

/// What is measured has to be what happens.
void Check(UnaryCaller& runtime, const std::string& request, bool is_given) {
  std::vector<grpc::Slice> slices;
  if (!runtime.Call(kLast, "").Dump(&slices).ok()) Fail("no answer");
  std::size_t bytes = 0;
  for (const grpc::Slice& slice : slices) bytes += slice.size();
  if ((bytes > request.size()) != is_given) {
    Fail(fmt::format("of {} bytes {} came to the runtime", request.size(),
                     bytes));
  }
}

void Measure(Report& report, const std::filesystem::path& shim_socket,
             const std::filesystem::path& runtime_socket) {
  const std::string method(cri::method::kCreateContainer);
  UnaryCaller direct(runtime_socket);
  UnaryCaller shim(shim_socket);
  Samples at_runtime, without, with;
  shim.Call(method, CreateRequest(0, "side"));
  Check(direct, CreateRequest(0, "side"), false);
  const int warm = 2 * kPods;
  const int calls = report.brief() ? 50 : 3000;
  for (int i = 0; i < warm + calls; ++i) {
    // "main" has devices; the pod knows "side" without.
    const std::string given = CreateRequest(i % kPods, "main");
    const std::string bare = CreateRequest(i % kPods, "side");
    const double took[] = {
        Microseconds([&] { direct.Call(method, given); }),
        Microseconds([&] { shim.Call(method, bare); }),
        Microseconds([&] { shim.Call(method, given); }),
    };
    if (i == 0) Check(direct, given, true);
    if (i < warm) continue;
    at_runtime.Add(took[0]);
    without.Add(took[1]);
    with.Add(took[2]);
  }
  report.Add({"CreateContainer through the shim, without devices", "us",
              without.Median(), at_runtime.Median(), "a direct call",
              std::nullopt});
  report.Add({"CreateContainer through the shim, with devices", "us",
              with.Median(), at_runtime.Median(), "a direct call",
              std::nullopt});
  report.Add({"CreateContainer through the shim: devices against none", "us",
              with.Median(), without.Median(), "the same without devices",
              std::nullopt});
  report.Add({"CreateContainer through the shim, with devices: p99", "us",
              with.Quantile(0.99), at_runtime.Quantile(0.99),
              "a direct call, p99", std::nullopt});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  using namespace devmgr;
  using namespace devmgr::bench;
  Report report(argc, argv);
  const TempFolder folder;
  const auto runtime_socket = folder.path() / "cri";
  const auto shim_socket = folder.path() / "shim";
  const Child runtime([&](const std::function<void()>& ready) {
    ServeRuntime(runtime_socket, ready);
  });
  const Child shim([&](const std::function<void()>& ready) {
    ServeShim(folder.path(), shim_socket, runtime_socket, ready);
  });
  Measure(report, shim_socket, runtime_socket);
}
