// SPDX-License-Identifier: Apache-2.0
//
// From a container that is to be created to the request that goes on.
#include <devmgr/cdi_cache.h>

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "cri/runtime_fields.h"
#include "shim/injection.h"
#include "shim/shim.h"

namespace devmgr::shim {
namespace {

const ContainerDevices* FindContainer(const PodDevices* pod,
                                      const std::string& name) {
  if (pod == nullptr) return nullptr;
  const auto found = std::find_if(
      pod->containers.begin(), pod->containers.end(),
      [&](const ContainerDevices& devices) { return devices.name == name; });
  return found == pod->containers.end() ? nullptr : &*found;
}

bool HasAny(const ContainerDevices* devices) {
  return devices != nullptr &&
         !(devices->cdi_devices.empty() && devices->env.empty() &&
           devices->mounts.empty() && devices->devices.empty() &&
           devices->annotations.empty());
}

/// Its client may have put CDI names there.
bool IsNamed(const cri::ContainerConfig& config) {
  return !config.cdi_devices.empty() ||
         std::any_of(
             config.annotations.begin(), config.annotations.end(),
             [](const auto& annotation) {
               return annotation.first.starts_with(kCdiAnnotationPrefix);
             });
}

}  // namespace

void Shim::Create(const HeldCall& held) {
  auto request = cri::ReadCreateContainer(held->call.message);
  if (!request.ok()) return Unreadable(held, request.status());
  auto creation = std::make_shared<Creation>();
  creation->held = held;
  creation->sandbox_id = request->sandbox_id;
  creation->identity = request->sandbox.identity;
  creation->configs.push_back(std::move(request->config));
  Identify(creation);
}

void Shim::Restore(const HeldCall& held) {
  auto request = cri::ReadRestorePod(held->call.message);
  if (!request.ok()) return Unreadable(held, request.status());
  auto creation = std::make_shared<Creation>();
  creation->held = held;
  creation->kind = Creation::Kind::kRestorePod;
  creation->identity = request->sandbox.identity;
  creation->configs = std::move(request->containers);
  WhenAdmitted(held, creation->identity,
               [this, creation] { Identify(creation); });
}

void Shim::Identify(const CreationPtr& creation) {
  creation->patience =
      std::min(executor_->Now() + options_.unknown_sandbox_wait,
               creation->held->patient_until);
  if (!creation->identity.uid.value.empty() ||
      creation->kind != Creation::Kind::kCreateContainer ||
      source_ == nullptr) {
    return FindDevices(creation);
  }
  const auto from_book = [this, creation](const absl::Status& looked) {
    const auto* identity = book_.FindSandbox(creation->sandbox_id);
    if (identity != nullptr) creation->identity = *identity;
    if (identity == nullptr && !looked.ok()) {
      return OnUnknownSandbox(creation, looked);
    }
    FindDevices(creation);
  };
  if (book_.FindSandbox(creation->sandbox_id) != nullptr) {
    return from_book(absl::OkStatus());
  }
  Look(creation->held, from_book);
}

void Shim::OnUnknownSandbox(const CreationPtr& creation,
                            const absl::Status& why) {
  const absl::Status status =
      UnavailableError("the pod of sandbox '{}' is not known: {}",
                       creation->sandbox_id, MessageOf(why));
  if (options_.unknown_sandbox != UnknownSandbox::kPass) {
    return Fail(creation->held, status);
  }
  Tell(true, "UnknownSandbox", creation->identity,
       "created without devices: " + MessageOf(status));
  Inject(creation, nullptr);
}

void Shim::FindDevices(const CreationPtr& creation) {
  if (source_ == nullptr || creation->identity.uid.value.empty()) {
    return Inject(creation, nullptr);
  }
  creation->asked_at = source_version_;
  source_->DevicesOf(
      creation->identity.uid, creation->identity.pod, TimeLeft(*creation->held),
      OnExecutor<absl::StatusOr<std::shared_ptr<const PodDevices>>>(
          [this, creation](
              const absl::StatusOr<std::shared_ptr<const PodDevices>>& pod) {
            OnDevices(creation, pod);
          }));
}

/// Those whose devices the call needs.
std::vector<std::string> Shim::ContainersOf(const Creation& creation,
                                            const PodDevices& pod) {
  std::vector<std::string> names;
  if (creation.ForSandbox()) {
    for (const ContainerDevices& container : pod.containers) {
      names.push_back(container.name);
    }
    return names;
  }
  for (const cri::ContainerConfig& config : creation.configs) {
    names.push_back(config.name);
  }
  return names;
}

std::pair<CreationAnswer, std::string> Shim::AnswerOf(
    const Creation& creation,
    const absl::StatusOr<std::shared_ptr<const PodDevices>>& pod) {
  if (absl::IsNotFound(pod.status())) return {CreationAnswer::kUnknownPod, ""};
  if (absl::IsUnavailable(pod.status())) return {CreationAnswer::kNotReady, ""};
  if (!pod.ok()) return {CreationAnswer::kRefused, ""};
  for (const std::string& name : ContainersOf(creation, **pod)) {
    const ContainerDevices* devices = FindContainer(pod->get(), name);
    if (devices != nullptr && devices->devices_released) {
      return {CreationAnswer::kGivenBack, name};
    }
  }
  if (const auto container = LacksSpecs(creation, **pod)) {
    return {CreationAnswer::kLacksSpecs, *container};
  }
  return {CreationAnswer::kHasAll, ""};
}

void Shim::OnDevices(
    const CreationPtr& creation,
    const absl::StatusOr<std::shared_ptr<const PodDevices>>& pod) {
  const auto [answer, container] = AnswerOf(*creation, pod);
  if (creation->ForSandbox() && GoOnForSandbox(creation, answer, container)) {
    return;
  }
  const CreationStep step =
      NextStep(creation->state, answer, executor_->Now() < creation->patience,
               options_.unknown_sandbox);
  if (answer == CreationAnswer::kLacksSpecs ||
      answer == CreationAnswer::kHasAll) {
    unknown_pods_.erase(creation->identity.uid);
    given_[creation->identity.uid] = *pod;
  }
  const CreationState before = creation->state;
  creation->state = After(before, step);
  switch (step) {
    case CreationStep::kWait:
      return WaitForPod(creation);
    case CreationStep::kPass:
      return PassWithoutDevices(creation, pod.status());
    case CreationStep::kFail:
      return FailFor(creation, answer, container, pod.status());
    case CreationStep::kTakeBack:
      return TakeBackFirst(creation, container);
    case CreationStep::kAskForSpecs:
      // Only the first time: later ones have what is left.
      if (creation->state != before) {
        creation->patience = creation->held->patient_until;
      }
      return AskForSpecs(creation, container);
    case CreationStep::kInject:
      return Inject(creation, pod->get());
  }
}

void Shim::FailFor(const CreationPtr& creation, CreationAnswer answer,
                   const std::string& container, const absl::Status& status) {
  if (answer == CreationAnswer::kUnknownPod) {
    return Fail(creation->held,
                FailedPreconditionError("{}", MessageOf(status)));
  }
  if (answer == CreationAnswer::kGivenBack) {
    return Fail(creation->held,
                UnavailableError("container '{}' of pod '{}' has given its "
                                 "devices back and got none since",
                                 container, creation->identity.pod.ToString()));
  }
  if (creation->ForSandbox()) {
    return Fail(creation->held,
                ForCaller(WithContext(status, "sandbox of pod '{}'",
                                      creation->identity.pod.ToString())));
  }
  Fail(creation->held,
       ForCaller(WithContext(
           status, "container '{}'",
           creation->configs.empty() ? "" : creation->configs.front().name)));
}

/// An init container that runs again has to get devices again.
void Shim::TakeBackFirst(const CreationPtr& creation,
                         const std::string& container) {
  source_->BeforeContainerStart(
      creation->identity.uid, container, TimeLeft(*creation->held),
      OnExecutor<absl::Status>([this, creation](const absl::Status& status) {
        if (!status.ok()) return Fail(creation->held, ForCaller(status));
        FindDevices(creation);
      }));
}

/// Neither we nor a runtime could find such devices. What plugins answered is
/// not looked after: they are not asked twice.
std::optional<std::string> Shim::LacksSpecs(const Creation& creation,
                                            const PodDevices& pod) {
  std::shared_ptr<const CdiRegistry> registry;
  for (const std::string& name : ContainersOf(creation, pod)) {
    const ContainerDevices* devices = FindContainer(&pod, name);
    if (devices == nullptr || creation.has_asked.contains(name)) continue;
    for (const CdiDevice& device : devices->cdi_devices) {
      if (device.origin.claim.empty()) continue;
      if (registry == nullptr) {
        // A directory that cannot be read lacks what it has.
        specs_->Refresh().IgnoreError();
        registry = specs_->Registry();
      }
      if (registry->Find(device.name) == nullptr) return name;
    }
  }
  return std::nullopt;
}

/// As before a start: the driver is asked to prepare again. Its answer is
/// waited for; if there is none to come, the plan says what is missing.
void Shim::AskForSpecs(const CreationPtr& creation,
                       const std::string& container) {
  source_->BeforeContainerStart(
      creation->identity.uid, container, TimeLeft(*creation->held),
      OnExecutor<absl::Status>(
          [this, creation, container](const absl::Status& status) {
            if (absl::IsUnavailable(status) &&
                executor_->Now() < creation->patience) {
              return WaitForPod(creation);
            }
            if (!status.ok()) return Fail(creation->held, ForCaller(status));
            creation->has_asked.insert(container);
            FindDevices(creation);
          }));
}

void Shim::PassWithoutDevices(const CreationPtr& creation,
                              const absl::Status& why) {
  unknown_pods_.insert(creation->identity.uid);
  Tell(true, "UnknownSandbox", creation->identity,
       "created without devices: " + MessageOf(why));
  Inject(creation, nullptr);
}

void Shim::WaitForPod(const CreationPtr& creation) {
  // Something has changed since it was asked for.
  if (creation->asked_at != source_version_) return FindDevices(creation);
  const std::uint64_t call = creation->held->call.id;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      creation->patience - executor_->Now());
  unknown_[call] = {creation, executor_->PostAfter(left, [this, call] {
                      const auto found = unknown_.find(call);
                      if (found == unknown_.end()) return;
                      const CreationPtr over = found->second.creation;
                      unknown_.erase(found);
                      FindDevices(over);
                    })};
  WatchSource();
}

