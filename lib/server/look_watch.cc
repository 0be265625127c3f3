// SPDX-License-Identifier: Apache-2.0
#include "server/look_watch.h"

#include <devmgr/runtime_report.h>

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "rpc/message.h"

namespace devmgr::server {
namespace {

constexpr char kMethod[] = "WaitForRuntimeLook";
constexpr std::size_t kMaxSession = 128;

}  // namespace

LookWatch::LookWatch(ReportedRuntimeSource* source, Executor& executor,
                     const Access& access)
    : source_(source), executor_(executor), access_(access) {
  if (source_ == nullptr) return;
  source_->SubscribeLooks([this] { executor_.Post([this] { AnswerAll(); }); });
}

LookWatch::~LookWatch() {
  if (source_ != nullptr) source_->SubscribeLooks({});
}

std::map<std::string, rpc::StreamHandler> LookWatch::Streams() {
  std::map<std::string, rpc::StreamHandler> streams;
  streams[std::string(kServicePath) + kMethod] =
      [this](const std::string& bytes, StreamPtr stream) {
        const absl::Status allowed =
            access_.CheckOwner(stream->caller(), kMethod);
        if (!allowed.ok()) return stream->Finish(allowed);
        const auto request = rpc::Decode<pb::RuntimeLookRequest>(bytes);
        if (!request.ok()) return stream->Finish(request.status());
        executor_.Post([this, request = *request, stream = std::move(stream)] {
          Add(request, stream);
        });
      };
  return streams;
}

void LookWatch::Add(const pb::RuntimeLookRequest& request,
                    const StreamPtr& stream) {
  if (source_ == nullptr) {
    return stream->Finish(FailedPreconditionError(
        "this manager does not go by what CRI shims report of their runtimes"));
  }
  if (!source_->Wants(request.name())) {
    return stream->Finish(FailedPreconditionError(
        "this manager does not go by what this CRI shim reports of its "
        "runtime: its name is not among those in the configuration"));
  }
  const std::string& session = request.session();
  if (session.size() > kMaxSession) {
    return stream->Finish(InvalidArgumentError(
        "the session has {} characters; at most {} are taken", session.size(),
        kMaxSession));
  }
  if (const auto found = answered_.find(session); found != answered_.end()) {
    executor_.Cancel(found->second);
    answered_.erase(found);
  }
  if (request.wait_ms() <= 0 || request.look() != source_->WantedLook()) {
    return Answer(session, stream);
  }
  if (waiting_.size() >= kMaxWaiting) {
    return stream->Finish(ResourceExhaustedError(
        "{} CRI shims wait for an answer already", waiting_.size()));
  }
  const std::uint64_t call = ++last_call_;
  const auto wait = std::min<std::chrono::milliseconds>(
      std::chrono::milliseconds(request.wait_ms()), kMaxWait);
  waiting_[call] = {session, stream, executor_.PostAfter(wait, [this, call] {
                      const auto found = waiting_.find(call);
                      if (found == waiting_.end()) return;
                      const Waiting over = std::move(found->second);
                      waiting_.erase(found);
                      Answer(over.session, over.stream);
                    })};
  stream->WhenClientGone(
      [this, call] { executor_.Post([this, call] { OnGone(call); }); });
}

void LookWatch::Answer(const std::string& session, const StreamPtr& stream) {
  // Before it can ask again. Of more sessions than there can be of shims only
  // the end of a call says that they go.
  if (!session.empty() && answered_.size() < kMaxWaiting) {
    TimerId& timer = answered_[session];
    executor_.Cancel(timer);
    timer =
        executor_.PostAfter(kPatience, [this, session] { OnSilent(session); });
  }
  pb::RuntimeLookResponse response;
  response.set_look(source_->WantedLook());
  stream->Write(rpc::Encode(response));
  stream->Finish(absl::OkStatus());
}

void LookWatch::AnswerAll() {
  for (const auto& [call, waiting] : std::exchange(waiting_, {})) {
    executor_.Cancel(waiting.timer);
    Answer(waiting.session, waiting.stream);
  }
}

void LookWatch::OnGone(std::uint64_t call) {
  const auto found = waiting_.find(call);
  if (found == waiting_.end()) return;
  const Waiting gone = std::move(found->second);
  waiting_.erase(found);
  executor_.Cancel(gone.timer);
  if (!gone.session.empty()) source_->OnCutOff(gone.session);
}

void LookWatch::OnSilent(const std::string& session) {
  answered_.erase(session);
  source_->OnCutOff(session);
}

}  // namespace devmgr::server
