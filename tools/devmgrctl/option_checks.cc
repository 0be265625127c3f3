// SPDX-License-Identifier: Apache-2.0
//
// What a command line may say: from Raw to Options.
#include <devmgr/duration.h>
#include <devmgr/feature_gates.h>
#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "raw_options.h"

namespace devmgr::ctl {
namespace {

constexpr char kDurationForm[] = "a duration such as 20s, 500ms or 2m";

const Names<ResourceOwner>& OwnerNames() {
  static const Names<ResourceOwner> names = {
      {"plugin", ResourceOwner::kDevicePlugin},
      {"class", ResourceOwner::kDeviceClass},
      {"automatic", ResourceOwner::kAutomatic}};
  return names;
}

const Names<Authority>& AuthorityNames() {
  static const Names<Authority> names = {{"node", Authority::kNode},
                                         {"scheduler", Authority::kScheduler}};
  return names;
}

/// What `get` and `describe` take; plural and singular mean the same.
const Names<Kind>& KindNames() {
  static const Names<Kind> names = {
      {"plugins", Kind::kPlugin}, {"resources", Kind::kResource},
      {"claims", Kind::kClaim},   {"pods", Kind::kPod},
      {"devices", Kind::kDevice}, {"classes", Kind::kClass},
      {"plugin", Kind::kPlugin},  {"resource", Kind::kResource},
      {"claim", Kind::kClaim},    {"pod", Kind::kPod},
      {"device", Kind::kDevice},  {"class", Kind::kClass},
      {"debts", Kind::kDebt},     {"debt", Kind::kDebt},
      {"holders", Kind::kHolder}, {"holder", Kind::kHolder},
      {"sources", Kind::kSource}, {"source", Kind::kSource},
      {"slices", Kind::kSlice},   {"slice", Kind::kSlice},
      {"numa", Kind::kNuma},      {"changes", Kind::kChange},
      {"change", Kind::kChange}};
  return names;
}

absl::Status CheckDuration(const char* flag, const std::string& text,
                           std::optional<std::chrono::milliseconds>* value) {
  if (text.empty()) return absl::OkStatus();
  *value = ParseDuration(text);
  if (value->has_value()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   fmt::format("{} '{}': give {}", flag, text, kDurationForm));
}

absl::Status CheckPoint(const char* flag, const std::string& text, bool numbers,
                        WallTime now, LedgerPoint* point) {
  if (text.empty()) return absl::OkStatus();
  const std::optional<LedgerPoint> parsed = ParsePoint(text, now);
  if (parsed && (numbers || std::holds_alternative<WallTime>(*parsed))) {
    *point = *parsed;
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      fmt::format("{} '{}': give {}{}", flag, text,
                  numbers ? "a sequence number, " : "", kTimeForm));
}

absl::Status CheckPoints(const Raw& raw, WallTime now, Options* options) {
  const bool numbers = options->verb != Verb::kEvents;
  absl::Status status =
      CheckPoint("--since", raw.since, numbers, now, &options->since);
  if (status.ok()) {
    status = CheckPoint("--at", raw.at, numbers, now, &options->at);
  }
  if (status.ok()) {
    status = CheckPoint("--from", raw.from, numbers, now, &options->from);
  }
  if (status.ok()) {
    status = CheckPoint("--to", raw.to, numbers, now, &options->to);
  }
  return status;
}

/// The kinds that a verb takes, as they are listed for people; empty: it takes
/// none.
std::string_view KindsOf(Verb verb) {
  switch (verb) {
    case Verb::kGet:
      return kListedKinds;
    case Verb::kDescribe:
      return kDescribedKinds;
    case Verb::kRelease:
      return "pod, claim";
    case Verb::kHandOver:
      return "resource";
    case Verb::kFree:
      return "holder";
    case Verb::kDelete:
      return "slices";
    case Verb::kRecheck:
      return "device";
    case Verb::kExplain:
    case Verb::kWait:
    case Verb::kPrepare:
      return "pod";
    default:
      return "";
  }
}

bool TakesKind(Verb verb, Kind kind) {
  switch (verb) {
    case Verb::kGet:
      return true;
    case Verb::kDescribe:
      return kind != Kind::kClass && kind != Kind::kDebt &&
             kind != Kind::kHolder && kind != Kind::kSource &&
             kind != Kind::kNuma && kind != Kind::kChange;
    case Verb::kRelease:
      return kind == Kind::kPod || kind == Kind::kClaim;
    case Verb::kHandOver:
      return kind == Kind::kResource;
    case Verb::kFree:
      return kind == Kind::kHolder;
    case Verb::kDelete:
      return kind == Kind::kSlice;
    case Verb::kRecheck:
      return kind == Kind::kDevice;
    default:
      return kind == Kind::kPod;
  }
}

/// `pod/demo` in the place of the kind is a kind and a name.
absl::Status SplitKindAndName(Verb verb, Raw* raw) {
  const std::size_t slash = raw->kind.find('/');
  if (KindsOf(verb).empty() || slash == std::string::npos) {
    return absl::OkStatus();
  }
  if (!raw->name.empty()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        fmt::format("'{}' is one too many: '{}' has kind and name already",
                    raw->name, raw->kind));
  }
  raw->name = raw->kind.substr(slash + 1);
  raw->kind.resize(slash);
  if (!raw->name.empty()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      fmt::format("'{}/': the name behind the kind is empty", raw->kind));
}

absl::Status CheckKind(const Raw& raw, Options* options) {
  if (options->verb == Verb::kConfirm) {
    if (raw.kind == "source") return absl::OkStatus();
    return MakeError(absl::StatusCode::kInvalidArgument,
                     fmt::format("kind '{}' cannot be confirmed, only source: "
                                 "devmgrctl confirm source --reason TEXT",
                                 raw.kind));
  }
  const std::string kinds(KindsOf(options->verb));
  if (kinds.empty()) return absl::OkStatus();
  if (raw.kind.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     fmt::format("the KIND is missing; use one of: {}", kinds));
  }
  absl::Status status =
      Choose(KindNames(), "kind", raw.kind, kinds, &options->kind);
  if (status.ok() && !TakesKind(options->verb, options->kind)) {
    status = MakeError(absl::StatusCode::kInvalidArgument,
                       fmt::format("kind '{}' is not for this verb; use one "
                                   "of: {}",
                                   raw.kind, kinds));
  }
  return status;
}

