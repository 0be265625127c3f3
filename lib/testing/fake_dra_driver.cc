// SPDX-License-Identifier: Apache-2.0
#include <devmgr/testing.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "common/status.h"
#include "rpc/server.h"
#include "testing/call_script.h"
#include "testing/claim_manifests.h"
#include "testing/claim_reader.h"
#include "testing/driver_journal.h"
#include "testing/fake_driver_options.h"
#include "testing/fake_driver_store.h"
#include "testing/fake_driver_wire.h"
#include "testing/fake_health.h"
#include "testing/files.h"
#include "testing/registration_wire.h"
#include "testing/scenario.h"
#include "testing/slice_publisher.h"

namespace devmgr::testing {
namespace {

using Action = ScenarioStep::Action;

constexpr char kNobodysUid[] = "00000000-0000-0000-0000-000000000000";

/// The claim that a call names, where its allocation can be read.
using FindClaim =
    std::function<absl::StatusOr<ResourceClaim>(const ClaimReference& claim)>;

FindClaim FindIn(const ClaimsRead& read) {
  return [&read](const ClaimReference& claim) { return read.at(claim.uid); };
}

/// All of the driver lives on its executor; servers only post to it.
class FakeDraDriverImpl final : public FakeDraDriver {
 public:
  explicit FakeDraDriverImpl(FakeDraDriverOptions options)
      : options_(std::move(options)),
        plugin_dir_(options_.root / "plugins" / options_.name),
        service_socket_(plugin_dir_ /
                        ("dra" + SocketSuffix(options_) + ".sock")),
        registration_socket_(
            options_.root / "plugins_registry" /
            (options_.name + SocketSuffix(options_) + "-reg.sock")),
        journal_(options_.on_event),
        script_(Fake::kDriver, "fake-dra", StepsOf(options_), options_.crash),
        health_(script_.executor(), options_.health, options_.health_lease,
                [this] { return PreparedDevices(); }) {}
  ~FakeDraDriverImpl() override;

  absl::Status Start();

  void AddStep(ScenarioStep step) override { script_.Add(std::move(step)); }
  void ClearSteps() override { script_.Clear(); }
  void ReleaseHanging() override { script_.ReleaseHanging(); }

  std::vector<Call> Calls() const override { return journal_.Calls(); }
  bool WaitForCalls(std::size_t count,
                    std::chrono::milliseconds limit) const override {
    return journal_.WaitForCalls(count, limit,
                                 [](const Call&) { return true; });
  }
  bool WaitForRegistrations(std::size_t count,
                            std::chrono::milliseconds limit) const override {
    return journal_.WaitForRegistrations(count, limit);
  }
  std::string last_registration_error() const override {
    return journal_.LastRegistrationError();
  }
  std::size_t accepted_connections() const override;
  std::vector<std::string> PreparedClaims() const override;
  absl::Status Restart() override;
  void SetHealth(std::string_view pool, std::string_view device,
                 std::string_view health, std::string_view message) override {
    script_.RunSync([&] {
      health_.Set({std::string(pool), std::string(device)}, health, message);
    });
  }
  std::size_t open_health_streams() const override {
    std::size_t count = 0;
    script_.RunSync([&] { count = health_.open_streams(); });
    return count;
  }
  void DropHealthStreams(const absl::Status& status) override {
    script_.RunSync([&] { health_.Drop(status); });
  }

 private:
  // Sockets.
  absl::Status OpenAll();
  void CloseAll();
  absl::Status OpenService();
  absl::Status OpenRegistration();
  void CloseService();
  void CloseRegistration();
  void AddClaimMethods(std::map<std::string, rpc::UnaryHandler>* methods);
  rpc::UnaryHandler Posted(
      std::function<void(std::string, rpc::Respond)> handler);
  void DropSocket(std::chrono::milliseconds back_after);
  void ReRegister();

