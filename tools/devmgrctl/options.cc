// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <devmgr/version.h>
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "raw_options.h"
#include "shared/duration.h"

namespace devmgr::ctl {
namespace {

constexpr char kDefaultEndpoint[] = "/run/devmgr/devmgr.sock";
constexpr char kListedKinds[] =
    "plugins, resources, claims, debts, pods, devices, classes";
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
      {"debts", Kind::kDebt},     {"debt", Kind::kDebt}};
  return names;
}

void AddGlobalFlags(CLI::App& app, Raw& raw) {
  const auto last = CLI::MultiOptionPolicy::TakeLast;
  CLI::Option* endpoint =
      app.add_option("--endpoint", raw.endpoint,
                     "socket of devmgrd (DEVMGR_ENDPOINT, else " +
                         std::string(kDefaultEndpoint) + ")")
          ->multi_option_policy(last);
  app.add_option("--state-dir", raw.state_dir,
                 "read the state directory of a stopped devmgrd instead")
      ->multi_option_policy(last)
      ->excludes(endpoint);
  app.add_option("-o,--output", raw.format, NamesOf(FormatNames()))
      ->multi_option_policy(last);
  app.add_option("--timeout", raw.timeout,
                 "longest wait for an answer, 0 for none (default 2s; for "
                 "wait, prepare and release the whole wait, default 30s; for "
                 "fsck 30s)")
      ->multi_option_policy(last);
  app.add_option("-n,--namespace", raw.ns,
                 "only this namespace; of a bare pod or claim name")
      ->multi_option_policy(last);
  app.add_flag("-A,--all-namespaces", raw.all_namespaces,
               "accepted; all namespaces are shown unless -n is given");
  app.add_flag("--no-headers", raw.no_headers, "no header line in tables");
  app.add_option("--color", raw.color, NamesOf(ColorNames()))
      ->multi_option_policy(last);
}

/// Of what an operator decides over the manager's head.
void AddOperatorFlags(CLI::App* command, Raw& raw) {
  command->add_option("--reason", raw.reason, "why, for the history");
  command->add_flag("--yes", raw.yes, "do it; else it is only shown");
}

/// What looks back into the ledger.
void AddLedgerVerbs(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* history = AddVerb(app, verbs, Verb::kHistory, "history",
                              "decisions, as far as the ledger remembers");
  history->add_option("POD|CLAIM", raw.name,
                      "only those about it: [pod/|claim/][NAMESPACE/]NAME, or "
                      "its UID");
  history->add_option("--since", raw.since, "only what is newer: SEQ|TIME");
  CLI::App* state = AddVerb(app, verbs, Verb::kState, "state",
                            "what the ledger held at an earlier moment");
  state->add_option("--at", raw.at, "SEQ|TIME (default: now)");
  CLI::App* diff =
      AddVerb(app, verbs, Verb::kDiff, "diff",
              "what changed between two moments; exit code 1 if anything did");
  diff->add_option("--from", raw.from, "SEQ|TIME")->required();
  diff->add_option("--to", raw.to, "SEQ|TIME (default: now)");
  const std::string forms =
      std::string("SEQ is a decision's number, TIME ") + kTimeForm;
  for (CLI::App* command : {history, state, diff}) command->footer(forms);
}

