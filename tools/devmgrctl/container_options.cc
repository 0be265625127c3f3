// SPDX-License-Identifier: Apache-2.0
//
// resolve, inject, cdi: what a container is given.
#include "raw_options.h"

namespace devmgr::ctl {
namespace {

constexpr char kRuntimeVariable[] = "CONTAINER_RUNTIME_ENDPOINT";

void AddCdiSpecDirs(CLI::App* command, Raw& raw) {
  command
      ->add_option("--cdi-spec-dir", raw.cdi_spec_dirs,
                   "where CDI specs are, instead of /etc/cdi and "
                   "/var/run/cdi; may be repeated, the last one wins")
      ->allow_extra_args(false);
}

const Names<CdiVerb>& CdiVerbNames() {
  static const Names<CdiVerb> names = {
      {"dirs", CdiVerb::kDirs},   {"list", CdiVerb::kList},
      {"show", CdiVerb::kShow},   {"validate", CdiVerb::kValidate},
      {"watch", CdiVerb::kWatch}, {"min-version", CdiVerb::kMinVersion}};
  return names;
}

/// An empty text is a variable of a script that is not set.
std::string NotEmpty(const std::string& text) {
  return text.empty() ? "is empty" : "";
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
                   "of --fallback: `refuse` the container for what CRI cannot "
                   "say, or `warn` and leave it out")
      ->check(CLI::IsMember({"refuse", "warn"}))
      ->needs(fallback);
  resolve
      ->add_option("--allow-hook", raw.allowed_hooks,
                   "of --fallback: leave this hook out, whatever "
                   "--inexpressible says; may be repeated")
      ->allow_extra_args(false)
      ->needs(fallback);
  resolve
      ->add_flag("--mount-options", raw.mount_options,
                 "of --fallback: the runtime takes mount options")
      ->needs(fallback);
}

}  // namespace

void AddShowEnv(CLI::App* command, Raw& raw) {
  command->add_flag("--show-env", raw.show_env,
                    "show values of environment variables in tables");
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
              "what to inject into the containers of a pod that is Ready");
  CLI::Option* pod = resolve->add_option("POD", raw.name, "[NAMESPACE/]NAME");
  CLI::Option* container = resolve->add_option("-c,--container", raw.container,
                                               "only this container");
  CLI::Option* edits = resolve->add_flag(
      "--cdi", raw.cdi_edits,
      "the edits behind the CDI devices of claims and plugins");
  CLI::Option* fallback =
      resolve
          ->add_flag("--fallback", raw.fallback,
                     "all of it in plain CRI fields, as for a runtime without "
                     "CDI, or why that cannot be")
          ->excludes(edits);
  resolve
      ->add_option("--diff", raw.diff_container,
                   "in place of POD: how what this container of the runtime "
                   "holds differs from it; an ID, or its beginning. Exit code "
                   "1 if it does")
      ->type_name("CONTAINER_ID")
      ->check(NotEmpty)
      ->excludes(pod)
      ->excludes(container)
      ->excludes(edits)
      ->excludes(fallback);
  AddRuntimeEndpoint(resolve, raw,
                     "of --diff: CRI socket of the runtime (or " +
                         std::string(kRuntimeVariable) +
                         "); of --fallback: of the one that is meant");
  AddFallback(resolve, fallback, raw);
  AddCdiSpecDirs(resolve, raw);
  AddShowEnv(resolve, raw);
}

void AddInject(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* inject =
      AddVerb(app, verbs, Verb::kInject, "inject",
              "put what a container gets into its OCI runtime configuration");
  inject->add_option("--pod", raw.name, "[NAMESPACE/]NAME")->required();
  inject->add_option("-c,--container", raw.container, "the container")
      ->required();
  inject->add_option("--spec", raw.spec, "its config.json")->required();
  inject->add_option("-o,--output", raw.out_file,
                     "the file to write, in one step; it may be that of "
                     "--spec (default: stdout)");
  AddCdiSpecDirs(inject, raw);
}

void AddCdi(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* cdi = AddVerb(app, verbs, Verb::kCdi, "cdi",
                          "CDI specs on this machine; asks no daemon");
  cdi->require_subcommand(1);
  AddCdiSpecDirs(cdi, raw);
  cdi->add_subcommand("dirs", "the directories, and what is wrong with them");
  cdi->add_subcommand("list",
                      "the devices; which definitions do not count, and why");
  CLI::App* show = cdi->add_subcommand(
      "show", "what one device changes in a container, and where it is from");
  show->add_option("NAME", raw.cdi_device, "VENDOR/CLASS=DEVICE")->required();
  AddShowEnv(show, raw);
  cdi->add_subcommand("validate", "check spec files; exit code 1 if any is bad")
      ->add_option("PATH", raw.paths,
                   "files, or directories (default: all directories)");
  cdi->add_subcommand("watch",
                      "the devices, then what changes, until --timeout");
  cdi->add_subcommand("min-version",
                      "the oldest CDI version that has all that is in a spec")
      ->add_option("FILE", raw.paths, "the spec file")
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