/// Only while somebody waits, or what is listed as unknown may become known.
void Shim::WatchSource() {
  if (unknown_.empty() && unknown_pods_.empty()) return;
  if (std::exchange(watching_source_, true)) return;
  source_->WaitForChange(
      source_version_,
      OnExecutor<absl::StatusOr<std::uint64_t>>(
          [this](const absl::StatusOr<std::uint64_t>& version) {
            watching_source_ = false;
            if (version.ok()) source_version_ = *version;
            for (const auto& [call, unknown] : std::exchange(unknown_, {})) {
              executor_->Cancel(unknown.timer);
              version.ok()
                  ? FindDevices(unknown.creation)
                  : Fail(unknown.creation->held, ForCaller(version.status()));
            }
            if (!version.ok()) return;
            JudgePods(std::set<PodUid>(unknown_pods_), [this] {
              if (!holders_.empty()) UpdateHolders();
              CountBook();
            });
          }));
}

/// How it is said depends on the runtime only where there is something to say.
void Shim::Inject(const CreationPtr& creation, const PodDevices* pod) {
  if (creation->ForSandbox()) return PlanSandbox(creation, pod);
  const bool needs_runtime = std::any_of(
      creation->configs.begin(), creation->configs.end(),
      [pod](const cri::ContainerConfig& config) {
        return IsNamed(config) || HasAny(FindContainer(pod, config.name));
      });
  if (!needs_runtime || KnowsHowToInject()) return Plan(creation, pod);
  // By then it may have other devices.
  WhenRuntimeKnown(creation->held, [this, creation] { FindDevices(creation); });
}

