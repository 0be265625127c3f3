// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <devmgr/version.h>
#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "raw_options.h"
#include "usage.h"

namespace devmgr::ctl {
namespace {

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

/// Of the endpoint at which drivers publish.
void AddEndpointVerbs(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* erase =
      AddVerb(app, verbs, Verb::kDelete, "delete",
              "Delete the ResourceSlices that a driver has published to this "
              "node; a driver that runs publishes anew");
  erase->add_option("KIND", raw.kind, "slices");
  erase->add_option("--driver", raw.driver, "Name of the driver")
      ->required()
      ->check(NotEmpty);
  AddOperatorFlags(erase, raw);
  CLI::App* endpoint = AddVerb(app, verbs, Verb::kEndpoint, "endpoint",
                               "Manage the endpoint at which drivers publish "
                               "on a node without an API server");
  endpoint->require_subcommand(1);
  endpoint
      ->add_subcommand("kubeconfig",
                       "Let a driver connect, now and after restarts, and "
                       "print the path of its kubeconfig")
      ->add_option("DRIVER", raw.driver, "Name of the driver")
      ->required()
      ->check(NotEmpty);
}

void AddAuthorityVerb(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* authority = AddVerb(app, verbs, Verb::kAuthority, "authority",
                                "Hand the allocation of devices over between "
                                "this node and the scheduler of a control "
                                "plane");
  authority->require_subcommand(1);
  CLI::App* set = authority->add_subcommand(
      "set",
      "Let the other party allocate from now on; pods that run keep their "
      "devices");
  set->add_option("AUTHORITY", raw.authority, "node or scheduler")->required();
  AddOperatorFlags(set, raw);
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
  get->add_flag("-f,--follow", raw.follow,
                "With changes: print what pods hold now, or what comes after "
                "--after, and keep printing new changes");
  get->add_option("--after", raw.after,
                  "With changes: show only those after this one: TOKEN, as "
                  "JSON and wide tables have it, or the number of a decision");
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
  CLI::App* recheck =
      AddVerb(app, verbs, Verb::kRecheck, "recheck",
              "Offer devices to pods again that failed and work now, without "
              "waiting for healthyFor");
  positional(recheck, "KIND", raw.kind, "device");
  positional(recheck, "NAME", raw.name,
             "Extended resource or DRA driver whose devices these are");
  recheck->add_option("--device", raw.device,
                      "Only this device: its ID, of a driver POOL/DEVICE");
  recheck->add_option("--reason", raw.reason,
                      "Reason of the decision, for the history");
  AddAuthorityVerb(app, raw, verbs);
  AddEndpointVerbs(app, raw, verbs);
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

void AddCel(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* cel = AddVerb(
      app, verbs, Verb::kCel, "cel",
      "Evaluate a CEL selector on the devices of ResourceSlices in files: "
      "which devices match, where it fails, and what it costs; needs no "
      "daemon. Exit code 1: the expression is wrong, or fails on a device; "
      "above 1: a file could not be used");
  cel->add_option("EXPR", raw.expression,
                  "Expression of a DeviceClass or a claim")
      ->required()
      ->check(NotEmpty);
  cel->add_option("--slice", raw.slices,
                  "File with ResourceSlices, YAML or JSON, such as `kubectl "
                  "get resourceslices -o yaml` prints; may be repeated")
      ->type_name("FILE")
      ->required()
      ->allow_extra_args(false);
  cel->add_option("--driver", raw.driver, "Show only devices of this driver");
  cel->add_flag("--v1alpha2", raw.old_variables,
                "Read EXPR as a selector of ResourceClaimParameters, with the "
                "variables of Kubernetes 1.30, such as "
                "attributes.string[\"model\"]");
  cel->footer(
      "Example: devmgrctl cel "
      "'device.attributes[\"gpu.example.com\"].model == \"A100\"' "
      "--slice slices.yaml\n"
      "A device without an attribute that the expression reads is an error, "
      "for which the pod is refused; read it with .? and orValue(), or ask "
      "has() before\n");
}

void AddAllocate(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* allocate = AddVerb(
      app, verbs, Verb::kAllocate, "allocate",
      "Choose devices for the ResourceClaims in files, as a scheduler of "
      "Kubernetes 1.37 would for this node: all claims or none; needs no "
      "daemon and changes nothing. Exit code 1: they cannot be allocated, and "
      "the reasons are on stderr; above 1: a file could not be used");
  allocate
      ->add_option("-f,--filename", raw.files,
                   "File with ResourceSlices, DeviceClasses, claims, claim "
                   "templates, taint rules or Nodes, YAML or JSON; may be "
                   "repeated. Claims with an allocation hold its devices. "
                   "Claims of v1alpha2 need their ResourceClass and parameters")
      ->type_name("FILE")
      ->required();
  allocate->add_option("--node", raw.node, "Name of the node")
      ->required()
      ->check(NotEmpty);
  allocate
      ->add_option("--node-labels", raw.node_labels,
                   "Labels of the node, beside those of a Node of that name "
                   "in the files")
      ->type_name("KEY=VALUE,...")
      ->delimiter(',');
  allocate
      ->add_option("--feature-gates", raw.feature_gates,
                   "Feature gates of Kubernetes that change what is "
                   "allocated; all of them are on, but DRADerivedAttributes")
      ->type_name("GATE=true|false,...")
      ->delimiter(',');
  allocate->footer(
      "Example: devmgrctl allocate -f slices.yaml -f claims.yaml --node node-1 "
      "-o yaml\n"
      "A template stands for one claim of its name. JSON and YAML are the "
      "claims with status.allocation, as a List\n");
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
  AddCel(app, raw, verbs);
  AddAllocate(app, raw, verbs);
  AddSimulate(app, raw, verbs);
  AddPodResources(app, raw, verbs);
  AddKubelet(app, raw, verbs);
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
  if (options.verb == Verb::kPodResources) {
    options.pod_resources_verb = PodResourcesVerbOf(*verb);
  }
  const absl::Status status = CheckOptions(raw, environment, &options);
  if (!status.ok()) {
    PrintUsageError(environment.err, app, MessageOf(status));
    return kExitUsage;
  }
  return options;
}

}  // namespace devmgr::ctl