/// What is for changes, and for them only.
absl::Status CheckChanges(const Raw& raw, Options* options) {
  const bool changes =
      options->verb == Verb::kGet && options->kind == Kind::kChange;
  const bool follows = raw.follow && options->verb == Verb::kGet;
  if (!changes && (follows || !raw.after.empty())) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "--follow and --after are for changes: devmgrctl get "
                     "changes -f");
  }
  if (changes && !raw.name.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     fmt::format("'{}': changes have no names; those after one "
                                 "are shown with --after TOKEN",
                                 raw.name));
  }
  if (raw.after.empty()) return absl::OkStatus();
  const auto token = ChangeToken::Parse(raw.after);
  if (!token.ok()) {
    return MakeError(token.status().code(),
                     fmt::format("--after: {}", MessageOf(token.status())));
  }
  options->after = *token;
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseName(const std::string& text, const std::string& ns,
                       ObjectName* name) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    *name = {ns.empty() ? "default" : ns, text};
    return absl::OkStatus();
  }
  *name = {text.substr(0, slash), text.substr(slash + 1)};
  if (name->ns.empty() || name->name.empty() ||
      name->name.find('/') != std::string::npos) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        fmt::format("name '{}': give NAMESPACE/NAME or NAME", text));
  }
  if (!ns.empty() && ns != name->ns) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        fmt::format("name '{}' is of another namespace than -n {}", text, ns));
  }
  return absl::OkStatus();
}