  // Calls.
  std::vector<TakenStep> TakeSteps(std::string_view method,
                                   const std::vector<std::string>& claims);
  void OnGetInfo(rpc::Respond respond);
  void OnNotify(const std::string& request, rpc::Respond respond);
  void OnClaims(const DraApi& api, ClaimMethod method,
                const std::string& request, rpc::Respond respond);
  /// Calls `work` with what finds the claims of the call; null: they are
  /// prepared by their handles, or need not be read.
  void FindClaims(const DraApi& api, ClaimMethod method,
                  const std::vector<ClaimReference>& claims,
                  const std::function<void(const FindClaim&)>& work);
  void WorkAndAnswer(const DraApi& api, ClaimMethod method,
                     const std::vector<ClaimReference>& claims,
                     const std::vector<TakenStep>& taken, const FindClaim& find,
                     const rpc::Respond& respond);
  std::vector<ClaimAnswer> Work(ClaimMethod method,
                                const std::vector<ClaimReference>& claims,
                                const std::vector<TakenStep>& taken,
                                const FindClaim& find);
  ClaimAnswer WorkOn(ClaimMethod method, const ClaimReference& claim,
                     const FindClaim& find, LostSpec lost);
  absl::StatusOr<PreparedClaim> Prepare(const ClaimReference& claim,
                                        const FindClaim& find, LostSpec lost);
  /// True when `step` ends the call before any work.
  bool EndsBeforeWork(std::string_view method, const ScenarioStep& step,
                      const rpc::Respond& respond);
  /// Runs `finish`, which answers, when and if `step` lets it.
  void FinishAfterWork(const ScenarioStep& step, Task finish);

  // An API server.
  void StartPublishing();

  /// Prepared by whichever instance, by UID.
  std::map<std::string, PreparedClaim> ClaimsOfAll() const;
  // Health.
  std::set<FakeHealth::PoolDevice> PreparedDevices() const;
  /// As a step says.
  void SetHealth(const ScenarioStep& step);

  const FakeDraDriverOptions options_;
  const std::filesystem::path plugin_dir_;
  const std::filesystem::path service_socket_;
  const std::filesystem::path registration_socket_;
  DriverJournal journal_;
  CallScript script_;

