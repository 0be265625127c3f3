// SPDX-License-Identifier: Apache-2.0
#include "dra/health_service.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "api/names.h"
#include "common/status.h"
#include "devmgr/wire/dra/health/v1/health.pb.h"
#include "dra/answer.h"
#include "rpc/message.h"

namespace devmgr::dra {
namespace {

namespace v1 = wire::dra::health::v1;

constexpr std::array kServices = {
    HealthService{"v1.DRAResourceHealth",
                  "/v1.DRAResourceHealth/NodeWatchResources"},
    HealthService{"v1alpha1.DRAResourceHealth",
                  "/v1alpha1.DRAResourceHealth/NodeWatchResources"},
};

device::Health HealthOf(v1::HealthStatus status) {
  switch (status) {
    case v1::HEALTHY:
      return device::Health::kHealthy;
    case v1::UNHEALTHY:
      return device::Health::kUnhealthy;
    default:
      return device::Health::kUnknown;
  }
}

/// As the answer to prepare has to name it (answer.h).
bool CanBe(const v1::DeviceIdentifier& device) {
  return device.pool_name().size() <= kMaxNameBytes &&
         api::CheckPoolName(device.pool_name()).empty() &&
         api::CheckLabel(device.device_name()).empty();
}

std::int64_t LeaseOf(std::int64_t seconds) {
  constexpr std::int64_t kMsPerSecond = 1'000;
  return std::clamp<std::int64_t>(
             seconds, 0, device::DriverHealth::kMaxLeaseMs / kMsPerSecond) *
         kMsPerSecond;
}

}  // namespace

std::span<const HealthService> HealthServices() { return kServices; }

const HealthService* ChooseHealthService(
    const std::vector<std::string>& advertised) {
  for (const HealthService& service : kServices) {
    if (std::find(advertised.begin(), advertised.end(), service.name) !=
        advertised.end()) {
      return &service;
    }
  }
  return nullptr;
}

absl::StatusOr<std::vector<device::DeviceReport>> DecodeHealthReport(
    const std::string& bytes) {
  std::vector<device::DeviceReport> report;
  absl::Status status;
  // One by one: a message of nothing but devices is small, its parts are not.
  const auto use = [&](std::string_view item) {
    v1::DeviceHealth wire;
    if (!wire.ParseFromArray(item.data(), static_cast<int>(item.size()))) {
      status = InvalidArgumentError("{} bytes of a health report are no device",
                                    item.size());
      return false;
    }
    if (CanBe(wire.device())) {
      report.push_back(
          {{wire.device().pool_name(), wire.device().device_name()},
           HealthOf(wire.health()),
           wire.message().substr(0, 2 * device::DriverHealth::kMaxMessageBytes),
           LeaseOf(wire.health_check_timeout_seconds())});
    }
    return report.size() < kMaxReportedDevices;
  };
  if (!rpc::ForEachField(
          bytes, v1::NodeWatchResourcesResponse::kDevicesFieldNumber, use)) {
    return InvalidArgumentError("{} bytes are not a health report",
                                bytes.size());
  }
  if (!status.ok()) return status;
  return report;
}

}  // namespace devmgr::dra