void AddVerbs(CLI::App& app, Raw& raw, VerbMap& verbs) {
  const auto positional = [&](CLI::App* command, const char* name,
                              std::string& value, const char* description) {
    command->add_option(name, value, description)->required();
  };
  AddVerb(app, verbs, Verb::kStatus, "status", "the dashboard");
  AddVerb(app, verbs, Verb::kVersion, "version",
          "versions of this program and of the daemon");
  CLI::App* get = AddVerb(app, verbs, Verb::kGet, "get", "list what there is");
  positional(get, "KIND", raw.kind, kListedKinds);
  get->add_option("RESOURCE", raw.name,
                  "of devices: only those of this resource or driver");
  CLI::App* describe = AddVerb(app, verbs, Verb::kDescribe, "describe",
                               "all there is to know about one thing");
  positional(describe, "KIND", raw.kind, kDescribedKinds);
  positional(describe, "NAME", raw.name,
             "[NAMESPACE/]NAME; of a device RESOURCE/ID, DRIVER/POOL/DEVICE, "
             "or its ID if no other has it");
  AddShowEnv(describe, raw);
  AddResolve(app, raw, verbs);
  CLI::App* explain =
      AddVerb(app, verbs, Verb::kExplain, "explain",
              "why a pod is in its state: what it waits for and who has that, "
              "what it holds, what took how long");
  positional(explain, "KIND", raw.kind, "pod");
  positional(explain, "POD", raw.name, "[NAMESPACE/]NAME");
  CLI::App* wait = AddVerb(app, verbs, Verb::kWait, "wait",
                           "wait until a pod is in a state");
  positional(wait, "KIND", raw.kind, "pod");
  positional(wait, "POD", raw.name, "[NAMESPACE/]NAME");
  wait->add_option("--for", raw.condition, NamesOf(ConditionNames()))
      ->required();
  CLI::App* prepare =
      AddVerb(app, verbs, Verb::kPrepare, "prepare",
              "have a pod prepared and wait for it (actuate: embedder)");
  positional(prepare, "KIND", raw.kind, "pod");
  positional(prepare, "POD", raw.name, "[NAMESPACE/]NAME");
  CLI::App* release =
      AddVerb(app, verbs, Verb::kRelease, "release",
              "have a pod released and wait for it (actuate: embedder); or "
              "give up a claim that drivers do not unprepare");
  positional(release, "KIND", raw.kind, "pod or claim");
  positional(release, "NAME", raw.name, "[NAMESPACE/]NAME");
  release->add_flag("--force", raw.force,
                    "of a claim: wait no longer for its drivers");
  AddOperatorFlags(release, raw);
  CLI::App* hand_over = AddVerb(
      app, verbs, Verb::kHandOver, "hand-over",
      "say who serves an extended resource by its name, and keep it so");
  positional(hand_over, "KIND", raw.kind, "resource");
  positional(hand_over, "NAME", raw.name, "the resource's name");
  hand_over
      ->add_option("--to", raw.owner,
                   "plugin, class, or automatic: as the rules say")
      ->required();
  AddOperatorFlags(hand_over, raw);
  CLI::App* confirm =
      AddVerb(app, verbs, Verb::kConfirm, "confirm",
              "say that pods which the source lacks are gone, where it is not "
              "believed: they are released");
  positional(confirm, "KIND", raw.kind, "source");
  AddOperatorFlags(confirm, raw);
  CLI::App* convert = AddVerb(
      app, verbs, Verb::kConvert, "convert",
      "with --state-dir: make the ledger of a stopped devmgrd one of an "
      "older format, for an older version");
  convert->add_option("--to", raw.to_format, "the format: 2")->required();
  convert->add_flag("--yes", raw.yes,
                    "do it; else only what would be lost is shown");
  CLI::App* events = AddVerb(app, verbs, Verb::kEvents, "events",
                             "what happened, as far as the daemon remembers");
  events->add_flag("-f,--follow", raw.follow, "go on with what happens");
  events->add_option("--since", raw.since, "only what is newer: TIME");
  AddLedgerVerbs(app, raw, verbs);
}

