// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include "commands.h"
#include "options.h"

namespace devmgr::ctl {
namespace {

absl::Status RunVerb(const Session& session) {
  switch (session.options().verb) {
    case Verb::kStatus:
      return Status(session);
    case Verb::kVersion:
      return ShowVersion(session);
    case Verb::kGet:
      return Get(session);
    case Verb::kDescribe:
      return Describe(session);
    case Verb::kResolve:
      return Resolve(session);
    case Verb::kExplain:
      return Explain(session);
    case Verb::kWait:
      return Wait(session);
    case Verb::kPrepare:
      return Prepare(session);
    case Verb::kRelease:
      return session.options().kind == Kind::kClaim ? ForceRelease(session)
                                                    : Release(session);
    case Verb::kHandOver:
      return HandOver(session);
    case Verb::kConfirm:
      return ConfirmSource(session);
    case Verb::kFree:
      return FreeHolder(session);
    case Verb::kDelete:
      return DeleteSlices(session);
    case Verb::kEndpoint:
      return EndpointKubeconfig(session);
    case Verb::kRecheck:
      return Recheck(session);
    case Verb::kAuthority:
      return SetAuthority(session);
    case Verb::kConvert:
      return Convert(session);
    case Verb::kVerify:
      return VerifyKubelet(session);
    case Verb::kImport:
      return ImportFromKubelet(session);
    case Verb::kExport:
      return ExportToKubelet(session);
    case Verb::kEvents:
      return Events(session);
    case Verb::kHistory:
      return History(session);
    case Verb::kState:
      return State(session);
    case Verb::kDiff:
      return Diff(session);
    case Verb::kFsck:
      return Fsck(session);
    case Verb::kCdi:
      return Cdi(session);
    case Verb::kInject:
      return Inject(session);
    case Verb::kCel:
      return Cel(session);
    case Verb::kAllocate:
      return Allocate(session);
    case Verb::kSimulate:
      return Simulate(session);
    case Verb::kPodResources:
      return PodResourcesOfSocket(session);
  }
  return absl::OkStatus();
}

}  // namespace

int Run(const std::vector<std::string>& arguments,
        const Environment& environment) {
  const auto parsed = ParseCommandLine(arguments, environment);
  if (const ExitCode* code = std::get_if<ExitCode>(&parsed)) return *code;
  const Session session(std::get<Options>(parsed), environment);
  const absl::Status status = RunVerb(session);
  environment.out.flush();
  if (status.ok() && !environment.out) {
    session.Note("stdout: cannot be written");
    return kExitFailed;
  }
  if (!status.ok()) session.Note(MessageOf(status));
  return ExitCodeOf(status);
}

}  // namespace devmgr::ctl