  // Only on the executor.
  std::optional<FakeDriverStore> store_;
  std::unique_ptr<rpc::Server> service_;  ///< Null with a common socket.
  std::unique_ptr<rpc::Server> registration_;
  std::optional<SlicePublisher> publisher_;  ///< With `publish`.
  std::minstd_rand random_{std::random_device()()};
  std::string pool_ = options_.pool;    ///< As it is published.
  std::size_t closed_connections_ = 0;  ///< Of service sockets gone by now.
  FakeHealth health_;
};

absl::Status FakeDraDriverImpl::Start() {
  absl::Status opened;
  script_.RunSync([&] { opened = OpenAll(); });
  return opened;
}

FakeDraDriverImpl::~FakeDraDriverImpl() {
  script_.executor().Post([this] { CloseAll(); });
  script_.Stop();
}

std::size_t FakeDraDriverImpl::accepted_connections() const {
  std::size_t count = 0;
  script_.RunSync([&] {
    const auto& server = options_.common_socket ? registration_ : service_;
    count = closed_connections_ +
            (server == nullptr ? 0 : server->accepted_connections());
  });
  return count;
}

std::vector<std::string> FakeDraDriverImpl::PreparedClaims() const {
  std::vector<std::string> uids;
  script_.RunSync([&] {
    for (const auto& [uid, claim] : ClaimsOfAll()) uids.push_back(uid);
  });
  return uids;
}

absl::Status FakeDraDriverImpl::Restart() {
  absl::Status opened;
  script_.RunSync([&] {
    CloseAll();
    opened = OpenAll();
  });
  return opened;
}

absl::Status FakeDraDriverImpl::OpenAll() {
  for (const auto& directory : {plugin_dir_, registration_socket_.parent_path(),
                                options_.root / "manifests"}) {
    DEVMGR_RETURN_IF_ERROR(MakeDirectory(directory));
  }
  // The service socket comes first: who holds it owns the state. Calls that
  // come early wait on the executor.
  if (!options_.common_socket) DEVMGR_RETURN_IF_ERROR(OpenService());
  DEVMGR_ASSIGN_OR_RETURN(
      store_, FakeDriverStore::Open(options_.name, plugin_dir_ / "claims",
                                    options_.root / "cdi"));
  DEVMGR_RETURN_IF_ERROR(OpenRegistration());
  journal_.Serving(options_.name, options_.pool, options_.devices,
                   options_.common_socket ? "" : service_socket_.string(),
                   registration_socket_.string());
  if (options_.publish) StartPublishing();
  return absl::OkStatus();
}

void FakeDraDriverImpl::StartPublishing() {
  const std::filesystem::path kubeconfig =
      options_.kubeconfig.empty() ? options_.root / "kubeconfig" / options_.name
                                  : options_.kubeconfig;
  publisher_.emplace(
      SlicePublisher::Options{options_.name, options_.node_name,
                              static_cast<std::size_t>(options_.devices),
                              kubeconfig},
      SlicePublisher::Parts{
          script_.executor(),
          [this] { return std::uniform_real_distribution<>(0, 1)(random_); },
          [this](const PublishedPool& pool, const SlicePlan& plan) {
            pool_ = pool.node_name;
            journal_.Published(pool.node_name, plan.generation, plan.slices);
          },
          [this](const std::string& problem) {
            journal_.Note("publish-failed", problem);
          }});
  publisher_->Begin();
}

void FakeDraDriverImpl::CloseAll() {
  CloseRegistration();
  CloseService();
  // Calls that wait for their claims are dropped with it.
  publisher_.reset();
  script_.Forget();
  store_.reset();
}

absl::Status FakeDraDriverImpl::OpenService() {
  rpc::ServerOptions server;
  server.socket = service_socket_;
  AddClaimMethods(&server.methods);
  server.streams = health_.Handlers();
  DEVMGR_ASSIGN_OR_RETURN(service_, rpc::Server::Start(std::move(server)));
  return absl::OkStatus();
}

absl::Status FakeDraDriverImpl::OpenRegistration() {
  rpc::ServerOptions server;
  server.socket = registration_socket_;
  if (options_.common_socket) {
    AddClaimMethods(&server.methods);
    server.streams = health_.Handlers();
  }
  server.methods[std::string(kGetInfoPath)] =
      Posted([this](const std::string&, rpc::Respond respond) {
        OnGetInfo(std::move(respond));
      });
  server.methods[std::string(kNotifyPath)] =
      Posted([this](const std::string& request, rpc::Respond respond) {
        OnNotify(request, std::move(respond));
      });
  DEVMGR_ASSIGN_OR_RETURN(registration_, rpc::Server::Start(std::move(server)));
  return absl::OkStatus();
}

void FakeDraDriverImpl::CloseService() {
  if (service_ == nullptr) return;
  closed_connections_ += service_->accepted_connections();
  service_.reset();
}

void FakeDraDriverImpl::CloseRegistration() {
  if (registration_ == nullptr) return;
  if (options_.common_socket) {
    closed_connections_ += registration_->accepted_connections();
  }
  registration_.reset();
}

rpc::UnaryHandler FakeDraDriverImpl::Posted(
    std::function<void(std::string, rpc::Respond)> handler) {
  return [this, handler](std::string request, rpc::Respond respond) {
    script_.executor().Post(
        [handler, request = std::move(request), respond = std::move(respond)] {
          handler(request, respond);
        });
  };
}

void FakeDraDriverImpl::AddClaimMethods(
    std::map<std::string, rpc::UnaryHandler>* methods) {
  const auto& served =
      options_.served_api.empty() ? options_.api : options_.served_api;
  for (const std::string& name : served) {
    const DraApi& api = *FindDraApi(name);
    for (const auto method : {ClaimMethod::kPrepare, ClaimMethod::kUnprepare}) {
      const std::string_view path = method == ClaimMethod::kPrepare
                                        ? api.prepare_path
                                        : api.unprepare_path;
      (*methods)[std::string(path)] =
          Posted([this, &api, method](const std::string& request,
                                      rpc::Respond respond) {
            OnClaims(api, method, request, std::move(respond));
          });
    }
  }
}

void FakeDraDriverImpl::DropSocket(std::chrono::milliseconds back_after) {
  if (options_.common_socket) {
    CloseRegistration();
  } else {
    CloseService();
  }
  journal_.Note("socket-dropped");
  if (back_after.count() == 0) return;
  script_.executor().PostAfter(back_after, [this] {
    if ((options_.common_socket ? registration_ : service_) != nullptr) return;
    const absl::Status opened =
        options_.common_socket ? OpenRegistration() : OpenService();
    journal_.Note(opened.ok() ? "socket-back" : "socket-failed",
                  MessageOf(opened));
  });
}

void FakeDraDriverImpl::ReRegister() {
  CloseRegistration();
  const absl::Status opened = OpenRegistration();
  journal_.Note(opened.ok() ? "registration-offered" : "socket-failed",
                MessageOf(opened));
}

std::vector<TakenStep> FakeDraDriverImpl::TakeSteps(
    std::string_view method, const std::vector<std::string>& claims) {
  std::vector<TakenStep> taken = script_.Take(method, claims);
  for (const TakenStep& each : taken) journal_.Step(method, each.step);
  return taken;
}

void FakeDraDriverImpl::OnGetInfo(rpc::Respond respond) {
  journal_.Note("get-info");
  const ScenarioStep step = StepForCall(TakeSteps("get-info", {}));
  if (EndsBeforeWork("get-info", step, respond)) return;
  PluginInfo info{"DRAPlugin", options_.name, "", options_.supported_versions};
  if (!options_.common_socket) info.endpoint = service_socket_.string();
  if (info.supported_versions.empty()) {
    for (const std::string& name : options_.api) {
      const std::string announced(FindDraApi(name)->announced);
      auto& versions = info.supported_versions;
      if (std::count(versions.begin(), versions.end(), announced) == 0) {
        versions.push_back(announced);
      }
    }
    if (!options_.health.empty()) {
      info.supported_versions.push_back(health_.Announced());
    }
  }
  if (step.action == Action::kGarbageNames) {
    info.name = step.message.empty() ? "Not_A_Driver" : step.message;
  }
  FinishAfterWork(step, [info = std::move(info), respond = std::move(respond)] {
    respond(EncodePluginInfo(info));
  });
}

void FakeDraDriverImpl::OnNotify(const std::string& request,
                                 rpc::Respond respond) {
  const auto outcome = DecodeRegistrationOutcome(request);
  if (!outcome.ok()) return respond(outcome.status());
  journal_.Registration(outcome->registered, outcome->error);
  const ScenarioStep step = StepForCall(TakeSteps("notify-registration", {}));
  if (EndsBeforeWork("notify-registration", step, respond)) return;
  FinishAfterWork(step, [respond = std::move(respond)] {
    respond(EncodeRegistrationResponse());
  });
}

void FakeDraDriverImpl::OnClaims(const DraApi& api, ClaimMethod method,
                                 const std::string& request,
                                 rpc::Respond respond) {
  const auto claims = DecodeClaims(api, method, request);
  if (!claims.ok()) return respond(claims.status());
  if (claims->empty()) return respond("");  // Somebody asks if we are there.
  journal_.ClaimCall(api, method, *claims);
  std::vector<std::string> names;
  for (const ClaimReference& claim : *claims) names.push_back(claim.name.name);
  const std::vector<TakenStep> taken = TakeSteps(NameOf(method), names);
  const ScenarioStep step = StepForCall(taken);
  if (EndsBeforeWork(NameOf(method), step, respond)) return;

  FindClaims(api, method, *claims,
             [this, &api, method, claims = *claims, taken,
              respond](const FindClaim& find) {
               WorkAndAnswer(api, method, claims, taken, find, respond);
             });
}

void FakeDraDriverImpl::FindClaims(
    const DraApi& api, ClaimMethod method,
    const std::vector<ClaimReference>& claims,
    const std::function<void(const FindClaim&)>& work) {
  if (method != ClaimMethod::kPrepare || api.by_handle) return work(nullptr);
  if (publisher_.has_value()) {
    return ReadClaims(publisher_->api(), claims,
                      [work](const ClaimsRead& read) { work(FindIn(read)); });
  }
  ClaimManifests manifests = ClaimManifests::Read(options_.root / "manifests");
  manifests.Add(options_.root / "state/wanted");
  work([&manifests](const ClaimReference& claim) {
    return manifests.FindAllocated(claim.name, claim.uid);
  });
}

void FakeDraDriverImpl::WorkAndAnswer(const DraApi& api, ClaimMethod method,
                                      const std::vector<ClaimReference>& claims,
                                      const std::vector<TakenStep>& taken,
                                      const FindClaim& find,
                                      const rpc::Respond& respond) {
  const ScenarioStep step = StepForCall(taken);
  std::vector<ClaimAnswer> answers = Work(method, claims, taken, find);
  health_.Tell();
  if (step.action == Action::kUnknownClaim) {
    answers.push_back(
        {step.message.empty() ? kNobodysUid : step.message, "", {}});
  }
  FinishAfterWork(step,
                  [this, &api, method, answers = std::move(answers), respond] {
                    journal_.Answer(api, method, answers);
                    respond(EncodeAnswer(api, method, answers));
                  });
}

std::vector<ClaimAnswer> FakeDraDriverImpl::Work(
    ClaimMethod method, const std::vector<ClaimReference>& claims,
    const std::vector<TakenStep>& taken, const FindClaim& find) {
  const LostSpec lost = StepForCall(taken).action == Action::kRemember
                            ? LostSpec::kLeave
                            : LostSpec::kWrite;
  std::vector<ClaimAnswer> answers;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const ScenarioStep* step = StepForClaim(taken, i);
    if (step != nullptr && step->action == Action::kFailClaim) {
      answers.push_back({claims[i].uid, MessageOf(FailureOf(*step)), {}});
      continue;
    }
    ClaimAnswer answer = WorkOn(method, claims[i], find, lost);
    if (step != nullptr && step->action == Action::kTooLittle) continue;
    if (step != nullptr && step->action == Action::kGarbageNames) {
      for (PreparedDevice& device : answer.devices) {
        device.cdi_ids = {step->message.empty() ? "not a CDI name"
                                                : step->message};
      }
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

ClaimAnswer FakeDraDriverImpl::WorkOn(ClaimMethod method,
                                      const ClaimReference& claim,
                                      const FindClaim& find, LostSpec lost) {
  ClaimAnswer answer{claim.uid, "", {}};
  if (method == ClaimMethod::kUnprepare) {
    answer.error = MessageOf(store_->Unprepare(claim.uid));
    return answer;
  }
  absl::StatusOr<PreparedClaim> prepared = Prepare(claim, find, lost);
  if (prepared.ok()) {
    answer.devices = std::move(prepared->devices);
  } else {
    answer.error = MessageOf(prepared.status());
  }
  return answer;
}

absl::StatusOr<PreparedClaim> FakeDraDriverImpl::Prepare(
    const ClaimReference& claim, const FindClaim& find, LostSpec lost) {
  absl::StatusOr<PreparedClaim> prepared;
  if (find == nullptr) {
    prepared =
        store_->PrepareByHandle(claim.name, claim.uid, claim.handle, lost);
  } else {
    DEVMGR_ASSIGN_OR_RETURN(const ResourceClaim found, find(claim));
    prepared = store_->Prepare(found, claim.uid, lost);
  }
  if (prepared.ok()) return prepared;
  return WithContext(prepared.status(), "claim '{}'", claim.name.ToString());
}

bool FakeDraDriverImpl::EndsBeforeWork(std::string_view method,
                                       const ScenarioStep& step,
                                       const rpc::Respond& respond) {
  if (step.action == Action::kDropSocket) {
    DropSocket(step.delay);
    return true;
  }
  return script_.EndsBeforeWork(
      step, [this, method, respond](const absl::Status& failure) {
        journal_.Failure(method, failure);
        respond(failure);
      });
}

void FakeDraDriverImpl::FinishAfterWork(const ScenarioStep& step, Task finish) {
  script_.FinishAfterWork(step, [this, step, finish = std::move(finish)] {
    finish();
    if (step.action == Action::kReRegister) ReRegister();
    if (step.action == Action::kSetHealth) {
      script_.Later(step.after, [this, step] { SetHealth(step); });
    }
  });
}

std::map<std::string, PreparedClaim> FakeDraDriverImpl::ClaimsOfAll() const {
  if (!store_.has_value()) return {};
  auto claims = store_->ReadClaims();
  if (claims.ok()) return *std::move(claims);
  journal_.Note("claims-unreadable", MessageOf(claims.status()));
  return {};
}

std::set<FakeHealth::PoolDevice> FakeDraDriverImpl::PreparedDevices() const {
  std::set<FakeHealth::PoolDevice> devices;
  if (!store_.has_value()) return devices;
  // Who is alone has seen them all.
  const auto claims =
      options_.instance.empty() ? store_->claims() : ClaimsOfAll();
  for (const auto& [uid, claim] : claims) {
    for (const PreparedDevice& device : claim.devices) {
      devices.emplace(device.pool, device.device);
    }
  }
  return devices;
}

void FakeDraDriverImpl::SetHealth(const ScenarioStep& step) {
  const std::size_t slash = step.device.rfind('/');
  const bool has_pool = slash != std::string::npos;
  const std::size_t colon = step.message.find(':');
  const std::size_t text = step.message.find_first_not_of(
      ' ', colon == std::string::npos ? colon : colon + 1);
  health_.Set({has_pool ? step.device.substr(0, slash) : pool_,
               has_pool ? step.device.substr(slash + 1) : step.device},
              step.message.substr(0, colon),
              text == std::string::npos ? "" : step.message.substr(text));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FakeDraDriver>> FakeDraDriver::Start(
    FakeDraDriverOptions options) {
  DEVMGR_RETURN_IF_ERROR(CheckOptions(options));
  // The endpoint that is announced has to be absolute.
  std::error_code error;
  options.root = std::filesystem::absolute(options.root, error);
  if (error) {
    return ErrnoStatus(error.value(), "cannot make the root absolute");
  }
  auto driver = std::make_unique<FakeDraDriverImpl>(std::move(options));
  DEVMGR_RETURN_IF_ERROR(driver->Start());
  return std::unique_ptr<FakeDraDriver>(std::move(driver));
}

}  // namespace devmgr::testing