void Shim::Plan(const CreationPtr& creation, const PodDevices* pod) {
  const bool names =
      pod != nullptr ||
      std::any_of(creation->configs.begin(), creation->configs.end(), IsNamed);
  if (support_.cdi == RuntimeCdi::kNone && names) {
    // What is wrong with a wanted file is told with the name that needs it.
    specs_->Refresh().IgnoreError();
  }
  const auto registry = specs_->Registry();
  InjectionTarget target{support_.cdi, options_.fallback, *registry, host_};
  target.fallback.pod = creation->identity.pod.ToString();
  target.fallback.runtime = runtime_name_;
  if (pod != nullptr) WarnOfContainersNotInPod(*creation, *pod);
  std::vector<cri::ConfigEdits> edits;
  creation->devices.clear();
  for (const cri::ContainerConfig& config : creation->configs) {
    target.fallback.container = config.name;
    auto injection =
        PlanInjection(config, FindContainer(pod, config.name), target);
    if (!injection.ok()) return Fail(creation->held, injection.status());
    for (const std::string& warning : injection->warnings) {
      Tell(true, "DeviceEdit", creation->identity, warning);
    }
    edits.push_back(std::move(injection->edits));
    creation->devices.push_back(std::move(injection->held));
  }
  WhenOver(creation->held->call.id,
           [this, creation](const CriOutcome& outcome) {
             Learn(creation, outcome);
           });
  const auto changed = static_cast<std::uint64_t>(
      std::count_if(edits.begin(), edits.end(),
                    [](const auto& edit) { return !edit.empty(); }));
  Count([&](CriShimInfo& info) {
    info.injected += changed;
    info.unchanged += edits.size() - changed;
  });
  const bool restore = creation->kind == Creation::Kind::kRestorePod;
  absl::StatusOr<cri::ListEdit<NamedValue>> sandbox =
      cri::ListEdit<NamedValue>();
  if (restore && options_.sandbox_devices) {
    sandbox = SandboxAnnotations(creation->identity, pod);
    if (!sandbox.ok()) return Fail(creation->held, sandbox.status());
  }
  if (changed == 0 && sandbox->empty()) return Forward(creation->held);
  const std::string& request = creation->held->call.message;
  auto patched = restore ? cri::PatchRestorePod(request, edits, *sandbox)
                         : cri::PatchCreateContainer(request, edits.front());
  if (!patched.ok()) return Unreadable(creation->held, patched.status());
  creation->held->decide(CriDecision::Replace(*std::move(patched)));
}

