// SPDX-License-Identifier: Apache-2.0
//
// What a host is told for its metrics.
#include "manager/device_fixture.h"
#include "manager/recorded_metrics.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;

class DeviceMetricsSink final : public RecordedMetrics {
 public:
  void OnRegistration(const ResourceName& resource) override {
    Add(resource.value + " registers");
  }
  void OnAllocate(const ResourceName& resource, std::chrono::nanoseconds took,
                  bool failed) override {
    Add(resource.value + (failed ? " failed" : " ok"), took);
  }
};

class MetricsTest : public DeviceNodeTest {
 protected:
  MetricsTest() { node_.metrics = &sink_; }
  ~MetricsTest() override { node_.Stop(); }

  DeviceMetricsSink sink_;
};

TEST_F(MetricsTest, EachCallOfRegisterIsTold) {
  node_.Start();
  for (const char* name : {kGpu, "invalid", kGpu}) {
    node_.plugins.CallRegister(name);
  }
  node_.Sync();
  EXPECT_THAT(sink_.calls(),
              ElementsAre("example.com/gpu registers", "invalid registers",
                          "example.com/gpu registers"));
}

TEST_F(MetricsTest, EachAllocateCallIsTold) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  node_.plugins.Serve(kNic, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}) + DevicePod("none", {}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("none", PodState::kReady));
  EXPECT_THAT(sink_.calls(), ::testing::UnorderedElementsAre(
                                 "example.com/gpu ok", "example.com/nic ok"));
}

TEST_F(MetricsTest, AFailedCallIsToldAsSuch) {
  node_.options.policies.authority = Authority::kScheduler;
  node_.Start();
  node_.plugins.Answer(kGpu, [](const auto&) { return InternalError("no"); });
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_THAT(sink_.calls(), ElementsAre("example.com/gpu failed"));
}

TEST_F(MetricsTest, TheTimeOfACallIsThatUntilItsEnd) {
  constexpr std::chrono::milliseconds kHeld(20);
  node_.Start();
  node_.plugins.Hold(kGpu);
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  EXPECT_THAT(sink_.calls(), ElementsAre());
  node_.RunAfter(kHeld, [this] { node_.plugins.Let(kGpu); });
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(sink_.calls(), ElementsAre("example.com/gpu ok"));
  EXPECT_GE(sink_.longest(), kHeld);
}

}  // namespace
}  // namespace devmgr
