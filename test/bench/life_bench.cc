// SPDX-License-Identifier: Apache-2.0
//
// One pod from its admission to its end, over real sockets and a disk, beside
// others that stay: with a device of a plugin, and with a claim.
#include <devmgr/device_manager.h>
#include <devmgr/testing.h>
#include <devmgr/wire/dra/v1/dra.pb.h>
#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/quick_driver.h"
#include "bench/support.h"
#include "bench/unary_caller.h"
#include "rpc/message.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

constexpr char kDriverName[] = "driver.example.com";

/// In fewer writes where the library can; this file is built with older ones,
/// too, to compare them.
template <typename Manager>
void End(Manager& manager, const PodUid& pod) {
  if constexpr (requires { manager.EndPod(pod); }) {
    Must(manager.EndPod(pod));
  } else {
    Must(manager.UnpreparePod(pod));
    Must(manager.ReleasePod(pod));
  }
}

/// A manager on a disk, with objects.
class Node {
 public:
  Node() {
    DeviceManagerOptions options;
    options.state_dir = folder_.path() / "state";
    options.device_plugin_dir = folder_.path() / "device-plugins";
    options.plugin_registry_dir = folder_.path() / "plugins_registry";
    Host host;
    host.objects = source_.get();
    manager_ = Must(DeviceManager::Open(options, host));
  }

  void Publish(const std::vector<Pod>& pods, bool with_claims) {
    ObjectSnapshot objects;
    objects.complete = true;
    for (const Pod& pod : pods) {
      objects.pods.insert_or_assign(pod.metadata.FullName(),
                                    std::make_shared<Pod>(pod));
      if (!with_claims) continue;
      auto claim = std::make_shared<ResourceClaim>(ClaimOf(pod, kDriverName));
      objects.claims.insert_or_assign(claim->metadata.FullName(), claim);
    }
    source_->Publish(objects);
    WaitUntil("the objects do not arrive",
              [&] { return manager_->Objects()->pods.size() == pods.size(); });
  }

  void Start(const Pod& pod) {
    const Verdict verdict = Must(manager_->AdmitPod(pod));
    if (verdict.kind != Verdict::Kind::kAdmit) Fail(verdict.message);
    const PodUid uid{pod.metadata.uid};
    // Nothing is left to prepare where its answer is there already.
    if (!manager_->PodDevicesOf(uid).ok()) Must(manager_->PreparePod(uid));
  }
  void Stop(const Pod& pod) { End(*manager_, {pod.metadata.uid}); }

  /// Returns once what was done is done with: the next figure is its own.
  void Settle() { manager_->Events(0); }

  DeviceManager& manager() { return *manager_; }
  const std::filesystem::path& root() const { return folder_.path(); }

 private:
  const TempFolder folder_;
  const std::unique_ptr<MemoryObjectSource> source_ =
      MemoryObjectSource::Create();
  std::unique_ptr<DeviceManager> manager_;
};

/// Lives of pods, one after the other, in turns with as many appends as the
/// steps make at best.
void MeasureLives(Report& report, Node& node, const std::vector<Pod>& pods,
                  const std::string& what, int start_writes, int end_writes) {
  Samples starts;
  Samples ends;
  Samples append;
  RawLog log(node.root());
  Rounds rounds(static_cast<int>(pods.size()), kPatience);
  for (std::size_t i = 0; rounds.Next(); ++i) {
    starts.Add(Microseconds([&] { node.Start(pods[i]); }));
    node.Settle();
    ends.Add(Microseconds([&] { node.Stop(pods[i]); }));
    node.Settle();
    append.Add(Microseconds([&] { log.AppendAndSync(); }));
  }
  const auto limit_is = [](int writes) {
    return fmt::format("{} x append + fdatasync", writes);
  };
  report.Add({what + ": until it is Ready", "us", starts.Median(),
              start_writes * append.Median(), limit_is(start_writes),
              std::nullopt});
  report.Add({what + ": its end", "us", ends.Median(),
              end_writes * append.Median(), limit_is(end_writes),
              std::nullopt});
}

void PluginPods(Report& report, int others) {
  Node node;
  testing::FakeDevicePluginOptions options;
  options.resource = kResource;
  options.root = node.root();
  options.devices = others + 1;
  const auto plugin = Must(testing::FakeDevicePlugin::Start(options));
  WaitUntil("no plugin", [&] {
    const auto resources = node.manager().View()->Resources();
    return !resources.empty() &&
           resources.front().state == ResourceState::kLive;
  });
  std::vector<Pod> staying;
  for (int i = 0; i < others; ++i) {
    staying.push_back(PodWithDevice(fmt::format("staying-{}", i)));
    node.Start(staying.back());
  }
  std::vector<Pod> pods;
  for (int i = 0; i < (report.brief() ? 20 : 1'000); ++i) {
    pods.push_back(PodWithDevice(fmt::format("p{}", i)));
  }
  MeasureLives(report, node, pods,
               fmt::format("a plugin's pod beside {} pods", others),
               /*start_writes=*/2, /*end_writes=*/1);
}

void ClaimPods(Report& report, int others) {
  Node node;
  QuickDriver driver(node.root(), kDriverName, {});
  driver.WaitUntilRegistered();
  std::vector<Pod> all;
  const int lives = report.brief() ? 20 : 1'000;
  for (int i = 0; i < others + lives; ++i) {
    all.push_back(PodWithClaim(fmt::format("p{}", i)));
  }
  node.Publish(all, /*with_claims=*/true);
  for (int i = 0; i < others; ++i) node.Start(all[static_cast<std::size_t>(i)]);
  MeasureLives(report, node, {all.begin() + others, all.end()},
               fmt::format("a claim's pod beside {} claims", others),
               /*start_writes=*/2, /*end_writes=*/2);
}

/// What both cost without a manager, for the figures of kubelet_go.
void BareThings(Report& report) {
  const TempFolder folder;
  QuickDriver driver(folder.path(), kDriverName, {});
  UnaryCaller caller(driver.socket());
  RawLog log(folder.path());
  Samples calls;
  Samples appends;
  for (int i = 0; i < (report.brief() ? 20 : 1'000); ++i) {
    wire::dra::v1::NodePrepareResourcesRequest request;
    auto* claim = request.add_claims();
    claim->set_namespace_("default");
    claim->set_name("it");
    claim->set_uid(fmt::format("uid-{}", i));
    calls.Add(Microseconds([&] {
      caller.Call(
          "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
          rpc::Encode(request));
    }));
    appends.Add(Microseconds([&] { log.AppendAndSync(); }));
  }
  report.Add({"a bare call to the driver", "us", calls.Median(), std::nullopt,
              "", std::nullopt});
  report.Add({"a bare append + fdatasync", "us", appends.Median(), std::nullopt,
              "", std::nullopt});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::BareThings(report);
  devmgr::bench::PluginPods(report, 10);
  devmgr::bench::PluginPods(report, 1'000);
  devmgr::bench::ClaimPods(report, 10);
  devmgr::bench::ClaimPods(report, 1'000);
}