namespace {

/// `pod/NAME` or `pods/[NAMESPACE/]NAME`, as kubectl takes it: without the
/// kind.
std::string WithoutPod(const std::string& name) {
  for (const std::string_view prefix : {"pod/", "pods/"}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

/// As kubectl takes it: with the kind in front, or without.
absl::Status CheckSubject(const Raw& raw, Options* options) {
  if (raw.name.empty()) return absl::OkStatus();
  Subject subject;
  std::string name = raw.name;
  for (const std::string prefix : {"pod/", "pods/", "claim/", "claims/"}) {
    if (name.rfind(prefix, 0) != 0) continue;
    subject.kind = prefix[0] == 'p' ? Kind::kPod : Kind::kClaim;
    name = name.substr(prefix.size());
    break;
  }
  absl::Status status =
      name.empty() ? MakeError(absl::StatusCode::kInvalidArgument,
                               fmt::format("name '{}': what is behind the "
                                           "kind is empty",
                                           raw.name))
                   : ParseName(name, raw.ns, &subject.name);
  if (name.find('/') == std::string::npos) subject.uid = name;
  options->subject = std::move(subject);
  return status;
}

bool HasNamespace(Kind kind) {
  // A debt is known by its claim.
  return kind == Kind::kPod || kind == Kind::kClaim || kind == Kind::kDebt;
}

absl::Status CheckName(const Raw& raw, Options* options) {
  if (options->verb == Verb::kDelete) {
    if (raw.name.empty()) return absl::OkStatus();
    return MakeError(absl::StatusCode::kInvalidArgument,
                     fmt::format("'{}': slices are deleted by their driver: "
                                 "devmgrctl delete slices --driver DRIVER",
                                 raw.name));
  }
  if (options->verb == Verb::kHistory) return CheckSubject(raw, options);
  if (raw.name.empty()) {
    switch (options->verb) {
      case Verb::kResolve:
        if (!raw.diff_container.empty()) return absl::OkStatus();
        return MakeError(absl::StatusCode::kInvalidArgument,
                         "the name of the POD is missing or empty; give one, "
                         "or --diff CONTAINER_ID");
      case Verb::kDescribe:
      case Verb::kExplain:
      case Verb::kWait:
      case Verb::kPrepare:
      case Verb::kRelease:
      case Verb::kHandOver:
      case Verb::kFree:
      case Verb::kRecheck:
      case Verb::kInject:
        return MakeError(absl::StatusCode::kInvalidArgument,
                         fmt::format("the NAME of the {} is missing or empty",
                                     raw.kind.empty() ? "pod" : raw.kind));
      default:
        return absl::OkStatus();
    }
  }
  if (options->verb == Verb::kResolve || options->verb == Verb::kInject ||
      options->verb == Verb::kPodResources) {
    return ParseName(WithoutPod(raw.name), raw.ns, &options->name);
  }
  if (!HasNamespace(options->kind)) {
    options->name.name = raw.name;
    return absl::OkStatus();
  }
  return ParseName(raw.name, raw.ns, &options->name);
}

std::string Endpoint(const Raw& raw, const Environment& environment) {
  std::string endpoint = raw.endpoint;
  if (endpoint.empty()) {
    const char* value = environment.getenv("DEVMGR_ENDPOINT");
    endpoint = value != nullptr ? value : "";
  }
  if (endpoint.empty()) endpoint = kDefaultEndpoint;
  return WithoutScheme(endpoint);
}

absl::Status CheckNodeLabels(const Raw& raw, Options* options) {
  for (const std::string& label : raw.node_labels) {
    const std::size_t equals = label.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       fmt::format("--node-labels: '{}' is not KEY=VALUE, such "
                                   "as zone=a",
                                   label));
    }
    options->node_labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return absl::OkStatus();
}

absl::Status CheckGates(const Raw& raw, Options* options) {
  for (const std::string& gate : raw.feature_gates) {
    const std::size_t equals = gate.find('=');
    const std::string value =
        equals == std::string::npos ? "" : gate.substr(equals + 1);
    if (value != "true" && value != "false") {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       fmt::format("--feature-gates: '{}' is not "
                                   "GATE=true or GATE=false",
                                   gate));
    }
    options->feature_gates[gate.substr(0, equals)] = value == "true";
  }
  const absl::Status status = CheckFeatureGates(options->feature_gates);
  if (status.ok()) return status;
  return MakeError(status.code(),
                   fmt::format("--feature-gates: {}", MessageOf(status)));
}

/// What is decided over the manager's head has a reason, and is meant.
absl::Status CheckOperator(const Raw& raw, Options* options) {
  const bool claim =
      options->verb == Verb::kRelease && options->kind == Kind::kClaim;
  const bool hand_over = options->verb == Verb::kHandOver;
  const bool other =
      options->verb == Verb::kConfirm || options->verb == Verb::kFree ||
      options->verb == Verb::kDelete || options->verb == Verb::kRecheck;
  const bool authority = options->verb == Verb::kAuthority;
  options->reason = raw.reason;
  options->device = raw.device;
  if (!claim && !hand_over && !authority && !other) {
    if (!raw.force && raw.reason.empty()) return absl::OkStatus();
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "--force and --reason are for claims: a pod is released "
                     "when its drivers are done");
  }
  if (claim && !raw.force) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "a claim is released with its pods; to give it up without "
                     "its drivers, add --force");
  }
  if (raw.reason.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "--reason: say why, for the history");
  }
  if (authority) {
    return Choose(AuthorityNames(), "AUTHORITY", raw.authority,
                  NamesOf(AuthorityNames()), &options->authority);
  }
  if (!hand_over) return absl::OkStatus();
  return Choose(OwnerNames(), "--to", raw.owner, NamesOf(OwnerNames()),
                &options->new_owner);
}

}  // namespace

