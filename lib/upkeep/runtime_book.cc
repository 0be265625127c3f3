// SPDX-License-Identifier: Apache-2.0
#include "upkeep/runtime_book.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::upkeep {
namespace {

constexpr std::size_t kMaxWord = 64;
constexpr std::size_t kMaxText = 4096;  // As paths have.
constexpr std::size_t kMaxId = 256;     // Of containers.

bool IsWord(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c >= '0' && c <= '9');
  };
  return !text.empty() && text.size() <= kMaxWord &&
         std::all_of(text.begin(), text.end(), is_letter);
}

bool IsLine(std::string_view text) {
  return text.size() <= kMaxText && !api::HasControlCharacters(text);
}

bool IsName(std::string_view text) { return !text.empty() && IsLine(text); }

absl::Status CheckEvent(const EventInfo& event) {
  if (!IsWord(event.reason)) {
    return InvalidArgumentError("event {} has no reason of letters and digits",
                                event.sequence);
  }
  if (!IsWord(event.object_kind) || !IsLine(event.object.ns) ||
      !IsLine(event.object.name)) {
    return InvalidArgumentError("event {} is about an object that cannot exist",
                                event.sequence);
  }
  return absl::OkStatus();
}

absl::Status CheckHolder(const ForeignHolder& holder) {
  if (holder.container_id.empty() || holder.container_id.size() > kMaxId ||
      !IsLine(holder.container_id)) {
    return InvalidArgumentError("a holder has no ID that a container can have");
  }
  if (!IsLine(holder.pod_uid.value) || !IsLine(holder.pod.ns) ||
      !IsLine(holder.pod.name) || !IsLine(holder.container) ||
      !IsLine(holder.why)) {
    return InvalidArgumentError(
        "container '{}' belongs to a pod that cannot exist",
        holder.container_id);
  }
  std::size_t devices = holder.cdi_devices.size();
  bool is_good =
      std::all_of(holder.cdi_devices.begin(), holder.cdi_devices.end(), IsName);
  for (const HeldResource& resource : holder.resources) {
    devices += resource.devices.size();
    is_good =
        is_good && IsName(resource.name) &&
        std::all_of(resource.devices.begin(), resource.devices.end(), IsName);
  }
  if (!is_good) {
    return InvalidArgumentError(
        "container '{}' holds a device that cannot exist", holder.container_id);
  }
  if (devices > kMaxHeldDevices) {
    return InvalidArgumentError(
        "container '{}' holds {} devices; at most {} "
        "are taken",
        holder.container_id, devices, kMaxHeldDevices);
  }
  return absl::OkStatus();
}

