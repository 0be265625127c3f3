// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/executor.h"
#include "common/status.h"
#include "source/api/api_session.h"
#include "source/api/api_texts.h"
#include "source/api/fake_transport.h"

namespace devmgr::apiserver {

inline constexpr char kList[] = "/api/v1/pods?fieldSelector";
inline constexpr char kWatch[] = "watch=true";
inline constexpr char kGroup[] = "/apis/resource.k8s.io";
inline constexpr char kV1[] =
    R"({"kind":"APIGroup","versions":[{"version":"v1"}]})";
inline constexpr char kClaims[] = R"(,"resourceClaims":[{"name":"a",)"
                                  R"("resourceClaimName":"c"}])";

class ApiSessionFixture : public ::testing::Test {
 protected:
  ~ApiSessionFixture() override { session.reset(); }

  void Start(ApiSession::Options options = {}) {
    options.node_name = "n1";
    Kubeconfig config;
    config.server = "https://api.test";
    config.token_file = "/token";
    credentials.emplace(
        config,
        Credentials::Seams{
            .read_file = [this](const std::filesystem::path&)
                -> absl::StatusOr<std::string> {
              if (token.empty()) return NotFoundError("no such file");
              return token;
            },
            .check_pair = {},
            .wall_clock = [] { return std::chrono::system_clock::now(); },
            .warn = [](const std::string&) {}});
    session.emplace(
        options,
        ApiSession::Parts{
            .executor = executor,
            .transport = transport,
            .credentials = *credentials,
            .random = [] { return 0.0; },
            .publish =
                [this](std::shared_ptr<const ObjectSnapshot> published) {
                  snapshot = std::move(published);
                },
            .remember =
                [this](const SourceMemory& memory) {
                  versions.push_back(memory.pods_version);
                  remembered = memory;
                },
            .activity = activity,
            .on_state = [this](const std::string& text) { state = text; },
            .warn =
                [this](const std::string& text) { warnings.push_back(text); },
            .wall_clock =
                [this] {
                  return std::chrono::system_clock::time_point(
                      executor.Now().time_since_epoch());
                },
            .on_resource_version = {},
            .rate = rate ? &*rate : nullptr});
  }
  /// The pods are listed, and watched.
  void StartWith(const std::vector<std::string>& pods,
                 ApiSession::Options options = {}) {
    Start(std::move(options));
    ASSERT_TRUE(transport.Answer(kList, ListText(pods, "100")));
    ASSERT_NE(transport.Find("pods?resourceVersion=100"), 0u);
    transport.Begin(transport.Find("pods?resourceVersion=100"));
    executor.RunPending();
  }
  void SendEvent(const std::string& type, const std::string& object) {
    transport.Send(transport.Find("/pods?"), EventText(type, object));
    executor.RunPending();
  }
  std::vector<std::string> Pods() const {
    std::vector<std::string> pods;
    for (const auto& [name, pod] : snapshot->pods) {
      pods.push_back(name.name + "/" + pod->metadata.uid);
    }
    return pods;
  }
  std::vector<std::string> Gone() const {
    std::vector<std::string> uids;
    for (const PodUid& uid : snapshot->gone_pods) uids.push_back(uid.value);
    return uids;
  }

  ManualExecutor executor;
  FakeTransport transport;
  std::string token = "sesame";
  std::shared_ptr<const ObjectSnapshot> snapshot =
      std::make_shared<const ObjectSnapshot>();
  std::vector<std::string> versions;
  SourceMemory remembered;
  Activity activity;
  std::vector<std::string> warnings;
  std::string state;
  std::optional<RequestRate> rate;
  std::optional<Credentials> credentials;
  std::optional<ApiSession> session;
};
}  // namespace devmgr::apiserver
