// SPDX-License-Identifier: Apache-2.0
//
// The endpoint for drivers over TLS and a disk: what a driver's publishing
// costs without the limits of its client, and how fast changes reach watches.
#include <fmt/core.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/support.h"
#include "checkpoint/ledger_store.h"
#include "endpoint/endpoint.h"
#include "endpoint/object_journal.h"
#include "endpoint/tls_client.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

using apistore::Json;
using endpoint::TlsClient;

constexpr char kDriver[] = "gpu.example.com";
constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr int kWatchers = 8;

Json Slice(int index, int count, int devices, int round) {
  Json all = Json::array();
  for (int i = 0; i < devices; ++i) {
    all.push_back({{"name", fmt::format("gpu-{}-{}", index, i)},
                   {"attributes",
                    {{"model", {{"string", "a100"}}},
                     {"index", {{"int", i}}},
                     {"round", {{"int", round}}}}},
                   {"capacity", {{"memory", {{"value", "40Gi"}}}}}});
  }
  return {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceSlice"},
      {"metadata", {{"name", fmt::format("slice-{}", index)}}},
      {"spec",
       {{"driver", kDriver},
        {"nodeName", "n1"},
        {"pool",
         {{"name", "n1"}, {"generation", 1}, {"resourceSliceCount", count}}},
        {"devices", std::move(all)}}}};
}

/// An endpoint that holds no driver up, and its disk.
class Bed {
 public:
  Bed() {
    store_ = Must(checkpoint::OpenRocksDbStore({folder_.path() / "state"}));
    store_->OpenObjects([](const absl::Status&) { Fail("a write failed"); });
    journal_ = std::make_unique<endpoint::ObjectJournal>(
        store_->Objects(),
        endpoint::ObjectJournal::Options{.folder = folder_.path() / "objects"});
    endpoint::EndpointOptions options;
    options.node_name = "n1";
    options.node_uid = "u-n1";
    options.drivers = {kDriver};
    options.kubeconfig_dir = folder_.path() / "kubeconfig";
    options.max_requests_per_second = 1e9;
    options.max_watches = kWatchers;
    endpoint_ = Must(endpoint::Endpoint::Start(std::move(options), *journal_));
    std::ifstream token(folder_.path() / "kubeconfig/.serviceaccount" /
                        kDriver / "token");
    token_.assign(std::istreambuf_iterator<char>(token), {});
  }
  std::unique_ptr<TlsClient> Connect() const {
    auto client = std::make_unique<TlsClient>(
        endpoint_->port(), folder_.path() / "kubeconfig/.tls/ca.crt");
    if (!client->connected()) Fail("no connection to the endpoint");
    return client;
  }
  void Write(TlsClient& client, const char* method, const std::string& target,
             const Json& object, int code) const {
    const auto reply = client.Call(method, target, token_, object.dump());
    if (reply.code != code) Fail(fmt::format("{}: {}", method, reply.body));
  }
  std::unique_ptr<TlsClient> Watch() const {
    auto client = Connect();
    client->Send("GET", std::string(kSlices) + "?watch=true&resourceVersion=0",
                 token_);
    if (client->Head().code != 200) Fail("the watch is refused");
    return client;
  }
  const std::filesystem::path& folder() const { return folder_.path(); }
  /// Writes the next decision of the node.
  void Decide() {
    state::Batch batch;
    batch.seq = ++decided_;
    batch.decision.kind = state::DecisionKind::kPrepareResult;
    batch.decision.changes = {ReadyPod(static_cast<int>(decided_ % 100), 1)};
    Must(store_->Append({&batch, 1}));
  }

 private:
  const TempFolder folder_;
  std::unique_ptr<checkpoint::LedgerStore> store_;
  std::uint64_t decided_ = 0;
  std::unique_ptr<endpoint::ObjectJournal> journal_;
  std::unique_ptr<endpoint::Endpoint> endpoint_;
  std::string token_;
};

