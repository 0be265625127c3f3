// SPDX-License-Identifier: Apache-2.0
//
// fake-device-plugin: a device plugin without hardware, that can be told to
// misbehave. All it does lives in devmgr/testing.h.
#include <devmgr/testing.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

namespace {

using Options = devmgr::testing::FakeDevicePluginOptions;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

const std::map<std::string, Options::Way> kWays = {
    {"socket", Options::Way::kSocket},
    {"directory", Options::Way::kDirectory},
    {"both", Options::Way::kBoth},
};

struct Flags {
  Options options;
  std::string root;
  std::string way = "socket";
  std::string scenario;
};

void Complain(const std::string& text) {
  std::fprintf(stderr, "fake-device-plugin: %s\n", text.c_str());
}

void DeclareFlags(CLI::App* app, Flags* flags) {
  auto& options = flags->options;
  app->add_option("--resource", options.resource, "Extended resource name")
      ->required()
      ->type_name("NAME");
  app->add_option("--root", flags->root,
                  "Root directory, as of `devmgrd --root`")
      ->required()
      ->type_name("DIR");
  app->add_option("--devices", options.devices, "Number of devices")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app->add_option(
         "--numa", options.numa,
         "NUMA nodes of the devices, in turn; none: devices have no NUMA node")
      ->delimiter(',')
      ->type_name("0,1");
  app->add_option("--register", flags->way,
                  "How to register with the device manager")
      ->type_name("socket|directory|both")
      ->check(CLI::IsMember(kWays))
      ->capture_default_str();
  app->add_flag("--preferred", options.preferred,
                "Offer GetPreferredAllocation");
  app->add_flag("--prestart", options.pre_start,
                "Require PreStartContainer before each start of a container");
  app->add_flag(
      "--cdi", options.cdi,
      "Answer with CDI device names, and write a spec file to DIR/cdi");
  app->add_option(
         "--instance", options.instance,
         "Part of the socket's name, to run several instances for one resource")
      ->type_name("ID");
  app->add_option("--scenario", flags->scenario,
                  "YAML file with steps of misbehaviour")
      ->type_name("FILE");
}

/// Reads the command line. False: there is nothing to run, `*code` tells why.
bool ParseFlags(int argc, char** argv, Flags* flags, int* code) {
  CLI::App app(
      "A device plugin without hardware. It registers with the socket\n"
      "DIR/device-plugins/kubelet.sock or in DIR/plugins_registry, has "
      "devices\n"
      "<name part of the resource>-0 and so on, and prints one JSON line per\n"
      "event. SIGTERM ends it.");
  DeclareFlags(&app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *code = app.exit(error) == 0 ? 0 : kUsage;
    return false;
  }
  flags->options.root = flags->root;
  flags->options.way = kWays.at(flags->way);
  return true;
}

int Run(Flags flags) {
  auto& options = flags.options;
  if (!flags.scenario.empty()) {
    auto steps = devmgr::testing::ReadPluginScenario(flags.scenario);
    if (!steps.ok()) {
      Complain(std::string(steps.status().message()));
      return kUsage;
    }
    options.scenario = *std::move(steps);
  }
  options.on_event = [](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  };

  // Before any thread starts, so that all of them inherit the mask and only
  // sigwait sees the signal.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  // Who reads our events may leave; the sockets have to go in order.
  signal(SIGPIPE, SIG_IGN);

  const auto plugin =
      devmgr::testing::FakeDevicePlugin::Start(std::move(options));
  if (!plugin.ok()) {
    Complain(std::string(plugin.status().message()));
    return plugin.status().code() == absl::StatusCode::kInvalidArgument
               ? kUsage
               : kFailed;
  }
  int signal_number = 0;
  sigwait(&ending, &signal_number);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  int code = 0;
  if (!ParseFlags(argc, argv, &flags, &code)) return code;
  return Run(std::move(flags));
}
