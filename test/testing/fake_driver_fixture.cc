// SPDX-License-Identifier: Apache-2.0
#include "testing/fake_driver_fixture.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "common/status.h"
#include "rpc/message.h"

namespace devmgr::testing {

void PendingAnswer::Set(absl::StatusOr<std::string> answer) {
  MutexLock lock(mutex_);
  answer_ = std::move(answer);
  set_ = true;
  changed_.NotifyAll();
}

absl::StatusOr<std::string> PendingAnswer::Wait(
    std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (!set_) {
    if (!changed_.WaitUntil(mutex_, deadline) && !set_) {
      return DeadlineExceededError("no answer within the test's limit");
    }
  }
  return answer_;
}

bool PendingAnswer::ready() const {
  MutexLock lock(mutex_);
  return set_;
}

FakeDriverFixture::FakeDriverFixture() {
  char path[] = "/tmp/devmgr-fake-XXXXXX";
  root_ = ::mkdtemp(path);
  runtime_ = rpc::Runtime::Start().value();
}

FakeDriverFixture::~FakeDriverFixture() {
  service_.reset();
  driver_.reset();
  std::filesystem::remove_all(root_);
}

FakeDraDriverOptions FakeDriverFixture::Options() {
  FakeDraDriverOptions options;
  options.name = kDriver;
  options.root = root_;
  options.on_event = [this](std::string_view line) {
    MutexLock lock(mutex_);
    events_.push_back(nlohmann::json::parse(line));
    changed_.NotifyAll();
  };
  return options;
}

void FakeDriverFixture::StartDriver(FakeDraDriverOptions options) {
  service_.reset();
  driver_.reset();
  auto driver = FakeDraDriver::Start(std::move(options));
  ASSERT_TRUE(driver.ok()) << driver.status().ToString();
  driver_ = *std::move(driver);
}

void FakeDriverFixture::WriteClaim(const std::string& name,
                                   const std::string& uid,
                                   const std::vector<Result>& results) {
  std::string text = fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
      "metadata: {{name: {}, namespace: default{}}}\n"
      "spec:\n  devices:\n    requests:\n",
      name, uid.empty() ? "" : ", uid: " + uid);
  std::vector<std::string> requests;
  for (const Result& result : results) {
    const std::string base = result.request.substr(0, result.request.find('/'));
    if (std::count(requests.begin(), requests.end(), base) == 0) {
      requests.push_back(base);
    }
  }
  if (requests.empty()) requests.push_back("gpu");
  for (const std::string& request : requests) {
    text += fmt::format(
        "    - {{name: {}, firstAvailable: [{{name: large, deviceClassName: "
        "gpu}}]}}\n",
        request);
  }
  if (!results.empty()) {
    text += "status:\n  allocation:\n    devices:\n      results:\n";
  }
  for (const Result& result : results) {
    text += fmt::format(
        "      - {{request: {}, driver: {}, pool: {}, device: '{}'{}}}\n",
        result.request, result.driver, result.pool, result.device,
        result.share_id.empty() ? "" : ", shareID: " + result.share_id);
  }
  std::filesystem::create_directories(root_ / "manifests");
  std::ofstream(root_ / "manifests" / (name + ".yaml")) << text;
}

void FakeDriverFixture::RemoveManifest(const std::string& name) {
  std::filesystem::remove(root_ / "manifests" / (name + ".yaml"));
}

std::filesystem::path FakeDriverFixture::ServiceSocket() const {
  return root_ / "plugins" / kDriver / "dra.sock";
}

std::filesystem::path FakeDriverFixture::RegistrationSocket() const {
  return root_ / "plugins_registry" / (std::string(kDriver) + "-reg.sock");
}

std::unique_ptr<rpc::Connection> FakeDriverFixture::Dial(
    const std::filesystem::path& socket, std::function<void()> on_hang_up) {
  if (!on_hang_up) on_hang_up = [] {};
  auto connection = rpc::Dial(*runtime_, socket, std::move(on_hang_up));
  return connection.ok() ? *std::move(connection) : nullptr;
}

