// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/inspection.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "support/fake_device_manager.h"
#include "support/mailbox.h"
#include "support/temp_folder.h"

namespace devmgr {

inline const ObjectName kPod{"default", "gpu-pod"};

inline PodInfo InfoOf(PodState state) {
  PodInfo pod;
  pod.name = kPod;
  pod.uid = {"u1"};
  pod.state = state;
  return pod;
}

class InspectionServerTest : public ::testing::Test {
 protected:
  void SetActuate(Actuate actuate) {
    manager_.Set(
        [&](FakeDeviceManager::World& world) { world.node.actuate = actuate; });
  }
  void StartServer() {
    auto server = InspectionServer::Start(manager_, endpoint_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }

  std::unique_ptr<Inspector> Connect(
      std::chrono::milliseconds timeout = kPatience) {
    auto inspector = Inspector::Connect(endpoint_, timeout);
    EXPECT_TRUE(inspector.ok()) << inspector.status().ToString();
    return inspector.ok() ? *std::move(inspector) : nullptr;
  }

  /// The source has `kPod`, and `default/bad`, which is malformed.
  void SetSource() {
    auto pod = std::make_shared<Pod>();
    pod->metadata.ns = kPod.ns;
    pod->metadata.name = kPod.name;
    pod->metadata.uid = "u1";
    auto bad = std::make_shared<MalformedPod>();
    bad->pod.metadata.uid = "u2";
    bad->problem = {"bad.yaml", 3, "spec.containers", "required value"};
    auto objects = std::make_shared<ObjectSnapshot>();
    objects->pods.insert_or_assign(kPod, pod);
    objects->malformed_pods.insert_or_assign({"default", "bad"}, bad);
    manager_.Set(
        [&](FakeDeviceManager::World& world) { world.objects = objects; });
  }

  TempFolder folder_;
  const std::filesystem::path endpoint_ = folder_.path() / "devmgr.sock";
  FakeDeviceManager manager_;
  std::unique_ptr<InspectionServer> server_;
};

}  // namespace devmgr