const Names<Format>& FormatNames() {
  static const Names<Format> names = {{"table", Format::kTable},
                                      {"wide", Format::kWide},
                                      {"json", Format::kJson},
                                      {"yaml", Format::kYaml},
                                      {"name", Format::kName}};
  return names;
}

const Names<ColorMode>& ColorNames() {
  static const Names<ColorMode> names = {{"auto", ColorMode::kAuto},
                                         {"always", ColorMode::kAlways},
                                         {"never", ColorMode::kNever}};
  return names;
}

const Names<PodCondition>& ConditionNames() {
  static const Names<PodCondition> names = {
      {"ready", PodCondition::kReady},
      {"waiting", PodCondition::kWaiting},
      {"rejected", PodCondition::kRejected},
      {"released", PodCondition::kReleased}};
  return names;
}

std::string WithoutScheme(const std::string& endpoint) {
  for (const std::string prefix : {"unix://", "unix:"}) {
    if (endpoint.rfind(prefix, 0) == 0) return endpoint.substr(prefix.size());
  }
  return endpoint;
}

absl::Status CheckOptions(Raw raw, const Environment& environment,
                          Options* options) {
  absl::Status status = SplitKindAndName(options->verb, &raw);
  if (!status.ok()) return status;
  status = Choose(FormatNames(), "output format", raw.format,
                  NamesOf(FormatNames()), &options->format);
  if (status.ok()) {
    status = Choose(ColorNames(), "--color", raw.color, NamesOf(ColorNames()),
                    &options->color);
  }
  if (status.ok()) {
    status = CheckDuration("--timeout", raw.timeout, &options->timeout);
  }
  if (status.ok()) status = CheckPoints(raw, environment.now(), options);
  if (status.ok()) status = CheckKind(raw, options);
  if (status.ok()) status = CheckChanges(raw, options);
  if (status.ok()) status = CheckName(raw, options);
  if (status.ok() && options->verb == Verb::kWait) {
    status = Choose(ConditionNames(), "--for", raw.condition,
                    NamesOf(ConditionNames()), &options->condition);
  }
  if (status.ok()) status = CheckOperator(raw, options);
  if (status.ok()) {
    status = CheckContainerOptions(raw, environment, options);
  }
  if (status.ok()) status = CheckNodeLabels(raw, options);
  if (status.ok()) status = CheckGates(raw, options);
  if (status.ok()) status = CheckSimulateOptions(raw, options);
  options->endpoint = Endpoint(raw, environment);
  options->state_dir = raw.state_dir;
  options->pod_resources_socket = WithoutScheme(raw.pod_resources_socket);
  options->ns = raw.ns;
  options->no_headers = raw.no_headers;
  options->follow = raw.follow;
  options->repair = raw.repair;
  options->yes = raw.yes;
  options->directory = raw.directory;
  options->dry_run = raw.dry_run;
  options->accept_losses = raw.accept_losses;
  options->to_format = raw.to_format;
  options->expression = raw.expression;
  options->slices = raw.slices;
  options->old_variables = raw.old_variables;
  options->driver = raw.driver;
  options->files = raw.files;
  options->node = raw.node;
  return status;
}

}  // namespace devmgr::ctl