/// What the runtime says of the ends of containers may have any characters.
absl::Status CheckRuns(const RuntimeSnapshot& runs) {
  if (runs.pods.size() > kMaxReportedPods) {
    return InvalidArgumentError("the runtime has {} pods; at most {} are taken",
                                runs.pods.size(), kMaxReportedPods);
  }
  if (!IsLine(runs.runtime)) {
    return InvalidArgumentError("the runtime has a name that cannot exist");
  }
  for (const auto& [uid, pod] : runs.pods) {
    bool is_good =
        IsName(uid.value) && IsLine(pod->name.ns) && IsLine(pod->name.name) &&
        pod->sandboxes.size() + pod->containers.size() <= kMaxReportedRuns;
    for (const SandboxRun& sandbox : pod->sandboxes) {
      is_good = is_good && IsName(sandbox.id) && sandbox.id.size() <= kMaxId &&
                std::all_of(sandbox.ips.begin(), sandbox.ips.end(), IsName);
    }
    for (const ContainerRun& container : pod->containers) {
      is_good = is_good && IsName(container.id) &&
                container.id.size() <= kMaxId && IsLine(container.name) &&
                IsLine(container.image) && IsLine(container.image_id) &&
                container.reason.size() <= kMaxText &&
                container.message.size() <= kMaxText;
    }
    if (!is_good) {
      return InvalidArgumentError(
          "the runtime has a pod '{}' with more sandboxes and containers than "
          "{}, or with names or texts that cannot exist",
          api::Readable(uid.value, kMaxId), kMaxReportedRuns);
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const RuntimeReport& report) {
  if (report.session.empty() || !IsLine(report.session)) {
    return InvalidArgumentError("the report names no session");
  }
  if (report.listen.empty() || !IsLine(report.listen) ||
      !IsLine(report.endpoint) || !IsLine(report.runtime)) {
    return InvalidArgumentError(
        "the report of session '{}' does not name the shim's socket, or names "
        "a socket or runtime that cannot exist",
        report.session);
  }
  if (!report.name.empty() && !IsShimName(report.name)) {
    return InvalidArgumentError(
        "the report of session '{}' has a name that a shim cannot have",
        report.session);
  }
  if (report.events.size() > kMaxReportedEvents) {
    return InvalidArgumentError(
        "the report of session '{}' has {} events; at most {} are taken",
        report.session, report.events.size(), kMaxReportedEvents);
  }
  std::uint64_t last = 0;
  for (const EventInfo& event : report.events) {
    if (event.sequence <= last) {
      return InvalidArgumentError(
          "the report of session '{}': event {} comes after event {}",
          report.session, event.sequence, last);
    }
    last = event.sequence;
    if (const absl::Status checked = CheckEvent(event); !checked.ok()) {
      return WithContext(checked, "the report of session '{}'", report.session);
    }
  }
  if (report.holders.size() > kMaxReportedHolders) {
    return InvalidArgumentError(
        "the report of session '{}' has {} holders; at most {} are taken",
        report.session, report.holders.size(), kMaxReportedHolders);
  }
  for (const ForeignHolder& holder : report.holders) {
    if (const absl::Status checked = CheckHolder(holder); !checked.ok()) {
      return WithContext(checked, "the report of session '{}'", report.session);
    }
  }
  if (report.runs == nullptr) return absl::OkStatus();
  return WithContext(CheckRuns(*report.runs), "the report of session '{}'",
                     report.session);
}

}  // namespace

absl::Status RuntimeBook::Take(const RuntimeReport& report) {
  DEVMGR_RETURN_IF_ERROR(Check(report));
  if (!sessions_.contains(report.listen) && sessions_.size() >= kMaxSessions) {
    return ResourceExhaustedError(
        "{} shims are reporting already, which is the limit: the report of "
        "'{}' is refused",
        sessions_.size(), report.listen);
  }
  Session& session = sessions_[report.listen];
  RuntimeInfo info;
  if (session.info != nullptr && session.info->session == report.session) {
    info = *session.info;
  } else {
    // One that was killed had no time to say that it ends.
    session = Session();
    info.session = report.session;
    info.listen = report.listen;
    info.since = now_();
  }
  info.name = report.name;
  info.endpoint = report.endpoint;
  info.runtime = report.runtime;
  info.counters = report.counters;
  info.last_report = now_();
  session.info = std::make_shared<const RuntimeInfo>(std::move(info));
  for (const EventInfo& event : report.events) {
    if (event.sequence <= session.last_event) continue;
    session.last_event = event.sequence;
    events_.Add(event.warning, event.reason, event.object_kind, event.object,
                api::Readable(event.message, kMaxText));
  }
  if (report.over) sessions_.erase(report.listen);
  return absl::OkStatus();
}

std::vector<std::shared_ptr<const RuntimeInfo>> RuntimeBook::Runtimes() const {
  std::vector<std::shared_ptr<const RuntimeInfo>> runtimes;
  runtimes.reserve(sessions_.size());
  for (const auto& [listen, session] : sessions_) {
    runtimes.push_back(session.info);
  }
  return runtimes;
}

}  // namespace devmgr::upkeep
