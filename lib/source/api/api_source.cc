// SPDX-License-Identifier: Apache-2.0
#include <devmgr/api_server.h>
#include <devmgr/pod_status.h>
#include <devmgr/status_types.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include "api/quote.h"
#include "common/atomic_file.h"
#include "common/executor.h"
#include "common/run_on.h"
#include "common/snapshot_cell.h"
#include "common/status.h"
#include "source/api/activity.h"
#include "source/api/api_session.h"
#include "source/api/api_writer.h"
#include "source/api/credentials.h"
#include "source/api/curl_transport.h"
#include "source/api/file_watch.h"
#include "source/api/key_pair.h"
#include "source/api/kubeconfig.h"
#include "source/api/pod_snapshot.h"
#include "source/api/read_file.h"
#include "source/api/retry_delay.h"
#include "source/api/source_memory.h"

namespace devmgr {
namespace {

using apiserver::Activity;
using apiserver::ApiSession;
using apiserver::ApiWriter;
using apiserver::Kubeconfig;
using apiserver::RetryDelay;
using apiserver::SourceMemory;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<Kubeconfig> LoadConfig(const ApiServerOptions& options) {
  if (!options.kubeconfig.empty()) {
    DEVMGR_ASSIGN_OR_RETURN(const std::string text,
                            apiserver::ReadSmallFile(options.kubeconfig));
    return apiserver::ParseKubeconfig(text, options.kubeconfig,
                                      options.context);
  }
  apiserver::InClusterFiles files;
  files.host = Variable("KUBERNETES_SERVICE_HOST");
  files.port = Variable("KUBERNETES_SERVICE_PORT");
  std::error_code unreadable;
  files.has_ca = std::filesystem::exists(files.folder / "ca.crt", unreadable);
  return apiserver::InClusterConfig(files);
}

ApiSession::Options SessionOptions(const ApiServerOptions& options) {
  ApiSession::Options session;
  session.node_name = options.node_name;
  session.stream_lists = options.stream_lists;
  session.reads_node = !options.state_file.empty();
  const std::pair<bool, const char*> kinds[] = {
      {options.watch_claims, "ResourceClaim"},
      {options.watch_device_classes, "DeviceClass"},
      {options.watch_resource_slices, "ResourceSlice"}};
  for (const auto& [is_watched, kind] : kinds) {
    if (is_watched) session.watched_kinds.emplace_back(kind);
  }
  return session;
}

/// The files whose change may make a difference.
std::set<std::filesystem::path> FilesOf(const ApiServerOptions& options,
                                        const Kubeconfig& config) {
  std::set<std::filesystem::path> files = {
      options.kubeconfig, config.certificate_authority.file,
      config.client_certificate.file, config.client_key.file,
      config.token_file};
  files.erase("");
  return files;
}

class ApiServerSourceImpl final : public ApiServerSource, private ObjectSink {
 public:
  explicit ApiServerSourceImpl(const ApiServerOptions& options)
      : options_(options),
        description_(fmt::format("API server of {} (node {})",
                                 options.kubeconfig.empty()
                                     ? "the cluster"
                                     : options.kubeconfig.string(),
                                 options.node_name)),
        rate_(options.qps, options.burst),
        config_delay_([this] { return Random(); }, RetryDelay::kLast) {
    RunOn(*executor_, [this] {
      writer_.emplace(ApiWriter::Options{.node_name = options_.node_name},
                      WriterParts());
      ReadMemory();
      files_.emplace(*executor_, [this] { OnFiles(); });
      Load();
    });
  }

  ~ApiServerSourceImpl() override {
    RunOn(*executor_, [this] {
      executor_->Cancel(timer_);
      files_.reset();
      EndSession();
      writer_.reset();
    });
    executor_->Stop();
  }

