// SPDX-License-Identifier: Apache-2.0
//
// resolve, inject, cdi: what a container is given.
#include "raw_options.h"

namespace devmgr::ctl {
namespace {

constexpr char kRuntimeVariable[] = "CONTAINER_RUNTIME_ENDPOINT";

void AddCdiSpecDirs(CLI::App* command, Raw& raw) {
  command
      ->add_option(
          "--cdi-spec-dir", raw.cdi_spec_dirs,
          "Directory of CDI specs, instead of /etc/cdi and /var/run/cdi; may "
          "be repeated, the last one has the highest priority")
      ->allow_extra_args(false);
}

const Names<CdiVerb>& CdiVerbNames() {
  static const Names<CdiVerb> names = {
      {"dirs", CdiVerb::kDirs},   {"list", CdiVerb::kList},
      {"show", CdiVerb::kShow},   {"validate", CdiVerb::kValidate},
      {"watch", CdiVerb::kWatch}, {"min-version", CdiVerb::kMinVersion}};
  return names;
}

absl::Status Wrong(const char* text) {
  return MakeError(absl::StatusCode::kInvalidArgument, text);
}

/// A container tells its pod by itself.
absl::Status CheckDiff(const Raw& raw, const Environment& environment,
                       Options* options) {
  if (raw.diff_container.empty()) {
    return raw.runtime_endpoint.empty() || raw.fallback
               ? absl::OkStatus()
               : Wrong(
                     "--runtime-endpoint is for --diff CONTAINER_ID and "
                     "--fallback");
  }
  if (!options->runtime_endpoint.empty()) return absl::OkStatus();
  const char* value = environment.getenv(kRuntimeVariable);
  if (value == nullptr || *value == '\0') {
    return Wrong(
        "--diff: say which runtime has the container, with "
        "--runtime-endpoint SOCKET or CONTAINER_RUNTIME_ENDPOINT");
  }
  options->runtime_endpoint = WithoutScheme(value);
  return absl::OkStatus();
}

/// As devmgr-cri-shim was told.
void AddFallback(CLI::App* resolve, CLI::Option* fallback, Raw& raw) {
  resolve
      ->add_option("--inexpressible", raw.inexpressible,
                   "With --fallback: `refuse` a container whose CDI edits CRI "
                   "has no field for, or `warn` and leave them out")
      ->check(CLI::IsMember({"refuse", "warn"}))
      ->needs(fallback);
  resolve
      ->add_option("--allow-hook", raw.allowed_hooks,
                   "With --fallback: leave this hook out, whatever "
                   "--inexpressible says; may be repeated")
      ->allow_extra_args(false)
      ->needs(fallback);
  resolve
      ->add_flag("--mount-options", raw.mount_options,
                 "With --fallback: the runtime supports mount options")
      ->needs(fallback);
}

}  // namespace

void AddShowEnv(CLI::App* command, Raw& raw) {
  command->add_flag("--show-env", raw.show_env,
                    "Show the values of environment variables in tables");
}

CLI::Option* AddRuntimeEndpoint(CLI::App* command, Raw& raw,
                                const std::string& description) {
  return command
      ->add_option("-r,--runtime-endpoint", raw.runtime_endpoint, description)
      ->type_name("SOCKET")
      ->check(NotEmpty);
}

void AddResolve(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* resolve =
      AddVerb(app, verbs, Verb::kResolve, "resolve",
              "Show what to inject into the containers of a pod that is Ready");
  CLI::Option* pod = resolve->add_option("POD", raw.name, "[NAMESPACE/]NAME");
  CLI::Option* container = resolve->add_option("-c,--container", raw.container,
                                               "Show only this container");
  CLI::Option* edits = resolve->add_flag("--cdi", raw.cdi_edits,
                                         "Show the CDI edits of these devices");
  CLI::Option* fallback =
      resolve
          ->add_flag("--fallback", raw.fallback,
                     "Show everything as plain CRI fields, as for a runtime "
                     "without CDI, or why that is not possible")
          ->excludes(edits);
  resolve
      ->add_option("--diff", raw.diff_container,
                   "Instead of POD: show how what this container of the "
                   "runtime holds differs from it; an ID or a prefix of it. "
                   "Exit code 1 if there are differences")
      ->type_name("CONTAINER_ID")
      ->check(NotEmpty)
      ->excludes(pod)
      ->excludes(container)
      ->excludes(edits)
      ->excludes(fallback);
  AddRuntimeEndpoint(resolve, raw,
                     "CRI socket of the runtime: with --diff of the one that "
                     "has the container (default: " +
                         std::string(kRuntimeVariable) +
                         "), with --fallback of the one to show the fields "
                         "for");
  AddFallback(resolve, fallback, raw);
  AddCdiSpecDirs(resolve, raw);
  AddShowEnv(resolve, raw);
}

void AddInject(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* inject = AddVerb(
      app, verbs, Verb::kInject, "inject",
      "Add the devices of a container to its OCI runtime configuration");
  inject->add_option("--pod", raw.name, "[NAMESPACE/]NAME")->required();
  inject->add_option("-c,--container", raw.container, "Name of the container")
      ->required();
  inject
      ->add_option("--spec", raw.spec,
                   "OCI runtime configuration (config.json) to read")
      ->required();
  inject->add_option(
      "-o,--output", raw.out_file,
      "File to write, atomically; it may be that of --spec (default: stdout)");
  AddCdiSpecDirs(inject, raw);
}

void AddCdi(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* cdi =
      AddVerb(app, verbs, Verb::kCdi, "cdi",
              "Work with the CDI specs of this machine; needs no daemon");
  cdi->require_subcommand(1);
  AddCdiSpecDirs(cdi, raw);
  cdi->add_subcommand("dirs",
                      "List the directories of CDI specs, with their problems");
  cdi->add_subcommand("list",
                      "List the devices, and the definitions that do not "
                      "count, with the reason");
  CLI::App* show = cdi->add_subcommand(
      "show",
      "Show what a device changes in a container, and which file defines it");
  show->add_option("NAME", raw.cdi_device, "VENDOR/CLASS=DEVICE")->required();
  AddShowEnv(show, raw);
  cdi->add_subcommand("validate",
                      "Check spec files; exit code 1 if one is invalid")
      ->add_option(
          "PATH", raw.paths,
          "Files or directories (default: all directories of CDI specs)");
  cdi->add_subcommand("watch",
                      "List the devices, then each change, until --timeout");
  cdi->add_subcommand(
         "min-version",
         "Print the oldest CDI version that has all fields of a spec")
      ->add_option("FILE", raw.paths, "Spec file")
      ->required()
      ->expected(1);
}

CdiVerb CdiVerbOf(const CLI::App& verb) {
  const std::string& given = verb.get_subcommands().front()->get_name();
  CdiVerb found = CdiVerb::kDirs;
  for (const auto& [name, value] : CdiVerbNames()) {
    if (name == given) found = value;
  }
  return found;
}

absl::Status CheckContainerOptions(const Raw& raw,
                                   const Environment& environment,
                                   Options* options) {
  options->container = raw.container;
  options->show_env = raw.show_env;
  options->cdi_spec_dirs = raw.cdi_spec_dirs;
  options->cdi_edits = raw.cdi_edits;
  options->fallback = raw.fallback;
  options->leaves_out = raw.inexpressible == "warn";
  options->allowed_hooks = raw.allowed_hooks;
  options->mount_options = raw.mount_options;
  options->diff_container = raw.diff_container;
  options->runtime_endpoint = WithoutScheme(raw.runtime_endpoint);
  options->cdi_device = raw.cdi_device;
  options->paths = raw.paths;
  options->spec = raw.spec;
  options->out_file = raw.out_file;
  if (options->verb != Verb::kResolve) return absl::OkStatus();
  return CheckDiff(raw, environment, options);
}

}  // namespace devmgr::ctl
