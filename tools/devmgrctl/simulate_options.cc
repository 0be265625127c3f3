// SPDX-License-Identifier: Apache-2.0
//
// The command line of simulate.
#include <charconv>
#include <cstdint>

#include "exit_code.h"
#include "raw_options.h"

namespace devmgr::ctl {
namespace {

absl::Status ParsePlugin(const std::string& text, Options* options) {
  const std::size_t equals = text.find('=');
  std::int64_t count = 0;
  bool is_number = false;
  if (equals != std::string::npos && equals > 0) {
    const char* const end = text.data() + text.size();
    const auto [at, error] =
        std::from_chars(text.data() + equals + 1, end, count);
    is_number = error == std::errc() && at == end && count >= 0;
  }
  if (!is_number) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     fmt::format("--plugin: '{}' is not RESOURCE=NUMBER, such "
                                 "as example.com/gpu=4",
                                 text));
  }
  options->plugin_devices[text.substr(0, equals)] = count;
  return absl::OkStatus();
}

}  // namespace

void AddSimulate(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* simulate = AddVerb(
      app, verbs, Verb::kSimulate, "simulate",
      "Ask the daemon what it would decide about the pods in files, each on "
      "top of those before it; changes nothing, and plugins and drivers are "
      "not asked. Exit code 1: not all would be admitted, and the reasons are "
      "on stderr; above 1: the daemon could not simulate");
  simulate
      ->add_option("-f,--filename", raw.files,
                   "File with Pods, and with claims, claim templates and "
                   "DeviceClasses for them, YAML or JSON; may be repeated")
      ->type_name("FILE")
      ->required();
  simulate
      ->add_option("--minus", raw.minus,
                   "Take this pod to be gone, with what it alone holds; may be "
                   "repeated")
      ->type_name("[NAMESPACE/]POD")
      ->check(NotEmpty);
  simulate
      ->add_option("--slices", raw.slices,
                   "File with ResourceSlices that the node has as well; may be "
                   "repeated. Their drivers count as registered")
      ->type_name("FILE")
      ->check(NotEmpty);
  simulate
      ->add_option("--plugin", raw.plugin_devices,
                   "So many healthy devices in place of those of the device "
                   "plugin of this resource; may be repeated")
      ->type_name("RESOURCE=NUMBER");
  CLI::Option* like =
      simulate
          ->add_option("--like", raw.like,
                       "On another node like this one, of this name: its own "
                       "devices are there once more, and free")
          ->check(NotEmpty);
  simulate
      ->add_option("--node", raw.node,
                   "On a node of this name that has only what --slices and "
                   "--plugin say")
      ->check(NotEmpty)
      ->excludes(like);
  simulate
      ->add_option("--node-labels", raw.node_labels,
                   "Labels of the node, beside those that it has")
      ->type_name("KEY=VALUE,...")
      ->delimiter(',');
  CLI::Option* independent = simulate->add_flag(
      "--independent", raw.independent, "Try each pod by itself");
  simulate
      ->add_flag("--count", raw.count_fits,
                 "Count how many copies of the one pod fit")
      ->excludes(independent);
  simulate->footer(
      "Example: devmgrctl simulate -f pod.yaml --minus default/demo\n"
      "JSON and YAML have all of the answer: verdicts, claims with their "
      "allocations, refusals by device, and what is free afterwards\n");
}

absl::Status CheckSimulateOptions(const Raw& raw, Options* options) {
  for (const std::string& pod : raw.minus) {
    const absl::Status status =
        ParseName(pod, raw.ns, &options->minus.emplace_back());
    if (!status.ok()) return status;
  }
  for (const std::string& plugin : raw.plugin_devices) {
    const absl::Status status = ParsePlugin(plugin, options);
    if (!status.ok()) return status;
  }
  options->like = raw.like;
  options->independent = raw.independent;
  options->count_fits = raw.count_fits;
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
