// SPDX-License-Identifier: Apache-2.0
#include "testing/fake_health.h"

#include <fmt/core.h>

#include "devmgr/wire/dra/health/v1/health.pb.h"
#include "rpc/message.h"

namespace devmgr::testing {
namespace {

namespace dra_health = wire::dra::health::v1;

dra_health::HealthStatus StatusOf(std::string_view health) {
  if (health == "Healthy") return dra_health::HEALTHY;
  if (health == "Unhealthy") return dra_health::UNHEALTHY;
  return dra_health::UNKNOWN;
}

}  // namespace

FakeHealth::FakeHealth(Executor& executor, std::string_view version,
                       std::chrono::seconds lease,
                       std::function<std::set<PoolDevice>()> prepared)
    : executor_(executor),
      version_(version),
      lease_(lease),
      prepared_(std::move(prepared)) {}

bool FakeHealth::IsVersion(std::string_view version) {
  return version == "v1" || version == "v1alpha1";
}

std::string FakeHealth::Announced() const {
  return version_.empty() ? "" : version_ + ".DRAResourceHealth";
}

std::map<std::string, rpc::StreamHandler> FakeHealth::Handlers() {
  if (version_.empty()) return {};
  return {
      {fmt::format("/{}/NodeWatchResources", Announced()),
       [this](const std::string&, std::shared_ptr<rpc::ServerStream> stream) {
         executor_.Post([this, stream = std::move(stream)] { Open(stream); });
       }}};
}

void FakeHealth::Open(std::shared_ptr<rpc::ServerStream> stream) {
  const int id = ++last_stream_;
  stream->WhenClientGone(
      [this, id] { executor_.Post([this, id] { streams_.erase(id); }); });
  streams_[id] = std::move(stream);
  Tell();
}

void FakeHealth::Set(const PoolDevice& device, std::string_view health,
                     std::string_view message) {
  told_[device] = {std::string(health), std::string(message)};
  Tell();
}

std::string FakeHealth::Report() const {
  std::map<PoolDevice, Told> all = told_;
  for (const PoolDevice& device : prepared_()) all.try_emplace(device);
  dra_health::NodeWatchResourcesResponse report;
  for (const auto& [device, told] : all) {
    dra_health::DeviceHealth* item = report.add_devices();
    item->mutable_device()->set_pool_name(device.first);
    item->mutable_device()->set_device_name(device.second);
    item->set_health(StatusOf(told.health));
    item->set_health_check_timeout_seconds(lease_.count());
    item->set_message(told.message);
  }
  return rpc::Encode(report);
}

void FakeHealth::Tell() {
  executor_.Cancel(std::exchange(again_, 0));
  if (streams_.empty()) return;
  const std::string report = Report();
  for (const auto& [id, stream] : streams_) stream->Write(report);
  again_ = executor_.PostAfter(std::chrono::milliseconds(lease_) / 3, [this] {
    again_ = 0;
    Tell();
  });
}

void FakeHealth::Drop(const absl::Status& status) {
  executor_.Cancel(std::exchange(again_, 0));
  for (const auto& [id, stream] : std::exchange(streams_, {})) {
    stream->Finish(status);
  }
}

}  // namespace devmgr::testing
