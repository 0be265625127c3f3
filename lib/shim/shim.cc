// SPDX-License-Identifier: Apache-2.0
#include "shim/shim.h"

#include <devmgr/cdi_cache.h>

#include <algorithm>
#include <future>
#include <utility>

#include "common/status.h"
#include "cri/runtime_fields.h"

namespace devmgr {
namespace shim {
namespace {

/// So much before the time for a decision is over we give our own answer, or a
/// quarter of the time, whichever is less.
constexpr std::chrono::milliseconds kAnswerBefore{100};
/// The same of the end of patience: it leaves an answer its time.
constexpr std::chrono::milliseconds kAskBefore{300};

/// How long the end waits for the last report to be taken.
constexpr std::chrono::milliseconds kFarewell{500};

std::set<std::string> MethodsToHold(const CriShimOptions& options) {
  std::set<std::string> methods;
  for (const std::string_view method :
       {cri::method::kCreateContainer, cri::method::kRestorePod,
        cri::method::kRunPodSandbox, cri::method::kRemovePodSandbox,
        cri::method::kRemoveContainer}) {
    methods.insert(std::string(method));
  }
  // What runs is another thing after each of them.
  if (options.runtime_source != nullptr || !options.devmgrd.empty()) {
    for (const std::string_view method :
         {cri::method::kStartContainer, cri::method::kStopContainer,
          cri::method::kStopPodSandbox}) {
      methods.insert(std::string(method));
    }
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
  if (options.actuate && options.manager == nullptr) {
    return InvalidArgumentError(
        "to actuate, the shim needs a manager in this process: a daemon "
        "prepares and releases pods by itself");
  }
  if (options.actuate &&
      options.manager->View()->Node().actuate != Actuate::kWanted) {
    return InvalidArgumentError(
        "the manager takes no pods from the shim: its `actuate` is not "
        "kWanted");
  }
  // As NodeInfo says it of a manager without source.
  if (options.actuate && options.pods_from_source &&
      options.manager->View()->Node().source == "none") {
    return InvalidArgumentError(
        "pods are to come from the manager's source, and it has none");
  }
  if (!options.name.empty() && !IsShimName(options.name)) {
    return InvalidArgumentError(
        "name '{}': a shim's name has at most {} letters, digits, '-', '_' and "
        "'.'",
        options.name, kMaxShimName);
  }
  if (options.sandbox_devices && options.manager == nullptr &&
      options.devmgrd.empty()) {
    return InvalidArgumentError(
        "sandbox_devices: which devices a pod has is known to a manager or a "
        "daemon, and neither is given");
  }
  if (options.call_timeout.count() <= 0) {
    return InvalidArgumentError("call_timeout of {} ms: must be positive",
                                options.call_timeout.count());
  }
  if (options.foreign_holder_interval.count() <= 0) {
    return InvalidArgumentError(
        "foreign_holder_interval of {} ms: must be positive",
        options.foreign_holder_interval.count());
  }
  if (options.unknown_sandbox_wait.count() < 0) {
    return InvalidArgumentError(
        "unknown_sandbox_wait of {} ms: must not be negative",
        options.unknown_sandbox_wait.count());
  }
  return absl::OkStatus();
}

}  // namespace

Shim::Held::Held(CriCall what, Decide how, Time now)
    : call(std::move(what)), decide(std::move(how)) {
  const auto left = call.decide_by - now;
  answer_by = now + std::max(left - kAnswerBefore, left / 4 * 3);
  patient_until = now + std::max(left - kAskBefore, left / 2);
}

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
  // No other class is derived from it.
  auto* const fed = static_cast<ShimRuntime*>(options.runtime_source);
  if (fed != nullptr) DEVMGR_RETURN_IF_ERROR(fed->Claim());
  std::unique_ptr<Shim> shim(
      new Shim(std::move(options), std::move(runtime), std::move(specs), fed));
  proxy.interceptor = shim.get();
  DEVMGR_ASSIGN_OR_RETURN(shim->proxy_, CriProxy::Start(proxy));
  Shim& self = *shim;
  self.executor_->Post([&self] {
    self.BeginLook();
    if (self.feed_ != nullptr) self.feed_->Begin();
  });
  if (fed != nullptr) fed->Follow(self.executor_, *self.looker_);
  return shim;
}

Shim::Shim(CriShimOptions options, std::unique_ptr<rpc::Runtime> runtime,
           std::unique_ptr<CdiCache> specs, ShimRuntime* fed)
    : options_(std::move(options)),
      executor_(ThreadExecutor::Start("devmgr-shim")),
      refusals_(*executor_, options_.log),
      runtime_(std::move(runtime)),
      specs_(std::move(specs)),
      client_(*runtime_, *executor_, options_.proxy.backend,
              [this] { OnRuntimeLost(); }),
      fed_(fed) {
  if (fed_ != nullptr) {
    looker_ = std::make_unique<RuntimeLooker>(*executor_, client_, fed_->cell(),
                                              fed_->options());
  }
  turned_away_log_ = std::make_unique<peer::LogFold>(
      *executor_, [this](LogLevel, std::string_view text) {
        Tell(true, "CallersTurnedAway", {}, std::string(text));
      });
  for (const auto& directory : options_.cdi_spec_dirs) {
    options_.fallback.cdi_directories.push_back(directory.string());
  }
  if (options_.runtime_cdi) {
    support_ = DecideRuntimeCdi(options_.runtime_cdi, {}, {});
    CountSupport();
  }
  if (options_.manager != nullptr) {
    source_ = MakeManagerSource(*options_.manager, executor_);
  } else if (!options_.devmgrd.empty()) {
    source_ =
        MakeDaemonSource(*runtime_, options_.devmgrd, options_.call_timeout,
                         [this, executor = executor_] {
                           executor->Post([this] { OnSourceLost(); });
                         });
    feed_ = std::make_unique<RuntimeFeed>(
        executor_, client_, *source_, identity_, [this](bool awaited) {
          awaited ? reporter_->OnAwaitedNews() : reporter_->OnNews();
        });
  }
  if (source_ != nullptr) {
    RuntimeReporter::Parts parts;
    parts.identity = identity_;
    parts.listen = options_.proxy.listen.string();
    parts.endpoint = options_.proxy.backend.string();
    parts.fill_in = [this](RuntimeReport* report) {
      FillIn(report);
      if (feed_ != nullptr) feed_->FillIn(report);
    };
    parts.on_sent = [this](const absl::Status& status) {
      if (feed_ != nullptr) feed_->OnSent(status);
    };
    parts.on_taken = [this](const absl::Status& status) {
      if (status.ok()) {
        JudgePods(book_.Pods(), [this] {
          TellOfUnknownContainers();
          LookForHolders();
        });
      }
      if (!options_.log) return;
      options_.log(
          status.ok() ? LogLevel::kInfo : LogLevel::kWarning,
          status.ok()
              ? "events and counters are reported to the manager again"
              : "events and counters wait to be reported to the manager: " +
                    MessageOf(status));
    };
    reporter_ = std::make_unique<RuntimeReporter>(*source_, executor_,
                                                  std::move(parts));
  }
  if (options_.actuate) {
    sandbox_actuator_ = std::make_unique<SandboxActuator>(
        *options_.manager, book_, options_.pods_from_source, executor_);
  }
}

Shim::~Shim() {
  // First who brings calls, then who decides about them.
  proxy_.reset();
  executor_->Post([this] { turned_away_log_.reset(); });
  if (fed_ != nullptr) {
    fed_->Leave(fmt::format("the CRI shim at '{}' has ended",
                            options_.proxy.listen.string()));
  }
  if (reporter_ != nullptr) {
    const auto told = std::make_shared<std::promise<void>>();
    executor_->Post(
        [this, told] { reporter_->End([told] { told->set_value(); }); });
    told->get_future().wait_for(kFarewell);
  }
  executor_->Stop();
}

CriShimInfo Shim::Info() const {
  const MutexLock lock(mutex_);
  return info_;
}

// --- On the proxy's thread --------------------------------------------------

void Shim::OnCall(CriCall call, Decide decide) {
  auto held = std::make_shared<const Held>(std::move(call), std::move(decide),
                                           executor_->Now());
  executor_->Post([this, held = std::move(held)] { Dispatch(held); });
}

void Shim::OnEnd(std::uint64_t call, const CriOutcome& outcome) {
  executor_->Post([this, call, outcome] { OnOver(call, outcome); });
}

void Shim::OnPassedUnread(const std::string& method, const std::string& why) {
  executor_->Post([this, method, why] {
    Count([](CriShimInfo& info) { ++info.unreadable; });
    Tell(true, "CriRequestNotRead", {}, method + ": " + why);
  });
}

void Shim::OnBackendLost(const absl::Status&) {
  executor_->Post([this] {
    ++losses_;
    OnRuntimeLost();
  });
}

void Shim::OnRightsNotTaken(const absl::Status& why) {
  executor_->Post(
      [this, why] { Tell(true, "SocketRights", {}, MessageOf(why)); });
}

void Shim::OnTurnedAway(const std::string& why) {
  ++turned_away_;
  // A flood of them is one task at a time.
  if (telling_turned_away_.exchange(true)) return;
  executor_->Post([this, why] {
    telling_turned_away_ = false;
    if (turned_away_log_ == nullptr) return;
    turned_away_log_->Log(
        LogLevel::kWarning, "callers",
        fmt::format("'{}': {}", options_.proxy.listen.string(), why));
    if (reporter_ != nullptr) reporter_->OnNews();
  });
}

// --- On the executor --------------------------------------------------------

void Shim::Dispatch(const HeldCall& held) {
  calls_[held->call.id] = nullptr;
  ++decided_;
  if (reporter_ != nullptr) reporter_->OnNews();
  const std::string& method = held->call.method;
  if (method == cri::method::kCreateContainer) return Create(held);
  if (method == cri::method::kRestorePod) return Restore(held);
  if (method == cri::method::kStartContainer) return StartContainer(held);
  if (method == cri::method::kStopContainer ||
      method == cri::method::kStopPodSandbox) {
    return Forward(held);
  }
  if (method == cri::method::kRunPodSandbox) return RunSandbox(held);
  Observe(held);
}

void Shim::WhenOver(std::uint64_t call, Over run) {
  if (const auto found = calls_.find(call); found != calls_.end()) {
    found->second = std::move(run);
  }
}

void Shim::OnOver(std::uint64_t call, const CriOutcome& outcome) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  const Over run = std::move(found->second);
  calls_.erase(found);
  if (run) run(outcome);
  if (sandbox_actuator_ != nullptr) sandbox_actuator_->OnCallOver(call);
  // Each call that is held may change what runs.
  if (!outcome.forwarded) return;
  if (looker_ != nullptr) looker_->OnChange();
  if (feed_ != nullptr) feed_->OnChange();
}

void Shim::Observe(const HeldCall& held) {
  const bool sandbox = held->call.method == cri::method::kRemovePodSandbox;
  const auto id = cri::ReadText(
      held->call.message,
      sandbox ? cri::field::remove_pod_sandbox_request::kPodSandboxId
              : cri::field::remove_container_request::kContainerId,
      sandbox ? "RemovePodSandboxRequest" : "RemoveContainerRequest");
  if (!id.ok()) return Unreadable(held, id.status());
  WhenOver(held->call.id, [this, id = *id, sandbox](const CriOutcome& outcome) {
    if (IsLost(outcome) && sandbox) return Doubt();
    // What is not there has been removed.
    const bool gone = outcome.status.ok() || absl::IsNotFound(outcome.status);
    if (!outcome.answered || !gone) return;
    if (sandbox) {
      const cri::SandboxIdentity last = book_.RemoveSandbox(id);
      given_.erase(last.uid);
      if (sandbox_actuator_ != nullptr && !last.uid.value.empty()) {
        sandbox_actuator_->OnLastSandboxGone(last.uid);
      }
    } else {
      book_.RemoveContainer(id);
    }
    if (!holders_.empty()) UpdateHolders();
    CountBook();
  });
  if (!sandbox || sandbox_actuator_ == nullptr ||
      !sandbox_actuator_->in_doubt())
    return Forward(held);
  // Afterwards nobody could say whose it was.
  Look(held, [this, held](const absl::Status&) { Forward(held); });
}

void Shim::RunSandbox(const HeldCall& held) {
  const auto request = cri::ReadRunPodSandbox(held->call.message);
  if (!request.ok()) return Unreadable(held, request.status());
  const cri::SandboxIdentity identity = request->sandbox.identity;
  WhenOver(held->call.id, [this, identity](const CriOutcome& outcome) {
    if (IsLost(outcome)) return Doubt();
    if (!IsGood(outcome)) return;
    const auto id = cri::ReadText(
        outcome.message, cri::field::run_pod_sandbox_response::kPodSandboxId,
        "RunPodSandboxResponse");
    if (!id.ok() || id->empty()) return Doubt();
    book_.AddSandbox(*id, identity);
    CountBook();
  });
  const bool annotates = options_.sandbox_devices && source_ != nullptr &&
                         !identity.uid.value.empty();
  WhenAdmitted(held, identity, [this, held, identity, annotates] {
    annotates ? FindSandboxDevices(held, identity) : Forward(held);
  });
}

void Shim::WhenAdmitted(const HeldCall& held,
                        const cri::SandboxIdentity& identity,
                        std::function<void()> then) {
  if (sandbox_actuator_ == nullptr || identity.uid.value.empty()) return then();
  const bool wait = options_.unknown_sandbox == UnknownSandbox::kWait;
  const auto now = executor_->Now();
  const SandboxActuator::Patience patience = {
      wait ? std::min(now + options_.unknown_sandbox_wait, held->patient_until)
           : now,
      held->answer_by};
  const auto done = [this, held, identity,
                     then = std::move(then)](absl::Status status) {
    if (status.code() == absl::StatusCode::kNotFound &&
        options_.unknown_sandbox != UnknownSandbox::kRefuse) {
      Tell(true, "UnknownSandbox", identity,
           "runs without devices: " + MessageOf(status));
      status = absl::OkStatus();
    }
    if (status.code() == absl::StatusCode::kNotFound) {
      status = FailedPreconditionError("{}", MessageOf(status));
    }
    status.ok() ? then() : Fail(held, ForCaller(status));
  };
  sandbox_actuator_->Admit(held->call.id, identity, patience, done);
  if (sandbox_actuator_->in_doubt())
    WaitForLook({[](const absl::Status&) {}, true});
}

void Shim::StartContainer(const HeldCall& held) {
  if (source_ == nullptr) return Forward(held);
  const auto id = cri::ReadText(
      held->call.message, cri::field::start_container_request::kContainerId,
      "StartContainerRequest");
  if (!id.ok()) return Unreadable(held, id.status());
  const auto start = [this, held, id = *id](const absl::Status& looked) {
    const PodBook::KnownContainer* container = book_.FindContainer(id);
    const cri::SandboxIdentity* sandbox =
        container == nullptr ? nullptr
                             : book_.FindSandbox(container->sandbox_id);
    if (sandbox == nullptr && !looked.ok()) {
      return Fail(held,
                  UnavailableError("the pod of container '{}' is not known: {}",
                                   id, MessageOf(looked)));
    }
    // The runtime knows what to say of one that nobody knows.
    if (sandbox == nullptr || sandbox->uid.value.empty()) return Forward(held);
    source_->BeforeContainerStart(
        sandbox->uid, container->name, TimeLeft(*held),
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
  Look(held, start);
}

std::chrono::milliseconds Shim::TimeLeft(const Held& held) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      held.answer_by - executor_->Now());
  return std::max(std::chrono::milliseconds(1),
                  std::min(left, options_.call_timeout));
}

void Shim::Forward(const HeldCall& held) {
  held->decide(CriDecision::Forward());
}

// What a caller is told when we cannot go on: to try again, unless that would
// not help.
absl::Status Shim::ForCaller(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDeadlineExceeded:
      return status;
    default:
      return UnavailableError("{}", MessageOf(status));
  }
}