void AddFsck(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* fsck =
      AddVerb(app, verbs, Verb::kFsck, "fsck",
              "check ledger, CDI specs and drivers against each other; exits "
              "with 1 on problems (not on warnings), with more than 1 when it "
              "cannot look");
  CLI::Option* repair = fsck->add_flag(
      "--repair", raw.repair, "show what would be done about the problems");
  fsck->add_flag("--yes", raw.yes, "do it; each repair is in the history")
      ->needs(repair);
  fsck->add_option("--cdi-spec-dir", raw.cdi_spec_dirs,
                   "with --state-dir: where CDI specs are, instead of "
                   "/etc/cdi and /var/run/cdi; may be repeated");
  AddRuntimeEndpoint(fsck, raw,
                     "CRI socket of the runtime: check its running containers "
                     "against the ledger, too");
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

absl::Status CheckKind(const Raw& raw, Options* options) {
  // The plural names come first, then the singular ones.
  switch (options->verb) {
    case Verb::kGet:
      return Choose(KindNames(), "kind", raw.kind, kListedKinds,
                    &options->kind);
    case Verb::kDescribe: {
      absl::Status status = Choose(KindNames(), "kind", raw.kind,
                                   kDescribedKinds, &options->kind);
      if (status.ok() &&
          (options->kind == Kind::kClass || options->kind == Kind::kDebt)) {
        status = MakeError(absl::StatusCode::kInvalidArgument,
                           fmt::format("kind '{}' cannot be described; use one "
                                       "of: {}",
                                       raw.kind, kDescribedKinds));
      }
      return status;
    }
    case Verb::kRelease: {
      const Names<Kind> kinds = {{"pod", Kind::kPod},
                                 {"pods", Kind::kPod},
                                 {"claim", Kind::kClaim},
                                 {"claims", Kind::kClaim}};
      return Choose(kinds, "kind", raw.kind, "pod, claim", &options->kind);
    }
    case Verb::kHandOver: {
      const Names<Kind> resources = {{"resource", Kind::kResource},
                                     {"resources", Kind::kResource}};
      return Choose(resources, "kind", raw.kind, "resource", &options->kind);
    }
    case Verb::kConfirm:
      if (raw.kind == "source") return absl::OkStatus();
      return MakeError(
          absl::StatusCode::kInvalidArgument,
          fmt::format("kind '{}' cannot be confirmed, only source: "
                      "devmgrctl confirm source --reason TEXT",
                      raw.kind));
    case Verb::kExplain:
    case Verb::kWait:
    case Verb::kPrepare: {
      const Names<Kind> pods = {{"pod", Kind::kPod}, {"pods", Kind::kPod}};
      return Choose(pods, "kind", raw.kind, "pod", &options->kind);
    }
    default:
      return absl::OkStatus();
  }
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
  return kind == Kind::kPod || kind == Kind::kClaim;
}

absl::Status CheckName(const Raw& raw, Options* options) {
  if (options->verb == Verb::kHistory) return CheckSubject(raw, options);
  if (raw.name.empty()) {
    switch (options->verb) {
      case Verb::kResolve:
        if (!raw.diff_container.empty()) return absl::OkStatus();
        return MakeError(absl::StatusCode::kInvalidArgument,
                         "the name of a POD is empty; give one, or --diff "
                         "CONTAINER_ID");
      case Verb::kDescribe:
      case Verb::kExplain:
      case Verb::kWait:
      case Verb::kPrepare:
      case Verb::kRelease:
      case Verb::kHandOver:
      case Verb::kInject:
        return MakeError(absl::StatusCode::kInvalidArgument, "a name is empty");
      default:
        return absl::OkStatus();
    }
  }
  if (options->verb == Verb::kGet && options->kind != Kind::kDevice) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     fmt::format("'{}' is one too many: only devices are "
                                 "listed by resource or driver",
                                 raw.name));
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
  const bool confirm = options->verb == Verb::kConfirm;
  options->reason = raw.reason;
  if (!claim && !hand_over && !confirm) {
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

absl::Status Check(const Raw& raw, const Environment& environment,
                   Options* options) {
  absl::Status status = Choose(FormatNames(), "output format", raw.format,
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

}  // namespace

std::string WithoutScheme(const std::string& endpoint) {
  for (const std::string prefix : {"unix://", "unix:"}) {
    if (endpoint.rfind(prefix, 0) == 0) return endpoint.substr(prefix.size());
  }
  return endpoint;
}

std::variant<Options, ExitCode> ParseCommandLine(
    std::vector<std::string> arguments, const Environment& environment) {
  CLI::App app("Shows what a device manager of this node knows and does",
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
    const int code = app.exit(error, environment.out, environment.err);
    return code == 0 ? kExitDone : kExitUsage;
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
    environment.err << "devmgrctl: " << MessageOf(status) << "\n";
    return kExitUsage;
  }
  return options;
}

}  // namespace devmgr::ctl