std::shared_ptr<PendingAnswer> FakeDriverFixture::StartCall(
    const std::string& method, const std::string& request) {
  auto answer = std::make_shared<PendingAnswer>();
  if (service_ == nullptr || service_->over()) service_ = Dial(ServiceSocket());
  if (service_ == nullptr) {
    answer->Set(UnavailableError("cannot dial the service socket"));
    return answer;
  }
  service_->Call(method, request, {kLimit},
                 [answer](absl::StatusOr<std::string> result) {
                   answer->Set(std::move(result));
                 });
  return answer;
}

namespace {

template <typename Request>
std::string RequestFor(const std::map<std::string, std::string>& uid_by_name) {
  Request request;
  for (const auto& [name, uid] : uid_by_name) {
    auto* claim = request.add_claims();
    claim->set_namespace_("default");
    claim->set_name(name);
    claim->set_uid(uid);
  }
  return rpc::Encode(request);
}

template <typename Response>
absl::StatusOr<Response> Decoded(const absl::StatusOr<std::string>& answer) {
  if (!answer.ok()) return answer.status();
  return rpc::Decode<Response>(*answer);
}

}  // namespace

std::shared_ptr<PendingAnswer> FakeDriverFixture::StartPrepare(
    const std::map<std::string, std::string>& uid_by_name) {
  return StartCall(
      "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
      RequestFor<v1::NodePrepareResourcesRequest>(uid_by_name));
}

absl::StatusOr<v1::NodePrepareResourcesResponse> FakeDriverFixture::Prepare(
    const std::map<std::string, std::string>& uid_by_name) {
  return Decoded<v1::NodePrepareResourcesResponse>(
      StartPrepare(uid_by_name)->Wait());
}

absl::StatusOr<v1::NodeUnprepareResourcesResponse> FakeDriverFixture::Unprepare(
    const std::map<std::string, std::string>& uid_by_name) {
  return Decoded<v1::NodeUnprepareResourcesResponse>(
      Call("/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources",
           RequestFor<v1::NodeUnprepareResourcesRequest>(uid_by_name)));
}

absl::StatusOr<registration::PluginInfo> FakeDriverFixture::GetInfo() {
  const auto connection = Dial(RegistrationSocket());
  if (connection == nullptr) return UnavailableError("cannot dial");
  PendingAnswer answer;
  connection->Call("/pluginregistration.Registration/GetInfo", "", {kLimit},
                   [&answer](absl::StatusOr<std::string> result) {
                     answer.Set(std::move(result));
                   });
  return Decoded<registration::PluginInfo>(answer.Wait());
}

absl::Status FakeDriverFixture::Notify(bool registered,
                                       const std::string& error) {
  const auto connection = Dial(RegistrationSocket());
  if (connection == nullptr) return UnavailableError("cannot dial");
  registration::RegistrationStatus status;
  status.set_plugin_registered(registered);
  status.set_error(error);
  PendingAnswer answer;
  connection->Call("/pluginregistration.Registration/NotifyRegistrationStatus",
                   rpc::Encode(status), {kLimit},
                   [&answer](absl::StatusOr<std::string> result) {
                     answer.Set(std::move(result));
                   });
  return answer.Wait().status();
}

std::vector<std::string> FakeDriverFixture::FilesIn(
    const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(root_ / folder, error)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

nlohmann::json FakeDriverFixture::SpecOf(const std::string& uid) const {
  std::ifstream file(root_ / "cdi" / fmt::format("{}-{}.json", kDriver, uid));
  return nlohmann::json::parse(file, nullptr, false);
}

std::vector<nlohmann::json> FakeDriverFixture::Events(
    const std::string& kind) const {
  MutexLock lock(mutex_);
  std::vector<nlohmann::json> found;
  for (const auto& event : events_) {
    if (event.value("event", "") == kind) found.push_back(event);
  }
  return found;
}

bool FakeDriverFixture::WaitForEvents(const std::string& kind,
                                      std::size_t count) const {
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  MutexLock lock(mutex_);
  for (;;) {
    std::size_t found = 0;
    for (const auto& event : events_) {
      if (event.value("event", "") == kind) ++found;
    }
    if (found >= count) return true;
    if (!changed_.WaitUntil(mutex_, deadline)) return false;
  }
}

}  // namespace devmgr::testing
