// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/status.h"
#include "manager/driver_names.h"
#include "support/test_node.h"

namespace devmgr {

inline std::string ClaimYaml(const std::string& name, const std::string& uid,
                             const std::vector<std::string>& drivers,
                             const std::vector<std::string>& pod_uids) {
  std::string text =
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
      "metadata: {name: " +
      name + ", uid: " + uid +
      "}\n"
      "spec: {devices: {requests: [{name: r, exactly: "
      "{deviceClassName: c}}]}}\n"
      "status:\n  allocation:\n    devices:\n      results:\n";
  for (const std::string& driver : drivers) {
    text += "      - {request: r, driver: " + driver +
            ", pool: pool-1, device: dev-1}\n";
  }
  if (drivers.empty()) text += "        []\n";
  text += "  reservedFor:\n";
  for (const std::string& pod : pod_uids) {
    text += "  - {resource: pods, name: p, uid: " + pod + "}\n";
  }
  return text + "---\n";
}

inline std::string PodYaml(const std::string& name, const std::string& uid,
                           const std::vector<std::string>& claims,
                           const std::string& extra = "") {
  std::string text = "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
                     ", uid: " + uid +
                     "}\nspec:\n  containers:\n"
                     "  - name: c\n    resources: {claims: [";
  for (const std::string& claim : claims) text += "{name: " + claim + "}, ";
  text += "]}\n  resourceClaims: [";
  for (const std::string& claim : claims) {
    text += "{name: " + claim + ", resourceClaimName: " + claim + "}, ";
  }
  return text + "]\n" + extra + "---\n";
}

class ManagerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    node_.drivers.Register(kDriver);
    node_.drivers.Register(kOther);
  }
  TestNode node_;
};

inline FakeDrivers::Call Prepare(const std::string& driver,
                                 std::set<std::string> claims) {
  return {true, driver, std::move(claims)};
}
inline FakeDrivers::Call Unprepare(const std::string& driver,
                                   std::set<std::string> claims) {
  return {false, driver, std::move(claims)};
}

/// Fails calls of one method for one claim as often as told.
inline FakeDrivers::Script FailTimes(bool prepare, const std::string& claim,
                                     int times) {
  auto left = std::make_shared<int>(times);
  return [=](bool is_prepare, const dra::ClaimReference& reference) {
    if (is_prepare != prepare || reference.name.name != claim) {
      return absl::OkStatus();
    }
    if (*left <= 0) return absl::OkStatus();
    --*left;
    return UnavailableError(
        "NodePrepareResources failed for ResourceClaim {}: boom", claim);
  };
}

}  // namespace devmgr
