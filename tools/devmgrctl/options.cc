// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <devmgr/duration.h>
#include <devmgr/version.h>
#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "raw_options.h"
#include "usage.h"

namespace devmgr::ctl {
namespace {

constexpr char kDefaultEndpoint[] = "/run/devmgr/devmgr.sock";
constexpr char kListedKinds[] =
    "plugins, resources, claims, debts, pods, devices, classes, holders";
constexpr char kDescribedKinds[] = "pod, claim, plugin, resource, device";
constexpr char kDurationForm[] = "a duration such as 20s, 500ms or 2m";
constexpr char kTimeForm[] =
    "a time such as 2026-11-21T10:00:00Z, or a duration ago such as 10m";

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

const Names<ResourceOwner>& OwnerNames() {
  static const Names<ResourceOwner> names = {
      {"plugin", ResourceOwner::kDevicePlugin},
      {"class", ResourceOwner::kDeviceClass},
      {"automatic", ResourceOwner::kAutomatic}};
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
      {"holders", Kind::kHolder}, {"holder", Kind::kHolder}};
  return names;
}

void AddGlobalFlags(CLI::App& app, Raw& raw) {
  const auto last = CLI::MultiOptionPolicy::TakeLast;
  CLI::Option* endpoint =
      app.add_option(
             "--endpoint", raw.endpoint,
             "Inspection socket of devmgrd (default: DEVMGR_ENDPOINT, else " +
                 std::string(kDefaultEndpoint) + ")")
          ->multi_option_policy(last);
  app.add_option("--state-dir", raw.state_dir,
                 "Read the state directory of a stopped devmgrd instead")
      ->multi_option_policy(last)
      ->excludes(endpoint);
  app.add_option("-o,--output", raw.format, NamesOf(FormatNames()))
      ->multi_option_policy(last);
  app.add_option("--timeout", raw.timeout,
                 "How long to wait for an answer, such as 20s; 0: without "
                 "limit (default: 2s; for fsck 30s; for wait, prepare and "
                 "release 30s until the pod is in the state)")
      ->multi_option_policy(last);
  app.add_option("-n,--namespace", raw.ns,
                 "Show only this namespace; namespace of a pod or claim that "
                 "is given without one")
      ->multi_option_policy(last);
  app.add_flag("-A,--all-namespaces", raw.all_namespaces,
               "Show all namespaces, which is the default without -n");
  app.add_flag("--no-headers", raw.no_headers,
               "Print tables without their header line");
  app.add_option("--color", raw.color, NamesOf(ColorNames()))
      ->multi_option_policy(last);
}

/// Of what an operator decides over the manager's head.
void AddOperatorFlags(CLI::App* command, Raw& raw) {
  command->add_option("--reason", raw.reason,
                      "Reason of the decision, for the history");
  command->add_flag("--yes", raw.yes,
                    "Do it; without --yes, only show what would be done");
}

/// What looks back into the ledger.
void AddLedgerVerbs(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* history =
      AddVerb(app, verbs, Verb::kHistory, "history",
              "Show the decisions that the ledger's history still has");
  history->add_option("POD|CLAIM", raw.name,
                      "Show only decisions about this pod or claim: "
                      "[pod/|claim/][NAMESPACE/]NAME, or its UID");
  history->add_option("--since", raw.since,
                      "Show only decisions after this one: SEQ|TIME");
  CLI::App* state = AddVerb(app, verbs, Verb::kState, "state",
                            "Show what the ledger held at an earlier time");
  state->add_option("--at", raw.at, "SEQ|TIME (default: now)");
  CLI::App* diff = AddVerb(app, verbs, Verb::kDiff, "diff",
                           "Show what changed in the ledger between two times; "
                           "exit code 1 if anything changed");
  diff->add_option("--from", raw.from, "SEQ|TIME")->required();
  diff->add_option("--to", raw.to, "SEQ|TIME (default: now)");
  const std::string forms =
      std::string("SEQ is a decision's number, TIME ") + kTimeForm;
  for (CLI::App* command : {history, state, diff}) command->footer(forms);
}

void AddVerbs(CLI::App& app, Raw& raw, VerbMap& verbs) {
  // None is required for CLI11: CheckKind and CheckName say what they may be.
  const auto positional = [&](CLI::App* command, const char* name,
                              std::string& value, const char* description) {
    command->add_option(name, value, description);
  };
  AddVerb(
      app, verbs, Verb::kStatus, "status",
      "Show a summary of the node: ledger, source, plugins, pods and problems");
  AddVerb(app, verbs, Verb::kVersion, "version",
          "Print the versions of this program and of the daemon");
  CLI::App* get =
      AddVerb(app, verbs, Verb::kGet, "get", "List the objects of a kind");
  positional(get, "KIND", raw.kind, kListedKinds);
  positional(
      get, "NAME", raw.name,
      "Show only this one: [NAMESPACE/]NAME, also as KIND/NAME. Of devices: an "
      "ID, or a resource or driver, whose devices are shown");
  CLI::App* describe = AddVerb(app, verbs, Verb::kDescribe, "describe",
                               "Show one object in detail");
  positional(describe, "KIND", raw.kind, kDescribedKinds);
  positional(describe, "NAME", raw.name,
             "[NAMESPACE/]NAME; of a device RESOURCE/ID, DRIVER/POOL/DEVICE, "
             "or the ID alone if it is unique");
  AddShowEnv(describe, raw);
  AddResolve(app, raw, verbs);
  CLI::App* explain =
      AddVerb(app, verbs, Verb::kExplain, "explain",
              "Explain why a pod is in its state: what it waits for, which pod "
              "holds that, what it holds, and how long each step took");
  positional(explain, "KIND", raw.kind, "pod");
  positional(explain, "POD", raw.name, "[NAMESPACE/]NAME");
  CLI::App* wait = AddVerb(
      app, verbs, Verb::kWait, "wait",
      "Wait until a pod is in a state; exit code 1 if the time runs out");
  positional(wait, "KIND", raw.kind, "pod");
  positional(wait, "POD", raw.name, "[NAMESPACE/]NAME");
  wait->add_option("--for", raw.condition, NamesOf(ConditionNames()))
      ->required();
  CLI::App* prepare = AddVerb(app, verbs, Verb::kPrepare, "prepare",
                              "Prepare a pod and wait until it is Ready (for "
                              "devmgrd with actuate: embedder)");
  positional(prepare, "KIND", raw.kind, "pod");
  positional(prepare, "POD", raw.name, "[NAMESPACE/]NAME");
  CLI::App* release = AddVerb(
      app, verbs, Verb::kRelease, "release",
      "Release a pod and wait for it (for devmgrd with actuate: embedder), or "
      "give up a claim that its drivers do not unprepare");
  positional(release, "KIND", raw.kind, "pod or claim");
  positional(release, "NAME", raw.name, "[NAMESPACE/]NAME");
  release->add_flag("--force", raw.force,
                    "Of a claim: do not wait for its drivers any longer");
  AddOperatorFlags(release, raw);
  CLI::App* hand_over = AddVerb(app, verbs, Verb::kHandOver, "hand-over",
                                "Decide whether device plugins or a "
                                "DeviceClass serve an extended resource");
  positional(hand_over, "KIND", raw.kind, "resource");
  positional(hand_over, "NAME", raw.name, "Name of the extended resource");
  hand_over
      ->add_option("--to", raw.owner,
                   "plugin, class, or automatic: by the usual rules")
      ->required();
  AddOperatorFlags(hand_over, raw);
  CLI::App* confirm = AddVerb(app, verbs, Verb::kConfirm, "confirm",
                              "Confirm that pods which the source does not "
                              "list are gone; devmgrd releases them");
  positional(confirm, "KIND", raw.kind, "source");
  AddOperatorFlags(confirm, raw);
  CLI::App* free =
      AddVerb(app, verbs, Verb::kFree, "free",
              "Free the devices of a foreign holder (get holders) for other "
              "pods, although its container may still use them");
  positional(free, "KIND", raw.kind, "holder");
  positional(free, "CONTAINER", raw.name,
             "ID of the container, or a prefix that only this ID has");
  AddOperatorFlags(free, raw);
  CLI::App* convert =
      AddVerb(app, verbs, Verb::kConvert, "convert",
              "With --state-dir: convert the ledger of a stopped devmgrd to an "
              "older format, before an older version is installed");
  convert->add_option("--to", raw.to_format, "Format to convert to: 2")
      ->required();
  convert->add_flag("--yes", raw.yes,
                    "Do it; without --yes, only show what would be lost");
  CLI::App* events = AddVerb(app, verbs, Verb::kEvents, "events",
                             "Show the events that the daemon still has");
  events->add_flag("-f,--follow", raw.follow, "Keep printing new events");
  events->add_option("--since", raw.since,
                     "Show only events after this time: TIME");
  AddLedgerVerbs(app, raw, verbs);
}

void AddFsck(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* fsck =
      AddVerb(app, verbs, Verb::kFsck, "fsck",
              "Check ledger, CDI specs, drivers and plugins against each "
              "other; exit code 1: problems were found (warnings do not "
              "count), above 1: the check could not be done");
  CLI::Option* repair = fsck->add_flag("--repair", raw.repair,
                                       "Show which repairs would be made");
  fsck->add_flag("--yes", raw.yes,
                 "Make the repairs; each one is recorded in the history")
      ->needs(repair);
  fsck->add_option("--cdi-spec-dir", raw.cdi_spec_dirs,
                   "With --state-dir: directory of CDI specs, instead of "
                   "/etc/cdi and /var/run/cdi; may be repeated");
  AddRuntimeEndpoint(fsck, raw,
                     "Also check the running containers of the runtime with "
                     "this CRI socket against the ledger");
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
             kind != Kind::kHolder;
    case Verb::kRelease:
      return kind == Kind::kPod || kind == Kind::kClaim;
    case Verb::kHandOver:
      return kind == Kind::kResource;
    case Verb::kFree:
      return kind == Kind::kHolder;
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

/// `NAMESPACE/NAME`, or a bare name in `default` or in what -n says.
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
      case Verb::kInject:
        return MakeError(absl::StatusCode::kInvalidArgument,
                         fmt::format("the NAME of the {} is missing or empty",
                                     raw.kind.empty() ? "pod" : raw.kind));
      default:
        return absl::OkStatus();
    }
  }
  if (options->verb == Verb::kResolve || options->verb == Verb::kInject) {
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

/// What is decided over the manager's head has a reason, and is meant.
absl::Status CheckOperator(const Raw& raw, Options* options) {
  const bool claim =
      options->verb == Verb::kRelease && options->kind == Kind::kClaim;
  const bool hand_over = options->verb == Verb::kHandOver;
  const bool other =
      options->verb == Verb::kConfirm || options->verb == Verb::kFree;
  options->reason = raw.reason;
  if (!claim && !hand_over && !other) {
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
  if (!hand_over) return absl::OkStatus();
  return Choose(OwnerNames(), "--to", raw.owner, NamesOf(OwnerNames()),
                &options->new_owner);
}

absl::Status Check(Raw raw, const Environment& environment, Options* options) {
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
  if (status.ok()) status = CheckName(raw, options);
  if (status.ok() && options->verb == Verb::kWait) {
    status = Choose(ConditionNames(), "--for", raw.condition,
                    NamesOf(ConditionNames()), &options->condition);
  }
  if (status.ok()) status = CheckOperator(raw, options);
  if (status.ok()) {
    status = CheckContainerOptions(raw, environment, options);
  }
  options->endpoint = Endpoint(raw, environment);
  options->state_dir = raw.state_dir;
  options->ns = raw.ns;
  options->no_headers = raw.no_headers;
  options->follow = raw.follow;
  options->repair = raw.repair;
  options->yes = raw.yes;
  options->to_format = raw.to_format;
  return status;
}

/// The library's words, but for a verb that there is not.
std::string WhatIsWrong(const CLI::App& app, const CLI::ParseError& error) {
  constexpr auto kExtras = static_cast<int>(CLI::ExitCodes::ExtrasError);
  const auto given = app.remaining(/*recurse=*/false);
  const bool is_verb = app.get_subcommands().empty() &&
                       error.get_exit_code() == kExtras && !given.empty() &&
                       !given.front().starts_with('-');
  if (!is_verb) return error.what();
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs.push_back(verb->get_name());
  }
  return fmt::format("verb '{}' is not known; use one of: {}", given.front(),
                     Join(verbs, ", "));
}

}  // namespace