PodBook::KnownContainer Shim::KnownAs(const Creation& creation,
                                      const std::string& sandbox_id,
                                      const std::string& name) {
  PodBook::KnownContainer known{sandbox_id, name};
  for (std::size_t i = 0; i < creation.devices.size(); ++i) {
    if (creation.configs.at(i).name != name) continue;
    known.held = creation.devices[i];
    known.is_marked = !known.held.empty();
  }
  return known;
}

/// The ids that the runtime gave.
void Shim::Learn(const CreationPtr& creation, const CriOutcome& outcome) {
  const bool restore = creation->kind == Creation::Kind::kRestorePod;
  if (restore && IsLost(outcome)) return Doubt();
  if (!IsGood(outcome)) return;
  const std::string& answer = outcome.message;
  if (restore) {
    const auto response = cri::ReadRestorePodResponse(answer);
    if (!response.ok() || response->sandbox_id.empty()) return Doubt();
    book_.AddSandbox(response->sandbox_id, creation->identity);
    for (const auto& container : response->containers) {
      book_.AddContainer(
          container.container_id,
          KnownAs(*creation, response->sandbox_id, container.name));
    }
  } else {
    const auto id = cri::ReadText(
        answer, cri::field::create_container_response::kContainerId,
        "CreateContainerResponse");
    if (!id.ok() || id->empty()) return;
    book_.AddContainer(*id, KnownAs(*creation, creation->sandbox_id,
                                    creation->configs.front().name));
    if (book_.FindSandbox(creation->sandbox_id) == nullptr) {
      book_.AddSandbox(creation->sandbox_id, creation->identity);
    }
  }
  OnContainersOf(creation->identity.uid);
  CountBook();
}

}  // namespace devmgr::shim
