// SPDX-License-Identifier: Apache-2.0
#include "bench/support.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "checkpoint/ledger_store.h"

namespace devmgr::bench {
namespace {

constexpr char kDriver[] = "gpu.example.com";

ClaimUid UidOfClaim(int pod, int number) {
  return {fmt::format("00000000-0000-4000-9{:03}-{:012}", number, pod)};
}

ObjectName NameOfPod(int number) {
  return {"default", fmt::format("pod-{}", number)};
}

std::string DeviceId(const ClaimUid& claim) {
  return fmt::format("{}/claim={}", kDriver, claim.value);
}

nlohmann::ordered_json ToJson(const Row& row) {
  nlohmann::ordered_json json = {
      {"name", row.name}, {"unit", row.unit}, {"value", row.value}};
  if (row.limit.has_value()) {
    json["limit"] = *row.limit;
    json["limit_is"] = row.limit_is;
  }
  if (row.goal.has_value()) json["goal"] = *row.goal;
  return json;
}

}  // namespace

Report::Report(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--brief") {
      brief_ = true;
    } else if (args[i] == "--json" && i + 1 < args.size()) {
      file_ = args[++i];
    } else {
      Fail(fmt::format("usage: {} [--brief] [--json FILE]", argv[0]));
    }
  }
}

Report::~Report() {
  if (file_.empty()) return;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Row& row : rows_) json.push_back(ToJson(row));
  std::ofstream(file_) << json.dump(1) << "\n";
}

void Report::Add(const Row& row) {
  std::string line =
      fmt::format("{}: {:.3g} {}", row.name, row.value, row.unit);
  if (row.limit.has_value()) {
    line += fmt::format(", {}: {:.3g}", row.limit_is, *row.limit);
  }
  if (row.goal.has_value()) line += fmt::format(", goal {:.3g}", *row.goal);
  std::puts(line.c_str());
  std::fflush(stdout);
  rows_.push_back(row);
}

void Fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(1);
}

void Must(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

double Samples::Quantile(double q) const {
  if (values_.empty()) Fail("no samples");
  std::vector<double> sorted = values_;
  const auto nth = static_cast<std::ptrdiff_t>(
      std::lround(q * static_cast<double>(sorted.size() - 1)));
  std::nth_element(sorted.begin(), sorted.begin() + nth, sorted.end());
  return sorted[static_cast<std::size_t>(nth)];
}

RawLog::RawLog(const std::filesystem::path& folder)
    : file_(::open((folder / "raw.log").c_str(),
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}

void RawLog::AppendAndSync() {
  static const std::string record(1'500, 'x');
  if (::write(file_.get(), record.data(), record.size()) < 0 ||
      ::fdatasync(file_.get()) != 0) {
    Fail("cannot write to the disk");
  }
}

Helper::Helper() : thread_([this] { Loop(); }) {}

Helper::~Helper() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void Helper::Run(const std::function<void()>& work) {
  MutexLock lock(mutex_);
  work_ = &work;
  changed_.NotifyAll();
  while (work_ != nullptr) changed_.Wait(mutex_);
}

void Helper::Loop() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (work_ != nullptr) {
      (*work_)();
      work_ = nullptr;
      changed_.NotifyAll();
    } else {
      changed_.Wait(mutex_);
    }
  }
}

PodUid UidOfPod(int number) {
  return {fmt::format("00000000-0000-4000-8000-{:012}", number)};
}

state::PutPod ReadyPod(int number, int claims) {
  auto pod = std::make_shared<state::PodRecord>();
  pod->uid = UidOfPod(number);
  pod->name = NameOfPod(number);
  pod->phase = state::PodPhase::kReady;
  pod->boot_id = kBoot;
  auto answer = std::make_shared<PodDevices>();
  answer->name = pod->name;
  answer->uid = pod->uid;
  for (const char* container : {"init", "main", "side"}) {
    state::ContainerNeed need;
    ContainerDevices devices;
    need.name = devices.name = container;
    need.init = devices.init = container == std::string_view("init");
    for (int i = 0; i < claims && need.name == "main"; ++i) {
      const ClaimUid claim = UidOfClaim(number, i);
      pod->claims.push_back(claim);
      need.wants.push_back({claim, "gpu", ""});
      devices.cdi_devices.push_back(
          {DeviceId(claim),
           {fmt::format("pod-{}-{}", number, i), "gpu", kDriver, "pool-0",
            fmt::format("gpu-{}", number), ""}});
    }
    pod->needs.push_back(need);
    answer->containers.push_back(devices);
  }
  pod->answer = answer;
  return {pod};
}

state::PutClaim PreparedClaim(int pod, int number) {
  auto claim = std::make_shared<state::ClaimRecord>();
  claim->uid = UidOfClaim(pod, number);
  claim->name = {"default", fmt::format("pod-{}-{}", pod, number)};
  claim->pods = {UidOfPod(pod)};
  state::DriverRecord& driver = claim->drivers[kDriver];
  driver.phase = state::DriverPhase::kPrepared;
  driver.boot_id = kBoot;
  driver.devices.push_back({{"gpu"},
                            "pool-0",
                            fmt::format("gpu-{}", pod),
                            {DeviceId(claim->uid)},
                            ""});
  return {claim};
}

void FillLedger(const std::filesystem::path& state_dir, int pods, int claims) {
  const auto store = Must(checkpoint::OpenRocksDbStore({state_dir, {}}));
  std::uint64_t seq = 0;
  std::vector<state::Batch> batches;
  for (int pod = 0; pod < pods; ++pod) {
    for (int claim = 0; claim < claims; ++claim) {
      state::Batch batch;
      batch.seq = ++seq;
      batch.decision.kind = state::DecisionKind::kPrepareResult;
      batch.decision.pods = {NameOfPod(pod)};
      batch.decision.changes = {PreparedClaim(pod, claim)};
      if (claim == 0) {
        batch.decision.changes.emplace_back(ReadyPod(pod, claims));
      }
      batches.push_back(std::move(batch));
    }
    if (batches.size() < 1'000 && pod + 1 < pods) continue;
    Must(store->Append(batches));
    batches.clear();
  }
}

Pod PodOfOneContainer(const std::string& name) {
  Pod pod;
  pod.metadata.ns = "default";
  pod.metadata.name = name;
  pod.metadata.uid = "uid-of-" + name;
  pod.spec.containers.resize(1);
  pod.spec.containers[0].name = "main";
  return pod;
}

Pod PodWithDevice(const std::string& name) {
  Pod pod = PodOfOneContainer(name);
  pod.spec.containers[0].resources.limits[kResource] = {1, 0, "1"};
  return pod;
}

Pod PodWithClaim(const std::string& name) {
  Pod pod = PodOfOneContainer(name);
  pod.spec.containers[0].resources.claims = {{"it", ""}};
  pod.spec.resource_claims = {{"it", name, std::nullopt}};
  return pod;
}

ResourceClaim ClaimOf(const Pod& pod, const std::string& driver) {
  ResourceClaim claim;
  claim.metadata = pod.metadata;
  claim.metadata.uid = "uid-of-claim-" + pod.metadata.name;
  claim.status.allocation.emplace().results.push_back(
      {"r", driver, "pool-0", "dev-" + pod.metadata.name, false, "", {}});
  claim.status.reserved_for.push_back(
      {"", "pods", pod.metadata.name, pod.metadata.uid});
  return claim;
}

}  // namespace devmgr::bench