std::string WithoutScheme(const std::string& endpoint) {
  for (const std::string prefix : {"unix://", "unix:"}) {
    if (endpoint.rfind(prefix, 0) == 0) return endpoint.substr(prefix.size());
  }
  return endpoint;
}

std::variant<Options, ExitCode> ParseCommandLine(
    std::vector<std::string> arguments, const Environment& environment) {
  CLI::App app("Shows and controls the device manager of this node",
               "devmgrctl");
  Raw raw;
  VerbMap verbs;
  app.set_version_flag("--version", "devmgrctl " + std::string(Version()));
  // At most one, so that a pod may have a verb's name; none is told below.
  app.require_subcommand(0, 1);
  // Global flags count behind the verb too; subcommands inherit this.
  app.fallthrough();
  AddGlobalFlags(app, raw);
  AddVerbs(app, raw, verbs);
  AddFsck(app, raw, verbs);
  AddCdi(app, raw, verbs);
  AddInject(app, raw, verbs);
  try {
    // CLI11 takes them from the back.
    std::reverse(arguments.begin(), arguments.end());
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    // What was asked for, such as help, is an "error", too.
    if (error.get_exit_code() == 0) {
      app.exit(error, environment.out, environment.err);
      return kExitDone;
    }
    PrintUsageError(environment.err, app, WhatIsWrong(app, error));
    return kExitUsage;
  }
  if (app.get_subcommands().empty()) {
    environment.err << "devmgrctl: no verb given\n\n" << app.help();
    return kExitUsage;
  }
  Options options;
  const CLI::App* verb = app.get_subcommands().front();
  options.verb = verbs.at(verb);
  if (options.verb == Verb::kCdi) options.cdi_verb = CdiVerbOf(*verb);
  const absl::Status status = Check(raw, environment, &options);
  if (!status.ok()) {
    PrintUsageError(environment.err, app, MessageOf(status));
    return kExitUsage;
  }
  return options;
}

}  // namespace devmgr::ctl