  std::shared_ptr<const ObjectSnapshot> Snapshot() const override {
    return cell_.Get();
  }
  void Subscribe(std::function<void()> changed) override {
    cell_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override { cell_.SetSubscriber({}); }
  std::string Describe() const override { return description_; }
  bool Refresh(ObjectKind kind, const ObjectName& name,
               std::function<void(const absl::Status&)> done) override {
    if (kind != ObjectKind::kResourceClaim || options_.watch_claims) {
      return false;
    }
    executor_->Post([this, kind, name, done = std::move(done)]() mutable {
      if (session_) session_->Refresh(kind, name, std::move(done));
    });
    return true;
  }
  std::string State() const override {
    MutexLock lock(mutex_);
    return writing_.empty() ? state_ : state_ + "; writing: " + writing_;
  }
  ObjectSink& Sink() override { return *this; }

  // Of the sink.
  void DeleteResourceSlices(const std::string& driver,
                            std::function<void(absl::Status)> done) override {
    Write([driver, done = std::move(done)](ApiWriter& writer) {
      writer.DeleteSlices(driver, done);
    });
  }
  void KeepResourceSlices(const std::string& driver) override {
    Write([driver](ApiWriter& writer) { writer.KeepSlices(driver); });
  }
  void SetNodeStatus(const NodeDeviceStatus& status) override {
    Write([status](ApiWriter& writer) { writer.SetNodeStatus(status); });
  }
  void RecordEvent(const EventInfo& event) override {
    Write([event](ApiWriter& writer) { writer.RecordEvent(event); });
  }
  bool IsNodeAgent() const override { return options_.node_agent; }
  void SetPodStatus(const ObjectName& name, const PodUid& uid,
                    const ReportedPodStatus& status) override {
    if (!options_.node_agent) return;
    Write([name, uid, status](ApiWriter& writer) {
      writer.SetPodStatus(name, uid, status);
    });
  }
  void FinishPod(const ObjectName& name, const PodUid& uid) override {
    if (!options_.node_agent) return;
    Write([name, uid](ApiWriter& writer) { writer.FinishPod(name, uid); });
  }
  void ReportProblems(
      std::function<void(const std::string& reason, const std::string& message)>
          report) override {
    MutexLock lock(mutex_);
    report_.swap(report);
  }
  void Mark(const std::string& /*id*/, std::uint64_t watch) override {
    executor_->Post([this, watch] {
      if (session_) session_->AcceptNode(watch);
    });
  }
  SourceInfo Info() const override {
    SourceInfo info;
    info.name = description_;
    info.state = "NoConfiguration";
    RunOn(*executor_, [&] {
      info.server = connection_.config.server;
      info.last_error = problem_;
      if (session_) session_->Fill(&info);
      FillActivity(&info);
    });
    return info;
  }
  void Hurry() override {
    executor_->Post([this] {
      Log(LogLevel::kInfo, "credentials are read again");
      config_delay_.Reset();
      Load();
      if (session_) session_->Hurry();
      writer_->Hurry();
    });
  }

 private:
  /// What it takes to talk to a server, in the order in which it is made.
  struct Connection {
    Kubeconfig config;
    std::unique_ptr<apiserver::Credentials> credentials;
    std::unique_ptr<apiserver::Transport> transport;
  };
  static constexpr std::chrono::seconds kLookAtConfig{150};

  void FillActivity(SourceInfo* info) const {
    const auto wall = std::chrono::system_clock::now();
    const auto now = executor_->Now();
    const auto time_of = [&](const std::optional<Activity::TimePoint>& time) {
      using Wall = std::chrono::system_clock::duration;
      return time ? wall - std::chrono::duration_cast<Wall>(now - *time)
                  : WallTime();
    };
    info->last_list = time_of(activity_.last_list);
    info->last_event = time_of(activity_.last_event);
    const bool is_of_now = activity_.is_watched && info->state == "Watching";
    info->known_at = is_of_now ? wall : time_of(activity_.known_at);
    info->watch_restarts = activity_.watch_restarts;
    for (const auto& [request, count] : activity_.requests) {
      const auto& [verb, resource, code] = request;
      info->requests.push_back({verb, resource, code, count});
    }
  }

  void OnFiles() {
    Load();
    if (session_) session_->OnFiles();
  }

  /// Reads the kubeconfig. One that cannot be used never replaces what could.
  void Load() {
    absl::StatusOr<Kubeconfig> config = LoadConfig(options_);
    absl::Status status = config.status();
    if (status.ok() && (!session_ || *config != connection_.config)) {
      status = Begin(*config);
    }
    std::string problem;
    if (!status.ok()) {
      problem = MessageOf(status);
      if (session_) problem += "; what it said before stays in use";
    }
    if (std::exchange(problem_, problem) != problem) OnProblem();
    WatchFiles();
    executor_->Cancel(timer_);
    const auto now = executor_->Now();
    timer_ = executor_->PostAfter(
        problem.empty() ? kLookAtConfig : config_delay_.OnFailure(now),
        [this] { Load(); });
    if (problem.empty()) config_delay_.Reset();
  }

  absl::Status Begin(const Kubeconfig& config) {
    Connection next;
    next.config = config;
    next.credentials =
        std::make_unique<apiserver::Credentials>(config, CredentialSeams());
    DEVMGR_ASSIGN_OR_RETURN(next.transport,
                            apiserver::StartCurlTransport(config, *executor_));
    Log(LogLevel::kInfo, apiserver::DescribeKubeconfig(config));
    for (const std::string& warning : config.warnings) {
      Log(LogLevel::kWarning, warning);
    }
    EndSession();
    connection_ = std::move(next);
    ApiSession::Options options = SessionOptions(options_);
    options.before = published_;
    writer_->Connect(connection_.transport.get(),
                     connection_.credentials.get());
    options.memory = memory_;
    session_.emplace(std::move(options), Parts());
    return absl::OkStatus();
  }

  void EndSession() {
    session_.reset();
    writer_->Connect(nullptr, nullptr);
    connection_ = Connection();
  }

  void OnProblem() {
    if (!problem_.empty()) Log(LogLevel::kWarning, problem_);
    if (session_) return session_->SetConfigProblem(problem_);
    if (problem_.empty()) return;
    SetState("no configuration; last error: " + problem_);
    auto snapshot = std::make_shared<ObjectSnapshot>();
    snapshot->vouched = false;
    apiserver::AddTrouble("", problem_, snapshot.get());
    cell_.Put(std::move(snapshot));
    cell_.Notify();
  }

  void WatchFiles() {
    const absl::Status status =
        files_->Watch(FilesOf(options_, connection_.config));
    if (status.ok()) return;
    Log(LogLevel::kWarning,
        fmt::format("files of credentials are not watched, and are looked at "
                    "every {} s: {}",
                    kLookAtConfig.count(), MessageOf(status)));
  }

  void Write(std::function<void(ApiWriter&)> work) {
    executor_->Post([this, work = std::move(work)] {
      if (writer_) work(*writer_);
    });
  }
  ApiWriter::Parts WriterParts() {
    return {
        .executor = *executor_,
        .rate = rate_,
        .random = [this] { return Random(); },
        .uid_of = [this](const std::string& kind,
                         const ObjectName& name) { return UidOf(kind, name); },
        .on_problem =
            [this](const std::string& reason, const std::string& message) {
              Report(reason, message);
            },
        .on_not_served =
            [this] {
              if (session_) session_->ResourcesNotServed();
            },
        .on_state =
            [this](std::string state) {
              MutexLock lock(mutex_);
              writing_.swap(state);
            },
        .on_request = options_.on_request};
  }
  std::string UidOf(const std::string& kind, const ObjectName& name) const {
    const auto snapshot = cell_.Get();
    if (kind == "Pod") {
      const auto found = snapshot->pods.find(name);
      if (found != snapshot->pods.end()) return found->second->metadata.uid;
      const auto malformed = snapshot->malformed_pods.find(name);
      if (malformed == snapshot->malformed_pods.end()) return "";
      return malformed->second->pod.metadata.uid;
    }
    const auto found = snapshot->claims.find(name);
    return found == snapshot->claims.end() ? "" : found->second->metadata.uid;
  }
  void Report(const std::string& reason, const std::string& message) {
    Log(LogLevel::kWarning, message);
    std::function<void(const std::string&, const std::string&)> report;
    {
      MutexLock lock(mutex_);
      report = report_;
    }
    if (report) report(reason, message);
  }

  apiserver::Credentials::Seams CredentialSeams() {
    return {
        .read_file = apiserver::ReadSmallFile,
        .check_pair = apiserver::CheckKeyPair,
        .wall_clock = [] { return std::chrono::system_clock::now(); },
        .warn =
            [this](const std::string& text) { Log(LogLevel::kWarning, text); }};
  }
  ApiSession::Parts Parts() {
    return {
        .executor = *executor_,
        .transport = *connection_.transport,
        .credentials = *connection_.credentials,
        .random = [this] { return Random(); },
        .publish =
            [this](std::shared_ptr<const ObjectSnapshot> snapshot) {
              published_ = snapshot;
              cell_.Put(std::move(snapshot));
              cell_.Notify();
            },
        .remember =
            [this](const SourceMemory& memory) {
              memory_ = memory;
              WriteMemory();
            },
        .activity = activity_,
        .on_state = [this](std::string state) { SetState(std::move(state)); },
        .warn =
            [this](const std::string& text) { Log(LogLevel::kWarning, text); },
        .wall_clock = [] { return std::chrono::system_clock::now(); },
        .on_resource_version =
            [this](apiserver::Discovery::State state,
                   const std::string& version) {
              writer_->SetVersion(state, version);
            },
        .rate = &rate_};
  }
  void ReadMemory() {
    if (options_.state_file.empty()) return;
    const auto text = apiserver::ReadSmallFile(options_.state_file);
    if (text.ok()) {
      memory_ = apiserver::ParseMemory(*text, options_.node_name);
    } else if (!absl::IsNotFound(text.status())) {
      Log(LogLevel::kWarning, MessageOf(text.status()));
    }
  }
  void WriteMemory() {
    if (options_.state_file.empty()) return;
    // As the ledger makes it, which may be opened later. What goes wrong shows
    // when the file is written.
    (void)::mkdir(options_.state_file.parent_path().c_str(), 0700);
    const absl::Status status = WriteFileAtomically(
        options_.state_file, apiserver::FormatMemory(memory_));
    if (std::exchange(write_status_, status) == status || status.ok()) return;
    Log(LogLevel::kWarning, MessageOf(status));
  }

  double Random() { return std::uniform_real_distribution<>(0, 1)(generator_); }
  void SetState(std::string state) {
    MutexLock lock(mutex_);
    state_.swap(state);
  }
  void Log(LogLevel level, const std::string& text) const {
    if (options_.log) options_.log(level, description_ + ": " + text);
  }

  const ApiServerOptions options_;
  const std::string description_;
  SnapshotCell<ObjectSnapshot> cell_;
  mutable Mutex mutex_;
  std::string state_ DEVMGR_GUARDED_BY(mutex_) = "starting";
  std::string writing_ DEVMGR_GUARDED_BY(mutex_);  // What is wrong with it.
  std::function<void(const std::string&, const std::string&)> report_
      DEVMGR_GUARDED_BY(mutex_);
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("devmgr-api");
  /// These are confined to the executor.
  std::minstd_rand generator_{std::random_device()()};
  apiserver::RequestRate rate_;
  RetryDelay config_delay_;
  TimerId timer_ = 0;
  std::string problem_;  ///< Of the kubeconfig.
  SourceMemory memory_;
  absl::Status write_status_;
  Activity activity_;
  std::optional<apiserver::FileWatch> files_;
  std::shared_ptr<const ObjectSnapshot> published_;  ///< By a session.
  Connection connection_;
  std::optional<ApiWriter> writer_;
  std::optional<ApiSession> session_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ApiServerSource>> WatchApiServer(
    ApiServerOptions options) {
  if (options.node_name.empty()) {
    return InvalidArgumentError("the name of the node is not set");
  }
  if (!(options.qps > 0) || options.burst < 1) {
    return InvalidArgumentError(
        "qps is {} and burst is {}: both must be positive", options.qps,
        options.burst);
  }
  if (options.kubeconfig.empty() &&
      Variable("KUBERNETES_SERVICE_HOST").empty()) {
    // A container will not become one of a cluster.
    return LoadConfig(options).status();
  }
  return std::make_unique<ApiServerSourceImpl>(options);
}

}  // namespace devmgr
