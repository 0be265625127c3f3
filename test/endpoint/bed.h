// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "endpoint/endpoint.h"
#include "endpoint/failing_journal.h"
#include "endpoint/tls_client.h"
#include "endpoint/wire_encoder.h"
#include "support/mailbox.h"
#include "support/temp_folder.h"

namespace devmgr::endpoint {

inline constexpr const char* kDriver = "gpu.example.com";
inline constexpr const char* kOther = "nic.example.com";
inline constexpr const char* kSlices =
    "/apis/resource.k8s.io/v1/resourceslices";
inline constexpr const char* kClaim =
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c";

inline std::string TextOf(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// An endpoint of node n1 with two drivers, and a journal that outlives it.
struct EndpointBed {
  EndpointBed() : journal(folder.path() / "journal") {
    options.node_name = "n1";
    options.node_uid = "u-n1";
    options.drivers = {kDriver, kOther};
    options.kubeconfig_dir = folder.path() / "kubeconfig";
    options.on_change = [this](const DriverChange& change) {
      changes.Put(change);
    };
  }

  void Start() {
    absl::StatusOr<std::unique_ptr<Endpoint>> started =
        Endpoint::Start(options, journal);
    ASSERT_TRUE(started.ok()) << started.status();
    endpoint = *std::move(started);
  }
  std::string Token(const std::string& driver = kDriver) const {
    return TextOf(options.kubeconfig_dir / ".serviceaccount" / driver /
                  "token");
  }
  std::unique_ptr<TlsClient> Client() const {
    auto client = std::make_unique<TlsClient>(
        endpoint->port(), options.kubeconfig_dir / ".tls/ca.crt");
    EXPECT_TRUE(client->connected());
    return client;
  }
  Reply Call(const std::string& method, const std::string& target,
             const std::string& body = "",
             const std::string& type = "application/json",
             const std::string& driver = kDriver) const {
    return Client()->Call(method, target, Token(driver), body, type);
  }
  static apistore::Json Slice(const std::string& name,
                              const std::string& driver = kDriver,
                              const std::string& node = "n1") {
    return {{"apiVersion", "resource.k8s.io/v1"},
            {"kind", "ResourceSlice"},
            {"metadata", {{"name", name}}},
            {"spec",
             {{"driver", driver},
              {"nodeName", node},
              {"pool",
               {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
              {"devices", apistore::Json::array({{{"name", "gpu-0"}}})}}}};
  }
  /// A claim that has a device of the driver.
  static std::string Claim(const std::string& name,
                           const std::string& driver = kDriver) {
    apistore::Json claim = apistore::J(R"({
      "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
      "metadata": {"namespace": "default", "uid": "u-c"},
      "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
      "status": {"allocation": {"devices": {"results": [
        {"request": "r", "pool": "n1", "device": "gpu-0"},
        {"request": "r", "pool": "n1", "device": "gpu-1"}]}}}})");
    claim["metadata"]["name"] = name;
    for (auto& result : claim["status"]["allocation"]["devices"]["results"]) {
      result["driver"] = driver;
    }
    return claim.dump();
  }

  TempFolder folder;
  FailingJournal journal;
  EndpointOptions options;
  Mailbox<DriverChange> changes;
  std::unique_ptr<Endpoint> endpoint;
};

}  // namespace devmgr::endpoint