/// 40 slices of 128 devices, one after the other, as a driver writes them.
void Publish(Report& report) {
  constexpr int kCount = 40;
  constexpr int kDevices = 128;
  Samples times;
  Samples append;
  for (int round = 0; round < (report.brief() ? 1 : 5); ++round) {
    const Bed bed;
    const auto client = bed.Connect();
    RawLog log(bed.folder());
    times.Add(Microseconds([&] {
                for (int i = 0; i < kCount; ++i) {
                  bed.Write(*client, "POST", kSlices,
                            Slice(i, kCount, kDevices, 0), 201);
                }
              }) /
              1'000);
    for (int i = 0; i < kCount; ++i) {
      append.Add(Microseconds([&] { log.AppendAndSync(); }));
    }
  }
  report.Add({"40 slices of 128 devices published", "ms", times.Median(),
              kCount * append.Median() / 1'000, "40 x append + fdatasync",
              8'000});
}

/// Changes of small slices until all watches have seen them.
void Watches(Report& report) {
  const int changes = report.brief() ? 100 : 2'000;
  const Bed bed;
  const auto client = bed.Connect();
  bed.Write(*client, "POST", kSlices, Slice(0, 1, 4, 0), 201);
  std::vector<std::unique_ptr<TlsClient>> watches;
  for (int i = 0; i < kWatchers; ++i) {
    watches.push_back(bed.Watch());
    if (watches.back()->Event()["type"] != "ADDED") Fail("no first event");
  }
  const double took = Microseconds([&] {
    std::vector<std::thread> readers;
    for (const auto& watch : watches) {
      readers.emplace_back([&] {
        for (int i = 0; i < changes; ++i) {
          if (watch->Event().is_null()) Fail("a watch ended");
        }
      });
    }
    for (int i = 1; i <= changes; ++i) {
      bed.Write(*client, "PUT", std::string(kSlices) + "/slice-0",
                Slice(0, 1, 4, i), 200);
    }
    for (std::thread& reader : readers) reader.join();
  });
  report.Add({fmt::format("events to {} watches", kWatchers), "1/s",
              kWatchers * changes / (took / 1e6), std::nullopt, "",
              std::nullopt});
  report.Add({"a change until all of them have it", "us", took / changes,
              std::nullopt, "", std::nullopt});
}

/// Decisions are written to the database in which slices are: what they cost
/// alone, and while a driver publishes as fast as it can.
void Decisions(Report& report) {
  const int decisions = report.brief() ? 50 : 1'000;
  Bed bed;
  Samples alone;
  Samples beside;
  for (int i = 0; i < decisions; ++i) {
    alone.Add(Microseconds([&] { bed.Decide(); }));
  }
  std::atomic<bool> ended = false;
  std::atomic<int> published = 0;
  std::thread driver([&] {
    const auto client = bed.Connect();
    for (int i = 0; !ended; ++i, ++published) {
      bed.Write(*client, i < 40 ? "POST" : "PUT",
                i < 40 ? kSlices : fmt::format("{}/slice-{}", kSlices, i % 40),
                Slice(i % 40, 40, 128, i), i < 40 ? 201 : 200);
    }
  });
  while (published == 0) std::this_thread::yield();
  for (int i = 0; i < decisions; ++i) {
    beside.Add(Microseconds([&] { bed.Decide(); }));
  }
  ended = true;
  driver.join();
  for (const auto& [name, samples] :
       {std::pair("a decision", &alone),
        std::pair("a decision beside a driver that publishes", &beside)}) {
    report.Add({fmt::format("{}, median", name), "us", samples->Median(),
                std::nullopt, "", std::nullopt});
    report.Add({fmt::format("{}, p99", name), "us", samples->Quantile(0.99),
                std::nullopt, "", std::nullopt});
  }
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Publish(report);
  devmgr::bench::Watches(report);
  devmgr::bench::Decisions(report);
}