void Shim::Fail(const HeldCall& held, const absl::Status& status) {
  Count([](CriShimInfo& info) { ++info.refused; });
  // Each caller gets its error; the log need not have all of a caller that
  // calls again and again.
  refusals_.Log(LogLevel::kWarning, held->call.method,
                held->call.method + ": " + status.ToString());
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
  if (options_.log && options_.manager == nullptr) {
    options_.log(warning ? LogLevel::kWarning : LogLevel::kInfo,
                 std::string(reason) + ": " + message);
  }
  Count([&](CriShimInfo& info) { ++info.events[std::string(reason)]; });
  EventInfo event;
  event.sequence = ++last_event_;
  event.time = std::chrono::system_clock::now();
  event.warning = warning;
  event.reason = std::string(reason);
  event.object_kind = identity.pod.name.empty() ? "Runtime" : "Pod";
  event.object = identity.pod;
  event.message = message;
  if (options_.on_event) options_.on_event(event);
  if (reporter_ != nullptr) reporter_->Add(std::move(event));
}

void Shim::CountSupport() {
  Count([this](CriShimInfo& info) {
    info.runtime_cdi = support_.cdi;
    info.runtime_cdi_source = support_.source;
    info.runtime_cdi_reason = support_.reason;
  });
}

void Shim::CountBook() {
  Count([this](CriShimInfo& info) {
    info.sandboxes = book_.sandboxes();
    info.foreign_sandboxes = book_.foreign_sandboxes();
    info.containers = book_.containers();
    info.unknown_containers = UnknownContainers();
  });
  if (reporter_ != nullptr) reporter_->OnNews();
}

}  // namespace shim

absl::StatusOr<std::unique_ptr<CriShim>> CriShim::Start(
    const CriShimOptions& options) {
  return shim::Shim::Start(options);
}

}  // namespace devmgr
