// SPDX-License-Identifier: Apache-2.0
#include "server/podresources/service.h"

#include <devmgr/wire/podresources/v1/podresources.pb.h>
#include <devmgr/wire/podresources/v1alpha1/podresources.pb.h>

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "rpc/message.h"

namespace devmgr::podresources {
namespace {

namespace pb = wire::podresources::v1;
namespace old = wire::podresources::v1alpha1;

/// Names one process; its number is 0 where it is of another PID namespace.
std::string ClientText(const rpc::Caller& caller) {
  if (!caller.has_value()) return "a client that is gone";
  return fmt::format("uid {}, pid {}", caller->uid, caller->pid);
}

/// No pod has another name, and a message with one could not be sent: it is
/// part of a header.
std::string Named(const std::string& text) {
  constexpr std::size_t kMostBytes = 253;
  const bool is_plain = std::all_of(text.begin(), text.end(),
                                    [](char c) { return c > ' ' && c < 0x7f; });
  if (text.size() <= kMostBytes && is_plain) return text;
  return fmt::format("<{} bytes, which are no name>", text.size());
}

}  // namespace

Service::Service(DeviceManager& manager, Executor& executor,
                 bool strict_kubelet, UnreadAnswers::Limits unread)
    : manager_(manager),
      executor_(executor),
      strict_kubelet_(strict_kubelet),
      unread_(unread),
      limits_(kOneClient, strict_kubelet ? kOneClient : kAllClients) {}

/// Counts the call, and runs `run(service, request)` on the executor for the
/// answer.
template <typename Request, typename Run>
rpc::StreamHandler Service::Handler(Method method, Run run) {
  return [this, method, run](std::string bytes,
                             std::shared_ptr<rpc::ServerStream> stream) {
    std::string client = ClientText(stream->caller());
    auto waiting = calls_.Take(client);
    if (!waiting.ok()) {
      Count(&PodResourcesCounters::refused, 1);
      return stream->Finish(waiting.status());
    }
    executor_.Post([this, method, run, bytes = std::move(bytes),
                    stream = std::move(stream), client = std::move(client),
                    waiting = *std::move(waiting)] {
      if (const absl::Status turn = TakeTurn(client); !turn.ok()) {
        Count(&PodResourcesCounters::refused, 1);
        return stream->Finish(turn);
      }
      const auto request = rpc::Decode<Request>(bytes);
      const Answer answer =
          request.ok() ? run(*this, *request) : Answer(request.status());
      Finish(method, client, answer, *stream);
    });
  };
}

std::map<std::string, rpc::StreamHandler> Service::Methods() {
  using Counters = PodResourcesCounters;
  const Method list{&Counters::v1, &OfVersion::list, &OfVersion::errors_list};
  const Method allocatable{&Counters::v1, &OfVersion::get_allocatable,
                           &OfVersion::errors_get_allocatable};
  const Method get{&Counters::v1, &OfVersion::get, &OfVersion::errors_get};
  const Method old_list{&Counters::v1alpha1, &OfVersion::list,
                        &OfVersion::errors_list};
  std::map<std::string, rpc::StreamHandler> methods;
  methods[kListPath] = Handler<pb::ListPodResourcesRequest>(
      list, [](Service& self, const auto&) { return self.List(self.v1_); });
  methods[kAllocatablePath] = Handler<pb::AllocatableResourcesRequest>(
      allocatable,
      [](Service& self, const auto&) { return self.GetAllocatable(); });
  methods[kGetPath] = Handler<pb::GetPodResourcesRequest>(
      get, [](Service& self, const auto& request) {
        return self.Get({request.pod_namespace(), request.pod_name()});
      });
  methods[kOldListPath] = Handler<old::ListPodResourcesRequest>(
      old_list,
      [](Service& self, const auto&) { return self.List(self.v1alpha1_); });
  return methods;
}

PodResourcesCounters Service::counters() const {
  const MutexLock lock(mutex_);
  return counters_;
}

absl::Status Service::TakeTurn(const std::string& client) {
  // The kubelet has one limit for all of them.
  if (limits_.Take(strict_kubelet_ ? "" : client, executor_.Now())) {
    return absl::OkStatus();
  }
  if (strict_kubelet_) return ResourceExhaustedError("rejected by rate limit");
  return ResourceExhaustedError(
      "rejected by rate limit: {} or all clients together call more often than "
      "{} or {} times a second",
      client, std::chrono::seconds(1) / kOneClient.interval,
      std::chrono::seconds(1) / kAllClients.interval);
}

void Service::Finish(const Method& method, const std::string& client,
                     const Answer& answer, rpc::ServerStream& stream) {
  Count(method, method.calls);
  if (!answer.ok()) {
    Count(method, method.errors);
    return stream.Finish(answer.status());
  }
  auto kept = unread_.Take(client, (*answer)->size());
  if (!kept.ok()) {
    Count(&PodResourcesCounters::refused, 1);
    Count(method, method.errors);
    return stream.Finish(kept.status());
  }
  // Let go with its last bytes: when they are sent, or the call is over.
  struct Counted {
    std::shared_ptr<const std::string> bytes;
    std::shared_ptr<void> kept;
  };
  const auto counted =
      std::make_shared<const Counted>(Counted{*answer, *std::move(kept)});
  stream.Write({counted, counted->bytes.get()});
  stream.Finish(absl::OkStatus());
}

Service::Answer Service::List(EncodedList& encoded) {
  executor_.Cancel(forget_);
  forget_ = executor_.PostAfter(kKept, [this] {
    seen_.reset();
    list_.reset();
    v1_.Clear();
    v1alpha1_.Clear();
  });
  // Most of the time nothing has happened since a client asked last.
  if (auto view = manager_.View(); view != seen_) {
    list_ = view->ResourcesOfPods(list_);
    seen_ = std::move(view);
    missing_ = 0;
    for (const auto& pod : list_->pods) missing_ += pod->missing_claims;
  }
  Count(&PodResourcesCounters::missing_claims, missing_);
  return encoded.Of(list_);
}

Service::Answer Service::GetAllocatable() const {
  return std::make_shared<const std::string>(
      EncodedAllocatable(manager_.View()->AllocatableDevices()));
}

Service::Answer Service::Get(const ObjectName& name) {
  const ObjectName named{Named(name.ns), Named(name.name)};
  const auto pod = manager_.View()->ResourcesOfPod(named);
  if (!pod.ok()) {
    // The kubelet's error has no code.
    if (!strict_kubelet_) return pod.status();
    return MakeStatus(absl::StatusCode::kUnknown, MessageOf(pod.status()));
  }
  Count(&PodResourcesCounters::missing_claims, (*pod)->missing_claims);
  return std::make_shared<const std::string>(EncodedGet(**pod));
}

void Service::Count(std::uint64_t PodResourcesCounters::*counter,
                    std::uint64_t more) {
  const MutexLock lock(mutex_);
  counters_.*counter += more;
}

void Service::Count(const Method& method, std::uint64_t OfVersion::*counter) {
  const MutexLock lock(mutex_);
  OfVersion& version = counters_.*method.version;
  ++(version.*counter);
  if (counter == method.calls) ++version.requests;
}

}  // namespace devmgr::podresources
