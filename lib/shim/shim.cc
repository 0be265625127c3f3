// SPDX-License-Identifier: Apache-2.0
#include "shim/shim.h"

#include <devmgr/cdi_cache.h>

#include <algorithm>
#include <future>
#include <utility>

#include "common/status.h"
#include "cri/patch.h"
#include "cri/runtime_fields.h"
#include "shim/injection.h"

namespace devmgr {
namespace shim {
namespace {

/// How often an unknown pod is looked for again.
constexpr std::chrono::milliseconds kLookAgain{50};

std::set<std::string> MethodsToHold(const CriShimOptions& options) {
  std::set<std::string> methods;
  for (const std::string_view method :
       {cri::method::kCreateContainer, cri::method::kRestorePod,
        cri::method::kRunPodSandbox, cri::method::kRemovePodSandbox,
        cri::method::kRemoveContainer}) {
    methods.insert(std::string(method));
  }
  // Otherwise there is nobody to be asked.
  if (options.manager != nullptr || !options.devmgrd.empty()) {
    methods.insert(std::string(cri::method::kStartContainer));
  }
  return methods;
}

absl::Status CheckOptions(const CriShimOptions& options) {
  if (options.manager != nullptr && !options.devmgrd.empty()) {
    return InvalidArgumentError(
        "devices come from a manager or from '{}', not from both",
        options.devmgrd.string());
  }
  if (options.actuator != nullptr && options.manager == nullptr) {
    return InvalidArgumentError("an actuator needs its manager");
  }
  if (options.actuator != nullptr && options.actuator->follows_source()) {
    return InvalidArgumentError(
        "an actuator that follows the source cannot be told which pods to "
        "want");
  }
  if (options.call_timeout.count() <= 0) {
    return InvalidArgumentError("call_timeout of {} ms: must be positive",
                                options.call_timeout.count());
  }
  if (options.unknown_sandbox_wait.count() < 0) {
    return InvalidArgumentError(
        "unknown_sandbox_wait of {} ms: must not be negative",
        options.unknown_sandbox_wait.count());
  }
  return absl::OkStatus();
}

/// What a caller is told when we cannot go on: to try again, unless that would
/// not help.
absl::Status ForCaller(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDeadlineExceeded:
      return status;
    default:
      return UnavailableError("{}", MessageOf(status));
  }
}

const ContainerDevices* FindContainer(const PodDevices* pod,
                                      const std::string& name) {
  if (pod == nullptr) return nullptr;
  const auto found = std::find_if(
      pod->containers.begin(), pod->containers.end(),
      [&](const ContainerDevices& devices) { return devices.name == name; });
  return found == pod->containers.end() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shim>> Shim::Start(CriShimOptions options) {
  DEVMGR_RETURN_IF_ERROR(CheckOptions(options));
  DEVMGR_ASSIGN_OR_RETURN(auto runtime, rpc::Runtime::Start());
  CdiCacheOptions cache;
  cache.directories = options.cdi_spec_dirs;
  // They are looked at each time names are expanded.
  cache.watch = false;
  DEVMGR_ASSIGN_OR_RETURN(auto specs, CdiCache::Open(std::move(cache)));
  CriProxyOptions proxy = options.proxy;
  proxy.intercept = MethodsToHold(options);
  proxy.refuse_unreadable = options.strict;
  std::unique_ptr<Shim> shim(
      new Shim(std::move(options), std::move(runtime), std::move(specs)));
  proxy.interceptor = shim.get();
  DEVMGR_ASSIGN_OR_RETURN(shim->proxy_, CriProxy::Start(proxy));
  Shim& self = *shim;
  self.executor_->Post([&self] { self.Look([](const absl::Status&) {}); });
  return shim;
}

Shim::Shim(CriShimOptions options, std::unique_ptr<rpc::Runtime> runtime,
           std::unique_ptr<CdiCache> specs)
    : options_(std::move(options)),
      executor_(ThreadExecutor::Start("devmgr-shim")),
      runtime_(std::move(runtime)),
      specs_(std::move(specs)),
      client_(*runtime_, *executor_, options_.proxy.backend) {
  for (const auto& directory : options_.cdi_spec_dirs) {
    searched_ += (searched_.empty() ? "'" : ", '") + directory.string() + "'";
  }
  if (options_.manager != nullptr) {
    source_ = MakeManagerSource(*options_.manager);
  } else if (!options_.devmgrd.empty()) {
    source_ =
        MakeDaemonSource(*runtime_, options_.devmgrd, options_.call_timeout);
  }
  if (options_.actuator != nullptr) {
    gate_ = std::make_unique<PodGate>(*options_.manager, *options_.actuator,
                                      executor_);
  }
}

Shim::~Shim() {
  // First who brings calls, then who decides about them.
  proxy_.reset();
  executor_->Stop();
}

CriShimInfo Shim::Info() const {
  const MutexLock lock(mutex_);
  return info_;
}

template <typename Change>
void Shim::Count(Change change) {
  const MutexLock lock(mutex_);
  change(info_);
}

template <typename Answer>
std::function<void(Answer)> Shim::OnExecutor(std::function<void(Answer)> done) {
  return [executor = executor_, done = std::move(done)](Answer answer) {
    executor->Post([done, answer = std::move(answer)] { done(answer); });
  };
}

// --- On the proxy's thread --------------------------------------------------

void Shim::OnCall(CriCall call, Decide decide) {
  auto held =
      std::make_shared<const Held>(Held{std::move(call), std::move(decide)});
  executor_->Post([this, held = std::move(held)] { Dispatch(held); });
}

void Shim::OnEnd(std::uint64_t call, const CriOutcome& outcome) {
  const bool good = outcome.forwarded && outcome.status.ok();
  executor_->Post([this, call, good, answer = outcome.message] {
    const auto found = calls_.find(call);
    if (found == calls_.end()) return;
    const auto run = std::move(found->second);
    calls_.erase(found);
    if (good && run) run(answer);
  });
}

void Shim::OnPassedUnread(const std::string& method, const std::string& why) {
  executor_->Post([this, method, why] {
    Count([](CriShimInfo& info) { ++info.unreadable; });
    Tell(true, "CriRequestNotRead", {}, method + ": " + why);
  });
}

void Shim::OnBackendConnected() {
  executor_->Post([this] {
    runtime_known_ = false;
    Look([](const absl::Status&) {});
  });
}

// --- On the executor --------------------------------------------------------

void Shim::Dispatch(const HeldCall& held) {
  calls_[held->call.id] = nullptr;
  const std::string& method = held->call.method;
  if (method == cri::method::kCreateContainer) return Create(held);
  if (method == cri::method::kRestorePod) return Restore(held);
  if (method == cri::method::kStartContainer) return StartContainer(held);
  if (method == cri::method::kRunPodSandbox) return RunSandbox(held);
  Observe(held);
}

void Shim::WhenAnswered(std::uint64_t call,
                        std::function<void(const std::string&)> run) {
  if (const auto found = calls_.find(call); found != calls_.end()) {
    found->second = std::move(run);
  }
}

void Shim::Observe(const HeldCall& held) {
  const bool sandbox = held->call.method == cri::method::kRemovePodSandbox;
  const auto id = cri::ReadText(
      held->call.message,
      sandbox ? cri::field::remove_pod_sandbox_request::kPodSandboxId
              : cri::field::remove_container_request::kContainerId,
      sandbox ? "RemovePodSandboxRequest" : "RemoveContainerRequest");
  if (!id.ok()) return Unreadable(held, id.status());
  WhenAnswered(held->call.id, [this, id = *id, sandbox](const std::string&) {
    if (sandbox) {
      const cri::SandboxIdentity last = book_.RemoveSandbox(id);
      if (gate_ != nullptr && !last.uid.value.empty()) {
        gate_->OnLastSandboxGone(last.uid);
      }
    } else {
      book_.RemoveContainer(id);
    }
    CountBook();
  });
  Forward(held);
}

void Shim::RunSandbox(const HeldCall& held) {
  const auto request = cri::ReadRunPodSandbox(held->call.message);
  if (!request.ok()) return Unreadable(held, request.status());
  const cri::SandboxIdentity identity = request->sandbox.identity;
  WhenAnswered(held->call.id, [this, identity](const std::string& answer) {
    const auto id = cri::ReadText(
        answer, cri::field::run_pod_sandbox_response::kPodSandboxId,
        "RunPodSandboxResponse");
    if (!id.ok() || id->empty()) return;
    book_.AddSandbox(*id, identity);
    CountBook();
  });
  if (gate_ == nullptr || identity.uid.value.empty()) return Forward(held);
  constexpr std::chrono::milliseconds kAnswerBefore{100};
  const bool wait = options_.unknown_sandbox == UnknownSandbox::kWait;
  const PodGate::Patience patience = {
      executor_->Now() +
          (wait ? options_.unknown_sandbox_wait : std::chrono::milliseconds(0)),
      held->call.decide_by - kAnswerBefore};
  gate_->Admit(identity, patience, [this, held, identity](absl::Status status) {
    if (status.code() == absl::StatusCode::kNotFound &&
        options_.unknown_sandbox != UnknownSandbox::kRefuse) {
      Tell(true, "UnknownSandbox", identity,
           "runs without devices: " + MessageOf(status));
      status = absl::OkStatus();
    }
    if (status.code() == absl::StatusCode::kNotFound) {
      status = FailedPreconditionError("{}", MessageOf(status));
    }
    status.ok() ? Forward(held) : Fail(held, ForCaller(status));
  });
}

void Shim::Create(const HeldCall& held) {
  auto request = cri::ReadCreateContainer(held->call.message);
  if (!request.ok()) return Unreadable(held, request.status());
  auto creation = std::make_shared<Creation>();
  creation->held = held;
  creation->sandbox_id = request->sandbox_id;
  creation->identity = request->sandbox.identity;
  creation->configs.push_back(std::move(request->config));
  WhenRuntimeKnown(held, [this, creation] { Identify(creation); });
}

void Shim::Restore(const HeldCall& held) {
  auto request = cri::ReadRestorePod(held->call.message);
  if (!request.ok()) return Unreadable(held, request.status());
  auto creation = std::make_shared<Creation>();
  creation->held = held;
  creation->restore = true;
  creation->identity = request->sandbox.identity;
  creation->configs = std::move(request->containers);
  WhenRuntimeKnown(held, [this, creation] { Identify(creation); });
}

void Shim::StartContainer(const HeldCall& held) {
  const auto id = cri::ReadText(
      held->call.message, cri::field::start_container_request::kContainerId,
      "StartContainerRequest");
  if (!id.ok()) return Unreadable(held, id.status());
  const auto start = [this, held, id = *id](const absl::Status&) {
    const PodBook::KnownContainer* container = book_.FindContainer(id);
    const cri::SandboxIdentity* sandbox =
        container == nullptr ? nullptr
                             : book_.FindSandbox(container->sandbox_id);
    // The runtime knows what to say of one that nobody knows.
    if (sandbox == nullptr || sandbox->uid.value.empty()) return Forward(held);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        held->call.decide_by - executor_->Now());
    source_->BeforeContainerStart(
        sandbox->uid, container->name,
        std::max(std::chrono::milliseconds(1),
                 std::min(left, options_.call_timeout)),
        OnExecutor<absl::Status>([this, held, identity = *sandbox,
                                  name = container->name](
                                     const absl::Status& status) {
          // Of a pod or container that is not known nobody has devices.
          if (status.ok() || status.code() == absl::StatusCode::kNotFound) {
            return Forward(held);
          }
          Fail(held, ForCaller(WithContext(status, "container '{}' of pod '{}'",
                                           name, identity.pod.ToString())));
        }));
  };
  if (book_.FindContainer(*id) != nullptr) return start(absl::OkStatus());
  Look(start);
}

void Shim::Look(std::function<void(const absl::Status&)> then) {
  waiting_for_look_.push_back(std::move(then));
  if (std::exchange(looking_, true)) return;
  book_.BeginLook();
  client_.Look([this](const absl::StatusOr<RuntimeView>& view) {
    looking_ = false;
    OnLook(view);
    for (const auto& waiting : std::exchange(waiting_for_look_, {})) {
      waiting(view.status());
    }
  });
}

void Shim::OnLook(const absl::StatusOr<RuntimeView>& view) {
  if (!view.ok()) {
    Count([&](CriShimInfo& info) {
      info.runtime_error = MessageOf(view.status());
    });
    return;
  }
  book_.Reconcile(view->sandboxes, view->containers);
  CountBook();
  if (gate_ != nullptr) gate_->OnSandboxes(book_.Pods());
  runtime_known_ = true;
  runtime_name_ =
      view->version.runtime_name + " " + view->version.runtime_version;
  RuntimeSupport support =
      DecideRuntimeCdi(options_.runtime_cdi, view->version, view->status_info);
  const bool news = support.reason != support_.reason;
  support_ = std::move(support);
  Count([&](CriShimInfo& info) {
    info.runtime_known = true;
    info.runtime_name = view->version.runtime_name;
    info.runtime_version = view->version.runtime_version;
    info.runtime_cdi = support_.cdi;
    info.runtime_cdi_source = support_.source;
    info.runtime_cdi_reason = support_.reason;
    info.runtime_error.clear();
  });
  if (!news) return;
  Tell(false, "RuntimeCdi", {},
       fmt::format("{}: CDI device names are passed on as '{}', by {}: {}",
                   runtime_name_, RuntimeCdiName(support_.cdi), support_.source,
                   support_.reason));
  if (!support_.warning.empty()) {
    Tell(true, "RuntimeCdiOverridden", {}, support_.warning);
  }
}

void Shim::WhenRuntimeKnown(const HeldCall& held, std::function<void()> then) {
  if (runtime_known_) return then();
  Look([this, held, then = std::move(then)](const absl::Status& status) {
    if (runtime_known_) return then();
    Fail(held, UnavailableError("{}", MessageOf(status)));
  });
}

void Shim::Identify(const CreationPtr& creation) {
  creation->patience = executor_->Now() + options_.unknown_sandbox_wait;
  if (!creation->identity.uid.value.empty() || creation->restore) {
    return FindDevices(creation);
  }
  const auto from_book = [this, creation](const absl::Status&) {
    const auto* identity = book_.FindSandbox(creation->sandbox_id);
    if (identity != nullptr) creation->identity = *identity;
    FindDevices(creation);
  };
  if (book_.FindSandbox(creation->sandbox_id) != nullptr) {
    return from_book(absl::OkStatus());
  }
  Look(from_book);
}

void Shim::FindDevices(const CreationPtr& creation) {
  if (source_ == nullptr || creation->identity.uid.value.empty()) {
    return Inject(creation, nullptr);
  }
  source_->DevicesOf(
      creation->identity.uid, creation->identity.pod,
      OnExecutor<absl::StatusOr<std::shared_ptr<const PodDevices>>>(
          [this, creation](
              const absl::StatusOr<std::shared_ptr<const PodDevices>>& pod) {
            OnDevices(creation, pod);
          }));
}

void Shim::OnDevices(
    const CreationPtr& creation,
    const absl::StatusOr<std::shared_ptr<const PodDevices>>& pod) {
  if (pod.status().code() == absl::StatusCode::kNotFound) {
    return OnUnknownPod(creation, pod.status());
  }
  if (!pod.ok()) {
    return Fail(
        creation->held,
        ForCaller(WithContext(
            pod.status(), "container '{}'",
            creation->configs.empty() ? "" : creation->configs.front().name)));
  }
  for (const cri::ContainerConfig& config : creation->configs) {
    const ContainerDevices* devices = FindContainer(pod->get(), config.name);
    if (devices != nullptr && devices->devices_released) {
      return TakeBackFirst(creation, config.name);
    }
  }
  Inject(creation, pod->get());
}

/// An init container that runs again has to get devices again.
void Shim::TakeBackFirst(const CreationPtr& creation,
                         const std::string& container) {
  if (std::exchange(creation->given_back_again, true)) {
    return Fail(creation->held,
                UnavailableError("container '{}' of pod '{}' has given its "
                                 "devices back and got none since",
                                 container, creation->identity.pod.ToString()));
  }
  source_->BeforeContainerStart(
      creation->identity.uid, container, options_.call_timeout,
      OnExecutor<absl::Status>([this, creation](const absl::Status& status) {
        if (!status.ok()) return Fail(creation->held, ForCaller(status));
        FindDevices(creation);
      }));
}

void Shim::OnUnknownPod(const CreationPtr& creation, const absl::Status& why) {
  if (options_.unknown_sandbox == UnknownSandbox::kRefuse) {
    return Fail(creation->held, FailedPreconditionError("{}", MessageOf(why)));
  }
  if (options_.unknown_sandbox == UnknownSandbox::kWait &&
      executor_->Now() < creation->patience) {
    executor_->PostAfter(kLookAgain,
                         [this, creation] { FindDevices(creation); });
    return;
  }
  Tell(true, "UnknownSandbox", creation->identity,
       "created without devices: " + MessageOf(why));
  Inject(creation, nullptr);
}

void Shim::Inject(const CreationPtr& creation, const PodDevices* pod) {
  const auto is_named = [](const cri::ContainerConfig& config) {
    return !config.cdi_devices.empty() || !config.annotations.empty();
  };
  const bool names =
      pod != nullptr ||
      std::any_of(creation->configs.begin(), creation->configs.end(), is_named);
  if (support_.cdi == RuntimeCdi::kNone && names) {
    // What is wrong with a wanted file is told with the name that needs it.
    specs_->Refresh().IgnoreError();
  }
  const auto registry = specs_->Registry();
  InjectionTarget target{support_.cdi, options_.fallback, *registry, searched_,
                         host_};
  target.fallback.pod = creation->identity.pod.ToString();
  target.fallback.runtime = runtime_name_;
  std::vector<cri::ConfigEdits> edits;
  for (const cri::ContainerConfig& config : creation->configs) {
    target.fallback.container = config.name;
    auto injection =
        PlanInjection(config, FindContainer(pod, config.name), target);
    if (!injection.ok()) return Fail(creation->held, injection.status());
    for (const std::string& warning : injection->warnings) {
      Tell(true, "DeviceEdit", creation->identity, warning);
    }
    edits.push_back(std::move(injection->edits));
  }
  WhenAnswered(
      creation->held->call.id,
      [this, creation](const std::string& answer) { Learn(creation, answer); });
  const auto changed = static_cast<std::uint64_t>(
      std::count_if(edits.begin(), edits.end(),
                    [](const auto& edit) { return !edit.empty(); }));
  Count([&](CriShimInfo& info) {
    info.injected += changed;
    info.unchanged += edits.size() - changed;
  });
  if (changed == 0) return Forward(creation->held);
  const std::string& request = creation->held->call.message;
  auto patched = creation->restore
                     ? cri::PatchRestorePod(request, edits)
                     : cri::PatchCreateContainer(request, edits.front());
  if (!patched.ok()) return Unreadable(creation->held, patched.status());
  creation->held->decide(CriDecision::Replace(*std::move(patched)));
}

/// The ids that the runtime gave.
void Shim::Learn(const CreationPtr& creation, const std::string& answer) {
  if (creation->restore) {
    const auto response = cri::ReadRestorePodResponse(answer);
    if (!response.ok()) return;
    book_.AddSandbox(response->sandbox_id, creation->identity);
    for (const auto& container : response->containers) {
      book_.AddContainer(container.container_id,
                         {response->sandbox_id, container.name});
    }
  } else {
    const auto id = cri::ReadText(
        answer, cri::field::create_container_response::kContainerId,
        "CreateContainerResponse");
    if (!id.ok() || id->empty()) return;
    book_.AddContainer(*id,
                       {creation->sandbox_id, creation->configs.front().name});
    if (book_.FindSandbox(creation->sandbox_id) == nullptr) {
      book_.AddSandbox(creation->sandbox_id, creation->identity);
    }
  }
  CountBook();
}

void Shim::Forward(const HeldCall& held) {
  held->decide(CriDecision::Forward());
}

void Shim::Fail(const HeldCall& held, const absl::Status& status) {
  Count([](CriShimInfo& info) { ++info.refused; });
  if (options_.log) {
    options_.log(LogLevel::kWarning,
                 held->call.method + ": " + status.ToString());
  }
  held->decide(CriDecision::Fail(status));
}

void Shim::Unreadable(const HeldCall& held, const absl::Status& why) {
  Count([](CriShimInfo& info) { ++info.unreadable; });
  Tell(true, "CriRequestNotRead", {},
       held->call.method + ": " + MessageOf(why));
  if (options_.strict) return Fail(held, why);
  Forward(held);
}

void Shim::Tell(bool warning, std::string_view reason,
                const cri::SandboxIdentity& identity,
                const std::string& message) {
  if (options_.log) {
    options_.log(warning ? LogLevel::kWarning : LogLevel::kInfo,
                 std::string(reason) + ": " + message);
  }
  if (!options_.on_event) return;
  EventInfo event;
  event.sequence = ++last_event_;
  event.time = std::chrono::system_clock::now();
  event.warning = warning;
  event.reason = std::string(reason);
  event.object_kind = identity.pod.name.empty() ? "Runtime" : "Pod";
  event.object = identity.pod;
  event.message = message;
  options_.on_event(event);
}

void Shim::CountBook() {
  Count([this](CriShimInfo& info) {
    info.sandboxes = book_.sandboxes();
    info.foreign_sandboxes = book_.foreign_sandboxes();
    info.containers = book_.containers();
  });
}

}  // namespace shim

absl::StatusOr<std::unique_ptr<CriShim>> CriShim::Start(
    const CriShimOptions& options) {
  return shim::Shim::Start(options);
}

}  // namespace devmgr
