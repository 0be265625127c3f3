// SPDX-License-Identifier: Apache-2.0
//
// List of pod-resources with 1,000 pods of four containers with eight devices,
// beside gRPC's own server that sends the same bytes; and what decisions take
// while a client lists ten times a second, and, with 110 pods, a hundred times,
// beside the same client at that other server.
#include <devmgr/device_manager.h>
#include <devmgr/kubelet_checkpoint.h>
#include <devmgr/pod_resources_server.h>
#include <fmt/core.h>
#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "bench/kubelet_files_of_pods.h"
#include "bench/support.h"
#include "bench/unary_caller.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr char kList[] = "/v1.PodResourcesLister/List";
/// A client may call a hundred times a second.
constexpr milliseconds kPace{15};

/// gRPC alone: the same bytes to every call.
class BareServer final : public grpc::CallbackGenericService {
 public:
  BareServer(const std::filesystem::path& socket, grpc::ByteBuffer answer)
      : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket.string(),
                             grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) Fail("the bare server does not start");
  }
  ~BareServer() override { server_->Shutdown(); }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(const grpc::ByteBuffer& answer) : answer_(answer) {
      StartRead(&request_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::CANCELLED);
      StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    const grpc::ByteBuffer answer_;
    grpc::ByteBuffer request_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    return new Reactor(answer_);
  }

  const grpc::ByteBuffer answer_;
  std::unique_ptr<grpc::Server> server_;
};

/// A node that goes on with the pods of a kubelet, its List, and the bare
/// server with the same answer.
class Node {
 public:
  explicit Node(int pods) {
    WriteKubeletFiles(folder_.path() / "kubelet", pods, /*claims=*/false);
    KubeletImportOptions taking;
    taking.state_dir = folder_.path() / "state";
    taking.kubelet_dir = folder_.path() / "kubelet";
    taking.boot_id = [] { return std::string(kBoot); };
    if (!Must(ImportKubelet(taking)).written) Fail("nothing was imported");
    DeviceManagerOptions options;
    options.state_dir = taking.state_dir;
    options.actuate = Actuate::kSource;
    Host host;
    host.boot_id = taking.boot_id;
    host.objects = source_.get();
    manager_ = Must(DeviceManager::Open(options, host));
    source_->Publish(ObjectsOfPods(pods));
    WaitUntil("the pods are not known", [&] {
      const auto list = manager_->View()->ResourcesOfPods(nullptr);
      return list->pods.size() == static_cast<std::size_t>(pods);
    });
    Settle();
    PodResourcesOptions served;
    served.socket = ours();
    server_ = Must(PodResourcesServer::Start(*manager_, served));
    grpc::ByteBuffer answer = UnaryCaller(ours()).Call(kList, "");
    bytes_ = answer.Length();
    bare_ = std::make_unique<BareServer>(bare(), std::move(answer));
  }

  DeviceManager& manager() { return *manager_; }
  std::filesystem::path ours() const { return folder_.path() / "ours.sock"; }
  std::filesystem::path bare() const { return folder_.path() / "bare.sock"; }
  std::size_t bytes() const { return bytes_; }

 private:
  /// What the pods bring is decided.
  void Settle() const {
    std::uint64_t seen = 0;
    WaitUntil("the node does not come to rest", [&] {
      const std::uint64_t before =
          std::exchange(seen, manager_->View()->Node().ledger_sequence);
      if (before == seen) return true;
      std::this_thread::sleep_for(milliseconds(500));
      return false;
    });
  }

  const TempFolder folder_;
  std::unique_ptr<MemoryObjectSource> source_ = MemoryObjectSource::Create();
  std::unique_ptr<DeviceManager> manager_;
  std::unique_ptr<PodResourcesServer> server_;
  std::unique_ptr<BareServer> bare_;
  std::size_t bytes_ = 0;
};

void Lists(Report& report) {
  constexpr int kPods = 1'000;
  Node node(kPods);
  UnaryCaller ours(node.ours());
  UnaryCaller bare(node.bare());
  Samples took_ours;
  Samples took_bare;
  const int rounds = report.brief() ? 5 : 300;
  for (int i = 0; i < rounds; ++i) {
    std::this_thread::sleep_for(kPace);
    took_bare.Add(Microseconds([&] { bare.Call(kList, ""); }));
    std::this_thread::sleep_for(kPace);
    took_ours.Add(Microseconds([&] {
      if (ours.Call(kList, "").Length() != node.bytes()) Fail("other bytes");
    }));
  }
  for (const double q : {0.5, 0.99}) {
    const double limit = took_bare.Quantile(q);
    report.Add({fmt::format("List of {} pods, {} KiB, {}", kPods,
                            node.bytes() / 1'024, q == 0.5 ? "median" : "p99"),
                "us", took_ours.Quantile(q), limit,
                "gRPC alone with the same bytes",
                q == 0.5 ? std::optional(1.3 * limit) : std::nullopt});
  }
}

/// Lists at a steady rate, as long as it lives.
class Exporter {
 public:
  Exporter(const std::filesystem::path& socket, milliseconds pace)
      : thread_([this, socket, pace] {
          UnaryCaller caller(socket);
          for (auto next = steady_clock::now(); !stop_; next += pace) {
            caller.Call(kList, "");
            std::this_thread::sleep_until(next);
          }
        }) {}
  ~Exporter() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// Each is a write: a pod that waits for a claim is recorded.
void Decide(DeviceManager& manager, int count, Samples* took) {
  for (int i = 0; i < count; ++i) {
    const Pod pod = PodWithClaim(fmt::format("new-{}", i));
    took->Add(Microseconds([&] { Must(manager.AdmitPod(pod)); }));
    Must(manager.EndPod({pod.metadata.uid}));
  }
}

void DecisionsBeside(Report& report, int pods, milliseconds pace) {
  Node node(pods);
  Samples ours;
  Samples bare;
  const int rounds = report.brief() ? 1 : 10;
  const int decisions = report.brief() ? 10 : 300;
  for (int i = 0; i < rounds; ++i) {
    {
      const Exporter exporter(node.bare(), pace);
      Decide(node.manager(), decisions, &bare);
    }
    const Exporter exporter(node.ours(), pace);
    Decide(node.manager(), decisions, &ours);
  }
  const double limit = bare.Quantile(0.99);
  report.Add({fmt::format("decision beside {} Lists/s of {} pods, p99",
                          1'000 / pace.count(), pods),
              "us", ours.Quantile(0.99), limit, "beside gRPC alone",
              1.1 * limit});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  using std::chrono::milliseconds;
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Lists(report);
  devmgr::bench::DecisionsBeside(report, 1'000, milliseconds(100));
  devmgr::bench::DecisionsBeside(report, 110, milliseconds(10));
}
