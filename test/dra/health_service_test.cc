// SPDX-License-Identifier: Apache-2.0
#include "dra/health_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "devmgr/wire/dra/health/v1/health.pb.h"
#include "support/status_matchers.h"

namespace devmgr::dra {
namespace {

namespace health_v1 = wire::dra::health::v1;
using ::testing::IsEmpty;
using ::testing::SizeIs;

health_v1::DeviceHealth DeviceOf(const std::string& pool,
                                 const std::string& device) {
  health_v1::DeviceHealth health;
  health.mutable_device()->set_pool_name(pool);
  health.mutable_device()->set_device_name(device);
  health.set_health(health_v1::HEALTHY);
  return health;
}

std::string BytesOf(const std::vector<health_v1::DeviceHealth>& devices) {
  health_v1::NodeWatchResourcesResponse report;
  for (const auto& device : devices) *report.add_devices() = device;
  return report.SerializeAsString();
}

TEST(HealthServiceTest, TheNewestAdvertisedOneIsTaken) {
  const auto chosen = [](const std::vector<std::string>& advertised) {
    const HealthService* service = ChooseHealthService(advertised);
    return service != nullptr ? std::string(service->method) : "";
  };
  EXPECT_EQ(chosen({"v1alpha1.DRAResourceHealth", "v1.DRAPlugin",
                    "v1.DRAResourceHealth"}),
            "/v1.DRAResourceHealth/NodeWatchResources");
  EXPECT_EQ(chosen({"v1.DRAPlugin", "v1alpha1.DRAResourceHealth"}),
            "/v1alpha1.DRAResourceHealth/NodeWatchResources");
  EXPECT_EQ(chosen({"v1.DRAPlugin", "v2.DRAResourceHealth"}), "");
  EXPECT_EQ(chosen({}), "");
}

TEST(HealthServiceTest, AReportIsRead) {
  health_v1::DeviceHealth bad = DeviceOf("rack/pool", "gpu-1");
  bad.set_health(health_v1::UNHEALTHY);
  bad.set_message("too hot");
  bad.set_last_updated_time(1'700'000'000);
  bad.set_health_check_timeout_seconds(60);
  const auto report =
      DecodeHealthReport(BytesOf({DeviceOf("pool", "gpu-0"), bad}));
  ASSERT_THAT(report, IsOk());
  ASSERT_THAT(*report, SizeIs(2));
  EXPECT_EQ(report->at(0).device, device::PoolDevice("pool", "gpu-0"));
  EXPECT_EQ(report->at(0).health, device::Health::kHealthy);
  EXPECT_EQ(report->at(0).lease_ms, 0);
  EXPECT_EQ(report->at(1).device, device::PoolDevice("rack/pool", "gpu-1"));
  EXPECT_EQ(report->at(1).health, device::Health::kUnhealthy);
  EXPECT_EQ(report->at(1).message, "too hot");
  EXPECT_EQ(report->at(1).lease_ms, 60'000);
}

// Put together from upstream's field numbers, not by our schema.
TEST(HealthServiceTest, TheNumbersAreUpstreams) {
  const std::string bytes(
      "\x0a\x11\x0a\x06\x0a\x01p\x12\x01"
      "d\x10\x02\x18\x05\x20\x3c\x2a\x01m",
      19);
  const auto report = DecodeHealthReport(bytes);
  ASSERT_THAT(report, IsOk());
  ASSERT_THAT(*report, SizeIs(1));
  EXPECT_EQ(report->front().device, device::PoolDevice("p", "d"));
  EXPECT_EQ(report->front().health, device::Health::kUnhealthy);
  EXPECT_EQ(report->front().lease_ms, 60'000);
  EXPECT_EQ(report->front().message, "m");
}

TEST(HealthServiceTest, AStatusThatWeDoNotKnowIsUnknown) {  // DRA-155
  for (const int status : {0, 3, 99, -1}) {
    health_v1::DeviceHealth device = DeviceOf("pool", "gpu-0");
    device.set_health(static_cast<health_v1::HealthStatus>(status));
    const auto report = DecodeHealthReport(BytesOf({device}));
    ASSERT_THAT(report, IsOk());
    ASSERT_THAT(*report, SizeIs(1));
    EXPECT_EQ(report->front().health, device::Health::kUnknown) << status;
  }
}

TEST(HealthServiceTest, ALeaseOfAnyLengthIsANumberWeCanCountWith) {
  for (const std::int64_t seconds :
       {std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    health_v1::DeviceHealth device = DeviceOf("pool", "gpu-0");
    device.set_health_check_timeout_seconds(seconds);
    const auto report = DecodeHealthReport(BytesOf({device}));
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->front().lease_ms,
              seconds > 0 ? device::DriverHealth::kMaxLeaseMs : 0);
  }
}

TEST(HealthServiceTest, WhatCannotBeADeviceIsLeftOut) {
  const auto report =
      DecodeHealthReport(BytesOf({DeviceOf("", "gpu-0"),
                                  DeviceOf("pool", ""),
                                  DeviceOf("pool", "GPU 0"),
                                  DeviceOf("pool", "a/b"),
                                  DeviceOf(std::string(5'000, 'p'), "gpu-0"),
                                  {},
                                  DeviceOf("pool", "gpu-0")}));
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(*report, SizeIs(1));
}

TEST(HealthServiceTest, GarbageIsRefused) {
  EXPECT_THAT(DecodeHealthReport("\xff\xff\xff"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // A device that is none.
  EXPECT_THAT(DecodeHealthReport(std::string("\x0a\x02\x0a\x7f", 4)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const auto empty = DecodeHealthReport("");
  ASSERT_THAT(empty, IsOk());
  EXPECT_THAT(*empty, IsEmpty());
}

TEST(HealthServiceTest, ATextThatIsNotUtf8DoesNotCostTheReport) {
  health_v1::DeviceHealth device = DeviceOf("pool", "gpu-0");
  device.set_message("cut \xe2\x82");
  EXPECT_THAT(DecodeHealthReport(BytesOf({device})), IsOk());
}

TEST(HealthServiceTest, OfAReportWithoutEndOnlySoMuchIsRead) {
  const std::string one = BytesOf({DeviceOf("p", "d")});
  std::string many;
  for (std::size_t i = 0; i < kMaxReportedDevices + 10; ++i) many += one;
  const auto report = DecodeHealthReport(many);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(*report, SizeIs(kMaxReportedDevices));
}

}  // namespace
}  // namespace devmgr::dra
